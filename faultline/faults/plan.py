"""The plan of the rows that run and of the moment of each fault.

The same seed makes the same plan, however many stacks share it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from faultline.faults.model import Row
from faultline.faults.rows import CONTROL_ROWS, ROWS
from faultline.formats.jobs import EXACTLY_ONCE


@dataclass(frozen=True)
class Planned:
    """A row, and the part of a checkpoint's interval to wait before its fault, from 0 to 1."""

    row: Row
    moment: float
    seed: int

    @property
    def own(self) -> tuple[object, ...]:
        """Settings and control that only the row's own stack has; `USUAL` when the row needs no stack of its own."""
        return (self.row.settings, self.row.control)

    def own_beside(self, values: Mapping[str, str]) -> tuple[object, ...]:
        """The same, when a stack with these settings is there: it may have already what the row asks for."""
        settings = [(name, value) for name, value in self.row.settings if values.get(name) != value]
        return (tuple(settings), self.row.control)

    def resets(self, values: Mapping[str, str]) -> bool:
        """Return whether the row needs a new stack, or leaves one that has to be removed.

        `values`: the settings of the stack of this project.
        """
        return self.row.spoils or self.own_beside(values) != USUAL or self.row.mode != EXACTLY_ONCE


USUAL: tuple[object, ...] = ((), "")


@dataclass(frozen=True)
class Turn:
    """A row when its turn comes. `own`: what only its own stack has; `fresh`: the stack must be a new one."""

    planned: Planned
    own: tuple[object, ...]
    fresh: bool


def turns(rows: Iterable[Planned], values: Mapping[str, str]) -> Iterator[Turn]:
    """Yield the turns of the rows; the stack of this project has these settings.

    A row needs a new stack after one that leaves a wrong one, with other settings than the row before, and first of all
    in another mode than the usual one.
    """
    own, wrong, first = USUAL, False, True
    for planned in rows:
        wanted = planned.own_beside(values)
        yield Turn(planned, wanted, wrong or wanted != own or (first and planned.row.mode != EXACTLY_ONCE))
        own, wrong, first = wanted, planned.row.spoils, False


def known(name: str) -> bool:
    """Return whether it is a row or a control."""
    return name in ROWS or name in CONTROL_ROWS


def plan(names: Iterable[str], seed: int, mode: str) -> list[Planned]:
    """Return the rows of these names, each once; a control stands for its three.

    Without names: all. Those that fill the topic come late, and those after which the stack must be new come last: two
    of them in a row need it once.
    """
    rows = [row for name in dict.fromkeys(names) for row in (CONTROL_ROWS.get(name) or (ROWS[name],))]
    if not rows:
        rows = [*ROWS.values(), *(row for group in CONTROL_ROWS.values() for row in group)]
        rows.sort(key=late)
    # By its name: a row that has failed in `all` meets the same moment when it runs alone.
    return [Planned(replace(row, mode=mode), random.Random(f"{seed} {row.name}").random(), seed) for row in rows]


def late(row: Row) -> int:
    """Return how late a row comes, from 0: a late row leaves less or nothing for the rows after it."""
    if row.spoils or row.settings or row.control:
        return 2
    return 1 if row.fills else 0


def groups(rows: Sequence[Planned]) -> list[list[Planned]]:
    """Split the rows into groups that share a stack of their own."""
    found: list[list[Planned]] = []
    for each in rows:
        if found and each.own == found[-1][0].own != USUAL:
            found[-1].append(each)
        else:
            found.append([each])
    return found
