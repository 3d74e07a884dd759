"""Releases of Spark that can have written a checkpoint, and the differences between releases.

Spark writes no release into a checkpoint. It does write settings into each offsets file, and each release has added
some. These tables come from the golden checkpoints in tests/golden.
"""

from __future__ import annotations

from faultline.inspector.spark.commits import Commits
from faultline.inspector.spark.offsets import Offsets, PlannedBatch

TRIED = ("3.5", "4.0", "4.1", "4.2", "4.3")
"""Releases whose checkpoints were read, and on which the predictions were tested."""
PINNED_SINCE = {
    "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan": "3.5",
    "spark.sql.shuffle.partitions": "3.5",
    "spark.sql.streaming.aggregation.stateFormatVersion": "3.5",
    "spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": "3.5",
    "spark.sql.streaming.join.stateFormatVersion": "3.5",
    "spark.sql.streaming.multipleWatermarkPolicy": "3.5",
    "spark.sql.streaming.stateStore.compression.codec": "3.5",
    "spark.sql.streaming.stateStore.providerClass": "3.5",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion": "3.5",
    "spark.sql.streaming.statefulOperator.useStrictDistribution": "3.5",
    "spark.sql.streaming.stateStore.encodingFormat": "4.0",
    "spark.sql.function.protobufExtensions.enabled": "4.2",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "4.2",
    "spark.sql.streaming.stateStore.rocksdb.mergeOperatorVersion": "4.2",
    "spark.sql.streaming.stateStore.rowChecksum.enabled": "4.2",
    "spark.sql.dropDuplicates.deterministicKeyOrder.enabled": "4.3",
    "spark.sql.streaming.statefulOperator.alwaysNullableOutput.enabled": "4.3",
}
"""Each setting that a release writes into the log, and the first of the tried releases that does."""
SINCE_THE_OLDEST = "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan"
"""Spark 3.5.4 and later pin this setting (SPARK-49699)."""
BEFORE_THE_OLDEST = (
    "spark.sql.streaming.join.stateFormatVersion",
    "spark.sql.streaming.stateStore.compression.codec",
    "spark.sql.streaming.stateStore.rocksdb.formatVersion",
    "spark.sql.streaming.statefulOperator.useStrictDistribution",
)
"""Settings that every release from 3.3 on pins, and that came after 2.4 (OffsetSeqMetadata.relevantSQLConfs)."""
MOST_REPLAYED, REPAIRED_SINCE = 500, "4.2"
"""From this release on an older snapshot of the state, and so many changes after it, stand in for one that cannot be
read (AutoSnapshotLoader; the default of autoSnapshotRepair.maxChangeFileReplay). Spark 4.1 has it turned off."""
OFFSETS_SINCE = {1: "3.5", 2: "4.2"}
COMMITS_SINCE = {1: "3.5", 2: "4.0", 3: "4.2"}
"""The first release that reads each version of the logs."""
EMPTY_NEEDED_SINCE = "4.1"
"""From here on a query without offsets starts only where offsets/, state/ and commits/ hold nothing (SPARK-53103)."""
EVOLUTION, EVOLUTION_NEEDS_V2_SINCE = "spark.sql.streaming.queryEvolution.enableSourceEvolution", "4.3"
"""Spark 4.2 tracks named sources with offsets of version 1, which later releases refuse."""
REPARTITION_CHECKED_SINCE = "4.2"
"""From here on a batch that changes the partitions of the state must be finished by the API that began it."""
METADATA_NEEDED_SINCE = "4.2"
"""From here on a restart needs the file `metadata` where there are offsets or commits."""


def writers(batch: PlannedBatch | None) -> list[str]:
    """Return the tried releases that can have written a batch.

    None when it has settings that none of them writes, or lacks one that all of them write.
    """
    if batch is None or older(batch) or not batch.configuration.keys() <= PINNED_SINCE.keys():
        return []
    needed = [PINNED_SINCE[name] for name in batch.configuration]
    since = max([*needed, OFFSETS_SINCE.get(batch.version, TRIED[0])], key=_numbers)
    # A release that adds no setting writes what the one before it writes.
    later = [each for each in PINNED_SINCE.values() if is_before(since, each)]
    return [release for release in TRIED if not is_before(release, since) and all(is_before(release, e) for e in later)]


def older(batch: PlannedBatch) -> str:
    """Say which release before the tried ones wrote a batch, as far as its settings tell; empty for a tried one."""
    if batch.version > 1 or SINCE_THE_OLDEST in batch.configuration:
        return ""
    if all(name in batch.configuration for name in BEFORE_THE_OLDEST):
        return "3.5.3 or older"
    return "older than 3.5"


def most_replayed(release: str) -> int | None:
    """Return after how many changes at most a release takes an older snapshot; None when it never takes one."""
    return None if is_before(release, REPAIRED_SINCE) else MOST_REPLAYED


def is_before(release: str, other: str) -> bool:
    """Return whether a release is older than another one; 4.9 is older than 4.10."""
    return _numbers(release) < _numbers(other)


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def formats(offsets: Offsets, commits: Commits) -> dict[str, str]:
    """Return the versions of the files of each log, the newest file's first."""
    found = {
        "offsets": [batch.version for _, batch in sorted(offsets.batches.items(), reverse=True)],
        "commits": [commit.version for _, commit in sorted(commits.commits.items(), reverse=True)],
    }
    return {name: ", ".join(f"version {each}" for each in dict.fromkeys(all_)) for name, all_ in found.items() if all_}


def cannot_read(release: str, version: int, since: dict[int, str]) -> bool:
    """Return whether a release stops at a file of this version of a log."""
    return is_before(release, since.get(version, TRIED[-1]))


def in_words(releases: list[str]) -> str:
    """`Spark 4.2 and 4.3`, `Spark 3.5, 4.0 and 4.1`."""
    *others, last = releases
    return f"Spark {', '.join(others)} and {last}" if others else f"Spark {last}"
