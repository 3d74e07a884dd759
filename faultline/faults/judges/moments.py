"""Conditions on the moment of a fault. If one is not met, the fault is repaired and comes once more."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass

from faultline.faults.judge import Judge, Look
from faultline.faults.steps import OnService
from faultline.faults.timeline import SPARK, broken_at, committed_since, ends_before, last_samples, read_lines
from faultline.faults.times import phase_at


@dataclass(frozen=True)
class InTransaction(Judge):
    """Windows are written and not committed; it remembers how many."""

    is_moment = True

    def at_fault(self, look: Look) -> None:
        """Count them."""
        look.remember(self, _last_uncommitted(look) if _hits_the_broker(look) else _uncommitted(look))

    def in_time(self, look: Look) -> bool:
        """Return whether there were some.

        A sample may be older than they are. Lines before the fault that have waited for them are enough, if no reader
        has seen one of them before the broker was hit.
        """
        if not (_hits_the_broker(look) and look.row.prepares):
            return bool(look.remembered(self))
        folder = look.scene.folder
        begin = phase_at(folder, "break")
        return not any(each["at"] <= begin for each in committed_since(folder, ends_before(folder, begin)))


def _hits_the_broker(look: Look) -> bool:
    return any(isinstance(step, OnService) and step.service == "kafka" for step in look.row.breaks)


def _uncommitted(look: Look) -> int:
    topic = look.scene.stack.settings.values["VISIT_WINDOWS_TOPIC"]
    return int(json.loads(look.scene.probe("open_transactions", topic, codes=(0, 1)))["open"])


def _last_uncommitted(look: Look) -> int:
    """By the last sample before the fault: a broker that comes back has aborted or committed some of them."""
    last = ends_before(look.scene.folder, phase_at(look.scene.folder, "break"))
    return int(sum(last["windows"].values()) - sum(last["stable"].values()))


@dataclass(frozen=True)
class BetweenPhases(Judge):
    """A checkpoint is complete, and its transaction not committed: the row's lines touch {results}/moment before."""

    is_moment = True

    def in_time(self, look: Look) -> bool:
        """Return whether a checkpoint was completed after the moment from which the broker could not answer."""
        moment = (look.scene.folder / "moment").stat().st_mtime
        return any((each.completed_at or 0.0) > moment for each in look.scene.complete_checkpoints())


WRITTEN = "written.json"
"""In the row's results: the batch that `faultline.probes.planned --wait-written` has found."""


@dataclass(frozen=True)
class InCommit(Judge):
    """A batch has written files and is not committed; the row's lines write its number to {results}/written.json."""

    is_moment = True

    def was_in_time(self, look: Look) -> bool:
        """Return whether the batch was committed after the fault: its files may be where nothing can be read before."""
        name = str(json.loads((look.scene.folder / WRITTEN).read_text(encoding="utf-8"))["batch"])
        broken = broken_at(look.scene.folder)
        committed = json.loads(look.scene.probe("planned", name))[name]["committed_at"]
        return committed is None or bool(committed > broken)


@dataclass(frozen=True)
class BatchPlanned(Judge):
    """A batch of the synchronizer is planned and not committed."""

    is_moment = True

    def in_time(self, look: Look) -> bool:
        """Return whether there is one, by the watcher's samples since the fault."""
        broken = broken_at(look.scene.folder)
        samples = last_samples(look.scene.folder / SPARK, 1)
        return bool(samples) and samples[-1]["at"] > broken and bool(samples[-1].get("planned"))


_SLOWER_SECONDS = 1.0


@dataclass(frozen=True)
class SlowBatch(Judge):
    """The synchronizer commits a batch a second later than usual, between the first of the lines and the repair.

    Flink's own seconds of a checkpoint would not show a slow store: they end when the last task has answered, and the
    metadata, in which a small state is, is written after that.
    """

    is_moment = True

    def was_in_time(self, look: Look) -> bool:
        """Return whether the longest time between two commits is longer than the median of those before."""
        begin, heal = (phase_at(look.scene.folder, phase) for phase in ("break", "heal"))
        committed: dict[int, float] = {}
        for sample in read_lines(look.scene.folder / SPARK):
            if "batch" in sample:
                committed.setdefault(sample["batch"], sample["at"])
        times = list(committed.values())
        pairs = list(zip(times, times[1:]))
        before = [end - start for start, end in pairs if end <= begin]
        meanwhile = [end - start for start, end in pairs if end > begin and start < heal]
        return bool(before and meanwhile) and max(meanwhile) > statistics.median(before) + _SLOWER_SECONDS
