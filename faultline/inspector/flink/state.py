"""State of an operator: its types, and what Rows.java reads of it: counts, open windows, a preview.

State of the changelog backend, and types whose classes are not here, are named with their size.
"""

from __future__ import annotations

import json
from typing import Any

from py4j.protocol import Py4JError

from faultline.inspector.flink.hidden import field
from faultline.inspector.flink.jvm import each, java_cause, system_loader
from faultline.inspector.flink.metadata import CHANGELOG, KEYED_STATE, Entry
from faultline.inspector.flink.rows import OWN_FIELDS, reader
from faultline.inspector.model import StateStore, Window
from faultline.inspector.words import count, size_words, time_words

ROWS = "RowDataSerializer"
"""The serializer of SQL rows: it knows the types of their fields."""
NOT_READ = "not read: "
"""The beginning of a note on state that nothing here reads."""
UNASKED_BYTES = 256 * 2**20
"""State of an operator that a report reads without `--state`, at most: it reads every entry, which can take hours."""
WITH_HEADER = ("KeyGroupsStateHandle", "KeyGroupsSavepointStateHandle")


def is_of_changelog(entry: Entry) -> bool:
    """Return whether the changelog state backend wrote the operator's keyed state."""
    return any(handle.getClass().getSimpleName().startswith(CHANGELOG) for handle in entry.handles("ManagedKeyedState"))


def _has_header(handles: list[Any]) -> bool:
    """Return whether the keyed state begins with what KeyedBackendSerializationProxy reads: heap, canonical format."""
    return all(handle.getClass().getSimpleName() in WITH_HEADER for handle in handles)


def key_snapshot(jvm: Any, entry: Entry) -> Any | None:
    """Read what the operator's keyed state says of its keys' type; None: no keyed state, or one of RocksDB alone."""
    handles = entry.handles("ManagedKeyedState")
    if not handles or not _has_header(handles):
        return None
    return _snapshot(jvm, handles[0]).getKeySerializerSnapshot()


def keyed_types(jvm: Any, entry: Entry) -> list[str]:
    """List the keyed states with the types of their values, `window-aggs (BIGINT, BIGINT)`; only SQL rows have such."""
    handles = entry.handles("ManagedKeyedState")
    if not handles or not _has_header(handles):
        return []
    found = []
    for meta in each(_snapshot(jvm, handles[0]).getStateMetaInfoSnapshots()):
        value = meta.getSerializerSnapshotsImmutable().get("VALUE_SERIALIZER")
        # That of another class may need the job's own classes.
        if value is not None and value.getClass().getSimpleName() == f"{ROWS}Snapshot":
            types = [kind.asSummaryString() for kind in list(field(value.restoreSerializer(), "types"))]
            found.append(f"{meta.getName()} ({', '.join(types)})")
    return found


def keyed_state(jvm: Any, entry: Entry, rows: int, everything: bool = False) -> list[StateStore]:
    """Read every keyed state of the operator, all subtasks together; `rows` limits the preview of each.

    `everything`: its list and broadcast states too, and a preview of the timers.
    """
    if not everything:
        if not entry.handles(*KEYED_STATE):
            return []
        if entry.state_bytes > UNASKED_BYTES:
            size = size_words(entry.state_bytes)
            return [StateStore("state", "unknown", note=f"{NOT_READ}{size} in all; --state reads them")]
    try:
        return [_store(state, everything) for state in json.loads(reader(jvm, entry).summary(rows, everything))]
    except Py4JError as error:
        return [StateStore("state", "unknown", note=f"{NOT_READ}{java_cause(error)}")]


def _store(state: dict[str, Any], everything: bool) -> StateStore:
    """Turn what Rows.java counted of a state into a StateStore."""
    store = StateStore(state["name"], state["kind"], keys=state["entries"])
    is_timers = store.kind == "timers"
    if store.kind == "unknown":
        store.keys = None
    if state["unknown"]:
        size = "" if state["bytes"] < 0 else f"; {size_words(state['bytes'])}"
        store.note = f"{NOT_READ}{state['unknown']}{size}"
    if not is_timers:
        store.windows = [Window(*window) for window in state["windows"]]
    if everything or not is_timers:
        store.rows = [preview(row) for row in state["rows"]]
    return store


def preview(row: dict[str, Any]) -> dict[str, str]:
    """The words of one row of Rows.java: key, window_end (ms), entry, value; those that it has."""
    words = {name: in_words(row[name]) for name in ("key", "window_end", "entry") if name in row}
    value = row["value"]
    if isinstance(value, dict) and tuple(value) == OWN_FIELDS:
        first, *times = value.items()
        shown = [f"{first[0]} {first[1]}", *(f"{name} {time_words(time)}" for name, time in times)]
        return words | {"value": ", ".join(shown)}
    return words | {"value": in_words(value)}


def in_words(value: Any) -> str:
    """A value of a row: text as it is, an array in brackets, what is unknown by its size, the rest as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"({', '.join(map(in_words, value))})"
    if isinstance(value, dict) and "unknown" in value:
        size = f", {size_words(value['bytes'])}" if "bytes" in value else ""
        return f"unknown ({value['unknown']}{size})"
    if isinstance(value, dict) and value.keys() == {"bytes", "crc32"}:
        return f"{count(value['bytes'], 'byte')}, CRC {value['crc32']}"
    return json.dumps(value)


def _snapshot(jvm: Any, handle: Any) -> Any:
    """Read the header of a keyed state file: the key serializer and the states that follow."""
    flink = jvm.org.apache.flink
    proxy = flink.runtime.state.KeyedBackendSerializationProxy(system_loader(jvm))
    stream = handle.openInputStream()
    proxy.read(flink.core.memory.DataInputViewStreamWrapper(stream))
    stream.close()
    return proxy
