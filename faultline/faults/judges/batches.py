"""The synchronizer's batches: one that was planned before the fault runs again as it was planned."""

from __future__ import annotations

import json
from dataclasses import dataclass

from faultline.faults.judge import Check, Judge, Look, Predicted
from faultline.faults.steps import Start
from faultline.faults.timeline import SPARK, read_lines


@dataclass(frozen=True)
class Batches(Judge):
    """A batch that was planned before the repair keeps its range, and writes as many visits as that has."""

    def before_repair(self, look: Look) -> list[Check]:
        """Remember the range of the batch without a commit, if there is one, by the last sample that knows it."""
        # Spark removes old batches while the watcher looks, and a store may be gone: such a sample knows nothing.
        known = [each for each in read_lines(look.scene.folder / SPARK) if "planned" in each]
        planned = known[-1]["planned"] if known else None
        look.remember(self, planned)
        if any(isinstance(step, Start) and step.service == "spark" and step.flags for step in look.row.prepares):
            return [Check("a sample knows the batch that is held", str(planned is not None), "True")]
        return []

    def settled(self, look: Look) -> list[Check]:
        """Compare it with what has been done."""
        planned = look.remembered(self)
        if planned is None:
            return []
        name = str(planned["batch"])
        now = json.loads(look.scene.probe("planned", name))[name]
        found = "the same range" if now["range"] == planned else "another range"
        checks = [Check(f"batch {name}, planned before the fault, has", found, "the same range")]
        if now["lines"] is not None:
            checks.append(Check(f"visits that batch {name} has written", str(now["lines"]), str(planned["visits"])))
        return checks


@dataclass(frozen=True)
class RepeatsBatch(Judge):
    """The planned batch is written twice: a naive sink."""

    repeats = True

    def predicted(self, look: Look) -> Predicted:
        """As many visits as it has."""
        return Predicted(lines=look.remembered(Batches())["visits"])
