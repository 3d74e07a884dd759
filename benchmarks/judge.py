"""Judge a pipeline and print its time and memory.

Usage: python -m benchmarks.judge spark|flink [FLAG OF THE VERDICT...]

Prints one line: outcome, expected and observed output records, seconds from command to answer, seconds of reading and
of judging, and the largest memory of the verdict's processes together, in MiB. Exit code 1 when the verdict gave no
report.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import psutil

from faultline.formats.verdict import Verdict

LOOK_SECONDS = 0.1


def resident(process: psutil.Process) -> int:
    """Return the proportional memory of a process and its children, in bytes: shared pages count once."""
    total = 0
    for member in (process, *process.children(recursive=True)):
        try:
            total += member.memory_full_info().pss
        except psutil.Error:
            # It has just ended.
            continue
    return total


def main() -> int:
    """Run the command line; returns the exit code."""
    started = time.monotonic()
    command = [sys.executable, "-m", "faultline.verdict", *sys.argv[1:], "--json"]
    judged = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0
    while judged.poll() is None:
        try:
            peak = max(peak, resident(psutil.Process(judged.pid)))
        except psutil.Error:
            break
        time.sleep(LOOK_SECONDS)
    output, _ = judged.communicate()
    seconds = time.monotonic() - started
    try:
        verdict = Verdict.from_json(json.loads(output))
    except json.JSONDecodeError:
        print(f"judge: the verdict on {sys.argv[1]} gave no report, see the lines above", file=sys.stderr)
        return 1
    parts = verdict.seconds or {"reading": 0.0, "judging": 0.0}
    print(
        verdict.outcome.value, verdict.expected, verdict.observed, f"{seconds:.1f}",
        f"{parts['reading']:.1f}", f"{parts['judging']:.1f}", peak >> 20,
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
