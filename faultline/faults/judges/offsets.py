"""The job: where it reads on, which checkpoint it was restored from, whether it has started again."""

from __future__ import annotations

import json
from dataclasses import dataclass

from faultline.faults.judge import Check, Judge, Look
from faultline.faults.timeline import CHECKPOINTS, read_lines
from faultline.stack.began import began_at, words
from faultline.storage.engines import flink_name


@dataclass(frozen=True)
class Offsets(Judge):
    """A job that has started again begins to read, by its log, where the offsets of its checkpoint are."""

    def after_repair(self, look: Look) -> list[Check]:
        """Compare the offsets, if it was restored since."""
        if not has_started_again(look) or not look.job["restored_from"]:
            return []
        promised = _offsets_in(look, flink_name(look.job["restored_from"]))
        began = {each: offset for each, offset in began_at(look.scene.stack).items() if each in promised}
        return [Check("the job began to read at", words(began), words(promised))]


def has_started_again(look: Look) -> bool:
    """Return whether the job is another one than before the fault, or another attempt of it."""
    return any(look.job[name] != look.job_before[name] for name in ("job_id", "restored_from", "restarts"))


def _offsets_in(look: Look, checkpoint: str) -> dict[str, int]:
    """The offsets that a checkpoint has, by partition; the inspector has followed most of them."""
    for sample in reversed(read_lines(look.scene.folder / CHECKPOINTS)):
        for each in sample["checkpoints"]:
            if each["path"] == checkpoint and each.get("offsets"):
                return {str(partition): int(offset) for partition, offset in each["offsets"].items()}
    command = ["python", "-m", "faultline.inspector.flink", "offsets", checkpoint]
    printed = look.scene.run(command, environment="flink")
    return {partition: int(offset) for partition, offset in json.loads(printed).items()}


@dataclass(frozen=True)
class Restored(Judge):
    """A person restores the job from this checkpoint: newest or oldest."""

    which: str = "newest"

    def before_repair(self, look: Look) -> list[Check]:
        """Remember its path."""
        look.remember(self, look.scene.filled(f"{{{self.which}}}"))
        return []

    def after_repair(self, look: Look) -> list[Check]:
        """Compare it with that of the job."""
        path = look.job["restored_from"]
        found = look.scene.stack.backend.path_outside(flink_name(path)) if path else "no checkpoint"
        return [Check("it was restored from", found, look.remembered(self))]


@dataclass(frozen=True)
class Restarted(Judge):
    """The job starts again by itself, or does not."""

    expected: bool = True

    def after_repair(self, look: Look) -> list[Check]:
        """Compare the job with that before the fault."""
        return [Check("the job has started again", str(has_started_again(look)), str(self.expected))]


@dataclass(frozen=True)
class Cancelled(Judge):
    """The job is cancelled, and nothing of it runs while it is broken."""

    def before_repair(self, look: Look) -> list[Check]:
        """Look at the job and its tasks."""
        job = look.scene.job()
        return [
            Check("state of the job after the cancel", job["state"], "CANCELED"),
            Check("its tasks that still run", str(job["running_tasks"]), "0"),
        ]


@dataclass(frozen=True)
class Rescaled(Judge):
    """The restored job has so many times as many tasks."""

    times: int

    def after_repair(self, look: Look) -> list[Check]:
        """Count its tasks."""
        expected = look.job_before["tasks"] * self.times
        return [Check("tasks of the restored job", str(look.job["tasks"]), str(expected))]
