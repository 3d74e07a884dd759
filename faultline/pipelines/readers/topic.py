"""Reads topics: the source of a pipeline, and an output that is a topic."""

from __future__ import annotations

import pyarrow as pa

from faultline.pipelines.spec import Output
from faultline.verdict.checker import require_whole, source_spans
from faultline.verdict.cluster import Cluster
from faultline.verdict.loading import topic_rows
from faultline.verdict.model import Unknown
from faultline.verdict.records import Batch, Spans
from faultline.verdict.store import Store


def _schema(content: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            ("key", content),
            ("value", content),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("ms")),
            ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ]
    )


KEPT = "name a topic that keeps all of its records"
TEXT, BINARY = _schema(pa.string()), _schema(pa.binary())
"""Columns of a topic's table, with key and value as text or as bytes. Timestamps are UTC."""


def binary_rows(batch: Batch) -> pa.RecordBatch:
    """Turn records into rows with key and value as bytes."""
    headers = [[{"key": key, "value": value} for key, value in each] for each in batch.headers]
    columns = [batch.keys, batch.values, batch.partitions, batch.offsets, batch.timestamps, headers]
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, BINARY, strict=True)], BINARY
    )


def text_rows(batch: Batch) -> pa.RecordBatch:
    """Turn records into rows with key and value as text. Raises Unknown when one is not UTF-8."""
    try:
        return binary_rows(batch).cast(TEXT)
    except pa.ArrowInvalid:
        raise Unknown(
            f"a key or value of partition {batch.partitions[0]}, offsets {batch.offsets[0]} to {batch.offsets[-1]}, is "
            "not UTF-8; set binary = true in the table of this topic, and decode key and value in the query"
        ) from None


def load_topic(store: Store, table: str, cluster: Cluster, topic: str, spans: Spans, *, binary: bool) -> None:
    """Make a table of the records of a topic's spans. Raises Unknown."""
    store.create(table, BINARY if binary else TEXT)
    for _, rows in topic_rows(cluster, topic, spans, binary_rows if binary else text_rows, store.folder):
        store.append(table, rows)


def load(store: Store, output: Output, columns: dict[str, str]) -> list[str]:  # noqa: ARG001 - as all readers
    """Make the table `output` of a topic: its committed records, or all. Raises Unknown when some are hidden."""
    cluster = Cluster(output.bootstrap, committed=output.committed)
    if output.committed:
        spans = source_spans(cluster, output.topic, caught_up=True, remedy=KEPT)
    else:
        spans = cluster.spans(output.topic, committed=False)
        require_whole(cluster, output.topic, spans, KEPT)
    load_topic(store, "output", cluster, output.topic, spans, binary=output.binary)
    return []


def mark(output: Output) -> object:
    """Return the ends of the topic's partitions."""
    try:
        return Cluster(output.bootstrap).spans(output.topic, committed=False)
    except Unknown:
        return None


def reach(output: Output) -> None:
    """Raise Unknown when the broker does not answer."""
    Cluster(output.bootstrap).topics()
