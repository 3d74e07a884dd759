"""A schedule of random faults: the same seed makes the same one."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from faults.catalogue import catalogue
from faults.model import Fault, Step

_FIRST_SECONDS, _LAST_SECONDS = 3.0, 15.0
"""Nothing breaks before the first; the last repair leaves at least this much of the time."""
_PAUSE_SECONDS = (2.0, 14.0)
_MARGIN_SECONDS = 2.0
"""Between two faults that need the same service."""


@dataclass(frozen=True)
class Strike:
    """One fault of a schedule. Seconds since its beginning."""

    fault: str
    begins: float
    ends: float


@dataclass(frozen=True)
class Event:
    """What is typed at a moment: the lines that break something, or those that repair it."""

    at: float
    strike: Strike
    heals: bool

    @property
    def steps(self) -> tuple[Step, ...]:
        """The lines."""
        fault = catalogue()[self.strike.fault]
        return fault.heals if self.heals else fault.breaks


def make(seed: int, seconds: float) -> list[Strike]:
    """Return faults in random order, which may overlap when their repairs need different services."""
    chance = random.Random(seed)
    faults = catalogue()
    strikes: list[Strike] = []
    at = _FIRST_SECONDS
    while True:
        fault = faults[chance.choice(sorted(faults))]
        strike = Strike(fault.name, round(at, 1), round(at + chance.uniform(*fault.seconds), 1))
        at += chance.uniform(*_PAUSE_SECONDS)
        if strike.ends > seconds - _LAST_SECONDS:
            return strikes
        if not any(_conflict(strike, fault, other, faults[other.fault]) for other in strikes):
            strikes.append(strike)


def _conflict(one: Strike, fault: Fault, other: Strike, others: Fault) -> bool:
    apart = one.begins > other.ends + _MARGIN_SECONDS or other.begins > one.ends + _MARGIN_SECONDS
    return bool(fault.needs & others.needs) and not apart


def events(strikes: Iterable[Strike]) -> list[Event]:
    """Return what is typed, in order of time."""
    found = [Event(s.ends if heals else s.begins, s, heals) for s in strikes for heals in (False, True)]
    return sorted(found, key=lambda event: event.at)


def shortened(strikes: Sequence[Strike]) -> list[Strike]:
    """Cut the time in which nothing is broken, so that a part of a schedule runs in less time."""
    kept: list[Strike] = []
    cut, end = 0.0, 0.0
    for strike in sorted(strikes, key=lambda strike: strike.begins):
        cut = max(cut, strike.begins - end - _PAUSE_SECONDS[1]) if strike.begins - cut > end else cut
        moved = Strike(strike.fault, round(strike.begins - cut, 1), round(strike.ends - cut, 1))
        end = max(end, moved.ends)
        kept.append(moved)
    return kept


def as_script(strikes: Sequence[Strike], mode: str, title: str) -> str:
    """Write a schedule as a shell script of plain verbs."""
    lines = [
        "#!/usr/bin/env bash",
        f"# {title}",
        "# Run it in the project's folder, on a stack of your own: it ends in the verdict.",
        "set -uo pipefail",
        f"export STACK_FLINK_MODE={mode}",
        "scripts/reset.sh && scripts/up.sh",
        "scripts/flink_status.sh --wait-checkpoints 3",
    ]
    now = 0.0
    for event in events(strikes):
        if event.at > now:
            lines.append(f"sleep {event.at - now:.1f}")
            now = event.at
        lines += [step.command for step in event.steps]
    return "\n".join(
        [
            *lines,
            "scripts/up.sh",
            "scripts/generator_stop.sh",
            "scripts/settle.sh --wait 180",
            "scripts/verdict.sh all",
            "",
        ]
    )
