"""CPU time that the rule of a visit takes for a megabyte of anything, beside a common JSON parser.

Usage: python -m benchmarks.hostile_values
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping

from benchmarks.own_stack import run_benchmark
from benchmarks.table import row
from faultline.formats.visit import parse_visit
from faultline.stack.errors import StackError

_MEGABYTE = 1_000_000
_RUNS = 5
_WIDTHS = "{:<40} {:>10} {:>8} {:>8} {:>8}"

VALUES: Mapping[str, bytes] = {
    "a string that is cut after quotes": b'{"visit_id":"a","payload":"' + b'\\"' * (_MEGABYTE // 2),
    "a string that is cut after a backslash": b'{"visit_id":"a","payload":"' + b"\\" * _MEGABYTE,
    "opening brackets": b"[" * _MEGABYTE,
    "objects in objects": b'{"a":' * (_MEGABYTE // 5),
    "empty lists": b'{"a":[' + b"[]," * (_MEGABYTE // 3) + b"[]]}",
    "nested just right": b'{"a":[' + (b"[" * 990 + b"]" * 990 + b",") * 500 + b"1]}",
    "brackets in strings": b'{"a":[' + b'"[",' * (_MEGABYTE // 4) + b"1]}",
    "many names": b"{" + b",".join(b'"%d":1' % number for number in range(_MEGABYTE // 10)) + b"}",
    "numbers": b'{"a":[' + b"1," * (_MEGABYTE // 2) + b"1]}",
    "one number": b'{"a":' + b"1" * _MEGABYTE + b"}",
    "a visit_id": b'{"event_time":7,"visit_id":"' + b"a" * _MEGABYTE + b'"}',
    "zeros": bytes(_MEGABYTE),
    "no UTF-8": random.Random(1).randbytes(_MEGABYTE),
}
"""A megabyte of each kind; none is a visit."""


def _least_milliseconds(work: Callable[[], object]) -> float:
    def once() -> float:
        begin = time.process_time()
        work()
        return (time.process_time() - begin) * 1000

    return min(once() for _ in range(_RUNS))


def run() -> None:
    """Print a line for each kind. Raises StackError when one is taken for a visit."""
    usual = _least_milliseconds(lambda: json.loads(VALUES["numbers"]))
    row(_WIDTHS, "one value of", "bytes in", "visits", "CPU ms", "ratio")
    row(_WIDTHS, "numbers, by the json module", len(VALUES["numbers"]), "-", f"{usual:.1f}", "1.0")
    for name, value in VALUES.items():
        if parse_visit(value) is not None:
            raise StackError(f"{name}: it is taken for a visit, so this is no valid measurement", 1)
        taken = _least_milliseconds(lambda value=value: parse_visit(value))  # type: ignore[misc]
        row(_WIDTHS, name, len(value), 0, f"{taken:.1f}", f"{taken / usual:.1f}")


if __name__ == "__main__":
    run_benchmark("hostile_values.sh", run)
