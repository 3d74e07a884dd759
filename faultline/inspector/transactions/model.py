"""Open transactions of a topic, the promises that checkpoints made, and what is right to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

COMMIT, ABORT, WAIT, UNKNOWN = "commit", "abort", "wait", "unknown"
"""Right ends of a transaction: commit, abort, or wait until the transaction ends by itself; or the end is not known."""


@dataclass(frozen=True)
class Held:
    """A partition that has records of the transaction, the first of them at `first_offset`: readers stop there."""

    partition: int
    first_offset: int


@dataclass(frozen=True)
class Promise:
    """A complete checkpoint that says it commits the transaction. `job_id` is Flink's, empty for a savepoint."""

    job_id: str
    checkpoint: int
    path: str


@dataclass
class OpenTransaction:
    """A transaction as the broker has it. Times are milliseconds since the epoch.

    `transactional_id` is empty where no coordinator knows the producer; `state` is the coordinator's word; `since`:
    when it began; `ends_at`: when the broker aborts it unless it was committed. `job` is the project's job whose ids
    begin like this one, empty for another program; `job_runs`: None where Flink did not say. `right` and `why` are the
    advice.
    """

    transactional_id: str
    producer_id: int
    epoch: int
    state: str
    since: int | None
    ends_at: int | None
    held: list[Held]
    job: str = ""
    job_runs: bool | None = None
    promises: list[Promise] = field(default_factory=list)
    right: str = UNKNOWN
    why: str = ""

    @property
    def label(self) -> str:
        """The transaction's name in sentences."""
        return self.transactional_id or f"producer {self.producer_id}"


@dataclass(frozen=True)
class Stop:
    """The offset where readers of committed records stop in a partition, and the end of that partition."""

    partition: int
    stable: int
    end: int


@dataclass
class Found:
    """Everything about one topic. `unreadable`: checkpoints that cannot be read, a sentence each."""

    topic: str
    stops: list[Stop]
    transactions: list[OpenTransaction]
    unreadable: list[str] = field(default_factory=list)

    @property
    def behind(self) -> int:
        """Offsets that readers of committed records do not get yet."""
        return sum(each.end - each.stable for each in self.stops)


def as_document(found: Found) -> dict[str, Any]:
    """Turn it into JSON types."""
    return asdict(found) | {"behind": found.behind}
