"""Fill the tables of the windowing job's judge from its four topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import pyarrow as pa

from faultline.verdict.flink.clock import PASSED, Arrivals, PartitionClock, Rules, finish
from faultline.verdict.flink.findings import Names
from faultline.verdict.flink.reader import ROUTED, VISITS, WINDOWS, routed_rows, window_rows
from faultline.verdict.loading import Parse, Rows, TopicReader, topic_rows
from faultline.verdict.records import Spans
from faultline.verdict.store import Store


def load_source(
    store: Store, read: Rows, partitions: Iterable[int], *, rules: Rules, arrivals: Arrivals | None
) -> list[PartitionClock]:
    """Fill `visits` and `passed`, and follow the clock of each partition."""
    store.create("visits", VISITS)
    store.create("passed", PASSED)
    clocks = {partition: PartitionClock(partition) for partition in partitions}
    for partition, rows in read:
        store.append("visits", rows)
        store.append("passed", clocks[partition].follow(rows, rules, arrivals))
    found = list(clocks.values())
    finish(found, rules)
    return found


def load_outputs(store: Store, reader: TopicReader, names: Names, spans: Mapping[str, Spans], rules: Rules) -> None:
    """Fill `late`, `rejected` and `windows` from the job's topics."""
    tables: tuple[tuple[str, str, pa.Schema, Parse], ...] = (
        ("late", names.late, ROUTED, routed_rows),
        ("rejected", names.rejected, ROUTED, routed_rows),
        ("windows", names.windows, WINDOWS, partial(window_rows, window_ms=rules.window_ms)),
    )
    for table, topic, schema, parse in tables:
        load_table(store, reader, table, topic, spans[topic], schema=schema, parse=parse)


def load_table(
    store: Store, reader: TopicReader, table: str, topic: str, spans: Spans, *, schema: pa.Schema, parse: Parse
) -> None:
    """Fill a table from a topic."""
    store.create(table, schema)
    for _, rows in topic_rows(reader, topic, spans, parse, store.folder):
        store.append(table, rows)
