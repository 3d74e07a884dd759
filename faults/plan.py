"""Which rows run, and the moment of each fault: the same seed makes the same plan, however many stacks share it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from faults.model import EXACTLY_ONCE, Row
from faults.rows import CONTROL_ROWS, ROWS


@dataclass(frozen=True)
class Planned:
    """A row, and the part of a checkpoint's interval to wait before its fault, from 0 to 1."""

    row: Row
    moment: float

    @property
    def own(self) -> tuple[object, ...]:
        """What its stack has of its own: settings and a control; `USUAL` when it needs none."""
        return (self.row.settings, self.row.control)


USUAL: tuple[object, ...] = ((), "")


def known(name: str) -> bool:
    """Whether it is a row or a control."""
    return name in ROWS or name in CONTROL_ROWS


def plan(names: Iterable[str], seed: int, mode: str) -> list[Planned]:
    """Return the rows of these names, each once; a control stands for its three.

    Without names: all, and those after which the stack must be new come last: two of them in a row need it once.
    """
    rows = [row for name in dict.fromkeys(names) for row in (CONTROL_ROWS.get(name) or (ROWS[name],))]
    if not rows:
        rows = [*ROWS.values(), *(row for group in CONTROL_ROWS.values() for row in group)]
        rows.sort(key=lambda row: row.spoils or bool(row.settings or row.control))
    if mode != EXACTLY_ONCE:
        rows = [replace(row, mode=mode, settings=(*row.settings, ("FLINK_MODE", mode))) for row in rows]
    chance = random.Random(seed)
    return [Planned(row, chance.random()) for row in rows]


def groups(rows: Sequence[Planned]) -> list[list[Planned]]:
    """Split the rows into groups that share a stack of their own."""
    found: list[list[Planned]] = []
    for each in rows:
        if found and each.own == found[-1][0].own != USUAL:
            found[-1].append(each)
        else:
            found.append([each])
    return found
