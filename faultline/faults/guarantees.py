"""Keep the results of the matrix and of soaks in docs/guarantees.json, and render docs/guarantees.md from it.

Usage: python -m faultline.faults.guarantees [FILE...]

Each file is the `results.json` of a run, or the `soak.json` of a soak. A row that has failed in one of them has failed.
What did not run stays as it is recorded: a row or a control if it is still the same, and a soak unless the same seed
ran on the same kind of stack. Without files the page is rendered again.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from faultline.faults.model import Row, RowOutcome
from faultline.faults.rows import CONTROL_ROWS, GROUPS, ROWS
from faultline.faults.steps import Restore
from faultline.faults.times import CAUGHT_UP, FLINK_OUTPUT, GAP, NOTICED, RUNNING, SPARK_OUTPUT
from faultline.files import replace_text
from faultline.formats.jobs import AT_LEAST_ONCE
from faultline.settings import ROOT

PAGE = ROOT / "docs" / "guarantees.md"
RECORD = PAGE.with_suffix(".json")
TIMES = (NOTICED, RUNNING, FLINK_OUTPUT, SPARK_OUTPUT, CAUGHT_UP, GAP)
_WIDTH = 120
_HEAD = """# What is promised under which fault

Rendered by `python -m faultline.faults.guarantees` from `results.json` of `scripts/faults.sh`, backend local, 2 cores;
`guarantees.json` beside this page has the figures. Each row was broken on a real stack and judged by its records;
`scripts/faults.sh list` shows the lines that break and repair.

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

An empty cell: it did not happen, such as a restart of the job after a fault of the synchronizer, or it cannot be
measured, since no window came before the fault. "From the fault" begins with the first of the lines that break.
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


def promised(row: Row) -> dict[str, Any]:
    """The facts of a row that do not come from a run."""
    mode = AT_LEAST_ONCE if Restore(mode=AT_LEAST_ONCE) in row.installs else row.mode
    return {"mode": mode, "promise": row.promise, "why": row.why, "broken": row.seconds}


def control(rows: Sequence[Row]) -> dict[str, Any]:
    """The facts of a negative control."""
    return {"why": rows[0].why, "under": [row.fault for row in rows]}


def merged(
    results: Iterable[Mapping[str, Any]], soaks: Iterable[Mapping[str, Any]], record: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the record with these results in it. `seeds`: of all runs that gave it a row.

    Raises ValueError when a row or a control has not passed, or neither ran nor is recorded as it is now.
    """
    # A row that failed and passed later is not a promise that holds.
    found = {each["row"]: each for each in sorted(results, key=_has_failed)}
    controlled = [row.name for rows in CONTROL_ROWS.values() for row in rows]
    failed = [
        name for name in (*ROWS, *controlled) if name in found and found[name]["outcome"] != RowOutcome.PASSED.value
    ]
    if failed:
        raise ValueError(f"not passed: {', '.join(failed)}")
    before = record.get("rows", {})
    rows, missing = {}, []
    for name, row in ROWS.items():
        promise = promised(row)
        if name in found:
            rows[name] = {**promise, **{key: found[name][key] for key in ("attempts", "times")}}
        elif promise.items() <= before.get(name, {}).items():
            rows[name] = before[name]
        else:
            missing.append(name)
    for name, group in CONTROL_ROWS.items():
        if record.get("controls", {}).get(name) != control(group):
            missing += [row.name for row in group if row.name not in found]
    if missing:
        raise ValueError(f"not in the results: {', '.join(missing)}")
    ran = {(each["seed"], each["stack"]): dict(each) for each in (*record.get("soaks", ()), *soaks)}
    seeds = {each["seed"] for each in found.values()}.union(record.get("seeds", ()) if rows.keys() - found else ())
    return {
        "seeds": sorted(seeds),
        "rows": rows,
        "controls": {name: control(group) for name, group in CONTROL_ROWS.items()},
        "soaks": sorted(ran.values(), key=lambda each: (each["stack"] != "local", each["seed"])),
    }


def _has_failed(result: Mapping[str, Any]) -> bool:
    return bool(result["outcome"] == RowOutcome.FAILED.value)


def page(record: Mapping[str, Any]) -> str:
    """Render the page of a record."""
    rows, soaks = record["rows"], record["soaks"]
    tables = [
        "".join([f"\n## {title}\n", _profile_of(group), _COLUMNS, *(_row(row.name, rows[row.name]) for row in group)])
        for title, group in GROUPS.items()
    ]
    controls = [
        _line(f"`{name}`", each["why"], ", ".join(f"`{fault}`" for fault in each["under"]))
        for name, each in record["controls"].items()
    ]
    # A line that breaks at a hyphen would cut a name in two.
    summary = textwrap.fill(_summary(rows, record["seeds"]), _WIDTH, break_on_hyphens=False)
    return "".join([
        _HEAD, f"\n{summary}\n", *tables, _CONTROLS, *controls, *([_SOAKS, *map(_soak, soaks)] if soaks else []),
    ])  # fmt: skip


def _summary(rows: Mapping[str, Mapping[str, Any]], seeds: Iterable[int]) -> str:
    retried = [f"`{name}` {each['attempts']}" for name, each in rows.items() if each["attempts"] > 1]
    duplicates = sum(any(judge.repeats for judge in row.judged) for row in ROWS.values())
    losses = sum(any(judge.loses for judge in row.judged) for row in ROWS.values())
    summary = (
        f"{len(ROWS)} rows, seed {', '.join(map(str, seeds))}. {duplicates} of them write twice and {losses} lose "
        "windows; they pass only with the number that the checkpoint predicts."
    )
    if retried:
        summary += f" Attempts until the fault met the moment that the row is about: {', '.join(retried)}."
    return summary


def _profile_of(rows: Sequence[Row]) -> str:
    """Return the sentence that names the profile on which all the rows ran; empty when there is no such profile."""
    profiles = {dict(row.settings).get("PROFILE", "") for row in rows}
    return _ON_A_PROFILE.format(profiles.pop()) if len(profiles) == 1 and profiles != {""} else ""


def _row(name: str, row: Mapping[str, Any]) -> str:
    times = [f"{row['times'][each]:.1f}" if each in row["times"] else "" for each in TIMES]
    return _line(f"`{name}`", row["mode"], row["promise"], row["why"], f"{row['broken']:g}", *times)


def _soak(found: Mapping[str, Any]) -> str:
    gap = "none" if found["gap"] is None else f"{found['gap']:.1f} s"
    figures = [str(found["seed"]), found["stack"], f"{found['minutes']:g}", str(found["faults"])]
    return _line(*figures, str(found["faults"] - found["applied"]), "; ".join(found["wrong"]) or "nothing wrong", gap)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def main(arguments: Sequence[str]) -> int:
    """Record the results and render the page; returns the exit code."""
    try:
        files = [json.loads(Path(file).read_text(encoding="utf-8")) for file in arguments]
        results = [each for found in files if isinstance(found, list) for each in found]
        record = merged(
            results,
            [found for found in files if isinstance(found, dict)],
            json.loads(RECORD.read_text(encoding="utf-8")),
        )
    except (OSError, ValueError) as error:
        sys.stderr.write(f"guarantees: {error}\n")
        return 2
    replace_text(RECORD, json.dumps(record, indent=1) + "\n")
    replace_text(PAGE, page(record))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
