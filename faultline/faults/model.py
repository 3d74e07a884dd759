"""Faults, the rows of the matrix, and the outcomes of rows."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from faultline.faults.judge import Check, Judge
from faultline.faults.steps import Down, Step
from faultline.formats.jobs import EXACTLY_ONCE

_RESULT = "result.json"


class Need(enum.Enum):
    """A requirement of a row on the machine or on its stack."""

    MOUNT = "mounts"
    FIREWALL = "firewall rules"
    CUT_OFF = "firewall rules by cgroup"
    DISK = "data on a disk"


class RowOutcome(enum.Enum):
    """The outcome of a row."""

    PASSED = "passed"
    FAILED = "FAILED"
    DOES_NOT_APPLY = "does not apply"

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 does not apply."""
        return {RowOutcome.PASSED: 0, RowOutcome.FAILED: 1, RowOutcome.DOES_NOT_APPLY: 2}[self]


@dataclass(frozen=True)
class Fault:
    """One failure and its repair."""

    name: str
    breaks: tuple[Step, ...]
    heals: tuple[Step, ...]
    needs: frozenset[str]
    """Services that its repair needs: faults that share one do not overlap in a soak."""
    without: frozenset[str] = frozenset()
    """Services beside which its repair would be another one: a soak of a stack that has them leaves it out."""
    seconds: tuple[float, float] = (1.0, 8.0)
    """In a soak it lasts as long as chance says, between these two."""


@dataclass(frozen=True)
class Row:
    """One row of the matrix: a fault, what is promised under it, and why."""

    name: str
    breaks: tuple[Step, ...]
    heals: tuple[Step, ...]
    promise: str
    why: str
    prepares: tuple[Step, ...] = ()
    """Steps before the fault, in each attempt, to reach the right moment."""
    seconds: float = 4.0
    """Seconds from the fault to its repair."""
    load: str = ""
    """Further flags of the generator."""
    fills: bool = False
    """It sends many times the usual bytes, which every later verdict on its stack reads too."""
    settings: tuple[tuple[str, str], ...] = ()
    """Settings of its own, so it has a stack of its own: name without prefix, and value."""
    needs: tuple[Need, ...] = ()
    mode: str = EXACTLY_ONCE
    """At-least-once: windows may be written twice, and nothing else may be wrong."""
    judged: tuple[Judge, ...] = ()
    """Judges of this row, besides the checks that all rows have: see faultline/faults/judges/."""
    undo: tuple[Step, ...] = ()
    """Steps that bring the stack back to its settings after the verdict."""
    stains: bool = False
    """It leaves topics that are not as a new stack's."""
    unsettled: str = ""
    """Words with which scripts/settle.sh must refuse; then no verdict may be `holds`, and nothing else is judged."""
    control: str = ""
    """The negative control that it belongs to, if it does: rows of one control share a stack."""
    installs: tuple[Step, ...] = ()
    """Steps that come once, before the first attempt: for another mode. Rows of one control share them and a stack."""
    caught: str = ""
    """The pipeline whose verdict must find what is wrong; nothing else is judged then."""

    @property
    def fault(self) -> str:
        """The name of the row, without that of its control."""
        return self.name.partition("-under-")[2] if self.control else self.name

    @property
    def takes_down(self) -> bool:
        """True when the whole stack goes, with all that runs beside it."""
        return Down() in self.breaks

    @property
    def spoils(self) -> bool:
        """True when it leaves a stack that is wrong, so that topics, checkpoints and outputs must be removed."""
        return self.stains or any(judge.repeats or judge.loses for judge in self.judged)


@dataclass
class Result:
    """The result of a row. `times`: seconds by name."""

    row: str
    outcome: RowOutcome
    checks: list[Check] = field(default_factory=list)
    times: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""
    folder: str = ""
    promise: str = ""
    why: str = ""
    """Of the row."""
    seed: int = 0
    attempts: int = 0
    """Number of times that the row broke something, until the moment was the right one."""

    def as_json(self) -> dict[str, object]:
        """For results.json."""
        return {
            "row": self.row,
            "promise": self.promise,
            "why": self.why,
            "outcome": self.outcome.value,
            "reason": self.reason,
            "seed": self.seed,
            "attempts": self.attempts,
            "checks": [{"what": c.what, "seen": c.seen, "expected": c.expected, "ok": c.ok} for c in self.checks],
            "times": dict(self.times),
        }

    def write(self) -> None:
        """Write result.json to its folder."""
        text = json.dumps(self.as_json(), indent=2) + "\n"
        (Path(self.folder) / _RESULT).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Result | None:
        """Read result.json of a folder; None when there is none: the row has not ended."""
        try:
            found = json.loads((folder / _RESULT).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        checks = [Check(each["what"], each["seen"], each["expected"]) for each in found["checks"]]
        return cls(
            found["row"], RowOutcome(found["outcome"]), checks, found["times"], found["reason"], str(folder),
            found["promise"], found["why"], found["seed"], found["attempts"],
        )  # fmt: skip
