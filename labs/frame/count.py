"""The multiset difference that a lab's verdict counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Row = TypeVar("Row", bound=Hashable)


@dataclass(frozen=True)
class Difference(Generic[Row]):
    """`expected` and `observed`: total numbers of rows. The others: which rows, and how often each.

    lost: expected, but not there. duplicated: there more often than expected. unexpected: nothing calls for it.
    """

    expected: int
    observed: int
    lost: Counter[Row]
    duplicated: Counter[Row]
    unexpected: Counter[Row]

    @property
    def clean(self) -> bool:
        """Nothing lost, duplicated or unexpected, and something expected: an empty read does not pass."""
        return self.expected > 0 and not (self.lost or self.duplicated or self.unexpected)

    def __str__(self) -> str:
        counts = f"{self.lost.total()} lost, {self.duplicated.total()} duplicated"
        return f"{self.observed} rows of {self.expected}, {counts}" + (
            f", {self.unexpected.total()} unexpected" if self.unexpected else ""
        )


def compare(expected: Iterable[Row], observed: Iterable[Row]) -> Difference[Row]:
    """Compare two multisets of rows."""
    due, there = Counter(expected), Counter(observed)
    more = there - due
    return Difference(
        expected=due.total(),
        observed=there.total(),
        lost=due - there,
        duplicated=Counter({row: count for row, count in more.items() if row in due}),
        unexpected=Counter({row: count for row, count in more.items() if row not in due}),
    )
