"""Prediction of how Spark starts a query again on a checkpoint.

MicroBatchExecution.populateStartOffsets: the newest offsets file is taken, and the one before, which must be there even
when it is not needed. When the newest batch is committed, the query goes on with the next one; otherwise exactly this
batch is re-run. Older batches are not looked at. The differences between releases are in `releases.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from faultline.inspector.model import Elsewhere, Partition, Restart, SourceRange
from faultline.inspector.spark import releases
from faultline.inspector.spark.commits import Commits
from faultline.inspector.spark.offsets import Offsets, PlannedBatch
from faultline.inspector.spark.sources import explain, kafka_partitions, kind_of
from faultline.inspector.words import positions, ranges
from faultline.storage.place import Place


@dataclass(frozen=True)
class Logs:
    """Inputs of a restart: the logs, the initial offsets of the sources, and the condition of the file `metadata`.

    `committed`: batches by the files in `commits/`. `identity`: "there", "missing" or "damaged". `state`: what is
    wrong with the state that the next batch would load, empty when nothing is. `asynchronous`: the gaps in the
    logs are those that asynchronous progress tracking leaves.
    """

    checkpoint: Place
    offsets: Offsets
    commits: Commits
    committed: set[int]
    initial: dict[str, Any]
    identity: str = "there"
    state: str = ""
    asynchronous: bool = False


def predict(logs: Logs, written_by: list[str]) -> Restart:
    """Predict the restart with the release that wrote the checkpoint, and say what other releases do differently."""
    home = written_by[0] if written_by else releases.TRIED[-1]
    restart = predict_with(logs, home)
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
    return _by_logs(logs, release)


def _impossible(step: int | None, why: str) -> Restart:
    return Restart("impossible", step, f"A restart fails: {why}")


def _by_logs(logs: Logs, release: str) -> Restart:
    batches = logs.offsets.batches
    if not batches and not logs.offsets.errors and not logs.offsets.unknown:
        return _begin(logs.checkpoint, logs.committed)
    last = max([*batches, *logs.offsets.errors, *logs.offsets.unknown])
    stopped = _at_offsets(logs, release, last) or _at_commit(logs, release, last) or _before_last(logs, last)
    if stopped is not None:
        return stopped
    if last not in logs.committed:
        return _rerun(logs.checkpoint, last, batches, logs.initial)
    if last + 1 in logs.committed:
        return _taken(logs.checkpoint, last + 1, last + 1, f"since offsets/{last} is the newest")
    restart = _continue(last, batches[last], logs.initial)
    if logs.asynchronous:
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
    newest = max(logs.committed, default=-1)
    commits, file = logs.commits, logs.checkpoint / "commits" / str(newest)
    if newest in commits.unknown:
        return _not_known(last, f"{file} is the newest, and {commits.unknown[newest]}")
    if newest in commits.errors:
        return _impossible(last, f"Spark also reads {file}, and {commits.errors[newest]}")
    version = commits.commits[newest].version if newest in commits.commits else 1
    if releases.cannot_read(release, version, releases.COMMITS_SINCE):
        return _impossible(last, f"this release cannot read {file}, a commit of version {version}")
    return None


def _before_last(logs: Logs, last: int) -> Restart | None:
    """The offsets file before the newest, where that batch starts, and the state that the next batch loads."""
    offsets = logs.offsets
    if last > 0 and last - 1 not in offsets.batches and not logs.asynchronous:
        why = offsets.errors.get(last - 1, offsets.unknown.get(last - 1, "it is missing"))
        file = logs.checkpoint / "offsets" / str(last - 1)
        return _impossible(last, f"Spark also reads {file}, where batch {last} starts, and {why}")
    return _impossible(last, logs.state) if logs.state else None


def _not_known(last: int, why: str) -> Restart:
    return Restart("unknown", last, f"What a restart does is not known here: {why}")


def _begin(checkpoint: Place, committed: set[int]) -> Restart:
    if committed:
        return _taken(checkpoint, 0, min(committed), "from the sources' start, since no batch is planned")
    return Restart("continue", 0, "A restart begins with batch 0: nothing was planned yet")


def _taken(checkpoint: Place, begin: int, taken: int, why: str) -> Restart:
    # When a commit file is there already, MicroBatchExecution assumes a second query on this checkpoint.
    return Restart(
        "impossible",
        begin,
        f"A restart plans batch {begin} again, {why}, and fails when batch {taken} is to be committed:"
        f" {checkpoint}/commits/{taken} is there already",
    )


def _continue(last: int, batch: PlannedBatch, initial: dict[str, Any]) -> Restart:
    partitions = [
        Partition(each.topic, each.partition, each.end, None)
        for end in batch.ends.values()
        if kind_of(end) == "kafka"
        for each in kafka_partitions(None, end)
    ]
    others = [_after(name, end, initial.get(name)) for name, end in batch.ends.items() if kind_of(end) != "kafka"]
    where = "; ".join([*([positions(partitions)] if partitions else []), *others])
    return Restart("continue", last + 1, f"A restart goes on with batch {last + 1}: {where}", partitions)


def _after(source: str, end: Any, initial: Any) -> str:
    kind = kind_of(end)
    called = "" if source.isdecimal() else f"{source}: "
    if kind == "file":
        return f"{called}files that are not in the source's log yet (after log offset {end['logOffset']})"
    if kind == "delta":
        return f"{called}the Delta table from version {end['reservoirVersion']}"
    if kind == "counter" and isinstance(initial, int):
        return f"{called}the rate source from second {end} since its start"
    return f"source {source} after {end}" if end is not None else f"source {source} from its start"


def _rerun(checkpoint: Place, last: int, batches: dict[int, PlannedBatch], initial: dict[str, Any]) -> Restart:
    starts = batches[last - 1].ends if last - 1 in batches else {}
    sources: list[SourceRange] = [
        explain(checkpoint, name, starts.get(name), end, initial.get(name)) for name, end in batches[last].ends.items()
    ]
    partitions = [each for source in sources for each in source.partitions]
    others = [source.words for source in sources if source.kind not in ("kafka", "none")]
    what = "; ".join([*([ranges(partitions)] if partitions else []), *others])
    return Restart("re-run", last, f"A restart re-runs batch {last}: {what}", partitions)
