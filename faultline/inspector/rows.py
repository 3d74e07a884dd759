"""State as rows: CSV, and the difference of two checkpoints by key; the same for both engines.

A row is a dictionary: operator, state, kind, value, and where it has them key, window_start and window_end (ms), entry
(the key inside a map). Values are JSON types.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

from faultline.inspector.words import count, time_words

IDENTITY = ("operator", "state", "kind", "key", "window_start", "window_end", "entry")
"""The columns that say which entry it is; the elements of a list that is not keyed share them."""
COLUMNS = (*IDENTITY, "value")
ADDED, REMOVED, CHANGED = "added", "removed", "changed"


@dataclass
class Change:
    """One entry that only one of two checkpoints has, or both with another value: `before` and `after` as JSON text."""

    change: str
    row: dict[str, Any]
    before: str | None
    after: str | None


@dataclass
class StateDifference:
    """One state of an operator in two checkpoints: its changed entries, and the number of those that are the same."""

    operator: str
    state: str
    same: int = 0
    changes: list[Change] = field(default_factory=list)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def write_csv(rows: Iterable[dict[str, Any]], out: TextIO) -> None:
    """Write COLUMNS and a line for each row; a cell that is neither text nor a number is JSON."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(row.get(column)) for column in COLUMNS] for row in rows)


def compare(before: Iterable[dict[str, Any]], after: Iterable[dict[str, Any]]) -> list[StateDifference]:
    """Compare two checkpoints entry by entry; states in the order of the rows, those of `before` first.

    All entries of `before` are held in memory: some 400 bytes for a small one.
    """
    found: dict[tuple[str, str], StateDifference] = {}
    old: dict[str, list[str]] = {}
    new: dict[str, list[str]] = {}
    for row in before:
        found.setdefault((row["operator"], row["state"]), StateDifference(row["operator"], row["state"]))
        old.setdefault(_identity(row), []).append(json.dumps(row["value"]))
    for row in after:
        state = found.setdefault((row["operator"], row["state"]), StateDifference(row["operator"], row["state"]))
        identity, value = _identity(row), json.dumps(row["value"])
        values = old.get(identity, [])
        if value in values:
            state.same += 1
            values.remove(value)
        else:
            new.setdefault(identity, []).append(value)
    for identity, values in old.items():
        added = new.pop(identity, [])
        for change in _changes(identity, values, added):
            found[change.row["operator"], change.row["state"]].changes.append(change)
    for identity, values in new.items():
        for change in _changes(identity, [], values):
            found[change.row["operator"], change.row["state"]].changes.append(change)
    return list(found.values())


def _identity(row: dict[str, Any]) -> str:
    return json.dumps([row.get(column) for column in IDENTITY])


def _changes(identity: str, old: list[str], new: list[str]) -> Iterator[Change]:
    row = dict(zip(IDENTITY, json.loads(identity), strict=True))
    both = min(len(old), len(new))
    for one, other in zip(old[:both], new[:both], strict=True):
        yield Change(CHANGED, row, one, other)
    for one in old[both:]:
        yield Change(REMOVED, row, one, None)
    for other in new[both:]:
        yield Change(ADDED, row, None, other)


def documents(differences: Iterable[StateDifference], limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield each change as JSON types, at most `limit` of each state: change, IDENTITY, before, after."""
    for state in differences:
        for each in state.changes[:limit]:
            before, after = (None if text is None else json.loads(text) for text in (each.before, each.after))
            yield {"change": each.change} | each.row | {"before": before, "after": after}


def write_changes_csv(differences: Iterable[StateDifference], limit: int | None, out: TextIO) -> None:
    """Write a line for each change, at most `limit` of each state."""
    writer = csv.writer(out, lineterminator="\n")
    columns = ("change", *IDENTITY, "before", "after")
    writer.writerow(columns)
    for change in documents(differences, limit):
        writer.writerow([_cell(change[column]) for column in columns])


def render(differences: Iterable[StateDifference], limit: int) -> str:
    """Say how many entries of each state were added, removed and changed, with `limit` of each state."""
    lines = []
    for state in differences:
        tally = [
            f"{sum(1 for each in state.changes if each.change == kind):,} {kind}" for kind in (ADDED, REMOVED, CHANGED)
        ]
        lines.append(f"  operator {state.operator}, state {state.state}: {', '.join(tally)}, {state.same:,} the same")
        lines += [f"    {_line(each)}" for each in state.changes[:limit]]
        more = len(state.changes) - limit
        if more > 0:
            lines.append(f"    and {count(more, 'change')} more: --limit N shows N, --csv all")
    return "\n".join(lines or ["  neither has any state"])


def _line(change: Change) -> str:
    end = change.row["window_end"]
    shown = {"key": change.row["key"], "window end": end and time_words(end), "entry": change.row["entry"]}
    parts = [change.change, *(f"{name} {_cell(value)}" for name, value in shown.items() if value is not None)]
    return f"{', '.join(parts)}: {' -> '.join(filter(None, (change.before, change.after)))}"
