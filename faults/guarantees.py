"""Write docs/guarantees.md from the results of a run of the whole matrix.

Usage: python -m faults.guarantees RESULTS.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract.settings import ROOT

from faults.matrix import ROWS
from faults.model import Repeats
from faults.times import CAUGHT_UP, FLINK_OUTPUT, GAP, NOTICED, RUNNING

PAGE = ROOT / "docs" / "guarantees.md"
_TIMES = (NOTICED, RUNNING, FLINK_OUTPUT, CAUGHT_UP, GAP)
_HEAD = """# What is promised under which fault

Written by `python -m faults.guarantees` from a run of `scripts/faults.sh all`, local backend, 2 cores. Each row was
broken on a real stack and judged by its records; `scripts/faults.sh list` shows the lines that break and repair.
Seconds are from the fault, which is repaired after the seconds in the column *broken*; *gap* is the longest time
without newly committed windows, which come every 10 s of event time when nothing is broken.

| fault | promised | since | broken | noticed | runs again | new windows | caught up | gap |
|---|---|---|--:|--:|--:|--:|--:|--:|
"""


def page(results: Sequence[dict[str, Any]]) -> str:
    """Return the page. Raises ValueError when a row is missing or has not passed."""
    found = {each["row"]: each for each in results}
    if missing := [name for name in ROWS if name not in found]:
        raise ValueError(f"not in the results: {', '.join(missing)}")
    lines = []
    for name, row in ROWS.items():
        if found[name]["outcome"] != "passed":
            raise ValueError(f"{name}: {found[name]['outcome']}")
        times = found[name]["times"]
        figures = " | ".join(f"{times[each]:.1f}" if each in times else "" for each in _TIMES)
        lines.append(f"| `{name}` | {row.promise} | {row.why} | {row.seconds:g} | {figures} |")
    repeating = sum(row.repeats is not Repeats.NONE for row in ROWS.values())
    tail = (
        f"\n{len(ROWS)} rows; {repeating} of them repeat windows, and pass only with the number that the checkpoint "
        "predicts.\n"
    )
    return _HEAD + "\n".join(lines) + "\n" + tail


def main(arguments: Sequence[str]) -> int:
    """Write the page; returns the exit code."""
    try:
        text = page(json.loads(Path(arguments[0]).read_text(encoding="utf-8")))
    except (OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"guarantees: {error}\n")
        return 2
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
