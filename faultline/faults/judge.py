"""One thing that a row is judged by: a judge looks at the stack at the moments of the row.

    at_fault       the fault has just come
    in_time        the fault has lasted for its seconds: did it come at the moment that the row is about?
    before_repair  the fault is about to be repaired
    after_repair   the job has completed checkpoints again
    was_in_time    by the files after the repair: did the fault come at the moment that the row is about?
    predicted      the errors that the verdict must count, by the checkpoints
    settled        nothing is open or on its way any more
    verdict        the verdict is known

When the moment was not the right one, `at_fault` comes again after the repair. A judge is data, the same for each run;
it remembers in the `Look` what it needs at a later moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from faultline.formats.verdict import Verdicts

if TYPE_CHECKING:
    from faultline.faults.model import Row
    from faultline.faults.scene import Scene


@dataclass(frozen=True)
class Check:
    """One thing that was judged: `seen` must be `expected`."""

    what: str
    seen: str
    expected: str

    @property
    def ok(self) -> bool:
        """True when it is as expected."""
        return self.seen == self.expected


@dataclass(frozen=True)
class Predicted:
    """Errors that the checkpoints predict, in records: windows written twice or lost, visits written twice."""

    repeated: int = 0
    lost: int = 0
    lines: int = 0
    partial: bool = False
    """Windows whose state is gone count only the visits that come later."""

    def __add__(self, other: Predicted) -> Predicted:
        return Predicted(
            self.repeated + other.repeated, self.lost + other.lost, self.lines + other.lines,
            self.partial or other.partial,
        )  # fmt: skip


class Look:
    """One run of a row: its scene, its job, and what its judges remember, each for itself."""

    def __init__(self, scene: Scene, row: Row) -> None:
        self.scene, self.row = scene, row
        self.job_before: dict[str, Any] = {}
        """The job's status before anything is broken."""
        self.job: dict[str, Any] = {}
        """The job's status when it has completed checkpoints after the repair."""
        self._remembered: dict[Judge, Any] = {}

    def remember(self, judge: Judge, what: Any) -> None:
        """Remember something for a judge."""
        self._remembered[judge] = what

    def remembered(self, judge: Judge) -> Any:
        """Return the value that was remembered for a judge."""
        return self._remembered[judge]


@dataclass(frozen=True)
class Judge:
    """The base of all judges, which looks at nothing."""

    is_moment: ClassVar[bool] = False
    """True when it decides if the fault came at the right moment."""
    repeats: ClassVar[bool] = False
    """True when records must be there twice."""
    loses: ClassVar[bool] = False
    """True when windows must be lost."""

    def at_fault(self, look: Look) -> None:
        """Look at what the fault has met."""

    def in_time(self, look: Look) -> bool:  # noqa: ARG002 - for those that override it
        """Return whether the fault came at the right moment."""
        return True

    def before_repair(self, look: Look) -> list[Check]:  # noqa: ARG002
        """Look at what is broken, before the repair."""
        return []

    def after_repair(self, look: Look) -> list[Check]:  # noqa: ARG002
        """Look at what the repair has begun."""
        return []

    def was_in_time(self, look: Look) -> bool:  # noqa: ARG002
        """Return whether the fault came at the right moment, as only the repaired stack can say."""
        return True

    def predicted(self, look: Look) -> Predicted:  # noqa: ARG002
        """Return the errors that the verdict must count."""
        return Predicted()

    def settled(self, look: Look) -> list[Check]:  # noqa: ARG002
        """Look at what everything has come to."""
        return []

    def verdict(self, look: Look, found: Verdicts) -> list[Check]:  # noqa: ARG002
        """Look at the verdicts."""
        return []
