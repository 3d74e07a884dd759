"""Worlds for the judge of the synchronizer: a topic in memory, and what a faultless synchronizer makes of it, as files.

    topic, batches = random_world(seed)              # or a Topic and a list of Batch by hand
    query = write_output(folder, topic, batches)     # part files, `_spark_metadata`, checkpoint
    ...                                              # damage the files or the topic as you like
    verdict = judge_output(query, topic)             # or judge_fully(), which gives all findings too

A faultless world holds. `query.files[batch, partition]` is the file of a batch, `query.output` and `query.checkpoint`
are the folders. To damage what was sent, change `topic.records`.
"""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from faultline.formats.run import SINKS, SPARK_RUN_FILE, SparkRun, as_json
from faultline.formats.verdict import CATEGORIES, Finding, Verdict
from faultline.formats.visit import iso_time, output_line, parse_event_time
from faultline.settings import Settings
from faultline.storage.data import noted
from faultline.verdict.checker import Options
from faultline.verdict.checkers.spark import judge_output as judge_query
from faultline.verdict.loading import topic_rows
from faultline.verdict.model import Judgement
from faultline.verdict.records import Batch as Rows
from faultline.verdict.records import Record, Span, Spans, batch_of
from faultline.verdict.spark.locations import locations
from faultline.verdict.spark.reader import sent_rows
from faultline.verdict.store import Store
from tests.judge.shared_store import shared_store

TOPIC = "visits"
FILES, FOREACH_APPEND, FOREACH_OVERWRITE = SINKS
START = parse_event_time("2026-01-01T00:00:00Z") or 0


class Topic:
    """A topic in memory; an offset without a record is a transaction marker's, as in Kafka."""

    def __init__(self, records: Mapping[int, Sequence[bytes | None]] | None = None, partitions: int = 2) -> None:
        self.records: dict[int, dict[int, Record]] = {partition: {} for partition in range(partitions)}
        self.ends = dict.fromkeys(range(partitions), 0)
        for partition, values in (records or {}).items():
            for value in values:
                self.append(partition, value)

    def append(self, partition: int, value: bytes | None) -> int:
        """Write a record at the end of a partition and return its offset."""
        offset = self.ends[partition]
        self.records[partition][offset] = Record(partition, offset, None, value, START + offset)
        self.ends[partition] += 1
        return offset

    def append_marker(self, partition: int) -> None:
        """Write a transaction marker: an offset for which no reader gets a record."""
        self.ends[partition] += 1

    def spans(self) -> Spans:
        """Give the whole topic."""
        return {partition: Span(0, end) for partition, end in self.ends.items()}

    def lines(self, partition: int, begin: int, end: int) -> list[bytes]:
        """Give the lines that the records of some offsets become, without their line ends."""
        records = self.records[partition]
        return [output_line(records[offset].value) for offset in range(begin, end) if offset in records]

    def read(self, topic: str, spans: Spans) -> Iterator[Rows]:
        """Read the records of the spans."""
        assert topic == TOPIC
        for partition, span in spans.items():
            offsets = (offset for offset in self.records[partition] if span.begin <= offset < span.end)
            yield batch_of(self.records[partition][offset] for offset in sorted(offsets))


@dataclass(frozen=True)
class Batch:
    """One micro-batch: the offsets that it reads of each partition (first, end), a file each.

    A batch without a partition is empty: it writes one file of 0 bytes, as Spark does. `torn` are leftovers of an
    attempt that was killed: so many bytes of the file of a partition, under a name that the log does not know.
    """

    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    torn: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Query:
    """Files of a query: the stack's home, output and checkpoint below it, and the files by batch and partition."""

    home: Path
    output: Path
    checkpoint: Path
    files: dict[tuple[int, int], Path]
    leftovers: tuple[Path, ...]


def visit(visit_id: str, milliseconds: int, page: str = "home") -> bytes:
    """Write a visit like the generator, at this number of milliseconds after START."""
    return json.dumps({"visit_id": visit_id, "event_time": iso_time(START + milliseconds), "page": page}).encode()


def even_batches(topic: Topic, count: int) -> list[Batch]:
    """Divide a topic evenly into this number of batches, each with every partition."""
    cuts = {p: [end * number // count for number in range(count + 1)] for p, end in topic.ends.items()}
    return [Batch({p: (at[number], at[number + 1]) for p, at in cuts.items()}) for number in range(count)]


def random_world(seed: int, records: int = 400) -> tuple[Topic, list[Batch]]:
    """Make a topic with repeated, empty and unparsable records and markers, and batches of all sizes that read it."""
    chance = random.Random(seed)
    topic = Topic()
    values: list[bytes | None] = []
    for number in range(records):
        odd = [None, b"", b"{", b'{"visit_id":\r\n\n"a"}', b"\xff\xfe", *values[-3:]]
        value = chance.choice(odd) if chance.random() < 0.1 else visit(f"v{number}", number * 250)
        values.append(value)
        topic.append(chance.choice([0, 0, 1]), value)
        if chance.random() < 0.01:
            topic.append_marker(chance.choice([0, 1]))
    batches: list[Batch] = []
    position = dict.fromkeys(topic.ends, 0)
    while position != topic.ends:
        ranges, torn = {}, {}
        for partition, end in topic.ends.items():
            begin = position[partition]
            position[partition] = min(end, begin + chance.choice([0, 1, 10, 50]))
            if position[partition] > begin:
                ranges[partition] = (begin, position[partition])
                length = sum(len(line) + 1 for line in topic.lines(partition, *ranges[partition]))
                if chance.random() < 0.1:
                    torn[partition] = chance.randint(0, length)
        batches.append(Batch(ranges, torn))
    return topic, batches


def write_output(
    home: Path,
    topic: Topic,
    batches: Sequence[Batch],
    *,
    sink: str = FILES,
    committed: int | None = None,
    compact_every: int = 10,
    root: str | None = None,
    topic_name: str = TOPIC,
) -> Query:
    """Write what a faultless query leaves.

    `committed`: so many batches have their commit, the next is written but not committed, and those behind it are
    neither; default: all. The log of every `compact_every`-th batch is a `.compact`, and the logs before it are gone.
    `root` is the output folder as the log names it; in a container it is another one.
    """
    name = Settings({}).query(sink)
    output, checkpoint = home / "output" / name, home / "checkpoints" / "spark" / name
    for folder in (output, checkpoint / "offsets", checkpoint / "commits"):
        folder.mkdir(parents=True, exist_ok=True)
    _write_run(home, SparkRun(topic_name, sink, str(output), str(checkpoint)))
    files: dict[tuple[int, int], Path] = {}
    leftovers: list[Path] = []
    ends = dict.fromkeys(topic.ends, 0)
    entries: list[str] = []
    done = len(batches) if committed is None else committed
    for number, batch in enumerate(batches[: done + 1]):
        ends |= {partition: end for partition, (_, end) in batch.ranges.items()}
        (checkpoint / "offsets" / str(number)).write_text(offsets_text(ends, topic_name))
        folder = output / f"batch_id={number}" if sink == FOREACH_OVERWRITE else output
        folder.mkdir(exist_ok=True)
        written = []
        for partition, offsets in batch.ranges.items() or {0: (0, 0)}.items():
            content = b"".join(line + b"\n" for line in topic.lines(partition, *offsets))
            file = folder / part_name(number, partition)
            file.write_bytes(content)
            files[number, partition] = file
            written.append(log_entry(f"{root or output}/{file.relative_to(output)}", len(content)))
            if partition in batch.torn and sink == FILES:
                leftovers.append(folder / part_name(number, partition, attempt=1))
                leftovers[-1].write_bytes(content[: batch.torn[partition]])
        entries += written
        if sink == FILES:
            _write_log(output / "_spark_metadata", number, written, entries, compact=(number + 1) % compact_every == 0)
        if number < done:
            (checkpoint / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return Query(home, output, checkpoint, files, tuple(leftovers))


def _write_run(home: Path, run: SparkRun) -> None:
    settings = Settings({"STACK_HOME": str(home)})
    output, checkpoint = (noted(Path(path), settings) for path in (run.output, run.checkpoint))
    text = as_json(replace(run, output=output, checkpoint=checkpoint))
    (Path(run.checkpoint) / SPARK_RUN_FILE).write_text(text)


def part_name(batch: int, partition: int, attempt: int = 0) -> str:
    """Name a file like Spark; each attempt of a batch has its own id."""
    return f"part-{partition:05d}-{uuid.UUID(int=batch * 1000 + attempt)}-c000.txt"


def log_entry(path: str, size: int) -> str:
    """Write a line of the sink's log, by the file's absolute path."""
    return json.dumps({"path": f"file://{path}", "size": size, "isDir": False, "action": "add"})


def offsets_text(ends: dict[int, int], topic: str = TOPIC) -> str:
    """Write `offsets/N`."""
    of_topic = {str(partition): end for partition, end in ends.items()}
    return "v1\n" + '{"batchWatermarkMs":0}\n' + json.dumps({topic: of_topic})


def _write_log(log: Path, number: int, own: Sequence[str], every: Sequence[str], *, compact: bool) -> None:
    log.mkdir(exist_ok=True)
    if compact:
        for older in log.iterdir():
            older.unlink()
    name, entries = (f"{number}.compact", every) if compact else (str(number), own)
    (log / name).write_text("\n".join(["v1", *entries]))


@dataclass(frozen=True)
class Judged:
    """A verdict, and all its findings by category."""

    verdict: Verdict
    findings: dict[str, list[Finding]]


def judge_fully(
    query: Query,
    topic: Topic,
    *,
    caught_up: bool = True,
    options: Options | None = None,
    settings: Mapping[str, str] | None = None,
) -> Judged:
    """Judge as the checker does, and check that the verdict adds up and agrees with its findings.

    `caught_up=False` judges as `--as-is` does; `options` are the flags, without them the checkpoint of the query is
    judged by its own settings; `settings` are those of the shell. Raises Unknown as the checker does.
    """
    judgement = _judge(query, topic, caught_up=caught_up, options=options, settings=settings)
    findings = {category: list(judgement.findings(category)) for category in CATEGORIES}
    verdict = judgement.verdict
    for category, found in findings.items():
        # A missing file does not count as a record, and a record that occurs too often is one finding.
        counted = [finding for finding in found if "batch" not in finding.names]
        wanted = getattr(verdict, category)
        assert len(counted) == wanted or (category == "duplicated" and 0 < len(counted) < wanted), (category, found)
        assert [each for each in verdict.examples if each.category == category] == found[:3]
    return Judged(verdict, findings)


def judge_output(
    query: Query,
    topic: Topic,
    *,
    caught_up: bool = True,
    options: Options | None = None,
    settings: Mapping[str, str] | None = None,
) -> Verdict:
    """Judge as the checker does, and check that the verdict adds up."""
    return _judge(query, topic, caught_up=caught_up, options=options, settings=settings).verdict


def reading(store: Store, topic: Topic) -> Callable[[Spans], Iterable[tuple[int, pa.Table]]]:
    """Read spans of the topic for the judge."""
    return lambda spans: topic_rows(topic, TOPIC, spans, sent_rows, store.folder)


def _judge(
    query: Query, topic: Topic, *, caught_up: bool, options: Options | None, settings: Mapping[str, str] | None
) -> Judgement:
    stack = Settings({"STACK_HOME": str(query.home), **(settings or {})})
    where = locations(stack, options or Options(checkpoint=query.checkpoint))
    store = shared_store.get()
    judgement = judge_query(
        store, topic, where, lambda: (topic.spans(), ()), reading(store, topic), caught_up=caught_up
    )
    verdict = judgement.verdict
    faults = verdict.lost - verdict.duplicated - verdict.unexpected
    assert verdict.expected == verdict.observed + faults + verdict.pending
    records = dict(verdict.records)
    assert records.pop("source") == sum(records.values()) == verdict.expected
    return judgement


def append_line(file: Path, line: bytes) -> None:
    """Write one more line at the end of a file."""
    with file.open("ab") as stream:
        stream.write(line + b"\n")


def lines_of(file: Path) -> list[bytes]:
    """Read the lines of a file that is whole."""
    return file.read_bytes().split(b"\n")[:-1]


def replace_lines(file: Path, lines: Sequence[bytes]) -> None:
    """Write other lines into a file, and its size into the sink's log, as a query does that writes them."""
    rewrite(file, b"".join(line + b"\n" for line in lines))


def rewrite(file: Path, content: bytes) -> None:
    """Write another content into a file, and its size into the sink's log."""
    file.write_bytes(content)
    for log in file.parent.glob("_spark_metadata/[0-9]*"):
        version, *entries = log.read_text().split("\n")
        found = [json.loads(entry) for entry in entries]
        changed = [each | {"size": len(content)} if each["path"].endswith(file.name) else each for each in found]
        log.write_text("\n".join([version, *map(json.dumps, changed)]))


def make_pipe(path: Path) -> None:
    """Make a named pipe: a reader that opens it waits forever."""
    os.mkfifo(path)
