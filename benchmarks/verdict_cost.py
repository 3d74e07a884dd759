"""The verdict on faultless outputs of many visits: seconds and memory, reading and judging apart.

Usage: python -m benchmarks.verdict_cost [VISITS [VISITS_PER_ID [VALUE_BYTES]]]
"""

from __future__ import annotations

from benchmarks.own_stack import own_stack, run_benchmark
from benchmarks.table import row
from faultline.messages import say

_WIDTHS = "{:<30} {:>10} {:>10} {:>8} {:>8} {:>8} {:>6}  {}"


def run(visits: int, visits_per_id: int, value_bytes: int) -> None:
    """Fill a stack without jobs, judge it, and print the table. Raises StackError when a figure is not valid."""
    with own_stack() as stack:
        stack.start("kafka")
        stack.topics()
        say(f"writing {visits} visits and the outputs of faultless pipelines ...")
        written = stack.tool("benchmarks.faultless", str(visits), str(visits_per_id), str(value_bytes)).split()
        row(_WIDTHS, f"{written[0]} visits", "expected", "observed", "seconds", "reading", "judging", "MiB", "verdict")
        for pipeline, lines in (("flink", written[1]), ("spark", written[2])):
            say(f"judging {pipeline} ...")
            outcome, *figures = stack.require_right(pipeline, written=int(lines))
            row(_WIDTHS, f"verdict {pipeline}", *figures, outcome)


if __name__ == "__main__":
    run_benchmark("verdict.sh", run, VISITS="1000000", VISITS_PER_ID="4", VALUE_BYTES="440")
