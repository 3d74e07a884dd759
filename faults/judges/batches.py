"""The synchronizer's batches: one that was planned before the fault runs again as it was planned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from measure.batches import batch_range

from faults.judge import Check, Judge, Look, Predicted
from faults.sink_log import SINK_LOG, lines_of


@dataclass(frozen=True)
class Planned:
    """A planned batch: its file in offsets/, byte for byte, and how many visits are in its range."""

    offsets: bytes
    visits: int


@dataclass(frozen=True)
class Batches(Judge):
    """A batch that was planned before the repair keeps its range, and writes as many visits as that has."""

    def broken(self, look: Look) -> list[Check]:
        """Remember the batches without a commit."""
        look.keep(self, without_commit(look.scene.spark))
        return []

    def settled(self, look: Look) -> list[Check]:
        """Compare them with what has been done."""
        checks: list[Check] = []
        for name, planned in sorted(look.kept(self).items()):
            file = look.scene.spark / "offsets" / name
            now = "the same range" if file.exists() and file.read_bytes() == planned.offsets else "another range"
            checks.append(Check(f"batch {name}, planned before the fault, has", now, "the same range"))
            if (look.scene.output / SINK_LOG).is_dir():
                found = str(lines_of(look.scene.output, int(name)))
                checks.append(Check(f"visits that batch {name} has written", found, str(planned.visits)))
        return checks


@dataclass(frozen=True)
class RepeatsBatch(Judge):
    """The planned batch is written twice: a naive sink."""

    repeats = True

    def predicted(self, look: Look) -> Predicted:
        """As many visits as it has."""
        [planned] = look.kept(Batches()).values()
        return Predicted(lines=planned.visits)


def without_commit(checkpoint: Path) -> dict[str, Planned]:
    """The batches with a file in offsets/ and none in commits/, by their names."""
    offsets, commits = checkpoint / "offsets", checkpoint / "commits"
    if not offsets.is_dir():
        return {}
    return {
        file.name: Planned(file.read_bytes(), batch_range(checkpoint, int(file.name))["visits"])
        for file in offsets.iterdir()
        if file.name.isdigit() and not (commits / file.name).exists()
    }
