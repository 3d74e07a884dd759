"""Turns topics and files into tables: chunk by chunk, in several processes when there is much to read."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.ipc

from faultline.verdict.cluster import Cluster
from faultline.verdict.model import Unknown
from faultline.verdict.progress import ReadProgress
from faultline.verdict.records import Batch, Span, Spans, size

CHUNK_RECORDS = 250_000
PARALLEL_RECORDS = 150_000
"""Below this, one process ends before others would have started."""
PARALLEL_PROCESSES = min(4, os.cpu_count() or 1)

_STARTING = threading.Lock()
"""Held while a process is started: one whose start is cut off would print a stack trace."""
_START_SECONDS = 5.0

Parse = Callable[[Batch], pa.RecordBatch]
"""Turns records into rows of one table; it must be picklable."""
Rows = Iterable[tuple[int, pa.Table]]
"""Rows of a topic with their partition; within a partition in the order of offsets. None of the tables is empty."""


@dataclass(frozen=True)
class Chunk:
    """Rows of one table: in memory, or in a file that another process has written."""

    place: pa.Table | Path

    def rows(self) -> pa.Table:
        """Return the rows, which take no memory of this process when they are in a file."""
        if not isinstance(self.place, Path):
            return self.place
        with pa.memory_map(str(self.place)) as source:
            return pa.ipc.open_stream(source).read_all()

    def remove(self) -> None:
        """Remove the file, if it is one; rows that were returned stay."""
        if isinstance(self.place, Path):
            self.place.unlink()


class TopicReader(Protocol):
    """A reader of topics: a cluster, or records in memory."""

    def read(self, topic: str, spans: Spans) -> Iterator[Batch]:
        """Read the committed records of the spans; within a partition in the order of offsets."""
        ...


class Job(Protocol):
    """Work for another process: a picklable object that yields rows of one table."""

    def run(self) -> Iterator[pa.RecordBatch]:
        """Produce the rows."""
        ...


@dataclass(frozen=True)
class _TopicJob:
    bootstrap: str
    committed: bool
    topic: str
    partition: int
    span: Span
    parse: Parse

    def run(self) -> Iterator[pa.RecordBatch]:
        for batch in Cluster(self.bootstrap, committed=self.committed).read(self.topic, {self.partition: self.span}):
            yield self.parse(batch)


def topic_rows(
    reader: TopicReader, topic: str, spans: Spans, parse: Parse, folder: Path
) -> Iterator[tuple[int, pa.Table]]:
    """Read a topic partition by partition, in the order of offsets: the partition, and rows of one table.

    `folder` stores what other processes have read until it is used.
    """
    for partition, chunk in topic_chunks(reader, topic, spans, parse, folder):
        rows = chunk.rows()
        chunk.remove()
        yield partition, rows


def topic_chunks(
    reader: TopicReader, topic: str, spans: Spans, parse: Parse, folder: Path
) -> Iterator[tuple[int, Chunk]]:
    """Read a topic as `topic_rows` does, into chunks that can be read again until they are removed; none is empty."""
    total = size(spans)
    with ReadProgress(f"topic {topic}", total) as progress:
        if total < PARALLEL_RECORDS or not isinstance(reader, Cluster):
            for partition, span in spans.items():
                for batch in reader.read(topic, {partition: span}):
                    yield partition, Chunk(pa.Table.from_batches([parse(batch)]))
                    progress.advance(len(batch.offsets))
            return
        spans_of_chunks = [
            (partition, Span(begin, min(begin + CHUNK_RECORDS, span.end)))
            for partition, span in spans.items()
            for begin in range(span.begin, span.end, CHUNK_RECORDS)
        ]
        jobs = [
            _TopicJob(reader.bootstrap, reader.committed, topic, partition, span, parse)
            for partition, span in spans_of_chunks
        ]
        for (partition, span), chunk in zip(spans_of_chunks, in_processes(jobs, folder), strict=True):
            # It may have markers and aborted records only.
            if chunk.rows().num_rows:
                yield partition, chunk
            progress.advance(span.end - span.begin)


def in_processes(jobs: Sequence[Job], folder: Path) -> Iterator[Chunk]:
    """Run jobs in other processes and yield their rows in the order of the jobs, each as a file below `folder`.

    Raises what a job raises, and Unknown when a process is killed.
    """
    # Not forked: librdkafka and DuckDB have threads here, which do not survive a fork.
    context = multiprocessing.get_context("spawn")
    # Python's own tracker cleans up after a verdict that is killed, and would say so.
    others = [each for each in os.environ.get("PYTHONWARNINGS", "").split(",") if each]
    os.environ["PYTHONWARNINGS"] = ",".join([*others, "ignore:resource_tracker"])
    own = Path(tempfile.mkdtemp(dir=folder))
    with ProcessPoolExecutor(PARALLEL_PROCESSES, mp_context=context, initializer=_begin_to_read) as pool:
        running: deque[tuple[Future[None], Path]] = deque()
        queue = list(enumerate(jobs))
        try:
            while queue or running:
                # A few chunks ahead: enough to keep the processes busy, and not the whole topic on disk.
                while queue and len(running) < PARALLEL_PROCESSES + 2:
                    number, job = queue.pop(0)
                    file = own / f"chunk-{number}.arrow"
                    with _STARTING:
                        running.append((pool.submit(_run, job, file), file))
                future, file = running.popleft()
                future.result()
                yield Chunk(file)
        except BrokenProcessPool:
            raise Unknown(
                "a process that reads for the verdict was killed; is there enough memory? judge again"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def kill_readers() -> None:
    """End the processes that read, before this one ends; none is started afterwards."""
    _STARTING.acquire(timeout=_START_SECONDS)
    for process in multiprocessing.active_children():
        process.kill()


def _begin_to_read() -> None:
    """Prepare a process that reads: it ends once its parent has, even by SIGKILL; it would wait for work forever."""
    # Rows have no cycles, and the collector would walk over the records of a batch again and again.
    gc.disable()
    # A signal is the parent's business.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _run(job: Job, file: Path) -> None:
    """Write the rows of a job to a file of Arrow's stream format."""
    writer = None
    with pa.OSFile(str(file), "wb") as sink:
        for rows in job.run():
            writer = writer or pa.ipc.new_stream(sink, rows.schema)
            writer.write_batch(rows)
        if writer is None:
            # A chunk of markers and aborted records only.
            writer = pa.ipc.new_stream(sink, pa.schema([]))
        writer.close()
    # Errors in unparsable values may leave cycles.
    gc.collect()
