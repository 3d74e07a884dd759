"""Synchronizers that are wrong in one way each: the batches that they read, the lines that they write, or their files.

Each is data: a name, what is wrong, and a small function that makes it so.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from faultline.formats.visit import output_line, parse_visit
from tests.judge.spark_world import (
    FILES,
    FOREACH_APPEND,
    FOREACH_OVERWRITE,
    Batch,
    Query,
    Topic,
    append_line,
    lines_of,
    log_entry,
    part_name,
    replace_lines,
    visit,
    write_output,
)

METADATA = "_spark_metadata"
Plan = Callable[[list[Batch], random.Random], list[Batch]]
Lines = Callable[[bytes | None], list[bytes]]
Spoil = Callable[["Written", random.Random], None]


@dataclass(frozen=True)
class Written:
    """Data that a query wrote, and data that it read."""

    query: Query
    topic: Topic
    batches: Sequence[Batch]

    def files(self, least: int = 1) -> list[Path]:
        """Return the files of the output that have at least this number of lines."""
        return [file for file in self.query.files.values() if file.exists() and len(lines_of(file)) >= least]

    def logs(self) -> list[Path]:
        """Give the files of the sink's log that name a file with content, the oldest first."""
        logs = sorted((self.query.output / METADATA).iterdir(), key=lambda log: int(log.name.partition(".")[0]))
        return [log for log in logs if any(entry["size"] for entry in entries(log))]


@dataclass(frozen=True)
class Mutant:
    """A synchronizer that reads other batches, writes other lines, or whose files are spoiled afterwards."""

    name: str
    wrong: str
    plan: Plan = lambda batches, chance: batches
    lines: Lines | None = None
    spoil: Spoil = lambda written, chance: None
    sink: str = FILES

    def reads_the_same(self, topic: Topic, batches: list[Batch], seed: int) -> bool:
        """Return whether other batches read the same records: the offset between them can be a transaction marker."""
        planned = self.plan(list(batches), random.Random(seed))
        return planned != batches and _read(topic, planned) == _read(topic, batches)

    def write(self, home: Path, topic: Topic, batches: list[Batch], seed: int) -> Query:
        """Write what this synchronizer leaves."""
        chance = random.Random(seed)
        planned = self.plan(list(batches), chance)
        query = write_output(home, topic, planned, sink=self.sink, compact_every=5)
        written = Written(query, topic, planned)
        if self.lines:
            rewrite(written, self.lines)
        self.spoil(written, chance)
        return query


def entries(log: Path) -> list[dict[str, object]]:
    """Read the entries of a file of the sink's log."""
    return [json.loads(line) for line in log.read_text().split("\n")[1:] if line]


def write_entries(log: Path, found: Iterable[dict[str, object]]) -> None:
    """Write a file of the sink's log."""
    log.write_text("\n".join(["v1", *map(json.dumps, found)]))


# Batches


def _read(topic: Topic, batches: Sequence[Batch]) -> dict[int, list[bytes]]:
    """Give the lines of each partition in the order in which the batches read them."""
    found: dict[int, list[bytes]] = {}
    for batch in batches:
        for partition, (begin, end) in batch.ranges.items():
            found.setdefault(partition, []).extend(topic.lines(partition, begin, end))
    return {partition: lines for partition, lines in found.items() if lines}


def _some(batches: Sequence[Batch], chance: random.Random) -> int | None:
    """Choose a batch that reads something."""
    return chance.choice([number for number, batch in enumerate(batches) if batch.ranges] or [None])


def batch_again(batches: list[Batch], chance: random.Random) -> list[Batch]:
    number = _some(batches, chance)
    return batches if number is None else [*batches[: number + 1], *batches[number:]]


def batch_skipped(batches: list[Batch], chance: random.Random) -> list[Batch]:
    number = _some(batches[:-1], chance)
    return batches if number is None else batches[:number] + batches[number + 1 :]


def batch_empty(batches: list[Batch], chance: random.Random) -> list[Batch]:
    number = _some(batches, chance)
    return batches if number is None else [*batches[:number], Batch(), *batches[number + 1 :]]


def _moved(first: int, last: int) -> Plan:
    """Make a plan in which one batch begins and ends so many records later, in one partition."""

    def plan(batches: list[Batch], chance: random.Random) -> list[Batch]:
        number = _some(batches, chance)
        if number is not None:
            batch = batches[number]
            partition = chance.choice(list(batch.ranges))
            begin, end = batch.ranges[partition]
            ranges = {**batch.ranges, partition: (max(0, begin + first), max(begin, end + last))}
            batches[number] = replace(batch, ranges=ranges)
        return batches

    return plan


def batches_exchanged(batches: list[Batch], chance: random.Random) -> list[Batch]:
    """Exchange two neighbours that both read much of one partition; else nothing is in the wrong order."""

    def much(batch: Batch) -> set[int]:
        return {partition for partition, (begin, end) in batch.ranges.items() if end - begin >= 8}

    numbers = [number for number in range(1, len(batches)) if much(batches[number - 1]) & much(batches[number])]
    if numbers:
        number = chance.choice(numbers)
        batches[number - 1], batches[number] = batches[number], batches[number - 1]
    return batches


def partition_missing(batches: list[Batch], chance: random.Random) -> list[Batch]:
    last = max((partition for batch in batches for partition in batch.ranges), default=0)
    return [replace(b, ranges={p: ends for p, ends in b.ranges.items() if p != last}) for b in batches]


# Lines


def rewrite(written: Written, lines: Lines) -> None:
    """Write every file again by another rule of what the lines of a record are."""
    for (batch, partition), file in written.query.files.items():
        if written.batches[batch].ranges:
            begin, end = written.batches[batch].ranges[partition]
            records = written.topic.records[partition]
            found = [line for offset in range(begin, end) if offset in records for line in lines(records[offset].value)]
            replace_lines(file, found)


def without(kind: Callable[[bytes | None], bool]) -> Lines:
    return lambda value: [] if kind(value) else [output_line(value)]


# Files


def _in_a_file(change: Callable[[list[bytes], int, random.Random], list[bytes]], least: int = 1) -> Spoil:
    """Make a spoiler of one line, given by its index, of a file that has at least `least` lines."""

    def spoil(written: Written, chance: random.Random) -> None:
        files = written.files(least)
        if files:
            file = chance.choice(files)
            lines = lines_of(file)
            replace_lines(file, change(lines, chance.randrange(len(lines) - least + 1), chance))

    return spoil


def _altered(lines: list[bytes], index: int, chance: random.Random) -> list[bytes]:
    line = lines[index] or b"?"
    place = chance.randrange(len(line))
    other = bytes([line[place] ^ 1])
    return [*lines[:index], line[:place] + other.replace(b"\n", b"?") + line[place + 1 :], *lines[index + 1 :]]


def neighbours_exchanged(written: Written, chance: random.Random) -> None:
    """Exchange two lines of a file; neither record was sent twice, since such a record has no single place."""
    times = Counter(output_line(r.value) for records in written.topic.records.values() for r in records.values())
    pairs = [
        (file, index)
        for file in written.files(2)
        for index, pair in enumerate(zip(lines_of(file), lines_of(file)[1:], strict=False))
        if all(times[line] == 1 for line in pair)
    ]
    if pairs:
        file, index = chance.choice(pairs)
        lines = lines_of(file)
        lines[index], lines[index + 1] = lines[index + 1], lines[index]
        replace_lines(file, lines)


def file_reversed(written: Written, chance: random.Random) -> None:
    files = written.files(8)
    if files:
        file = chance.choice(files)
        replace_lines(file, lines_of(file)[::-1])


def file_cut(written: Written, chance: random.Random) -> None:
    """Cut some bytes off a file that the log names."""
    files = [file for file in written.files() if file.stat().st_size > 1]
    if files:
        file = chance.choice(files)
        content = file.read_bytes()
        file.write_bytes(content[: chance.randrange(1, len(content))])


def line_end_missing(written: Written, chance: random.Random) -> None:
    files = written.files()
    if files:
        file = chance.choice(files)
        file.write_bytes(file.read_bytes()[:-1])


def file_gone(written: Written, chance: random.Random) -> None:
    files = written.files()
    if files:
        chance.choice(files).unlink()


def file_renamed(written: Written, chance: random.Random) -> None:
    files = written.files()
    if files:
        file = chance.choice(files)
        file.rename(file.with_name(part_name(900, 0)))


def file_copied(written: Written, chance: random.Random) -> None:
    files = written.files()
    if files:
        file = chance.choice(files)
        file.with_name(f"copy-of-{file.name}").write_bytes(file.read_bytes())


def entry_lost(written: Written, chance: random.Random) -> None:
    logs = written.logs()
    if logs:
        log = chance.choice(logs)
        found = entries(log)
        lost = chance.choice([entry for entry in found if entry["size"]])
        write_entries(log, [entry for entry in found if entry != lost])


def compaction_forgets(written: Written, chance: random.Random) -> None:
    """Take out of a compacted log what its own batch wrote."""
    logs = [log for log in written.logs() if log.suffix == ".compact"]
    for log in logs:
        own = {str(file) for (batch, _), file in written.query.files.items() if batch == int(log.stem)}
        kept = [e for e in entries(log) if not e["size"] or str(e["path"]).removeprefix("file://") not in own]
        write_entries(log, kept)


def leftover_logged(written: Written, chance: random.Random) -> None:
    leftovers = [file for file in written.query.leftovers if file.stat().st_size]
    logs = written.logs()
    if leftovers and logs:
        file = chance.choice(leftovers)
        log = logs[-1]
        found = entries(log)
        write_entries(log, [*found, json.loads(log_entry(str(file), file.stat().st_size))])


def leftover_instead(written: Written, chance: random.Random) -> None:
    """Let the log name the torn file of a killed attempt instead of the whole one."""
    by_name = {part_name(batch, partition, 1): file for (batch, partition), file in written.query.files.items()}
    torn = [file for file in written.query.leftovers if file.stat().st_size < by_name[file.name].stat().st_size]
    if torn:
        file = chance.choice(torn)
        for log in written.logs():
            log.write_text(log.read_text().replace(by_name[file.name].name, file.name))


def leftover_strange(written: Written, chance: random.Random) -> None:
    (written.query.output / part_name(901, 0)).write_bytes(visit("nobody", chance.randrange(1000)) + b"\n")


def line_strange(written: Written, chance: random.Random) -> None:
    files = written.files()
    if files:
        append_line(chance.choice(files), visit("nobody", chance.randrange(1000)))


def file_of_other_partition(written: Written, chance: random.Random) -> None:
    """Overwrite a file by that of another partition of the same batch."""
    files = written.query.files
    pairs = [(file, files[batch, 1]) for (batch, p), file in files.items() if p == 0 and (batch, 1) in files]
    if pairs:
        one, other = chance.choice(pairs)
        one.write_bytes(other.read_bytes())


MUTANTS = (
    Mutant("batch-twice", "a batch is read twice", batch_again),
    Mutant("batch-twice-append", "a batch is appended twice", batch_again, sink=FOREACH_APPEND),
    Mutant("batch-twice-overwrite", "a batch has two folders", batch_again, sink=FOREACH_OVERWRITE),
    Mutant("batch-skipped", "a batch is skipped, and the next begins after it", batch_skipped),
    Mutant("batch-empty", "a batch is committed without a line", batch_empty),
    Mutant("batch-begins-early", "a batch begins one record before the end of the one before", _moved(-1, 0)),
    Mutant("batch-begins-late", "a batch skips its first record", _moved(1, 0)),
    Mutant("batch-ends-early", "a batch lacks its last record", _moved(0, -1)),
    Mutant("batches-exchanged", "two batches are in the wrong order", batches_exchanged, sink=FOREACH_OVERWRITE),
    Mutant("partition-missing", "the last partition is not read", partition_missing),
    Mutant("null-skipped", "a record without a value is not a line", lines=without(lambda value: value is None)),
    Mutant("empty-skipped", "an empty record is not a line", lines=without(lambda value: not value)),
    Mutant("unparsable-skipped", "an unparsable record is not a line", lines=without(lambda v: not parse_visit(v))),
    Mutant("line-breaks-kept", "line breaks inside a record stay", lines=lambda value: (value or b"").split(b"\n")),
    Mutant("line-breaks-dropped", "line breaks inside a record vanish",
           lines=lambda value: [(value or b"").translate(None, b"\r\n")]),
    Mutant("utf-8-replaced", "bytes that are not UTF-8 become another character",
           lines=lambda value: [output_line(value).decode("utf-8", "replace").encode()]),
    Mutant("json-rewritten", "visits are parsed and written again without spaces",
           lines=lambda value: [json.dumps(json.loads(value), separators=(",", ":")).encode()
                                if value and parse_visit(value) else output_line(value)]),
    Mutant("line-altered", "a line is altered in one bit", spoil=_in_a_file(_altered)),
    Mutant("line-missing", "a line is missing", spoil=_in_a_file(lambda lines, i, _: lines[:i] + lines[i + 1 :])),
    Mutant("line-twice", "a line is there twice", spoil=_in_a_file(lambda lines, i, _: lines[: i + 1] + lines[i:])),
    Mutant("lines-glued", "two lines have no line end between them",
           spoil=_in_a_file(lambda lines, i, _: [*lines[:i], lines[i] + lines[i + 1], *lines[i + 2 :]], 2)),
    Mutant("line-strange", "a line was never sent", spoil=line_strange),
    Mutant("lines-exchanged", "two lines of a partition are the wrong way round", spoil=neighbours_exchanged),
    Mutant("file-reversed", "a file has its lines from last to first", spoil=file_reversed),
    Mutant("file-cut", "a file lacks its last bytes", spoil=file_cut),
    Mutant("line-end-missing", "the last line of a file has no line end", spoil=line_end_missing),
    Mutant("file-gone", "a file that the log names is gone", spoil=file_gone),
    Mutant("file-renamed", "a file has another name than in the log", spoil=file_renamed),
    Mutant("file-copied", "a file is there again under a name that Spark does not give", spoil=file_copied),
    Mutant("file-of-other-partition", "a partition's file has the lines of another", spoil=file_of_other_partition),
    Mutant("entry-lost", "the log does not name a file", spoil=entry_lost),
    Mutant("compaction-forgets", "a compacted log lacks the batch that compacted it", spoil=compaction_forgets),
    Mutant("leftover-logged", "the log also names the file of a killed attempt", spoil=leftover_logged),
    Mutant("leftover-instead", "the log names the torn file of a killed attempt, not the whole one",
           spoil=leftover_instead),
    Mutant("leftover-strange", "an attempt left a line that was never sent", spoil=leftover_strange),
)  # fmt: skip
