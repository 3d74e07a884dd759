"""The generator's ledger: what it sent to a topic and what the broker acknowledged, one file per run.

Lines of comma-separated fields, always these eight (`FIELDS`); a field that does not apply is empty:

    topic,,,,,<clock>,<topic id>,<topic name>             the first line of every file
    sent,<number>,<partition>,,<timestamp>,<clock>,<digest>,<key>    before the visit is handed to the client
    acked,<number>,<partition>,<offset>,,<clock>,,                   once the broker has acknowledged it

`number` counts the visits of one file from 0; `timestamp` is the record's; `clock` is the wall clock; both in
milliseconds since the epoch. `digest` is `faultline.formats.digest.record_digest` in hex; `key` is percent-encoded.
The topic id is the broker's, in the form of Kafka's tools: a topic that was deleted and created again has another.

A line is written by one call before the visit is sent, so it survives a SIGKILL at any moment. Only the last line can
be torn, and then its visit was not sent.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

TOPIC, SENT, ACKED = "topic", "sent", "acked"
FIELDS = ("event", "number", "partition", "kafka_offset", "timestamp", "clock", "digest", "key")
SUFFIX = ".ledger.csv"


def ledger_files(folder: Path, topic: str) -> list[Path]:
    """List the ledgers of a topic, the oldest first; empty when the folder is missing. Raises OSError."""
    try:
        # Not glob(): it passes over a folder that cannot be read.
        return sorted(file for file in (folder / topic).iterdir() if file.name.endswith(SUFFIX))
    except FileNotFoundError:
        return []


def topic_line(name: str, topic_id: str, clock: int) -> str:
    """First line of a file."""
    return f"{TOPIC},,,,,{clock},{topic_id},{quote(name, safe='')}\n"


def sent_line(number: int, partition: int, *, timestamp: int, clock: int, digest: bytes, key: bytes) -> str:
    """Line of a visit that is about to be sent."""
    return f"{SENT},{number},{partition},,{timestamp},{clock},{digest.hex()},{quote(key, safe='')}\n"


def acked_line(number: int, partition: int, offset: int, clock: int) -> str:
    """Line of a visit that the broker has acknowledged."""
    return f"{ACKED},{number},{partition},{offset},,{clock},,\n"
