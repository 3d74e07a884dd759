"""Cases: the state of a stateful query, here a deduplication by the whole row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labs.delete_x_then_start.case import Case, Group
from labs.delete_x_then_start.damage import delete
from labs.frame.pipeline import FILE_SINK

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from labs.delete_x_then_start.case import Bench


def _case(name: str, what: str, production: str, damage: Callable[[Bench], object]) -> Case:
    return Case(name, what, production, damage, sinks=(FILE_SINK,), shape=_deduplicated)


_ROCKSDB = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def _rocksdb(name: str, what: str, production: str, damage: Callable[[Bench], object]) -> Case:
    return Case(name, what, production, damage, sinks=(FILE_SINK,), shape=_deduplicated, settings=_ROCKSDB)


def _deduplicated(stream: DataFrame) -> DataFrame:
    return stream.dropDuplicates(["value"])


_BACKUP = (
    "Put the state back from a backup of the whole checkpoint, taken while the query was down. Else state is made "
    "again only by reading the source again: new checkpoint, new output."
)

ROCKSDB = Group(
    "State in RocksDB",
    "The same query with RocksDB and change-log checkpointing: a change log for each batch, snapshots now and then.",
    [
        _rocksdb(
            "rocksdb-latest", "latest change log: `state/0/0/4.changelog`", _BACKUP, delete("state/0/0/4.changelog")
        ),
        _rocksdb(
            "rocksdb-first", "first change log: `state/0/0/1.changelog`", "As above.", delete("state/0/0/1.changelog")
        ),
        _rocksdb("rocksdb-partition", "one partition's state, RocksDB: `state/0/0`", "As above.", delete("state/0/0")),
        _rocksdb("rocksdb-all", "all state, RocksDB: `state`", "As above.", delete("state")),
    ],
)

GROUP = Group(
    "State",
    "The query drops repeated rows, with a state store of two partitions (HDFS-backed, the default provider).",
    [
        _case("state-latest", "latest state file: `state/0/0/4.delta`", _BACKUP, delete("state/0/0/4.delta")),
        _case("state-first", "first state file: `state/0/0/1.delta`", "As above.", delete("state/0/0/1.delta")),
        _case("state-partition", "one partition's state: `state/0/0`", "As above.", delete("state/0/0")),
        _case("state-all", "all state: `state`", "As above.", delete("state")),
        _case(
            "state-schema",
            "the state's schema: `state/0/0/_metadata/schema`",
            "It is written again, from the query as it is now: start the unchanged query, "
            "since this once nothing checks a changed one.",
            delete("state/0/0/_metadata/schema"),
        ),
    ],
)
