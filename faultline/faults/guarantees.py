"""Write docs/guarantees.md from the results of the matrix, and of soaks.

Usage: python -m faultline.faults.guarantees FILE...

Each file is the `results.json` of a run, or the `soak.json` of a soak. A row that has failed in one of them has failed.
What is not in the files keeps its line from the page that is there: a row or a control if it is still the same, and a
soak unless the same seed ran on the same kind of stack.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faultline.faults.model import Outcome, Row
from faultline.faults.rows import CONTROL_ROWS, GROUPS, ROWS
from faultline.faults.steps import Restore
from faultline.faults.times import CAUGHT_UP, FLINK_OUTPUT, GAP, NOTICED, RUNNING, SPARK_OUTPUT
from faultline.formats.jobs import AT_LEAST_ONCE
from faultline.settings import ROOT

PAGE = ROOT / "docs" / "guarantees.md"
_WIDTH = 120
_SEEDS = re.compile(r"^\d+ rows, seed ((?:\d+, )*\d+)\.")
_ATTEMPTS = re.compile(r"`([\w-]+)` (\d+)")
_TIMES = (NOTICED, RUNNING, FLINK_OUTPUT, SPARK_OUTPUT, CAUGHT_UP, GAP)
_HEAD = """# What is promised under which fault

Written by `python -m faultline.faults.guarantees` from `results.json` of `scripts/faults.sh`, backend local, 2 cores.
Each row was broken on a real stack and judged by its records; `scripts/faults.sh list` shows the lines that break and
repair.

All times are seconds.

| column | it is |
|---|---|
| broken | from the fault to the beginning of the repair, as the row says |
| noticed | from the fault until Flink reports it |
| runs again | from the fault until all tasks of the job run |
| new windows | from the fault to the first windows that are committed after it |
| new batch | from the fault to the first batch that the synchronizer commits after it |
| caught up | from the fault until the job is no further behind the end of the topic than before it |
| gap | the longest time without newly committed windows; they come every 10 s of event time when nothing is broken |

An empty cell: it did not happen, such as a restart of the job after a fault of the synchronizer.
"""
_TITLE = """
## {}
"""
_COLUMNS = """
| fault | mode | promised | because | broken | noticed | runs again | new windows | new batch | caught up | gap |
|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|
"""
_ON_A_PROFILE = """
These rows ran on the profile `{0}`: `scripts/up.sh --profile {0}`.
"""
_CONTROLS = """
## Negative controls

Jobs and sinks that are broken on purpose. The verdict must find each of them under each of these rows.

| broken | what is wrong | found under |
|---|---|---|
"""
_SOAKS = """
## Soaks

Random faults in random order, which may overlap (`scripts/soak.sh --minutes N --seed N` runs the same schedule again),
and one verdict at the end. *Missed*: the fault had nothing to break, since another one was there.

| seed | stack | minutes | faults | missed | found | longest gap without new windows |
|--:|---|--:|--:|--:|---|--:|
"""


def page(results: Sequence[dict[str, Any]], soaks: Sequence[dict[str, Any]], present: str = "") -> str:
    """Return the page. `present`: the page that is there.

    Raises ValueError when a row or a control has not passed, or is missing in the results and as it is now on the page.
    """
    # A row that failed and passed later is not a promise that holds.
    found = {each["row"]: each for each in sorted(results, key=_has_failed)}
    wanted = [*ROWS, *(row.name for rows in CONTROL_ROWS.values() for row in rows)]
    if failed := [name for name in wanted if name in found and found[name]["outcome"] != Outcome.PASSED.value]:
        raise ValueError(f"not passed: {', '.join(failed)}")
    lines = present.splitlines()
    kept = {name: line for name, row in ROWS.items() if name not in found for line in _kept(promised(row), lines)}
    kept_controls = [name for name, rows in CONTROL_ROWS.items() if control(name, rows) in lines]
    missing = [name for name in ROWS if name not in found and name not in kept]
    missing += [
        row.name
        for name, rows in CONTROL_ROWS.items()
        for row in rows
        if row.name not in found and name not in kept_controls
    ]
    if missing:
        raise ValueError(f"not in the results: {', '.join(missing)}")
    tables = [
        "".join([
            _TITLE.format(title), _profile_of(rows), _COLUMNS,
            *(f"{kept[row.name] if row.name in kept else _line(row, found[row.name]['times'])}\n" for row in rows),
        ])
        for title, rows in GROUPS.items()
    ]  # fmt: skip
    ran = _soaks(soaks, present.partition(_SOAKS)[2].splitlines())
    # A name that is cut at a hyphen would not be found when the page is read again.
    summary = textwrap.fill(_summary(found, _before(present, kept)), _WIDTH, break_on_hyphens=False)
    return "".join([
        _HEAD, f"\n{summary}\n", *tables, _CONTROLS,
        *(f"{control(name, rows)}\n" for name, rows in CONTROL_ROWS.items()), _SOAKS + ran if ran else "",
    ])  # fmt: skip


@dataclass(frozen=True)
class _Before:
    """Facts that the present page has of rows that keep their line: seeds, and how often each row broke something."""

    seeds: frozenset[str] = frozenset()
    attempts: Mapping[str, int] = field(default_factory=dict)


def _kept(promise: str, lines: Sequence[str]) -> list[str]:
    """The line of a row that is still the same, if there is one."""
    return [line for line in lines if line.startswith(promise)]


def _before(present: str, kept: Mapping[str, str]) -> _Before:
    """Read the summary of the present page, as far as rows keep their lines."""
    summary = next((" ".join(each.split()) for each in present.split("\n\n") if _SEEDS.search(each)), "")
    seeds = _SEEDS.search(summary)
    if not kept or seeds is None:
        return _Before()
    attempts = {name: int(number) for name, number in _ATTEMPTS.findall(summary) if name in kept}
    return _Before(frozenset(seeds[1].split(", ")), attempts)


def _summary(found: Mapping[str, Mapping[str, Any]], before: _Before) -> str:
    tried = {name: before.attempts.get(name) or found.get(name, {}).get("attempts", 1) for name in ROWS}
    again = [f"`{name}` {number}" for name, number in tried.items() if number > 1]
    duplicates = sum(any(judge.repeats for judge in row.judged) for row in ROWS.values())
    losses = sum(any(judge.loses for judge in row.judged) for row in ROWS.values())
    seeds = ", ".join(sorted(before.seeds | {str(each["seed"]) for each in found.values()}))
    summary = (
        f"{len(ROWS)} rows, seed {seeds}. {duplicates} of them write twice and {losses} lose windows; they pass only "
        "with the number that the checkpoint predicts."
    )
    if again:
        summary += f" Attempts until the fault met the moment that the row is about: {', '.join(again)}."
    return summary


def _profile_of(rows: Sequence[Row]) -> str:
    """Return the sentence that names the profile on which all the rows ran; empty when there is no such profile."""
    profiles = {dict(row.settings).get("PROFILE", "") for row in rows}
    return _ON_A_PROFILE.format(profiles.pop()) if len(profiles) == 1 and profiles != {""} else ""


def _has_failed(result: Mapping[str, Any]) -> bool:
    return bool(result["outcome"] == Outcome.FAILED.value)


def _soaks(soaks: Sequence[Mapping[str, Any]], present: Sequence[str]) -> str:
    """The lines of the present page that no run replaces, and those of the runs."""
    again = tuple(_ran(each) for each in soaks)
    kept = [line for line in present if not line.startswith(again)]
    return "".join(f"{line}\n" for line in [*kept, *map(_soak, soaks)])


def _ran(found: Mapping[str, Any]) -> str:
    """The cells that say which soak it is."""
    return f"| {found['seed']} | {found['stack']} |"


def _soak(found: Mapping[str, Any]) -> str:
    missed, wrong = found["faults"] - found["applied"], "; ".join(found["wrong"]) or "nothing wrong"
    figures = f"{_ran(found)} {found['minutes']:g} | {found['faults']} | {missed} |"
    return f"{figures} {wrong} | {_seconds(found['gap'])} |"


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f} s"


def promised(row: Row) -> str:
    """The cells of a row that do not come from a run."""
    mode = AT_LEAST_ONCE if Restore(mode=AT_LEAST_ONCE) in row.installs else row.mode
    return f"| `{row.name}` | {mode} | {row.promise} | {row.why} | {row.seconds:g} |"


def _line(row: Row, times: Mapping[str, float]) -> str:
    figures = " | ".join(f"{times[each]:.1f}" if each in times else "" for each in _TIMES)
    return f"{promised(row)} {figures} |"


def control(name: str, rows: Sequence[Row]) -> str:
    """The line of a negative control."""
    return f"| `{name}` | {rows[0].why} | {', '.join(f'`{row.fault}`' for row in rows)} |"


def main(arguments: Sequence[str]) -> int:
    """Write the page; returns the exit code."""
    try:
        files = [json.loads(Path(file).read_text(encoding="utf-8")) for file in arguments]
        results = [each for found in files if isinstance(found, list) for each in found]
        present = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        text = page(results, [found for found in files if isinstance(found, dict)], present)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"guarantees: {error}\n")
        return 2
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
