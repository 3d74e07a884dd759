"""Keyed state of an operator, restored by Flink's heap backend: names, keys, open windows, a preview.

The heap backend restores its own checkpoints and every savepoint in canonical format. A RocksDB checkpoint and a native
savepoint of RocksDB need RocksDB, the changelog backend's state needs that backend, and a serializer of the job's own
classes needs the job's jar: all are reported.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from py4j.protocol import Py4JError

from faultline.inspector.flink.hidden import field, first_long, getter, method
from faultline.inspector.flink.jvm import each, java_cause
from faultline.inspector.flink.metadata import CHANGELOG, Entry
from faultline.inspector.model import StateStore, Window
from faultline.inspector.words import time_words

STATE_ENTRY = "org.apache.flink.runtime.state.StateEntry"
TUPLE = "org.apache.flink.api.java.tuple.Tuple2"
OWN_WINDOWS = "windows"
"""uid under which this project's job keeps its windows (flink_job/names.py)."""
OWN_FIELDS = ("visits", "first event time", "last event time")
"""Values that the job aggregates in a window, in the job's order: the state itself has types but no names."""
ROWS = "RowDataSerializer"
"""The serializer of SQL rows: it knows the types of their fields."""
WITH_HEADER = ("KeyGroupsStateHandle", "KeyGroupsSavepointStateHandle")
TIME_WINDOW = re.compile(r"TimeWindow\{start=(-?\d+), end=(-?\d+)\}")


def _keyed_handles(jvm: Any, entry: Entry) -> list[Any]:
    return [
        handle for subtask in each(jvm, entry.state.getStates()) for handle in each(jvm, subtask.getManagedKeyedState())
    ]


def _is_incremental(handles: list[Any]) -> bool:
    return any(handle.getClass().getSimpleName().startswith("Incremental") for handle in handles)


def is_of_changelog(jvm: Any, entry: Entry) -> bool:
    """Return whether the changelog state backend wrote the operator's keyed state."""
    return any(handle.getClass().getSimpleName().startswith(CHANGELOG) for handle in _keyed_handles(jvm, entry))


def _has_header(handles: list[Any]) -> bool:
    """Return whether the keyed state begins with what KeyedBackendSerializationProxy reads: heap, canonical format."""
    return all(handle.getClass().getSimpleName() in WITH_HEADER for handle in handles)


def key_snapshot(jvm: Any, entry: Entry) -> Any | None:
    """Read what the operator's keyed state says of its keys' type; None: no keyed state, or one of RocksDB alone."""
    handles = _keyed_handles(jvm, entry)
    if not handles or not _has_header(handles):
        return None
    return _snapshot(jvm, handles[0]).getKeySerializerSnapshot()


def keyed_types(jvm: Any, entry: Entry) -> list[str]:
    """List the keyed states with the types of their values, `window-aggs (BIGINT, BIGINT)`; only SQL rows have such."""
    handles = _keyed_handles(jvm, entry)
    if not handles or not _has_header(handles):
        return []
    found = []
    for meta in each(jvm, _snapshot(jvm, handles[0]).getStateMetaInfoSnapshots()):
        value = meta.getSerializerSnapshotsImmutable().get("VALUE_SERIALIZER")
        # That of another class may need the job's own classes.
        if value is not None and value.getClass().getSimpleName() == f"{ROWS}Snapshot":
            types = [kind.asSummaryString() for kind in list(field(value.restoreSerializer(), "types"))]
            found.append(f"{meta.getName()} ({', '.join(types)})")
    return found


def keyed_state(jvm: Any, entry: Entry, rows: int, native: bool = False) -> list[StateStore]:
    """Read every keyed state of the operator, all subtasks together; `rows` limits the preview of each.

    `native`: it is of a savepoint in the format of its state backend.
    """
    handles = _keyed_handles(jvm, entry)
    if not handles:
        return []
    if is_of_changelog(jvm, entry):
        note = "of the changelog state backend: only that backend opens it; take a savepoint to look inside"
        return [StateStore("keyed state", "changelog", note=note)]
    if _is_incremental(handles):
        what = "a native savepoint of RocksDB" if native else "an incremental RocksDB checkpoint"
        which = "a savepoint in canonical format" if native else "a savepoint"
        note = f"{what}: only RocksDB itself opens it; take {which} to look inside"
        return [StateStore("keyed state", "rocksdb", note=note)]
    if not _has_header(handles):
        kinds = ", ".join(sorted({handle.getClass().getSimpleName() for handle in handles}))
        return [StateStore("keyed state", "unknown", note=f"of a state backend that is not known here ({kinds})")]
    try:
        snapshot = _snapshot(jvm, handles[0])
        backend = _restore(jvm, entry, snapshot, handles)
        metas = each(jvm, snapshot.getStateMetaInfoSnapshots())
        return [_describe(jvm, backend, meta, rows, entry.uid == OWN_WINDOWS) for meta in metas]
    except Py4JError as error:
        return [
            StateStore("keyed state", "unknown", note=f"Flink's heap backend cannot restore it: {java_cause(error)}")
        ]


def _loader(jvm: Any) -> Any:
    return jvm.java.lang.ClassLoader.getSystemClassLoader()


def _snapshot(jvm: Any, handle: Any) -> Any:
    """Read the header of a keyed state file: the key serializer and the states that follow."""
    flink = jvm.org.apache.flink
    proxy = flink.runtime.state.KeyedBackendSerializationProxy(_loader(jvm))
    stream = handle.openInputStream()
    proxy.read(flink.core.memory.DataInputViewStreamWrapper(stream))
    stream.close()
    return proxy


def _restore(jvm: Any, entry: Entry, snapshot: Any, handles: list[Any]) -> Any:
    flink = jvm.org.apache.flink
    state = flink.runtime.state
    key_groups = state.KeyGroupRange.of(0, entry.max_parallelism - 1)
    collected = jvm.java.util.ArrayList()
    for handle in handles:
        collected.add(handle)
    return state.heap.HeapKeyedStateBackendBuilder(
        None,
        snapshot.getKeySerializerSnapshot().restoreSerializer(),
        _loader(jvm),
        entry.max_parallelism,
        key_groups,
        flink.api.common.ExecutionConfig(),
        state.ttl.TtlTimeProvider.DEFAULT,
        state.metrics.LatencyTrackingStateConfig.disabled(),
        state.metrics.SizeTrackingStateConfig.disabled(),
        collected,
        state.UncompressedStreamCompressionDecorator.INSTANCE,
        state.LocalRecoveryConfig.BACKUP_AND_RECOVERY_DISABLED,
        state.heap.HeapPriorityQueueSetFactory(key_groups, entry.max_parallelism, 128),
        False,
        flink.core.fs.CloseableRegistry(),
    ).build()


def _describe(jvm: Any, backend: Any, meta: Any, rows: int, is_own: bool) -> StateStore:
    name = meta.getName()
    if meta.getBackendStateType().toString() == "PRIORITY_QUEUE":
        serializer = meta.getSerializerSnapshotsImmutable()["VALUE_SERIALIZER"].restoreSerializer()
        return StateStore(name, "timers", keys=backend.create(name, serializer).size())
    table = field(backend, "registeredKVStates")[name]
    store = StateStore(name, meta.getOptionsImmutable()["KEYED_STATE_TYPE"].lower(), keys=table.size())
    store.windows = _windows(jvm, table, is_own)
    key_serializer, value_serializer = table.getKeySerializer(), table.getStateSerializer()
    for element in islice(_elements(table.iterator()), rows):
        row = {"key": _plain(jvm, key_serializer, element.getKey())}
        namespace = _window(element.getNamespace())
        if namespace is not None:
            row["window_end"] = str(namespace[1])
        say = _own_window if is_own else _plain
        row["value"] = say(jvm, value_serializer, element.getState())
        store.rows.append(row)
    return store


def _elements(iterator: Any) -> Any:
    while iterator.hasNext():
        yield iterator.next()


def _window(namespace: Any) -> tuple[int | None, int] | None:
    """Start and end of the namespace: SQL windows keep their end (a long), DataStream windows a TimeWindow."""
    if isinstance(namespace, int):
        return (None, namespace)
    match = TIME_WINDOW.fullmatch(str(namespace.toString()))
    return (int(match[1]), int(match[2])) if match else None


def _windows(jvm: Any, table: Any, is_own: bool) -> list[Window]:
    """Count keys by window inside the JVM: a call for each key would take minutes for a large state."""
    collectors = jvm.java.util.stream.Collectors
    grouped = table.getKeysAndNamespaces().collect(
        collectors.groupingBy(getter(jvm, TUPLE, "f1"), collectors.counting())
    )
    visits = _visits(jvm, table) if is_own else {}
    found = []
    for entry in each(jvm, grouped.entrySet()):
        window = _window(entry.getKey())
        if window is not None:
            found.append(Window(window[0], window[1], entry.getValue(), visits.get(entry.getKey())))
    return sorted(found, key=lambda window: window.end)


def _visits(jvm: Any, table: Any) -> dict[Any, int]:
    """Add up the first field of all values, the count of visits, by window."""
    streams = jvm.java.util.stream
    spliterator = jvm.java.util.Spliterators.spliteratorUnknownSize(table.iterator(), 0)
    namespace = method(jvm, STATE_ENTRY, "getNamespace")
    total = streams.Collectors.summingLong(first_long(jvm, STATE_ENTRY, "getState"))
    grouped = streams.StreamSupport.stream(spliterator, False).collect(streams.Collectors.groupingBy(namespace, total))
    return {entry.getKey(): int(entry.getValue()) for entry in each(jvm, grouped.entrySet())}


def _own_window(jvm: Any, serializer: Any, row: Any) -> str:
    """Say what this project's job keeps of a window: OWN_FIELDS by name, times in words; else the row's values."""
    values = [value for _, value in _fields(jvm, list(field(serializer, "types")), row)]
    if len(values) != len(OWN_FIELDS) or not all(isinstance(value, int) for value in values):
        return _plain(jvm, serializer, row)
    words = [str(values[0]), *map(time_words, values[1:])]
    return ", ".join(f"{name} {word}" for name, word in zip(OWN_FIELDS, words, strict=True))


def _plain(jvm: Any, serializer: Any, value: Any) -> str:
    """Say a value in words; rows of the table runtime have no names in state, only types and an order."""
    if value is None or isinstance(value, str | int | float | bool):
        return str(value)
    if serializer.getClass().getSimpleName() != ROWS:
        return str(value.toString())
    return _row(jvm, list(field(serializer, "types")), value)


def _fields(jvm: Any, kinds: list[Any], row: Any) -> list[tuple[Any, Any]]:
    """Return the type and the value of each field of a row."""
    getter_of = jvm.org.apache.flink.table.data.RowData.createFieldGetter
    return [(kind, getter_of(kind, index).getFieldOrNull(row)) for index, kind in enumerate(kinds)]


def _row(jvm: Any, kinds: list[Any], row: Any) -> str:
    shown = [_value(jvm, kind, value) for kind, value in _fields(jvm, kinds, row)]
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"


def _value(jvm: Any, kind: Any, value: Any) -> str:
    if value is None:
        return "null"
    root = kind.getTypeRoot().toString()
    if root in ("ROW", "STRUCTURED_TYPE"):
        return _row(jvm, each(jvm, kind.getChildren()), value)
    if root == "ARRAY":
        element = kind.getElementType()
        getter_of = jvm.org.apache.flink.table.data.ArrayData.createElementGetter(element)
        return (
            f"[{', '.join(_value(jvm, element, getter_of.getElementOrNull(value, at)) for at in range(value.size()))}]"
        )
    if root == "RAW":
        return "(only the job's own serializer reads it)"
    # Rows of the heap backend hold Java values; their own text is good enough.
    return str(value)
