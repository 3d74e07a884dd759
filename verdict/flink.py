"""Judge the windowing job: wait until it has read and committed everything, read its topics, ask the judge."""

from __future__ import annotations

import time

from contract.settings import Settings
from verdict.cluster import Cluster, Spans
from verdict.flink_examples import Names
from verdict.flink_judge import FlinkFacts, judge
from verdict.flink_reader import load_routed, load_visits, load_windows
from verdict.model import Unknown, Verdict
from verdict.quiet import Quiet, refuse_gap
from verdict.store import open_store

_LOOK_SECONDS = 0.5
"""Pause between two looks at a job that has not yet committed everything."""


class _Job:
    """The job as its topics and its group show it."""

    def __init__(self, settings: Settings, cluster: Cluster) -> None:
        self._cluster = cluster
        self._group = settings.text("FLINK_GROUP_ID")
        self._names = names = Names(
            visits=settings.text("VISITS_TOPIC"),
            windows=settings.text("VISIT_WINDOWS_TOPIC"),
            late=settings.text("VISITS_LATE_TOPIC"),
            rejected=settings.text("VISITS_REJECTED_TOPIC"),
        )
        self._outputs = (names.windows, names.late, names.rejected)
        self._facts = FlinkFacts(
            names,
            window_ms=settings.number("FLINK_WINDOW_SECONDS") * 1000,
            bound_ms=settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS") * 1000,
        )
        self.source = Quiet(lambda: cluster.spans(names.visits, committed=False))
        self.growing = f"topic {names.visits} still grows; stop the generator (scripts/generator_stop.sh), judge again"
        self.writing = f"the job still writes to {names.windows}; judge again after its next checkpoint"

    def await_commit(self, deadline: float) -> None:
        """Wait until the job has committed everything; raise Unknown with the cause if it has not by the deadline.

        On a completed checkpoint the source commits its offsets and the sinks commit their transactions, but not as
        one. Offsets at the end of the source say that the windows up to there are written, and that no transaction is
        open after that says that they are committed: so the questions are asked in this order.
        """
        while behind := self._behind() or self.open_transaction():
            if time.monotonic() >= deadline:
                raise Unknown(behind)
            self.source.require(self.growing)
            time.sleep(_LOOK_SECONDS)

    def outputs(self) -> dict[str, Spans]:
        """Take the spans of everything that the job has written, committed or not."""
        return {topic: self._cluster.spans(topic, committed=False) for topic in self._outputs}

    def judge(self) -> Verdict:
        """Read the topics and judge them."""
        names, window_ms = self._facts.names, self._facts.window_ms
        with open_store() as connection:
            load_visits(connection, self._cluster, names.visits, self._committed(names.visits), window_ms)
            load_windows(connection, self._cluster, names.windows, self._committed(names.windows), window_ms)
            load_routed(connection, self._cluster, "late", names.late, self._committed(names.late))
            load_routed(connection, self._cluster, "rejected", names.rejected, self._committed(names.rejected))
            return judge(connection, self._facts)

    def _committed(self, topic: str) -> Spans:
        spans = self._cluster.spans(topic, committed=True)
        refuse_gap(topic, spans)
        return spans

    def _behind(self) -> str | None:
        """Say how far the job is behind the source, or None when its last checkpoint has read all of it."""
        visits = self._names.visits
        ends = self._cluster.spans(visits, committed=False)
        total = sum(span.end for span in ends.values())
        if not total:
            return None  # an empty source: the judge says that nothing was read
        committed = self._cluster.group_offsets(self._group, visits)
        if not committed:
            return f"the job has committed no offset of {visits} as group {self._group}: no checkpoint is completed yet"
        for partition, span in ends.items():
            if committed.get(partition, 0) > span.end:
                return (
                    f"group {self._group} has committed offset {committed[partition]} of {visits} partition "
                    f"{partition}, which ends at {span.end}: the job read another topic "
                    "(scripts/down.sh --wipe starts clean)"
                )
        if any(committed.get(partition, 0) < span.end for partition, span in ends.items()):
            return (
                f"the job has read to {sum(committed.values()):,} of {total:,} records of {visits}; "
                "wait for its next checkpoint, or restore it (scripts/flink_restore.sh)"
            )
        return None

    def open_transaction(self) -> str | None:
        """Name a partition of an output where a transaction is open: its last stable offset is not its end."""
        for topic in self._outputs:
            stable = self._cluster.spans(topic, committed=True)
            written = self._cluster.spans(topic, committed=False)
            for partition, span in stable.items():
                if span.end < written[partition].end:
                    return (
                        f"{topic} partition {partition} has an open transaction from offset {span.end}; wait for the "
                        "job's next checkpoint, or restore it (scripts/flink_restore.sh)"
                    )
        return None


def judge_flink(settings: Settings, cluster: Cluster, wait_seconds: float) -> Verdict:
    """Read everything and judge it.

    Waits up to `wait_seconds` for the job to commit all that it has read. Raises Unknown when it comes to no rest, or
    when something cannot be read.
    """
    deadline = time.monotonic() + wait_seconds
    job = _Job(settings, cluster)
    while True:
        job.await_commit(deadline)
        outputs = Quiet(job.outputs)
        verdict = job.judge()
        job.source.require(job.growing)
        # What is written after the look, or was in a transaction that began between the two, must be judged too.
        if not outputs.changed() and not job.open_transaction():
            return verdict
        if time.monotonic() >= deadline:
            raise Unknown(job.writing)
