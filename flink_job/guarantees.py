"""The job's guarantees, as Flink configuration: each setting has its reason, and none is left to a default."""

from __future__ import annotations

from collections.abc import Mapping

from faultline.formats.jobs import AT_LEAST_ONCE, EXACTLY_ONCE
from faultline.formats.visit import EVENT_TIME_PATTERN, MAX_NESTING, MOST_BYTES_OF_A_COPY, VISIT_ID_PATTERN
from faultline.settings import HASHMAP, ROCKSDB, Settings

NONE = "none"
"""No checkpoints, and sinks that promise nothing: only benchmarks run the job so, to see what a guarantee costs."""

_CHECKPOINTING_MODE = {EXACTLY_ONCE: "EXACTLY_ONCE", AT_LEAST_ONCE: "AT_LEAST_ONCE"}


def job_configuration(settings: Settings, mode: str) -> dict[str, str]:
    """Flink options of one run of the job in `mode`, one of MODES, or NONE."""
    return checkpointing(settings, mode) | {
        "pipeline.name": settings.text("FLINK_JOB_NAME"),
        "parallelism.default": settings.text("FLINK_PARALLELISM"),
        # Part of the state's layout: it limits every later rescaling, so it is set once.
        "pipeline.max-parallelism": settings.text("FLINK_MAX_PARALLELISM"),
        # Rows are passed along a chain without copies: none of its operators keeps a row after the call.
        "pipeline.object-reuse": "true",
        # How often a partition is checked for idleness.
        "pipeline.auto-watermark-interval": "200 ms",
        **state_backend(settings),
        # At once after the first failure, less often when it keeps failing, and without a limit: a killed TaskManager
        # may stay down for long.
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.attempts-before-reset-backoff": "2147483647",
        "restart-strategy.exponential-delay.initial-backoff": "100 ms",
        "restart-strategy.exponential-delay.max-backoff": "10 s",
        "restart-strategy.exponential-delay.backoff-multiplier": "2.0",
        "restart-strategy.exponential-delay.reset-backoff-threshold": "1 min",
        "restart-strategy.exponential-delay.jitter-factor": "0.1",
        "table.local-time-zone": "UTC",
        "table.exec.state.ttl": "0 ms",
        # Count within the task that reads, then merge: fewer rows are sent to the task that owns a visit.
        "table.optimizer.agg-phase-strategy": "TWO_PHASE",
        "table.exec.window-agg.buffer-size-limit": "100000",
    }


def checkpointing(settings: Settings, mode: str) -> dict[str, str]:
    """Flink options of the checkpoints; none in mode NONE."""
    if mode == NONE:
        return {}
    return {
        # Barriers are aligned in exactly-once mode: state then contains each record before them once.
        "execution.checkpointing.mode": _CHECKPOINTING_MODE[mode],
        "execution.checkpointing.interval": f"{settings.number('FLINK_CHECKPOINT_INTERVAL_MS')} ms",
        "execution.checkpointing.timeout": "60 s",
        # The first checkpoint after a start may find tasks that do not run yet; that is not an error of the job.
        "execution.checkpointing.tolerable-failed-checkpoints": "10",
        "execution.checkpointing.max-concurrent-checkpoints": "1",
        **_barriers(settings, mode),
        # A cancelled job can be restored from any of its retained checkpoints. Their number is set in the
        # JobManager's configuration: flink_job/conf/config.yaml.
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": settings.flink_checkpoints,
    }


def state_backend(settings: Settings) -> dict[str, str]:
    """Flink options of where the state is while the job runs, and of how much of it a checkpoint writes."""
    if settings.flink_state_backend == HASHMAP:
        return {
            "state.backend.type": HASHMAP,
            # A checkpoint is complete: chk-N needs no file of chk-N-1 and can be read or copied alone.
            "execution.checkpointing.incremental": "false",
        }
    return {
        "state.backend.type": ROCKSDB,
        # RocksDB never changes a file that it wrote: a checkpoint writes the new ones and names the others, so its cost
        # follows the changes and not the state. chk-N then needs files of earlier checkpoints, in `shared` beside it:
        # the folder of the job is the unit to copy, and it cannot be moved, since chk-N names them by absolute paths.
        "execution.checkpointing.incremental": "true",
        # It stays within the slot's managed memory.
        "state.backend.rocksdb.memory.managed": "true",
        # The index of a file is read in parts. Whole, it is too large for a cache of this size: with a million windows
        # each look at one read 150 KB of index from disk, and 1,650 windows closed in a second.
        "state.backend.rocksdb.memory.partitioned-index-filters": "true",
        # Timers are as many as windows: on the heap they would bound the state again.
        "state.backend.rocksdb.timer-service.factory": "ROCKSDB",
    }


def _barriers(settings: Settings, mode: str) -> dict[str, str]:
    """Flink options of how a barrier passes the records before it."""
    # At least once nothing is aligned, so there is nothing to overtake, and Flink allows no unaligned checkpoints.
    if not settings.flink_unaligned or mode != EXACTLY_ONCE:
        return {
            # The state alone is in a checkpoint, so any later version of the job can read it.
            "execution.checkpointing.unaligned.enabled": "false",
        }
    return {
        # Under backpressure a barrier waits as long as the records before it; now it overtakes them, and the checkpoint
        # holds them.
        "execution.checkpointing.unaligned.enabled": "true",
        # Flink asks for it because of ByPartition: with another number of tasks it does not promise the order of the
        # records that a checkpoint holds, and OnTime needs it. faultline/inspector/flink/rescaling.py refuses such a
        # restore.
        "execution.checkpointing.unaligned.forced": "true",
        # Without backpressure a barrier arrives in time, and the checkpoint holds no records.
        "execution.checkpointing.aligned-checkpoint-timeout": "500 ms",
    }


def source_options(settings: Settings) -> dict[str, str]:
    """Kafka connector options of the table that reads `visits`."""
    return {
        "connector": "kafka",
        "topic": settings.text("VISITS_TOPIC"),
        "properties.bootstrap.servers": settings.bootstrap,
        "properties.group.id": settings.text("FLINK_GROUP_ID"),
        # Offsets come from the checkpoint; without one the job reads everything. The group's committed
        # offsets are only for people and tools.
        "scan.startup.mode": "earliest-offset",
        "properties.commit.offsets.on.checkpoint": "true",
        # Visits written in a transaction count only after its commit.
        "properties.isolation.level": "read_committed",
        "scan.topic-partition-discovery.interval": "60 s",
        # The reader switches partitions after this much: while a backlog is read, a waiting partition
        # must not look idle.
        "properties.max.partition.fetch.bytes": "262144",
        "properties.max.poll.records": "500",
        # The watermark is emitted with the row that moved it, not up to 200 ms of wall clock later:
        # a checkpoint that contains the last row then contains every window that this row closed.
        "scan.watermark.emit.strategy": "on-event",
        # Only tells whether a partition has visits now; flink_job/java/ decides when it is idle.
        "scan.watermark.idle-timeout": "1 s",
        "key.format": "raw",
        "key.fields": "record_key",
        "value.fields-include": "EXCEPT_KEY",
        # The rule of a visit: flink_job/java/faultline/visits/VisitRule.java
        "value.format": "visit",
        "value.visit.visit-id-pattern": VISIT_ID_PATTERN,
        "value.visit.event-time-pattern": EVENT_TIME_PATTERN,
        "value.visit.max-nesting": str(MAX_NESTING),
    }


def sink_options(settings: Settings, topic_setting: str, mode: str) -> dict[str, str]:
    """Kafka connector options of the table that writes the topic named by `topic_setting`."""
    topic = settings.text(topic_setting)
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": settings.bootstrap,
        "properties.acks": "all",
        "properties.enable.idempotence": "true",
        # The topic takes as much: a record that the broker refuses would stop the job at this visit for good.
        "properties.max.request.size": str(MOST_BYTES_OF_A_COPY),
        # Wait for an unavailable broker: giving up a record would end the TaskManager, not just the job.
        "properties.delivery.timeout.ms": "604800000",
        "properties.linger.ms": "20",
        "properties.batch.size": "65536",
        "sink.delivery-guarantee": mode,
    }
    if mode == EXACTLY_ONCE:
        options |= {
            # Each sink has its own ids: two producers with one id would fence each other off.
            "sink.transactional-id-prefix": f"{settings.text('FLINK_TRANSACTIONAL_ID_PREFIX')}-{topic}",
            # Ids are reused once their transaction ended, instead of a new one at every checkpoint,
            # each of which the broker would remember for days.
            "sink.transaction-naming-strategy": "POOLING",
            # Longer than any downtime: a transaction that a completed checkpoint promised must not be
            # aborted by the broker before the job is back to commit it.
            "properties.transaction.timeout.ms": settings.text("FLINK_TRANSACTION_TIMEOUT_MS"),
        }
    return options


def with_clause(options: Mapping[str, str]) -> str:
    """The options as the body of a table's WITH (...)."""
    return ",\n  ".join(f"'{name}' = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in options.items())
