"""The checker of the windowing job: its settings, its progress, and its topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa

from faultline.formats.jobs import EXACTLY_ONCE
from faultline.formats.run import FlinkRun, RunError, flink_run_of, flink_runs
from faultline.formats.visit import iso_time
from faultline.settings import Settings
from faultline.storage.data import flink_checkpoints
from faultline.storage.location import Location
from faultline.verdict.checker import (
    LOOK_SECONDS,
    Behind,
    Checker,
    Moved,
    Options,
    Stopwatch,
    lag,
    require_whole,
    source_spans,
)
from faultline.verdict.cluster import Cluster
from faultline.verdict.flink.clock import Arrivals, Rules
from faultline.verdict.flink.findings import Names
from faultline.verdict.flink.judge import FlinkFacts, judge
from faultline.verdict.flink.reader import VISITS, VisitRows
from faultline.verdict.flink.tables import load_outputs, load_source
from faultline.verdict.model import Judgement, Unknown
from faultline.verdict.records import Spans
from faultline.verdict.source.ledger import files_of, load_ledgers
from faultline.verdict.sources import Sources
from faultline.verdict.store import Store
from faultline.waiting import Waiting, attempts
from flink_job.rest import TERMINAL_STATES, FlinkError, call, checkpoints, is_absent

_ROUNDING_MS = 2_500
"""The job counts a pause in whole seconds, and reads a visit some time after it was acknowledged."""

_DECIDED_SECONDS = 10.0
"""The longest wait for the end of the transactions that are open at a look: two checkpoints, and some more."""
_ANSWER_SECONDS = 3.0
"""The longest wait for one answer of a JobManager."""
_SAVEPOINT = "SAVEPOINT"
"""The `checkpoint_type` of a savepoint beside a running job; one that stops it has another."""
_AGAIN = "restore the job (scripts/flink_restore.sh) and judge again"
NOTHING_IS_DUE = (
    "a missing record counts as pending: a transaction stays open, or the job has no checkpoint of its own yet, holds"
    " records in flight, or has a JobManager that does not answer"
)


def records_left(job_id: str, latest: Mapping[str, Any], *, is_active: bool, unaligned: bool) -> Behind | None:
    """Return what a job that has more than one run, or unaligned checkpoints, may not have committed yet.

    `latest`: the member of that name in the JobManager's statistics of the job's checkpoints.
    """
    # A savepoint commits offsets only when it stops the job.
    found = filter(None, (latest["completed"], latest["savepoint"]))
    done = [one for one in found if one["checkpoint_type"] != _SAVEPOINT]
    newest = max(done, key=lambda one: one["id"], default=None)
    if newest is None and (is_active or unaligned):
        remedy = "wait for one" if is_active else _AGAIN
        return Behind(f"the job may have records left: {job_id} has no checkpoint of its own yet; {remedy}", None)
    if newest is not None and (size := int(newest["persisted_data"])):
        text = (
            f"chk-{newest['id']} of the job holds {size:,} bytes of records that barriers overtook, and no window "
            f"has them yet; the job handles them before a later checkpoint, or {_AGAIN}"
        )
        return Behind(text, newest["id"])
    return None


@dataclass(frozen=True)
class _Runs:
    """The runs that wrote to the topics, the newest last, by whose settings the job is judged.

    `recorded`: False when no submission noted a run, and it is that of the settings.
    """

    runs: tuple[FlinkRun, ...]
    recorded: bool

    @property
    def newest(self) -> FlinkRun:
        return self.runs[-1]

    @property
    def fewest_partitions(self) -> int:
        return min(run.partitions for run in self.runs)

    @property
    def unaligned(self) -> bool:
        return any(run.unaligned for run in self.runs)

    @property
    def exactly_once(self) -> bool:
        return all(run.mode == EXACTLY_ONCE for run in self.runs)


def _settings_of_the_run(settings: Settings) -> _Runs:
    """Read the settings of the run, which each submission notes.

    Raises Unknown when two runs that wrote to the same topic contradict each other, or when another job committed
    offsets in their consumer group.
    """
    own = flink_run_of(settings)
    try:
        every = flink_runs(settings.flink_notes)
    except RunError as error:
        raise Unknown(str(error)) from None
    found = [(file, run) for file, run in every if run.windows == own.windows]
    newest_file, newest = found[-1] if found else (None, own)
    for file, run in every:
        if run.windows != newest.windows and (run.group_id, run.visits) == (newest.group_id, newest.visits):
            raise Unknown(
                f"the job that writes to {run.windows} ({file}) commits offsets in the same group {run.group_id}, so "
                f"they do not tell how far the job that writes to {newest.windows} is; start clean (scripts/down.sh "
                "--wipe), with a STACK_FLINK_GROUP_ID for each job"
            )
    if not found:
        return _Runs((own,), recorded=False)
    for file, run in found:
        for field in fields(FlinkRun):
            mine, theirs = getattr(newest, field.name), getattr(run, field.name)
            # A restore may change these, and a topic may have grown; the other settings decide what is right.
            if field.name not in ("job_id", "mode", "partitions", "unaligned") and mine != theirs:
                raise Unknown(
                    f"two runs wrote to {run.windows} with different settings: {field.name} {theirs} ({file}) and "
                    f"{mine} ({newest_file}); start clean (scripts/down.sh --wipe)"
                )
    return _Runs(tuple(run for _, run in found), recorded=True)


class FlinkChecker:
    """Judges the windowing job by topic `visits` and its three output topics."""

    name = "flink"

    def __init__(self, settings: Settings, cluster: Cluster, options: Options) -> None:
        self._runs = _settings_of_the_run(settings)
        self._run = run = self._runs.newest
        self._settings, self._cluster, self._options = settings, cluster, options
        self._rest = settings.flink_rest
        self.source = run.visits
        self._names = Names(run.visits, run.windows, run.late, run.rejected)
        self._outputs: tuple[str, ...] = (run.rejected, run.late, run.windows)
        pause_ms = max(1_000, run.idle_partition_seconds * 1000 - _ROUNDING_MS)
        self._rules = Rules(run.window_seconds * 1000, run.out_of_orderness_seconds * 1000, pause_ms)
        self.parse = VisitRows(self._rules.window_ms)

    def behind(self) -> Behind | None:
        """Return how far the job is behind the source, or that it has output to commit.

        On a completed checkpoint the source commits its offsets and the sinks commit their transactions, but not
        atomically. Offsets at the end of the source, and no records in flight, mean that the windows up to there are
        written. No open transaction after that means that they are committed. So the checks run in this order.
        """
        group = self._run.group_id
        # The group first: what it commits later may be beyond ends that were read before.
        committed = self._cluster.group_offsets(group, self.source)
        ends = self._cluster.spans(self.source, committed=False)
        if not any(span.end for span in ends.values()):
            return None
        for partition, offset in committed.items():
            if partition not in ends or offset > ends[partition].end:
                raise Unknown(
                    f"group {group} has committed offset {offset} of {self.source} partition {partition}, past its "
                    "end: the job read another topic of this name; start clean (scripts/down.sh --wipe)"
                )
        if (missing := lag(self._cluster, self.source, committed)) is not None:
            read, total = missing
            text = (
                f"the job has committed {read:,} of {total:,} offsets of {self.source}{self._newest_checkpoint()}; "
                "see scripts/flink_status.sh, or restore it (scripts/flink_restore.sh)"
            )
            return Behind(text, read, total - read)
        if (held := self._in_flight()) is not None:
            return held
        for topic in self._outputs:
            for partition, span in self._cluster.open_transactions(topic).items():
                text = (
                    f"{topic} partition {partition} has an open transaction from offset {span.begin}"
                    f"{self._newest_checkpoint()}; the job commits it with its next checkpoint, or after a restore "
                    "(scripts/flink_restore.sh)"
                )
                return Behind(text, (topic, partition, span.begin))
        return None

    def _in_flight(self) -> Behind | None:
        """Return what is missing while the job has more to do than the offsets of its group say.

        A job that was restored goes on behind the offsets that an earlier job committed, until its first checkpoint. An
        unaligned checkpoint commits the offsets of records that it holds and that are not in any window yet: the
        JobManager tells how many bytes, by `persisted_data` of its checkpoint statistics.
        """
        if not self._runs.unaligned and len(self._runs.runs) == 1:
            # The offsets are those of its own checkpoints, which hold no records.
            return None
        try:
            job = self._newest_job()
            latest = checkpoints(self._rest, job[0], seconds=_ANSWER_SECONDS)["latest"] if job else {}
        except FlinkError as error:
            if not is_absent(error):
                return Behind(f"the job may have records left: {error}", None)
            job = None
        if job is None:
            # A job that no JobManager runs has committed what it will, but for the records that a checkpoint holds.
            text = f"the job may have records left: no JobManager tells what its newest checkpoint holds; {_AGAIN}"
            return Behind(text, None) if self._runs.unaligned else None
        job_id, is_active = job
        return records_left(job_id, latest, is_active=is_active, unaligned=self._runs.unaligned)

    def _newest_job(self) -> tuple[str, bool] | None:
        """Return the newest job of the runs, one that is active first, and whether it is; None when none is known.

        Raises FlinkError.
        """
        answer = call(self._rest, "/jobs/overview", seconds=_ANSWER_SECONDS)
        states = {job["jid"]: job["state"] for job in answer.get("jobs", ())}
        known = [run.job_id for run in self._runs.runs if run.job_id in states]
        active = [job_id for job_id in known if states[job_id] not in TERMINAL_STATES]
        return ((active or known)[-1], bool(active)) if known else None

    def judge(self, store: Store, sources: Sources, *, caught_up: bool) -> Judgement:
        """Read the topics and judge them; the outputs first, so that the source has all records that they come from."""
        clock = Stopwatch()
        with clock.measure("reading"):
            decided = {} if caught_up else self._decided()
            # Windows last, and the ends after the last stable offsets: when they are equal, all earlier writes
            # are committed, so a missing window was not written by then.
            outputs = {topic: self._cluster.spans(topic, committed=True) for topic in self._outputs}
            # Without transactions the records of one checkpoint become visible one by one.
            is_whole = caught_up or (self._runs.exactly_once and decided is not None and self._in_flight() is None)
            at_rest = is_whole and not self._written_since(outputs)
            for topic, spans in outputs.items():
                require_whole(self._cluster, topic, spans)
            source = source_spans(self._cluster, self.source, caught_up=caught_up)
            load_outputs(store, self._cluster, self._names, outputs, self._rules)
            visits = sources.rows(self.source, source, VISITS, self.parse)
            clocks = load_source(store, visits, source, rules=self._rules, arrivals=self._arrivals(store))
        positions = {partition: span.end for partition, span in source.items()} if caught_up else decided or {}
        facts = FlinkFacts(
            names=self._names,
            rules=self._rules,
            shared=min(self._run.partitions, len(source)) if self._runs.recorded else len(source),
            fewest_shared=self._partition_counts(source)[0],
            clocks=clocks,
            partitions={topic: self._partition_counts(spans) for topic, spans in outputs.items()},
            positions=positions,
            caught_up=caught_up,
            outputs_at_rest=at_rest,
            as_is=self._options.as_is,
            notes=(*self._notes(), *((NOTHING_IS_DUE,) if decided is None else ())),
        )
        with clock.measure("judging"):
            judgement = judge(store, facts)
        if caught_up:
            self._require_rest(outputs)
        return replace(judgement, verdict=replace(judgement.verdict, seconds=clock.seconds))

    def _require_rest(self, outputs: dict[str, Spans]) -> None:
        """Raise Moved when an output has grown since its spans were taken."""
        if moving := self._written_since(outputs):
            raise Moved(f"the job still writes to {moving}; judge again after its next checkpoint")

    def _decided(self) -> dict[int, int] | None:
        """Return offsets up to which the outputs have all that the job decided; None when it cannot be known.

        What is written now is waited for. The offsets are looked at again, since a job that was restored meanwhile may
        have gone back.
        """
        first = self._offsets()
        if first is None or not self._await_outputs() or (again := self._offsets()) is None:
            return None
        return {partition: min(offset, again.get(partition, 0)) for partition, offset in first.items()}

    def _offsets(self) -> dict[int, int] | None:
        """Return the offsets of the group; None while the job has more to do than they say."""
        committed = self._cluster.group_offsets(self._run.group_id, self.source)
        return committed if self._in_flight() is None else None

    def _await_outputs(self) -> bool:
        """Wait until all that is written now is committed or aborted; False when a transaction stays open."""
        written = {topic: self._cluster.spans(topic, committed=False) for topic in self._outputs}

        def is_over(topic: str) -> bool:
            stable = self._cluster.spans(topic, committed=True)
            return all(stable[partition].end >= span.end for partition, span in written[topic].items())

        wait, waiting = min(self._options.wait_seconds, _DECIDED_SECONDS) if self._options.as_is else 0, Waiting()
        for _ in attempts(wait, LOOK_SECONDS):
            if all(map(is_over, written)):
                return True
            waiting.say(f"{self.name}: the end of open transactions")
        return False

    def _arrivals(self, store: Store) -> Arrivals | None:
        """Return when visits arrived, by the ledger of this topic if there is one."""
        files = files_of(self._settings.ledger, self.source)
        if not files:
            return None
        load_ledgers(store, files, self._cluster.topic_id(self.source))

        def arrivals(partition: int, first: int, last: int) -> pa.Table:
            return store.arrow(
                """SELECT kafka_offset, max(clock) AS clock FROM ledger_acked
                   WHERE kafka_partition = $partition AND kafka_offset BETWEEN $first AND $last
                   GROUP BY kafka_offset ORDER BY kafka_offset""",
                partition=partition,
                first=first,
                last=last,
            )

        return arrivals

    def _partition_counts(self, spans: Spans) -> tuple[int, int]:
        fewest = min(self._runs.fewest_partitions, len(spans)) if self._runs.recorded else len(spans)
        return fewest, len(spans)

    def _written_since(self, outputs: dict[str, Spans]) -> str | None:
        """Return an output that has grown since its spans were taken, or that has an open transaction."""
        return next(
            (topic for topic, spans in outputs.items() if self._cluster.spans(topic, committed=False) != spans), None
        )

    def _newest_checkpoint(self) -> str:
        """Return a text that names the newest complete checkpoint and its time."""
        done: list[tuple[float, Location]] = []
        for file in flink_checkpoints(self._settings).glob("*/chk-*/_metadata"):
            try:
                done.append((file.stat().st_mtime, file.parent))
            except OSError:
                # The job may remove old checkpoints meanwhile.
                continue
        if not done:
            return ", no checkpoint is complete"
        written, folder = max(done)
        return f", its newest checkpoint is {folder.name} of {iso_time(int(written * 1000))}"

    def _notes(self) -> tuple[str, ...]:
        if not self._runs.recorded:
            return (f"no settings of a run in {self._settings.flink_notes}: judged by those of .env and the shell",)
        if self._run.mode != EXACTLY_ONCE:
            return (f"the job ran in mode {self._run.mode}, which allows windows to be written more than once",)
        return ()


def flink(settings: Settings, cluster: Cluster, options: Options) -> Checker:
    """Create the checker of the windowing job."""
    return FlinkChecker(settings, cluster, options)
