"""The state of the Flink job and the progress of both pipelines, as programs of the stack print them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class JobSample:
    """The state of a Flink job and of its checkpoints; times are milliseconds since the epoch.

    `latest_*` is the newest completed checkpoint, None before the first one; `restored_from` is a path, or None.
    """

    job_id: str
    state: str
    running_tasks: int
    tasks: int
    checkpoints_completed: int
    checkpoints_failed: int
    checkpoints_in_progress: int
    latest_checkpoint: int | None
    latest_path: str | None
    latest_at: int | None
    restored_from: str | None
    restarts: int
    submitted_at: int


@dataclass(frozen=True)
class FlinkJob(JobSample):
    """The state of a job as `flink_status.sh` prints it.

    `recent_failures` counts those of the last two minutes; `newest_failure` is the cause of the newest one, or None.
    """

    checkpoint_interval_ms: int
    recent_failures: int
    newest_failure: str | None

    @property
    def latest_age_seconds(self) -> float | None:
        """The age of the newest checkpoint, None before the first one."""
        return None if self.latest_at is None else round(time.time() - self.latest_at / 1000, 1)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> FlinkJob:
        """Read what `asdict` returns. Raises KeyError when a field is missing."""
        return cls(**{field.name: document[field.name] for field in fields(cls)})


@dataclass(frozen=True)
class CommittedBatch:
    """The newest committed micro-batch of a query, and the seconds since its commit."""

    query: str
    batch: int
    age_seconds: float


@dataclass(frozen=True)
class Backlog:
    """The distance of a pipeline from the end of the source: offsets, or a sentence where offsets do not count it.

    `seconds`: how long the source takes at present to grow by so many offsets, None while it does not grow. `unknown`:
    why it cannot be told; then nothing else counts.
    """

    offsets: int = 0
    text: str = ""
    seconds: float | None = None
    unknown: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return `unknown` alone, or all the others."""
        if self.unknown:
            return {"unknown": self.unknown}
        return {"offsets": self.offsets, "text": self.text, "seconds": self.seconds}


@dataclass(frozen=True)
class Progress:
    """The progress of both pipelines, as `faultline.probes.progress` prints it.

    `synchronizer` is None before its first commit. `refused`: why an object store cannot be read, or takes no object;
    empty when all is well. `behind` has each pipeline, None when it has committed everything; it is None as a whole
    when the source cannot be read.
    """

    synchronizer: CommittedBatch | None = None
    refused: str = ""
    behind: Mapping[str, Backlog | None] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the progress as one JSON object."""
        behind = (
            None
            if self.behind is None
            else {name: each.as_json() if each else None for name, each in self.behind.items()}
        )
        batch = self.synchronizer and asdict(self.synchronizer)
        return {"synchronizer": batch, "refused": self.refused, "behind": behind}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Progress:
        """Read what `as_json` returns. Raises KeyError when a field is missing."""
        batch, behind = document["synchronizer"], document["behind"]
        return cls(
            batch and CommittedBatch(**batch),
            document["refused"],
            behind and {name: Backlog(**each) if each else None for name, each in behind.items()},
        )
