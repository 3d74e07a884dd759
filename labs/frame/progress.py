"""Spark's own report of a query's batches: `StreamingQueryProgress`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faultline.formats.visit import parse_event_time

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class Batch:
    """One batch that ran: its id, rows read, and each source's start and end offset as JSON values (None: no start)."""

    id: int
    rows: int
    start: list[Any]
    end: list[Any]
    watermark_ms: int
    """Milliseconds since the epoch; 0 while there is no watermark."""

    def __str__(self) -> str:
        return f"batch {self.id} ({self.rows} read)"


def batches(query: StreamingQuery) -> list[Batch]:
    """Return the batches that this query ran, in order; reports of triggers without a batch are ignored."""
    ran: dict[int, Batch] = {}
    for progress in query.recentProgress:
        # A plain dictionary up to Spark 3.5.
        document = json.loads(progress.json) if hasattr(progress, "json") else progress
        if "addBatch" not in document["durationMs"]:
            continue
        sources = document["sources"]
        ran[document["batchId"]] = Batch(
            document["batchId"],
            document["numInputRows"],
            [source["startOffset"] for source in sources],
            [source["endOffset"] for source in sources],
            parse_event_time(document.get("eventTime", {}).get("watermark", "")) or 0,
        )
    return [ran[number] for number in sorted(ran)]
