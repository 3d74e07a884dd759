"""A schedule of random faults: the same seed makes the same one."""

from __future__ import annotations

import random
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from faultline.faults.catalogue import CATALOGUE, possible
from faultline.faults.model import Fault
from faultline.faults.steps import Step

_FIRST_SECONDS, _LAST_SECONDS = 3.0, 15.0
"""Nothing breaks before the first; the last repair leaves at least this much of the time."""
_PAUSE_SECONDS = (2.0, 14.0)
_BROKERS_AT_ONCE = 2
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
    """The lines that are typed at one moment: those that break something, or those that repair it."""

    at: float
    strike: Strike
    heals: bool

    @property
    def steps(self) -> tuple[Step, ...]:
        """The lines."""
        fault = CATALOGUE[self.strike.fault]
        return fault.heals if self.heals else fault.breaks


def make(seed: int, seconds: float, services: Collection[str]) -> list[Strike]:
    """Return faults of a stack with these services in random order.

    They may overlap when their repairs need different services.
    """
    chance = random.Random(seed)
    faults = possible(services)
    strikes: list[Strike] = []
    at = _FIRST_SECONDS
    while True:
        fault = faults[chance.choice(sorted(faults))]
        strike = Strike(fault.name, round(at, 1), round(at + chance.uniform(*fault.seconds), 1))
        at += chance.uniform(*_PAUSE_SECONDS)
        if strike.ends > seconds - _LAST_SECONDS:
            return strikes
        meanwhile = [other for other in strikes if not _apart(strike, other)]
        if not any(fault.needs & faults[other.fault].needs for other in meanwhile) and not _no_majority(
            [fault, *(faults[other.fault] for other in meanwhile)]
        ):
            strikes.append(strike)


def _apart(one: Strike, other: Strike) -> bool:
    return one.begins > other.ends + _MARGIN_SECONDS or other.begins > one.ends + _MARGIN_SECONDS


def _no_majority(faults: Sequence[Fault]) -> bool:
    """Return whether more than two brokers are broken: restarting in order would deadlock."""
    brokers = {name for fault in faults for name in fault.needs if name.split("-")[0] == "kafka"}
    return len(brokers) > _BROKERS_AT_ONCE


def events(strikes: Iterable[Strike]) -> list[Event]:
    """Return what is typed, in order of time."""
    found = [Event(s.ends if heals else s.begins, s, heals) for s in strikes for heals in (False, True)]
    return sorted(found, key=lambda event: event.at)


def shortened(strikes: Sequence[Strike]) -> list[Strike]:
    """Cut the time in which nothing is broken to the shortest pause, so that a part of a schedule takes less time."""
    closer: list[Strike] = []
    cut, end = 0.0, 0.0
    for strike in sorted(strikes, key=lambda strike: strike.begins):
        cut = max(cut, strike.begins - end - _PAUSE_SECONDS[0]) if strike.begins - cut > end else cut
        moved = Strike(strike.fault, round(strike.begins - cut, 1), round(strike.ends - cut, 1))
        end = max(end, moved.ends)
        closer.append(moved)
    return closer


def as_script(strikes: Sequence[Strike], settings: Mapping[str, str], title: Sequence[str]) -> str:
    """Write a schedule as a shell script of plain verbs. `settings`: variables of the stack, with their values."""
    lines = [
        "#!/usr/bin/env bash",
        *(f"# {line}" for line in title),
        "# Run it in the project's folder while no stack is up. It makes one in a new folder, and ends in the verdict.",
        "set -uo pipefail",
        *(f"export {name}={shlex.quote(value)}" for name, value in settings.items()),
        'STACK_HOME="$(mktemp -d)" && export STACK_HOME',
        "scripts/up.sh || exit 2",
        "scripts/flink_status.sh --wait-checkpoints 3 --wait-seconds 180",
    ]
    now = 0.0
    for event in events(strikes):
        if event.at > now:
            lines.append(f"sleep {event.at - now:.1f}")
            now = event.at
        lines += [step.line for step in event.steps]
    lines += [
        "scripts/up.sh",
        "scripts/generator_stop.sh",
        "scripts/settle.sh --wait 180",
        "scripts/verdict.sh all",
        "code=$?",
        'echo "to remove this stack: STACK_HOME=${STACK_HOME} scripts/down.sh --wipe" >&2',
        "exit ${code}",
        "",
    ]
    return "\n".join(lines)
