"""Prediction of how Spark starts a query again on a checkpoint.

MicroBatchExecution.populateStartOffsets: the newest offsets file is taken, and the one before, which must be there even
when it is not needed (validateOffsetLogAndGetPrevOffset; AsyncProgressTrackingMicroBatchExecution takes the newest
earlier one that exists). Both must have an offset for each source of the query (OffsetSeq.toStreamProgress). When the
newest commit is that of the newest batch, the query goes on with the next one; otherwise exactly this batch is run
again, also when newer commits exist. Older batches are not read. The differences between releases are in `releases.py`.

A prediction covers only what this program reads. It names the files that Spark also reads at a start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faultline.inspector.model import Elsewhere, Partition, Restart, SourceRange
from faultline.inspector.spark import releases
from faultline.inspector.spark.commits import Commits
from faultline.inspector.spark.log import LogError, UnknownVersion
from faultline.inspector.spark.offsets import NO_METADATA, Offsets
from faultline.inspector.spark.sources import (
    DELTA_AFTER_ALL,
    delta_position,
    explain,
    file_source_fails,
    fits,
    kafka_partitions,
    kind_of,
    one_log_of_many,
)
from faultline.inspector.words import count, positions, ranges
from faultline.storage.location import Location

COMPARING = "spark.sql.streaming.checkpointFileManagerClass = FileSystemBasedCheckpointFileManager"
SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True)
class Logs:
    """Inputs of a restart: the logs, the initial offsets of the sources, and the condition of the file `metadata`.

    `committed`: batches by the files in `commits/`. `identity`: "there", "missing" or "damaged". `state`: by release
    what is wrong with the state that the next batch would load, empty when nothing is. `unseen`: what Spark reads and
    this program does not. `asynchronous`: the gaps in the logs are those that asynchronous progress tracking leaves.
    `left`: a file in a folder that must be empty before the first batch
    (MicroBatchExecution.verifyNewCheckpointDirectory). `unreadable`: why the initial offset of a source cannot be read.
    `unfit`: a file that a start reads and that does not fit its checksum. `compares`: Spark's reader of the logs is
    known to be the one that compares.
    """

    checkpoint: Location
    offsets: Offsets
    commits: Commits
    committed: set[int]
    initial: dict[str, Any]
    identity: str = "there"
    state: Mapping[str, str] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    asynchronous: bool = False
    left: str = ""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    unfit: str = ""
    compares: bool = False

    @property
    def previous(self) -> int | None:
        """Return the batch before the newest one, as far as it is needed; None without one."""
        batches = self.offsets.batches
        last = max(batches, default=0)
        if self.asynchronous:
            there = {*batches, *self.offsets.errors, *self.offsets.unknown}
            return max((each for each in there if each < last), default=None)
        return last - 1 if last > 0 else None


def predict(logs: Logs, written_by: list[str]) -> Restart:
    """Predict the restart with the release that wrote the checkpoint, and say what other releases do differently."""
    release = written_by[0] if written_by else releases.TRIED[-1]
    restart = predict_with(logs, release)
    others: dict[tuple[str, int | None, str], list[str]] = {}
    for release in releases.TRIED:
        other = predict_with(logs, release)
        if (other.action, other.step, other.sentence) != (restart.action, restart.step, restart.sentence):
            others.setdefault((other.action, other.step, other.sentence), []).append(release)
    restart.elsewhere = [Elsewhere(which, *what) for what, which in others.items()]
    return restart


def predict_with(logs: Logs, release: str) -> Restart:
    """Predict the restart with one release."""
    if logs.identity == "damaged":
        return _impossible(None, f"Spark reads {logs.checkpoint / 'metadata'} first of all")
    present = bool(logs.offsets.batches or logs.offsets.errors or logs.offsets.unknown or logs.committed)
    if logs.identity == "missing" and present and not releases.is_before(release, releases.METADATA_NEEDED_SINCE):
        return _impossible(None, f"{logs.checkpoint / 'metadata'} is missing beside offsets or commits")
    return _by_checksums(logs, _by_logs(logs, release))


def _by_checksums(logs: Logs, restart: Restart) -> Restart:
    """Say what the checksums beside the logs, `.NAME.crc`, change of a restart: this depends on who reads the logs.

    Spark's default compares none. It renames a file to its name, and its checksum after it, neither over another one
    (ChecksumFs.renameInternal), and takes one that is there for the work of a second query. The other manager compares
    them, and writes over them (ChecksumFileSystem).
    """
    if restart.action not in ("continue", "re-run"):
        return restart
    unfit = f"{logs.unfit} was changed, and does not fit the checksum beside it" if logs.unfit else ""
    if logs.compares:
        return _impossible(restart.step, unfit) if unfit else restart
    if why := _in_the_way(logs, restart):
        return _impossible(restart.step, why)
    if unfit:
        restart.details.append(f"this holds with Spark's default; with {COMPARING} it fails, because {unfit}")
    return restart


def _in_the_way(logs: Logs, restart: Restart) -> str:
    """Say what is in the place of a file that a restart writes; empty when nothing is."""
    written = ("offsets", "commits") if restart.action == "continue" else ("commits",)
    for folder in [logs.checkpoint / log for log in written] if isinstance(logs.checkpoint, Path) else ():
        if (folder / str(restart.step)).is_dir():
            return f"{folder / str(restart.step)} is a folder, where Spark has to write a file; remove it"
        checksum = folder / f".{restart.step}.crc"
        # AsyncOffsetSeqLog and AsyncCommitLog write over what is there.
        if checksum.exists() and not logs.asynchronous:
            return (
                f"{checksum} is left of a file that was deleted, so Spark cannot write this file again; delete it, too"
                f" (with {COMPARING} Spark writes over it)"
            )
    return ""


def _impossible(step: int | None, why: str) -> Restart:
    return Restart("impossible", step, f"A restart fails: {why}")


def _by_logs(logs: Logs, release: str) -> Restart:
    batches = logs.offsets.batches
    if not batches and not logs.offsets.errors and not logs.offsets.unknown:
        return _begin(logs, release)
    last = max([*batches, *logs.offsets.errors, *logs.offsets.unknown])
    epoch = max(logs.committed, default=-1)
    if logs.offsets.is_continuous and epoch in logs.offsets.errors:
        # ContinuousExecution.getStartOffsets
        words = (
            f"A restart goes on with epoch {epoch + 1}, from {logs.checkpoint}/offsets/{epoch}, as far as can be seen"
        )
        what = f"only a query with a continuous trigger goes on: {NO_METADATA}"
        return Restart("continue", epoch + 1, f"{words} from here", details=[what])
    stopped = _at_offsets(logs, release, last) or _at_commit(logs, release, last) or _before_last(logs, release, last)
    if stopped is not None:
        return stopped
    if max(logs.committed, default=-1) > last:
        return _taken(logs.checkpoint, last, min(each for each in logs.committed if each >= last))
    restart = _continue(logs, last) if last in logs.committed else _rerun(logs, last)
    restart.details += _limits(logs)
    newest = max(logs.committed, default=-1)
    if newest in logs.commits.commits and logs.commits.commits[newest].version > 1:
        restart.details.append(
            "this holds with spark.sql.streaming.stateStore.checkpointFormatVersion=2, as the commits were written"
        )
    if logs.asynchronous and last - 1 not in batches:
        restart.details.append(
            "this holds with asyncProgressTrackingEnabled, which left the gaps between the batches; without that option"
            f" a restart fails, because offsets/{last - 1} is not there"
        )
    return restart


def _at_offsets(logs: Logs, release: str, last: int) -> Restart | None:
    """The newest offsets file, which is read first."""
    offsets, file = logs.offsets, logs.checkpoint / "offsets" / str(last)
    if last in offsets.unknown:
        return _not_known(last, f"{file} is the newest, and {offsets.unknown[last]}")
    if last in offsets.errors:
        return _impossible(last, f"Spark reads {file} first, and {offsets.errors[last]}")
    version = offsets.batches[last].version
    evolving = offsets.batches[last].configuration.get(releases.EVOLUTION) == "true"
    if evolving and version == 1 and not releases.is_before(release, releases.EVOLUTION_NEEDS_V2_SINCE):
        why = f"this release needs offsets of version 2 for named sources, and {file} is of version 1"
        return _impossible(last, why)
    if releases.cannot_read(release, version, releases.OFFSETS_SINCE):
        return _impossible(last, f"this release cannot read {file}, an offsets file of version {version}")
    return None


def _at_commit(logs: Logs, release: str, last: int) -> Restart | None:
    """The newest commit, which is read whatever its batch is."""
    commits = logs.commits
    newest = max([*logs.committed, *commits.errors], default=-1)
    file = logs.checkpoint / "commits" / str(newest)
    if newest in commits.unknown:
        return _not_known(last, f"{file} is the newest, and {commits.unknown[newest]}")
    if newest in commits.errors:
        return _impossible(last, f"Spark also reads {file}, and {commits.errors[newest]}")
    version = commits.commits[newest].version if newest in commits.commits else 1
    if releases.cannot_read(release, version, releases.COMMITS_SINCE):
        return _impossible(last, f"this release cannot read {file}, a commit of version {version}")
    return None


def _before_last(logs: Logs, release: str, last: int) -> Restart | None:
    """The offsets file before the newest, where that batch starts, the sources' logs and the state."""
    offsets, previous = logs.offsets, logs.previous
    if previous is not None and previous not in offsets.batches:
        file = logs.checkpoint / "offsets" / str(previous)
        if previous in offsets.unknown:
            return _not_known(last, f"{file} is where batch {last} starts, and {offsets.unknown[previous]}")
        why = offsets.errors.get(previous, "it is missing")
        restart = _impossible(last, f"Spark also reads {file}, where batch {last} starts, and {why}")
        if previous not in offsets.errors:
            restart.details.append(
                "only a query with asyncProgressTrackingEnabled, which leaves out batches in both logs, goes on"
            )
        return restart
    if not releases.is_before(release, releases.REPARTITION_CHECKED_SINCE) and _repartitions(logs, last):
        return _impossible(last, f"batch {last} changes {SHUFFLE_PARTITIONS}, and this repartition is not committed")
    try:
        why = _sources_fail(logs, last, previous) or logs.state.get(release, "")
    except UnknownVersion as error:
        return _not_known(last, str(error))
    except LogError as error:
        why = str(error)
    return _impossible(last, why) if why else None


def _repartitions(logs: Logs, last: int) -> bool:
    """Return whether the newest batch is an unfinished repartition of the state (OfflineStateRepartitionUtils)."""
    if last <= max(logs.committed, default=-1) or logs.previous is None or logs.asynchronous:
        return False
    counts = [logs.offsets.batches[number].configuration.get(SHUFFLE_PARTITIONS) for number in (logs.previous, last)]
    return None not in counts and counts[0] != counts[1]


def _sources_fail(logs: Logs, last: int, previous: int | None) -> str:
    """Say why the query's sources cannot start from the newest two batches; empty when nothing is seen."""
    newest = logs.offsets.batches[last]
    again = last not in logs.committed
    before = logs.offsets.batches[previous] if previous is not None else None
    if before is not None and before.version == newest.version == 1 and len(before.ends) != len(newest.ends):
        return (
            f"{logs.checkpoint}/offsets/{previous} has {count(len(before.ends), 'source')} and offsets/{last} has"
            f" {len(newest.ends)}: Spark reads both, and both must have as many as the query"
        )
    # Two sources that may be one do not tell which log is whose.
    tells_logs = not one_log_of_many([before.ends, newest.ends] if before else [newest.ends])
    for name, end in newest.ends.items():
        start = before.ends.get(name) if before else None
        # A rate source reads where it began whenever it starts, and Kafka's when there is no batch to go on from.
        if name in logs.unreadable and (kind_of(end) == "counter" or (again and before is None)):
            return f"{logs.checkpoint}/sources/{name}/0 cannot be read: {logs.unreadable[name]}"
        if kind_of(end) == "file":
            why = file_source_fails(logs.checkpoint, name, start, end) if tells_logs else ""
        elif kind_of(end) == "delta" or (again and name in logs.initial):
            why = _does_not_fit(name, start, end)
        else:
            why = ""
        if why:
            return why
    return ""


def _does_not_fit(source: str, start: Any, end: Any) -> str:
    """Say why a source of Delta, Kafka or rate refuses the offsets of a batch; empty when it takes them.

    DeltaSource.getBatch reads both, also of a committed batch, and both must be of its table (DeltaSourceOffset.apply);
    Kafka and rate read the start when the batch runs (MicroBatchStream.deserializeOffset).
    """
    if start is not None and not fits(start, kind_of(end)):
        return f"source {source} cannot read the offset {json.dumps(start)}, from which its batch starts"
    if start is not None and kind_of(end) == "delta" and start["reservoirId"] != end["reservoirId"]:
        return f"source {source} has another reservoirId in the newest batch than in the one before: two tables"
    if start is not None and kind_of(end) == "counter" and start > end:
        # RateStreamMicroBatchStream.planInputPartitions.
        return f"the rate source {source} goes from second {start} back to {end}, which it refuses"
    return ""


def _not_known(last: int, why: str) -> Restart:
    return Restart("unknown", last, f"What a restart does is not known here: {why}")


def _begin(logs: Logs, release: str) -> Restart:
    if logs.committed:
        taken = logs.checkpoint / "commits" / str(min(logs.committed))
        return _impossible(0, f"no batch is planned, so it begins with batch 0, and {taken} is there already")
    if logs.left and not releases.is_before(release, releases.EMPTY_NEEDED_SINCE):
        return _impossible(0, f"no batch is planned, and {logs.left} is there already")
    restart = Restart("continue", 0, f"A restart begins with batch 0{_seen(logs)}: nothing was planned yet")
    restart.details += _limits(logs)
    return restart


def _taken(checkpoint: Location, last: int, taken: int) -> Restart:
    # When a commit file is there already, MicroBatchExecution.markMicroBatchEnd assumes a second query.
    again = "" if taken == last else f", and plans those up to batch {taken}"
    return Restart(
        "impossible",
        last,
        f"A restart re-runs batch {last}, because the newest commit is not that of the newest offsets{again}; it fails"
        f" when batch {taken} is to be committed: {checkpoint}/commits/{taken} is there already",
    )


def _limits(logs: Logs) -> list[str]:
    return [f"not looked at: {', '.join(logs.unseen)}"] if logs.unseen else []


def _seen(logs: Logs) -> str:
    return ", as far as can be seen from here" if logs.unseen else ""


def _continue(logs: Logs, last: int) -> Restart:
    ends = logs.offsets.batches[last].ends
    partitions = [
        Partition(each.topic, each.partition, each.end, None)
        for end in ends.values()
        if kind_of(end) == "kafka"
        for each in kafka_partitions(None, end)
    ]
    others = [_after(name, end, logs.initial.get(name)) for name, end in ends.items() if kind_of(end) != "kafka"]
    where = "; ".join([*([positions(partitions)] if partitions else []), *others])
    return Restart("continue", last + 1, f"A restart goes on with batch {last + 1}{_seen(logs)}: {where}", partitions)


def _after(source: str, end: Any, initial: Any) -> str:
    kind = kind_of(end)
    called = "" if source.isdecimal() else f"{source}: "
    if kind == "none":
        return f"source {source} from its start"
    if kind == "file":
        return f"{called}files that are not in the source's log yet (after log offset {end['logOffset']})"
    if kind == "delta":
        if end.get("isStartingVersion") or 0 <= end["index"] < DELTA_AFTER_ALL:
            return f"{called}the Delta table after what was read: {delta_position(end)}"
        return f"{called}the Delta table from version {end['reservoirVersion'] + (end['index'] >= DELTA_AFTER_ALL)}"
    if kind == "counter" and kind_of(initial) == "counter":
        return f"{called}the rate source from second {end} since its start"
    return f"source {source} after {end if isinstance(end, str) else json.dumps(end)}"


def _rerun(logs: Logs, last: int) -> Restart:
    batches = logs.offsets.batches
    starts = batches[logs.previous].ends if logs.previous is not None else {}
    sources: list[SourceRange] = [
        explain(logs.checkpoint, name, starts.get(name), end, logs.initial.get(name))
        for name, end in batches[last].ends.items()
    ]
    partitions = [each for source in sources for each in source.partitions]
    others = [source.words for source in sources if source.kind not in ("kafka", "none")]
    what = "; ".join([*([ranges(partitions)] if partitions else []), *others])
    return Restart("re-run", last, f"A restart re-runs batch {last}{_seen(logs)}: {what}", partitions)
