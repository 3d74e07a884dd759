"""Reads ledgers into tables: what the generator has sent to a topic, and what the broker has acknowledged."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv

from faultline.formats.ledger import FIELDS, ledger_files
from faultline.verdict.model import Unknown
from faultline.verdict.progress import ReadProgress
from faultline.verdict.store import Store

_CHUNK_BYTES = 16 * 2**20
_FIRST_LINE_BYTES = 4096

_TOPIC_LINE = re.compile(rb"topic,,,,,\d{1,18},([\w-]{22}),[\w.~%-]*\n", re.ASCII)
_LINE = re.compile(
    rb"sent,(?P<sent>\d{1,18}),\d{1,9},,\d{1,18},\d{1,18},[0-9a-f]{32},[\w.~%-]*"
    rb"|acked,(?P<acked>\d{1,18}),\d{1,9},\d{1,18},,\d{1,18},,",
    re.ASCII,
)
"""Pattern of a line after the first one. Used only to search a damaged chunk."""

_TABLES = """
CREATE OR REPLACE TABLE ledger_sent (
    file INTEGER, number BIGINT, kafka_partition INTEGER, timestamp BIGINT, clock BIGINT, digest UUID, key VARCHAR
);
CREATE OR REPLACE TABLE ledger_acked (
    file INTEGER, number BIGINT, kafka_partition INTEGER, kafka_offset BIGINT, clock BIGINT
);
"""

_READABLE = """
CASE event
    WHEN 'sent' THEN number >= 0 AND partition >= 0 AND kafka_offset IS NULL AND timestamp >= 0 AND clock >= 0
        AND length(digest) = 32 AND TRY_CAST(digest AS UUID) IS NOT NULL
    WHEN 'acked' THEN number >= 0 AND partition >= 0 AND kafka_offset >= 0 AND timestamp IS NULL AND clock >= 0
        AND digest = '' AND key = ''
END
"""

# Contents of a chunk: invalid lines, visits sent and their first and last number, the last one acknowledged.
_SURVEY = f"""
SELECT count(*) FILTER (coalesce({_READABLE}, FALSE) = FALSE), count(*) FILTER (event = 'sent'),
       count(DISTINCT number) FILTER (event = 'sent'),
       min(number) FILTER (event = 'sent'), max(number) FILTER (event = 'sent'),
       coalesce(max(number) FILTER (event = 'acked'), -1), count(*)
FROM ledger_lines
"""

_TYPES = {
    "event": pa.string(), "number": pa.int64(), "partition": pa.int32(), "kafka_offset": pa.int64(),
    "timestamp": pa.int64(), "clock": pa.int64(), "digest": pa.string(), "key": pa.string(),
}  # fmt: skip


@dataclass(frozen=True)
class LedgerSummary:
    """The ledgers of one topic; column `file` of the tables counts `files` from 0.

    `sent` counts the visits of each file, whose numbers begin at 0; `acked` counts the acknowledgements of all.
    `others` counts ledgers of other topics: deleted ones that had the same name.
    """

    files: tuple[Path, ...]
    sent: tuple[int, ...]
    acked: int
    others: int


def files_of(folder: Path, topic: str) -> list[Path]:
    """List the ledgers of a topic's name. Raises Unknown: without them a visit that is lost would not be missed."""
    try:
        return ledger_files(folder, topic)
    except OSError as error:
        raise Unknown(f"the ledgers in {error.filename or folder} cannot be read: {error.strerror}") from None


def ledgers_of(files: Sequence[Path], topic_id: str) -> tuple[list[Path], int]:
    """Choose the ledgers of a topic by its id, and count the others.

    A file without a complete first line counts as neither: nothing was sent before that line. Raises Unknown.
    """
    chosen, others = [], 0
    for path in files:
        with _opened(path) as file:
            found = _topic_of(path, file.readline(_FIRST_LINE_BYTES))
        if found == topic_id:
            chosen.append(path)
        elif found is not None:
            others += 1
    return chosen, others


def load_ledgers(store: Store, files: Sequence[Path], topic_id: str) -> LedgerSummary:
    """Make tables `ledger_sent` and `ledger_acked` of the ledgers of one topic; those of other ids are ignored.

    `ledger_sent` (file, number, kafka_partition, timestamp, clock, digest, key): a visit, before it was sent.
    `ledger_acked` (file, number, kafka_partition, kafka_offset, clock): the broker had it there at that time.
    `file` and `number` together name a visit; `clock` is the wall clock in milliseconds; `key` is percent-encoded.

    Each file is read up to its present end, since a generator may still write. So a caller that compares with the topic
    reads the topic first and lists the files after that: then each record has its line. Raises Unknown when a line
    cannot be read; but a torn last line is ignored.
    """
    chosen, others = ledgers_of(files, topic_id)
    store.connection.execute(_TABLES)
    counts = []
    with ReadProgress("ledger", sum(path.stat().st_size for path in chosen), "bytes") as progress:
        for index, path in enumerate(chosen):
            counts.append(_load(store, index, path, progress))
    (acked,) = store.numbers("SELECT count(*) FROM ledger_acked")
    return LedgerSummary(tuple(chosen), tuple(counts), acked, others)


def _opened(path: Path) -> BinaryIO:
    try:
        if not S_ISREG(path.stat().st_mode):
            raise Unknown(f"ledger {path} is no file; move it out of the folder of the ledgers")
        return path.open("rb")
    except OSError as error:
        raise Unknown(f"ledger {path} cannot be read: {error.strerror}") from None


def _topic_of(path: Path, line: bytes) -> str | None:
    """Read the topic id in a first line; None when the line is torn."""
    if not line.endswith(b"\n"):
        return None
    found = _TOPIC_LINE.fullmatch(line)
    if found is None:
        raise _unreadable(path, 1)
    return found[1].decode()


def _load(store: Store, index: int, path: Path, progress: ReadProgress) -> int:
    """Add a file's lines to the tables and count its visits."""
    sent, line = 0, 2
    with _opened(path) as file:
        length = os.fstat(file.fileno()).st_size
        for chunk in _chunks(file, length - len(file.readline())):
            rows = _parse(chunk)
            survey = (1, 0, 0, 0, 0, 0, 0)
            if rows is not None:
                store.connection.register("ledger_lines", rows)
                survey = store.numbers(_SURVEY)  # type: ignore[assignment]
            bad, count, distinct, first, last, last_acked, lines = survey
            # Numbers increase by one: a missing or repeated line breaks the sequence.
            in_order = count == 0 or (first == sent and last == sent + count - 1 and distinct == count)
            if bad or not in_order or last_acked >= sent + count:
                raise _complaint(path, chunk, line, sent)
            store.execute(
                """INSERT INTO ledger_sent SELECT $file, number, partition, timestamp, clock, digest::UUID, key
                   FROM ledger_lines WHERE event = 'sent'""",
                file=index,
            )
            store.execute(
                """INSERT INTO ledger_acked SELECT $file, number, partition, kafka_offset, clock
                   FROM ledger_lines WHERE event = 'acked'""",
                file=index,
            )
            store.connection.unregister("ledger_lines")
            sent, line = sent + count, line + lines
            progress.advance(len(chunk))
    return sent


def _chunks(file: BinaryIO, left: int) -> Iterator[bytes]:
    """Read the next `left` bytes as chunks of whole lines; a line without its end is torn or being written."""
    rest = b""
    while left > 0 and (block := file.read(min(left, _CHUNK_BYTES))):
        left -= len(block)
        head, end, tail = block.rpartition(b"\n")
        if end:
            yield rest + head + end
            rest = tail
        else:
            rest += tail


def _parse(chunk: bytes) -> pa.Table | None:
    """Turn lines into rows, or return None when one of them does not have these fields."""
    try:
        return pyarrow.csv.read_csv(
            pa.BufferReader(chunk),
            # A line may be as long as a key of a record, and has to be in one block.
            read_options=pyarrow.csv.ReadOptions(column_names=FIELDS, block_size=max(len(chunk), 1)),
            parse_options=pyarrow.csv.ParseOptions(quote_char=False, escape_char=False, ignore_empty_lines=False),
            convert_options=pyarrow.csv.ConvertOptions(column_types=_TYPES, null_values=[""]),
        )
    except pa.ArrowInvalid:
        return None


def _complaint(path: Path, chunk: bytes, line: int, sent: int) -> Unknown:
    """Name the first wrong line of a damaged chunk; `sent` counts the visits before the chunk."""
    for index, text in enumerate(chunk.split(b"\n")[:-1], start=line):
        found = _LINE.fullmatch(text)
        if found is None:
            return _unreadable(path, index)
        if found["acked"] is not None and int(found["acked"]) >= sent:
            return Unknown(
                f"ledger {path} line {index} acknowledges visit {int(found['acked'])}, which no line before it sends: "
                "the file is damaged, so what was sent is not known"
            )
        if found["sent"] is not None:
            if int(found["sent"]) != sent:
                return Unknown(
                    f"ledger {path} line {index} sends visit {int(found['sent'])} where visit {sent} is due: "
                    "the file is damaged, so what was sent is not known"
                )
            sent += 1
    return _unreadable(path, line)


def _unreadable(path: Path, line: int) -> Unknown:
    return Unknown(f"ledger {path} line {line} cannot be read: the file is damaged, so what was sent is not known")
