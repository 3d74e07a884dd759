"""Rows of state: Flink's own classes read a checkpoint's files, in Java (Rows.java), and print a line of JSON for each.

A row has operator, state, kind, value, and where it has them key, window_start and window_end (ms), entry (the key in a
map).
Positions of Kafka sources and prepared transactions of Kafka sinks are rows too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from faultline.inspector.errors import InspectorError, UnknownConnector
from faultline.inspector.flink.jvm import java_cause, system_loader
from faultline.inspector.flink.metadata import Entry, check_files, load_metadata, operators
from faultline.inspector.flink.offsets import READER_STATE, source_offsets
from faultline.inspector.flink.sink import COMMITTER_STATE, prepared
from faultline.storage.location import Location

SOURCES = Path(__file__).parent / "java"
OWN_WINDOWS = ("windows", "windows per visit_id")
"""uid and name of the operator in which this project's job keeps its windows (flink_job/names.py)."""
OWN_FIELDS = ("visits", "first event time", "last event time")
"""Values that the job aggregates in a window, in the job's order: the state itself has types but no names."""


@cache
def _reader_class(jvm: Any) -> Any:
    """Compile Rows.java; Flink's jars contain the compiler, Janino, so a Java runtime is enough."""
    folders = jvm.java.lang.reflect.Array.newInstance(jvm.java.lang.Class.forName("java.io.File"), 1)
    folders[0] = jvm.java.io.File(str(SOURCES))
    compiler = jvm.org.codehaus.janino.JavaSourceClassLoader(system_loader(jvm), folders, "UTF-8")
    compiler.setTargetVersion(8)
    return compiler.loadClass("faultline.state.Rows")


def reader(jvm: Any, entry: Entry) -> Any:
    """Return a reader of an operator's state (Rows.java). Raises Py4JError when it does not compile."""
    new_array = jvm.java.lang.reflect.Array.newInstance
    names = None
    if (entry.uid, entry.name) == OWN_WINDOWS:
        names = new_array(jvm.java.lang.Class.forName("java.lang.String"), len(OWN_FIELDS))
        for at, name in enumerate(OWN_FIELDS):
            names[at] = name
    arguments = new_array(jvm.java.lang.Class.forName("java.lang.Object"), 4)
    for at, argument in enumerate((entry.state, entry.label, names, system_loader(jvm))):
        arguments[at] = argument
    (constructor,) = _reader_class(jvm).getConstructors()
    return constructor.newInstance(arguments)


def rows(jvm: Any, folder: Location, operator: str | None, limit: int | None) -> Iterator[str]:
    """Yield lines of JSON, some at a time: at most `limit` of each state, of one operator or of all.

    `operator`: its uid, its name or its hash.

    Raises InspectorError when the checkpoint cannot be read, or has no such operator.
    """
    entries = [entry for entry in operators(load_metadata(jvm, folder)) if not entry.finished]
    chosen = [entry for entry in entries if operator in (None, entry.uid, entry.name, entry.id)]
    if operator is not None and not chosen:
        there = ", ".join(entry.label for entry in entries if entry.state_bytes)
        raise InspectorError(f"{folder} has no operator {operator}; those with state: {there or 'none'}")
    for entry in chosen:
        check_files([entry])
        try:
            known = _known_lists(jvm, entry)
            for found in known.values():
                yield "".join(f"{json.dumps(row)}\n" for row in found[:limit])
            java = reader(jvm, entry)
            without = jvm.java.util.HashSet()
            for name in known:
                without.add(name)
            java.start(-1 if limit is None else limit, without)
            while lines := java.next():
                yield lines
        except Py4JError as error:
            raise InspectorError(f"{folder}: the state of {entry.label} cannot be read: {java_cause(error)}") from None


def _known_lists(jvm: Any, entry: Entry) -> dict[str, list[dict[str, Any]]]:
    """The rows of list states that are Kafka's: positions and transactions. The lists of other connectors are bytes."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, read in ((READER_STATE, _positions), (COMMITTER_STATE, _transactions)):
        if name in entry.lists:
            head = {"operator": entry.label, "state": name, "kind": "split list"}
            with suppress(UnknownConnector):
                found[name] = [head | {"key": key, "value": value} for key, value in read(jvm, entry)]
    return found


def _positions(jvm: Any, entry: Entry) -> list[tuple[str, Any]]:
    return [(f"{topic}-{partition}", offset) for (topic, partition), offset in source_offsets(jvm, entry).items()]


def _transactions(jvm: Any, entry: Entry) -> list[tuple[str, Any]]:
    fields = ("producer_id", "epoch", "checkpoint")
    return [(each.transactional_id, {name: getattr(each, name) for name in fields}) for each in prepared(jvm, entry)]
