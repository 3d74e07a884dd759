"""Turns topic and output files into the tables of the judge: `sent`, one row per record, and `lines`, one per line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from faultline.formats.visit import output_line
from faultline.verdict.loading import Job, Rows, in_processes
from faultline.verdict.progress import ReadProgress
from faultline.verdict.records import Batch
from faultline.verdict.spark.lines import Lines, Part, line_digest, read_lines
from faultline.verdict.spark.output import OutputFile
from faultline.verdict.store import Store

SENT = pa.schema([("kafka_partition", pa.int32()), ("kafka_offset", pa.int64()), ("line_digest", pa.uuid())])
_SENT_TABLE = pa.schema([*list(SENT)[:-1], ("digest", pa.uuid())])
LINES = pa.schema(
    [
        ("file", pa.int32()),
        ("line", pa.int64()),
        ("position", pa.int64()),
        ("digest", pa.uuid()),
        ("leftover", pa.bool_()),
    ]
)

_PART_BYTES = 64 << 20
_PARALLEL_BYTES = 160 << 20
"""Below this, one process ends before others would have started."""
_APPEND_ROWS = 250_000


def sent_rows(batch: Batch) -> pa.RecordBatch:
    """Turn records into rows of SENT."""
    digests = [line_digest(output_line(value)) for value in batch.values]
    columns = [
        pa.array(batch.partitions, pa.int32()),
        pa.array(batch.offsets, pa.int64()),
        pa.array(digests, pa.uuid()),
    ]
    return pa.record_batch(columns, schema=SENT)


def load_sent(store: Store, read: Rows) -> None:
    """Fill table `sent` with the rows of a topic."""
    store.create("sent", _SENT_TABLE)
    for _, rows in read:
        store.append("sent", rows.rename_columns(_SENT_TABLE.names))


@dataclass(frozen=True)
class LinesJob:
    """Some files, or a part of one: `numbers` are those of the files, `leftovers` marks the leftovers among them."""

    numbers: tuple[int, ...]
    parts: tuple[Part, ...]
    leftovers: tuple[bool, ...]

    @property
    def size(self) -> int:
        """Count the bytes."""
        return sum(part.end - part.begin for part in self.parts)

    def run(self) -> Iterator[pa.RecordBatch]:
        """Read rows of table `lines`; lines are counted from the beginning of each part."""
        for number, part, leftover in zip(self.numbers, self.parts, self.leftovers, strict=True):
            line = 1
            # The last line of a leftover may be cut off anywhere: the batch that wrote it was interrupted.
            for found in read_lines(part, torn=not leftover):
                yield _line_rows(number, line, found, leftover=leftover)
                line += len(found.positions)


def _line_rows(number: int, first: int, found: Lines, *, leftover: bool) -> pa.RecordBatch:
    count = len(found.positions)
    columns = [
        pa.array([number] * count, pa.int32()),
        pa.array(range(first, first + count), pa.int64()),
        pa.array(found.positions, pa.int64()),
        pa.array(found.digests, pa.uuid()),
        pa.array([leftover] * count, pa.bool_()),
    ]
    return pa.record_batch(columns, schema=LINES)


def load_lines(store: Store, files: Sequence[OutputFile]) -> None:
    """Fill table `lines` with the lines of files, which column `file` counts from 0."""
    store.create("lines", LINES)
    jobs = lines_jobs(files)
    total = sum(job.size for job in jobs)
    ended: Counter[int] = Counter()
    with ReadProgress("output", total, "bytes") as progress:
        for job, tables in _results(jobs, store.folder, parallel=total >= _PARALLEL_BYTES):
            # The lines of a large file's later parts are counted from where the part before it ended.
            number, before = job.numbers[0], ended[job.numbers[0]]
            for rows in tables:
                ended[number] += rows.num_rows
                counted = rows.set_column(1, "line", pc.add(rows["line"], before)) if before else rows
                store.append("lines", counted)
            progress.advance(job.size)


def lines_jobs(files: Sequence[OutputFile], part_bytes: int = _PART_BYTES) -> list[LinesJob]:
    """Divide files into jobs of similar size: many small files, or a part of a large one."""
    jobs: list[LinesJob] = []
    small: list[tuple[int, Part, bool]] = []
    small_bytes = 0
    for number, file in enumerate(files):
        if file.size > part_bytes:
            jobs += [
                LinesJob((number,), (Part(file.path, begin, min(begin + part_bytes, file.size)),), (file.leftover,))
                for begin in range(0, file.size, part_bytes)
            ]
        elif file.size:
            small.append((number, Part(file.path, 0, file.size), file.leftover))
            small_bytes += file.size
        if small and (small_bytes >= part_bytes or number == len(files) - 1):
            numbers, parts, leftovers = zip(*small, strict=True)
            jobs.append(LinesJob(numbers, parts, leftovers))
            small, small_bytes = [], 0
    return jobs


def _results(
    jobs: Sequence[LinesJob], folder: Path, *, parallel: bool
) -> Iterator[tuple[LinesJob, Iterator[pa.Table]]]:
    if parallel:
        of_protocol: Sequence[Job] = jobs
        for job, chunk in zip(jobs, in_processes(of_protocol, folder), strict=True):
            rows = chunk.rows()
            chunk.remove()
            yield job, (rows.slice(begin, _APPEND_ROWS) for begin in range(0, rows.num_rows, _APPEND_ROWS))
        return
    for job in jobs:
        yield job, _in_this_process(job)


def _in_this_process(job: LinesJob) -> Iterator[pa.Table]:
    """Run a job and yield its rows in few tables: each table costs the database as much as many rows."""
    batches: list[pa.RecordBatch] = []
    count = 0
    for batch in job.run():
        batches.append(batch)
        count += len(batch)
        if count >= _APPEND_ROWS:
            yield pa.Table.from_batches(batches)
            batches, count = [], 0
    if batches:
        yield pa.Table.from_batches(batches)
