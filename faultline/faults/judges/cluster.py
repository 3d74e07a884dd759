"""Judges of what only a cluster can promise: to go on while something is broken, or to stand still and lose nothing."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultline.faults.judge import Check, Judge, Look
from faultline.faults.timeline import (
    CHECKPOINTS,
    FLINK,
    SEEN,
    SPARK,
    broken_at,
    committed_since,
    ends_before,
    read_lines,
)
from faultline.faults.times import phase_at
from faultline.formats.ledger import ACKED, ledger_files
from faultline.stack.backend import RUNNING
from faultline.waiting import TimedOut, wait_until

_STORE_SECONDS = 1.0
"""The time of an object is in whole seconds, and rounded down: one that came after the repair may seem to be older."""
_SAMPLED_SECONDS = 1.0
"""Seconds after the fault in which a sample may show what was there before: samples come twice a second."""
_GRACE_SECONDS = 5.0
"""Seconds after the fault in which acknowledgements, and windows that were committed just before, may still arrive."""


@dataclass(frozen=True)
class GoesOn(Judge):
    """While it is broken, Flink commits windows of a new checkpoint, and the synchronizer a new batch.

    `seconds`: an engine that has not gone on after so long waits for the repair.
    """

    seconds: float = 120.0

    def before_repair(self, look: Look) -> list[Check]:
        """Look at the samples since the fault, until both have come: how long a machine takes is no promise."""
        folder = look.scene.folder
        with contextlib.suppress(TimedOut):
            wait_until(lambda: all(_gone_on(folder)), "both engines to go on", seconds=self.seconds, every=1.0)
        windows, batch = _gone_on(folder)
        return [
            Check("windows of a new checkpoint are committed while it is broken", str(windows), "True"),
            Check("a new batch is committed while it is broken", str(batch), "True"),
        ]


def _gone_on(folder: Path) -> tuple[bool, bool]:
    """Return whether Flink has, and whether the synchronizer has."""
    since = broken_at(folder)
    # A window that was committed before the fault may be read late, when its leader has died.
    seen = committed_since(folder, ends_before(folder, since))
    windows = _windows_of_a_new_checkpoint(read_lines(folder / FLINK), seen, since)
    return windows, _new_batch(read_lines(folder / SPARK), since)


def _windows_of_a_new_checkpoint(flink: list[dict[str, Any]], seen: list[dict[str, Any]], since: float) -> bool:
    """Return whether windows came after the end of a checkpoint that began after the fault."""
    ended = [
        each["at"] / 1000
        for sample in flink
        for each in sample.get("checkpoints", ())
        if (each["at"] - each["milliseconds"]) / 1000 > since
    ]
    return bool(ended) and any(each["at"] > min(ended) for each in seen)


def _new_batch(spark: list[dict[str, Any]], since: float) -> bool:
    """Return whether a batch was committed that was not planned before the fault."""
    samples = [each for each in spark if "batch" in each]
    known = max((_newest(each) for each in samples if each["at"] <= since + _SAMPLED_SECONDS), default=None)
    return known is not None and any(each["batch"] > known for each in samples)


def _newest(sample: dict[str, Any]) -> int:
    """The newest batch of a sample, committed or planned."""
    planned = sample.get("planned")
    return int(planned["batch"] if planned else sample["batch"])


@dataclass(frozen=True)
class StandsStill(Judge):
    """While it is broken nothing is written: no visit is added or acknowledged, and no window is committed."""

    def at_fault(self, look: Look) -> None:
        """Remember where the partitions of the visits end, as far as they have a leader."""
        look.remember(self, look.scene.probe("ends"))

    def before_repair(self, look: Look) -> list[Check]:
        """Look at what came some seconds after the fault."""
        folder, settings = look.scene.folder, look.scene.stack.settings.typed
        since = broken_at(folder) + _GRACE_SECONDS
        windows = sum(each["at"] > since for each in read_lines(folder / SEEN))
        ends = json.loads(look.scene.probe("ends"))
        acked = sum(
            _acked_after(line, since * 1000)
            for file in ledger_files(settings.ledger, settings.text("VISITS_TOPIC"))
            for line in file.read_text(encoding="utf-8").splitlines()
        )
        stack = look.scene.stack
        generator = stack.backend.state(stack.service("generator"))
        return [
            # Otherwise nothing would come for another reason.
            Check("the generator, which waits, is", generator, RUNNING),
            Check("a partition of the visits has a leader", str(any(end is not None for end in ends.values())), "True"),
            Check("the partitions of the visits end at", _words(ends), _words(json.loads(look.remembered(self)))),
            Check("visits that were acknowledged while it was broken", str(acked), "0"),
            Check("windows that were committed while it was broken", str(windows), "0"),
        ]


def _words(ends: dict[str, int | None]) -> str:
    return ", ".join(f"{partition}: {'no leader' if end is None else end}" for partition, end in sorted(ends.items()))


def _acked_after(line: str, milliseconds: float) -> bool:
    """Return whether a line of a ledger acknowledges a visit after this time; the last line may be torn."""
    event, *fields = line.split(",")
    return event == ACKED and len(fields) > 4 and fields[4].isdigit() and int(fields[4]) > milliseconds


@dataclass(frozen=True)
class StaleLeader(Judge):
    """The broker that is cut off still says that it leads, while the others have elected another one."""

    def at_fault(self, look: Look) -> None:
        """Remember what it leads."""
        own = _number(look.scene.controlling())
        look.remember(self, [name for name, leader in (_leaders(look)[own] or {}).items() if leader == int(own)])

    def before_repair(self, look: Look) -> list[Check]:
        """Ask each broker."""
        own = _number(look.scene.controlling())
        said, led = _leaders(look), look.remembered(self)
        others = [leaders for broker, leaders in said.items() if broker != own and leaders is not None]
        own_words = [name for name in led if (said[own] or {}).get(name) == int(own)]
        moved = [name for name in led if others and all(each[name] not in (int(own), -1) for each in others)]
        return [
            Check("the broker that is cut off led partitions of the visits", str(bool(led)), "True"),
            Check("it still says that it leads", ", ".join(own_words), ", ".join(led)),
            Check("the others have elected another leader for", ", ".join(moved), ", ".join(led)),
        ]


@dataclass(frozen=True)
class NoCheckpoint(Judge):
    """While it is broken no checkpoint of the job is completed: otherwise the fault would have met nothing.

    `seconds`: a busy machine lists the checkpoints seldom; after so long without a newer one it is not known.
    """

    seconds: float = 120.0

    def settled(self, look: Look) -> list[Check]:
        """Look at the times of all checkpoints that were ever retained; a JobManager may not answer meanwhile."""
        folder = look.scene.folder
        since, until = broken_at(folder), phase_at(folder, "heal")
        with contextlib.suppress(TimedOut):
            wait_until(
                lambda: any(at >= until for at in _retained(folder)), "a checkpoint after the repair",
                seconds=self.seconds, every=1.0,
            )  # fmt: skip
        times = _retained(folder)
        completed = sum(since + _SAMPLED_SECONDS < at < until - _STORE_SECONDS for at in times)
        # Some before and some after it: they were looked at.
        known = any(at <= since for at in times) and any(at >= until for at in times)
        return [
            Check("checkpoints that were completed while it was broken", str(completed if known else "unknown"), "0")
        ]


def _retained(folder: Path) -> set[float]:
    """Return the times of all checkpoints that were ever retained."""
    return {each["at"] / 1000 for sample in read_lines(folder / CHECKPOINTS) for each in sample["checkpoints"]}


def _number(broker: str) -> str:
    """The number of a broker by the name of its service."""
    return broker.rpartition("-")[2] if "-" in broker else "1"


def _leaders(look: Look) -> dict[str, dict[str, int] | None]:
    found: dict[str, dict[str, int] | None] = json.loads(look.scene.probe("leaders"))
    return found
