"""Records that a restore replays: from the offsets of its checkpoint to where the job had read before.

Pure: it takes the samples of faultline/probes/watch.py and of `python -m faultline.inspector.flink follow`, in the
order of their times.
"""

from __future__ import annotations

from typing import Any

from faultline.storage.engines import flink_name

Offsets = dict[str, int]
_Restore = tuple[str, int]
"""Path or URI of a checkpoint, and time (ms) of its restore."""
_FRESH_SECONDS = 3.0
"""The largest age of the last position when the job stops, in seconds."""


class Restores:
    """Follows a job through its restores."""

    def __init__(self) -> None:
        self._held: dict[str, Offsets] = {}
        self._furthest: Offsets = {}
        self._job: str | None = None
        self._read_at: float | None = None
        self._stopped_at: float | None = None
        self._restore: _Restore | None = None
        self._waiting: list[tuple[_Restore, Offsets]] = []

    def checkpoints(self, sample: dict[str, Any]) -> list[dict[str, Any]]:
        """Take a sample of the retained checkpoints; returns what is now known to be read again."""
        self._held.update({each["path"]: each["offsets"] for each in sample["checkpoints"] if "offsets" in each})
        return self._known()

    def flink(self, sample: dict[str, Any]) -> list[dict[str, Any]]:
        """Take a sample of the job; returns what is now known to be read again."""
        if "state" not in sample:
            return []
        job, now, position = sample["job_id"], sample["at"], sample.get("position", {})
        path, at = sample.get("restored_from"), sample.get("restored_at")
        restore = (flink_name(path), int(at)) if path and at else None
        if restore and restore != self._restore:
            # How far the job had read is not known when nobody looked just before it stopped.
            if self._is_fresh(min(now, restore[1] / 1000)):
                self._waiting.append((restore, self._furthest))
            self._restore, self._furthest = restore, {}
        elif position and job != self._job:
            # A job that restored nothing reads from elsewhere: what another one has read is not read again.
            self._furthest = {}
        if position:
            self._job, self._read_at, self._stopped_at = job, now, None
        elif self._stopped_at is None:
            self._stopped_at = now
        for partition, offset in position.items():
            self._furthest[str(partition)] = max(offset, self._furthest.get(str(partition), 0))
        return self._known()

    def _is_fresh(self, restored_at: float) -> bool:
        stopped_at = restored_at if self._stopped_at is None else self._stopped_at
        return self._read_at is not None and stopped_at - self._read_at <= _FRESH_SECONDS

    def _known(self) -> list[dict[str, Any]]:
        known = [(restore, read) for restore, read in self._waiting if restore[0] in self._held]
        self._waiting = [each for each in self._waiting if each not in known]
        return [_stretch(restore, self._held[restore[0]], read) for restore, read in known]


def _stretch(restore: _Restore, begin: Offsets, read: Offsets) -> dict[str, Any]:
    """`job` and `name` of the checkpoint, `restored_at` (ms), `begin` and `end` by partition, `visits` between them.

    `end` is the last position that was sampled, so the job may have read a little further: `at_least`.
    """
    end = {partition: max(offset, read.get(partition, offset)) for partition, offset in begin.items()}
    visits = sum(end[partition] - offset for partition, offset in begin.items())
    path, at = restore
    *_, job, name = path.split("/")
    return {
        "engine": "flink", "job": job, "name": name, "restored_at": at, "begin": begin, "end": end, "visits": visits,
        "at_least": True,
    }  # fmt: skip
