"""A checkpoint or savepoint of Flink as `flink_checkpoints.sh --json` lists it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Checkpoint:
    """One chk-N or savepoint folder, by its path or URI where Flink runs.

    `number` is N, None for a savepoint. `reason` says why one is not complete. `completed_at` is the modification time
    of `_metadata` in seconds since the epoch, None when not complete; `changed_at` that of the folder. `size` counts
    bytes of the folder's own files, not of `shared/`. `readable`: this user may read it.
    """

    path: str
    job_id: str
    name: str
    number: int | None
    complete: bool
    reason: str
    completed_at: float | None
    changed_at: float
    size: int
    readable: bool

    def as_json(self) -> dict[str, object]:
        """Return the checkpoint as one JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Checkpoint:
        """Read what `as_json` returns; other fields are ignored. Raises KeyError when a field is missing."""
        return cls(**{field.name: document[field.name] for field in fields(cls)})


def of_newest_job(listed: Sequence[Checkpoint]) -> list[Checkpoint]:
    """Return the complete checkpoints, savepoints left out, of the job that completed one last; the oldest first."""
    complete = [each for each in listed if each.complete and each.number is not None]
    newest = max(complete, key=lambda each: each.completed_at or 0.0, default=None)
    return [each for each in complete if newest and each.job_id == newest.job_id]
