"""One Spark checkpoint as a Report, without a JVM."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator
from typing import Any

from faultline.formats.run import SPARK_RUN_FILE
from faultline.inspector.errors import InspectorError
from faultline.inspector.model import CheckpointStep, Report, Restart, Sink
from faultline.inspector.spark.commits import Commits, read_commits
from faultline.inspector.spark.growth import read_growth
from faultline.inspector.spark.log import (
    COMPACT_INTERVAL,
    LogError,
    LogFolder,
    UnknownVersion,
    fits_checksum,
    list_log,
    parse,
)
from faultline.inspector.spark.moved import written_elsewhere
from faultline.inspector.spark.offsets import Offsets, PlannedBatch, read_all
from faultline.inspector.spark.operator_metadata import MetadataError
from faultline.inspector.spark.operator_metadata import read as read_metadata
from faultline.inspector.spark.releases import (
    METADATA_NEEDED_SINCE,
    TRIED,
    formats,
    in_words,
    is_before,
    most_replayed,
    older,
    writers,
)
from faultline.inspector.spark.restart import SHUFFLE_PARTITIONS, Logs, predict
from faultline.inspector.spark.sink import read_sink
from faultline.inspector.spark.sources import (
    UNKNOWN,
    ForeignFile,
    explain,
    initial_offset,
    kafka_partitions,
    kind_of,
    named_folders,
    one_log_of_many,
    source_folder,
)
from faultline.inspector.spark.state_files import (
    DEFAULT_PROVIDER,
    PROVIDERS,
    NeededState,
    operator_folders,
    stores_of,
    what_is_missing,
)
from faultline.inspector.words import count
from faultline.storage.batches import SINK_LOG
from faultline.storage.location import Location
from faultline.storage.reading import read

LOGS = ("offsets", "commits")
PARTS = (*LOGS, "metadata", "sources", "state")
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
PARTITIONS = re.compile(r"[0-9]{1,6}")
QUERY_ID = re.compile(r"([0-9A-Fa-f]+-){4}[0-9A-Fa-f]+")
"""The text that UUID.fromString of Java reads."""
CUT = "is cut short or not JSON"


def is_spark_checkpoint(path: Location) -> bool:
    """Return whether the folder has one of the logs of a Structured Streaming query."""
    return any((path / name).is_dir() for name in LOGS)


def read_report(path: Location, last: int | None, output: Location | None) -> Report:
    """Read the checkpoint of one query; `last` limits the batches shown (None: all), all of them are checked.

    `output`: the folder of the file sink, which the checkpoint does not name.
    Raises InspectorError when a log folder cannot be listed.
    """
    report = Report("spark", "query", str(path))
    report.id, identity = _query_id(path, report.problems)
    try:
        # A running query plans and commits meanwhile: a commit counts only if it was there before the offsets were
        # listed, or belongs to one of them.
        earlier = set(list_log(path / "commits").numbers)
        listed = list_log(path / "offsets")
        committed_log = list_log(path / "commits")
        newest = listed.numbers[-1] if listed.numbers else -1
        committed_log.numbers[:] = [each for each in committed_log.numbers if each <= newest or each in earlier]
        offsets = read_all(listed)
        commits = read_commits(committed_log)
    except PermissionError as error:
        raise InspectorError(f"{error.filename} cannot be read: no permission; ask its owner") from None
    committed = set(committed_log.numbers)
    _say_what_is_wrong(report, path, offsets, commits)
    # AsyncProgressTrackingMicroBatchExecution refuses a query that keeps state.
    asynchronous = _is_asynchronous(listed.numbers, committed) and not operator_folders(path)
    if asynchronous:
        report.notes.append(
            "the logs have gaps, and always in both: asynchronous progress tracking writes them now and then, not for"
            " each batch"
        )
    report.problems += _gaps(path, listed.numbers, committed, asynchronous) + _wrongly_called(path)
    initial, unread, unreadable = _initial(path, offsets.batches)
    report.problems += [f"{path}/sources/{name}/0 cannot be read: {why}" for name, why in unreadable.items()]
    report.counts = {"batches": len(listed.numbers), "committed": len(committed & set(listed.numbers))}
    if listed.numbers:
        report.counts |= {"first": listed.numbers[0], "last": listed.numbers[-1]}
    for number in listed.numbers if last is None else listed.numbers[-last:]:
        step = _step(path, number, offsets, initial)
        step.state = step.state or ("committed" if number in committed else "planned")
        step.facts = commits.commits[number].facts() if number in commits.commits else {}
        report.steps.append(step)
    batch = offsets.batches[max(offsets.batches)] if offsets.batches else None
    report.configuration = batch.configuration if batch else {}
    report.formats, report.releases = formats(offsets, commits), writers(batch)
    if batch and (which := older(batch)):
        report.notes.append(f"Spark {which} wrote the newest batch, by the settings that are not in it")
    if output is not None:
        report.sink = read_sink(output, path, committed, report.problems)
        if report.sink is None and output.is_dir():
            report.notes.append(
                f"{output} has no {SINK_LOG}: it is not the output of a file sink, or its log is gone; the sink begins"
                " a new one with the next batch, and a reader fails on those that are not in it"
            )
    report.growth = read_growth(path, offsets.batches, output)
    state = _missing_state(path, listed.numbers, batch, commits, report.problems)
    unseen = (*_not_looked_at(path, batch, initial), *unread)
    left = "" if listed.numbers else _left(path)
    logs = Logs(
        path, offsets, commits, committed, initial, identity, state, unseen, asynchronous, left, unreadable,
        _unfit(listed, committed_log), compares=(path / SPARK_RUN_FILE).is_file(),
    )  # fmt: skip
    report.restart = predict(logs, report.releases)
    report.notes += _changed_sources(path, offsets.batches)
    report.problems += _backwards(path, offsets.batches, report.restart)
    if report.restart.action == "re-run":
        _say_what_is_written_again(report.restart, report.sink)
    return report


def _say_what_is_written_again(restart: Restart, sink: Sink | None) -> None:
    """Say what the batch that runs again writes twice, which its sink decides: the checkpoint does not name the sink.

    The same in all releases that were tried (labs/failure_before_the_commit.py).
    """
    if sink is None:
        words = (
            f"a plain append in foreachBatch repeats what it had written of batch {restart.step}; a write keyed by the"
            f" batch id, as by Delta's txnVersion={restart.step} with the txnAppId of before, is not repeated"
        )
        # In the line of the restart itself, behind what was not looked at.
        restart.details[:1] = ["; ".join([*restart.details[:1], words])]
    elif restart.step in sink.batches:
        restart.details.append("the sink has this batch already and skips it: no line is written twice")


def _backwards(path: Location, batches: dict[int, PlannedBatch], restart: Restart) -> list[str]:
    """Ranges of the batch to re-run that Kafka's source takes for a loss (KafkaOffsetReader.getOffsetRanges).

    A range that ends before it begins has its end from a newer topic of the same name; a partition or topic that the
    batch before has and this one has not is gone.
    """
    if restart.action != "re-run" or restart.step is None:
        return []
    batch = f"{path}/offsets/{restart.step}"
    loss = "the batch fails, or with failOnDataLoss=false skips records"
    found = [
        f"{batch} takes {each.topic} partition {each.partition} from {each.start} back to {each.end}: the topic was"
        f" created again; {loss}"
        for each in restart.partitions
        if each.start is not None and each.end is not None and 0 <= each.end < each.start
    ]
    before = batches.get(restart.step - 1)
    for name, end in batches[restart.step].ends.items():
        start = before.ends.get(name) if before else None
        if kind_of(start) != "kafka" or kind_of(end) != "kafka":
            continue
        there = {(each.topic, each.partition) for each in kafka_partitions(None, end)}
        gone = [each for each in kafka_partitions(None, start) if (each.topic, each.partition) not in there]
        if gone:
            which = ", ".join(f"{each.topic} partition {each.partition}" for each in gone)
            found.append(f"{batch} lacks {which}, where the batch before had read: it is gone; {loss}")
    return found


def _changed_sources(path: Location, batches: dict[int, PlannedBatch]) -> list[str]:
    """Notes on batches whose sources are of other kinds than those of the batch before."""
    notes = []
    for number in sorted(batches):
        before = batches.get(number - 1)
        if before is None or before.kinds == batches[number].kinds:
            continue
        kinds = [before.kinds, batches[number].kinds]
        other = [name for name in kinds[0].keys() & kinds[1].keys() if _other_kind(kinds[0][name], kinds[1][name])]
        if other:
            was, now = (", ".join(each[name] for name in sorted(other)) for each in kinds)
            notes.append(
                f"{path}/offsets/{number} has another kind of source {', '.join(sorted(other))} than"
                f" offsets/{number - 1} ({was}; now {now}): two queries wrote here, or the query was changed"
            )
    return notes


def _other_kind(before: str, after: str) -> bool:
    # A query that subscribes to a pattern, and finds no topic, writes {}.
    return before != after and not {"none", "unknown"} & {before, after}


def _left(path: Location) -> str:
    """Name a file in the logs or the state; Hadoop's file systems do not list their checksums (ChecksumFs)."""
    folders = [path / name for name in ("offsets", "state", "commits")]
    files = [file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir())]
    return next((str(file) for file in files if not (file.name.startswith(".") and file.name.endswith(".crc"))), "")


def _missing_state(
    path: Location, planned: list[int], batch: PlannedBatch | None, commits: Commits, problems: list[str]
) -> dict[str, str]:
    """Say by release what the state that the next batch loads lacks; what the newest one finds is a problem."""
    if not planned:
        return {}
    newest = max([*commits.commits, *commits.errors, *commits.unknown], default=-1)
    version = planned[-1] + (newest == planned[-1])
    ids = {number + 1: commit.state_ids for number, commit in commits.commits.items() if commit.state_ids}
    if newest + 1 in ids:
        # MicroBatchExecution.populateStartOffsets takes the ids of the newest commit, whatever its batch is.
        ids[version] = ids[newest + 1]
    provider = provider_of(path, batch)
    if provider not in PROVIDERS:
        return {}
    limits = {release: most_replayed(release) for release in TRIED}
    try:
        needed = NeededState(version, _partitions_of_state(path, batch), ids, provider)
        whys = {limit: what_is_missing(path, needed, limit) for limit in set(limits.values())}
    except PermissionError as error:
        problems.append(f"{error.filename} cannot be read: no permission")
        return {}
    except FileNotFoundError:
        # A running query deleted an old folder or file meanwhile.
        return {}
    problems += [why] if (why := whys[limits[TRIED[-1]]]) else []
    return {release: whys[limit] for release, limit in limits.items()}


def provider_of(path: Location, batch: PlannedBatch | None) -> str:
    """Return the class that reads the state: the log pins it since Spark 2.4 (SPARK-24763).

    Where the log does not, it is the session's (OffsetSeqMetadata.setSessionConf): taken from the kinds of files.
    """
    if batch and PROVIDER in batch.configuration:
        return batch.configuration[PROVIDER]
    kinds = {kind for folder in operator_folders(path) for store in stores_of(folder, 0) for kind in store.kinds}
    return next((each for each, known in PROVIDERS.items() if kinds & {*known}), DEFAULT_PROVIDER)


def _partitions_of_state(path: Location, batch: PlannedBatch | None) -> dict[str, int]:
    """Partitions of each operator: the shuffle partitions that the log pins, else those of its metadata."""
    pinned = (batch.configuration if batch else {}).get(SHUFFLE_PARTITIONS, "")
    found = {}
    for folder in operator_folders(path):
        partitions = int(pinned) if PARTITIONS.fullmatch(pinned) else 0
        if partitions:
            found[folder.name] = partitions
            continue
        with contextlib.suppress(MetadataError):
            metadata = read_metadata(folder)
            partitions = max((number for _, number in metadata.stores), default=partitions) if metadata else partitions
        found[folder.name] = partitions
    return found


def _not_looked_at(path: Location, batch: PlannedBatch | None, initial: dict[str, Any]) -> list[str]:
    """List everything that Spark reads at a start and this program does not."""
    if batch is None:
        # Kafka's and rate's have the offset that they began with, a file source's is its log.
        found = [f"sources/{each.name}" for each in sorted((path / "sources").glob("*")) if any(each.glob("*"))]
    else:
        found = [what for name in batch.ends for what in _unread_of_a_source(path, batch, name, name in initial)]
    operators = operator_folders(path)
    for operator in operators:
        with contextlib.suppress(MetadataError):
            metadata = read_metadata(operator)
            if metadata and (there := written_elsewhere(metadata, operator)):
                found.append(f"the schema files of state/{operator.name}, which its metadata names in {there}")
    provider = provider_of(path, batch)
    if not operators:
        if batch and batch.watermark:
            found.append("the state, if the query keeps any: state/ has none, and such a query fails without it")
    elif provider in PROVIDERS:
        found.append("the content of the state's files")
        if batch and PROVIDER not in batch.configuration and provider != DEFAULT_PROVIDER:
            found.append(f"{PROVIDER}, which the log does not pin, so the session must set it")
    else:
        found.append(f"the state, which {provider} keeps: it is not known here")
    return found


def _unread_of_a_source(path: Location, batch: PlannedBatch, name: str, has_initial: bool) -> Iterator[str]:
    """List what a source of the newest batch reads at a start and this program does not."""
    kind = kind_of(batch.ends[name])
    if kind == "file":
        named = [each.name for each in named_folders(path, name, kind)]
        if len(named) > 1:
            yield f"which of sources/{', sources/'.join(named)} is the log of source {name}"
        elif one_log_of_many([batch.ends]):
            yield f"which folder of sources/ is the log of source {name}: it may be the same as another one"
        log = list_log(source_folder(path, name, kind))
        if log.is_longer:
            yield (
                f"spark.sql.streaming.fileSource.log.compactInterval, which was more than {COMPACT_INTERVAL}: the log"
                f" of source {name} has {log.latest + 1} entries and {count(len(log.compact), 'compact file')}"
            )
    elif kind == "unknown" or (kind == "counter" and not has_initial):
        yield f"source {name}, whose kind is not known here"
    elif kind == "rate-micro-batch":
        yield f"source {name}, which looks like rate-micro-batch"
    elif kind == "kafka" and not has_initial:
        yield f"the connector of source {name}"
    elif kind == "delta":
        # DeltaSourceMetadataTrackingLog reads its newest entry when the source is made.
        yield from (f"{each.name} of source {name}" for each in sorted(path.glob("_schema_log_*")))


def _unfit(planned: LogFolder, committed: LogFolder) -> str:
    """Name a log file that a start reads and that does not fit its checksum; empty when there is none."""
    read_first = [(planned.path.parent, "metadata")]
    read_first += [(planned.path, str(number)) for number in planned.numbers[-2:]]
    read_first += [(committed.path, str(number)) for number in committed.numbers[-1:]]
    return next((str(folder / name) for folder, name in read_first if not fits_checksum(folder, name)), "")


def _say_what_is_wrong(report: Report, path: Location, offsets: Offsets, commits: Commits) -> None:
    """Damaged files are problems; files of a version that is not known here are notes."""
    for number, why in offsets.errors.items() if not offsets.is_continuous else ():
        report.problems.append(f"{path}/offsets/{number} cannot be read: {why}")
    for number, why in commits.errors.items():
        report.problems.append(f"{path}/commits/{number} cannot be read: {why}; Spark counts the batch by its file")
    for name, unknown in (("offsets", offsets.unknown), ("commits", commits.unknown)):
        for run in runs(sorted(unknown)):
            why = unknown[int(run.split()[0])]
            report.notes.append(f"{path}/{name}/{run} unknown: {why}")


def _gaps_between(numbers: list[int]) -> list[tuple[int, int]]:
    """First and last of the numbers that are missing between ascending ones: a stray name can make a gap very long."""
    return [(one + 1, other - 1) for one, other in itertools.pairwise(numbers) if other > one + 1]


def _is_asynchronous(planned: list[int], committed: set[int]) -> bool:
    """Return whether batches and their commits are missing, as asynchronous progress tracking leaves them out."""
    gaps = _gaps_between(planned)
    # The batches that it did write are committed, but for the newest of a query that was killed; a single batch that
    # lacks is more likely a file that was deleted.
    return (
        sum(last - first + 1 for first, last in gaps) > 1
        and committed >= set(planned[:-1])
        and not any(first <= each <= last for each in committed for first, last in gaps)
    )


def _query_id(path: Location, problems: list[str]) -> tuple[str, str]:
    """The query's id, and whether its file is there, missing or damaged."""
    file = path / "metadata"
    try:
        found = str(parse(read(path, file.name))["id"])
    except FileNotFoundError:
        problems.append(
            f"{file} is missing: {in_words(_before_needed())} give the query a new id and go on with these offsets,"
            f" Spark {METADATA_NEEDED_SINCE} and later refuse to start"
        )
        return "", "missing"
    except PermissionError:
        problems.append(f"{file} cannot be read: no permission")
        return "", "there"
    except (OSError, LogError, KeyError, TypeError):
        problems.append(f"{file} {CUT}: a restart fails on it")
        return "", "damaged"
    if not QUERY_ID.fullmatch(found):
        problems.append(f"{file} has an id that is not a UUID: a restart fails on it")
        return "", "damaged"
    return found, "there"


def _wrongly_called(path: Location) -> list[str]:
    """Say which parts of the checkpoint are called by other letters than Spark calls them, and so are not read."""
    there = {child.name for child in path.iterdir()}
    return [
        f"{path / name} is not read: Spark calls it {name.lower()}, in small letters; rename it"
        for name in sorted(there)
        if name.lower() in PARTS and name.lower() not in there
    ]


def _before_needed() -> list[str]:
    return [release for release in TRIED if is_before(release, METADATA_NEEDED_SINCE)]


def _gaps(path: Location, planned: list[int], committed: set[int], asynchronous: bool) -> list[str]:
    present = set(planned)
    lacking = [] if asynchronous else _gaps_between(planned)
    problems = [f"{path}/offsets/{_run(*gap)} missing: a gap between batches" for gap in lacking]
    # Spark deletes old offsets before old commits, so a commit that is older than all offsets is no fault.
    orphans = sorted(number for number in committed - present if not planned or number > planned[0])
    problems += [
        f"{path}/commits/{run} there without offsets: commits of what was not planned" for run in runs(orphans)
    ]
    open_ones = [number for number in planned[:-1] if number not in committed]
    problems += [
        f"{path}/commits/{run} missing though later batches were planned:"
        " Spark re-runs the newest batch only, never these"
        for run in runs(open_ones)
    ]
    return problems


def runs(numbers: list[int]) -> list[str]:
    """`4 is`, `7 to 9 are`: ascending numbers, those in a row together."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return [_run(run[0], run[-1]) for run in found]


def _run(first: int, last: int) -> str:
    return f"{first} is" if first == last else f"{first} to {last} are"


def _initial(path: Location, batches: dict[int, PlannedBatch]) -> tuple[dict[str, Any], list[str], dict[str, str]]:
    """The offsets that sources began with (Kafka and rate keep them), files not read here, and what is damaged."""
    kinds: dict[str, str] = {}
    for number in sorted(batches):
        for name, kind in batches[number].kinds.items():
            if kind not in ("none", "unknown"):
                kinds[name] = kind
    found: dict[str, Any] = {}
    unread, damaged = [], {}
    for name, kind in kinds.items():
        try:
            began = initial_offset(path, name, kind)
        except (ForeignFile, UnknownVersion) as error:
            unread.append(f"sources/{name}/0, since {error}")
            continue
        except (LogError, OSError) as error:
            damaged[name] = "no permission" if isinstance(error, PermissionError) else str(error)
            continue
        if began is not None:
            found[name] = began
    return found, unread, damaged


def _step(path: Location, number: int, offsets: Offsets, initial: dict[str, Any]) -> CheckpointStep:
    """One batch as its offsets file has it; its state is empty when the commit has to decide it."""
    step = CheckpointStep(number, f"batch {number}", "", path=str(path))
    if offsets.is_continuous:
        step.reason = "an epoch of a continuous query, without metadata"
    elif number in offsets.errors:
        step.state, step.reason = "unreadable", offsets.errors[number]
    elif number in offsets.unknown:
        step.state, step.reason = "unknown", offsets.unknown[number]
    batch = offsets.batches.get(number)
    if batch is None:
        return step
    step.at, step.watermark = batch.planned_at, batch.watermark or None
    before = offsets.batches[number - 1].ends if number - 1 in offsets.batches else {}
    for name, end in batch.ends.items():
        # The first batch of a source starts at its initial offset; an older start that was deleted is not known.
        start = before.get(name) if before else (UNKNOWN if number > 0 else None)
        step.sources.append(explain(path, name, start, end, initial.get(name)))
    return step
