"""A checkpoint set against a planned job, by Flink's own rules: ids first, then maximum parallelism, then types.

Flink refuses a restore when state has no operator in the job, when a configured maximum parallelism differs from that
of the state, and when an operator cannot read its state (Checkpoints.loadAndValidateCheckpoint,
StateAssignmentOperation, and the state backends). The first two are compared here; the last is tried (trial.py).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from faultline.inspector.against import Comparison
from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.folder import METADATA
from faultline.inspector.flink.hidden import field
from faultline.inspector.flink.jvm import each, java_cause, program_jvm
from faultline.inspector.flink.metadata import (
    Entry,
    StateFiles,
    in_flight_bytes,
    load_metadata,
    master_hooks,
    missing_files,
    operators,
    state_files,
)
from faultline.inspector.flink.offsets import READER_STATE, enumerator_state, list_state
from faultline.inspector.flink.planned import WRITER, PlannedOperator, planned_operators
from faultline.inspector.flink.program import run_program
from faultline.inspector.flink.rescaling import refusal as in_flight_refusal
from faultline.inspector.flink.sink import COMMITTER_STATE, WRITER_STATE
from faultline.inspector.flink.state import key_snapshot, keyed_types
from faultline.inspector.flink.trial import trial_cluster
from faultline.inspector.words import count, size_words
from faultline.storage.location import Location
from faultline.storage.reading import walk

Pair = tuple[Entry, PlannedOperator]


def compare(checkpoint: Location, name: str, program: Path, arguments: Sequence[str]) -> Comparison:
    """Plan the job of a program and set the checkpoint's state against it. Call it once in a process.

    Raises InspectorError when the checkpoint or the program cannot be read.
    """
    comparison = Comparison(str(checkpoint), name)
    with pinned(checkpoint) as held, program_jvm([checkpoint]) as (jvm, scratch):
        metadata = load_metadata(jvm, held)
        entries = operators(metadata)
        files = {entry.id: _files(entry, comparison) for entry in entries}
        gone = [problem for entry in entries for problem in missing_files(entry, files[entry.id])]
        comparison.refused += gone
        comparison.not_compared += [f"the state of the master hook {hook}" for hook in master_hooks(metadata)]

        def planned(graph: Any, configuration: Any, loader: Any) -> None:
            job = planned_operators(jvm, graph, loader)
            pairs = set_against(entries, job, comparison)
            if gone:
                return
            for entry, _ in list(pairs):
                if elsewhere := files[entry.id].elsewhere:
                    comparison.unknown.append(f"{entry.label}: {next(iter(elsewhere))} cannot be reached from here")
                    pairs[:] = [pair for pair in pairs if pair[0] is not entry]
            to_open = [pair for pair in pairs if pair[1].stays_inside]
            reasons = {entry.id: _read_elsewhere(jvm, entry, operator) for entry, operator in pairs}
            if to_open:
                print("Flink opens the state of each operator in this process; some seconds", file=sys.stderr)
                slots = max(operator.parallelism for _, operator in to_open)
                with trial_cluster(jvm, scratch, slots, graph, configuration) as trial:
                    for entry, operator in to_open:
                        try:
                            reasons[entry.id] = trial.refusal(operator, entry, held, loader)
                        except InspectorError as error:
                            comparison.unknown.append(str(error))
                            pairs.remove((entry, operator))
            for entry, operator in pairs:
                if reasons[entry.id]:
                    types: list[str] = []
                    # The class of a key or a value may be the job's own.
                    with suppress(Py4JError):
                        types = keyed_types(jvm, entry)
                    kept = f"; the checkpoint has {', '.join(types)}" if types else ""
                    comparison.refused.append(f"{entry.label}: {reasons[entry.id]}{kept}")
                elif operator.is_python:
                    comparison.not_compared.append(
                        f"{entry.label}: the types of what its Python function keeps, which are known when it runs"
                    )
                elif not (operator.stays_inside or operator.is_source or operator.is_sink):
                    comparison.not_compared.append(
                        f"{entry.label}: the types of its state: {operator.code} knows them, and does not run here"
                    )
            comparison.mapped = [entry.label for entry, _ in pairs if not reasons[entry.id]]

        run_program(jvm, program, arguments, planned)
    if gone and not (checkpoint / METADATA).exists():
        # Files that it shares with others, which cannot be kept.
        raise _went_away(checkpoint)
    return comparison


def _files(entry: Entry, comparison: Comparison) -> StateFiles:
    """Find the files of an operator's state; state of a kind that is not known here has none, and is named."""
    try:
        return state_files(entry)
    except Py4JError as error:
        comparison.unknown.append(f"{entry.label}: its state is of a kind that is not known here ({java_cause(error)})")
        return StateFiles()


@contextmanager
def pinned(checkpoint: Location) -> Iterator[Location]:
    """Keep a checkpoint's own files while it is compared: a running job deletes it after some seconds.

    Its metadata names them relative to itself. Raises InspectorError when it is gone already.
    """
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / checkpoint.name
        kept.mkdir()
        try:
            for name in walk(checkpoint, skipped=()).files:
                target = kept / name
                target.parent.mkdir(parents=True, exist_ok=True)
                _take(checkpoint / name, target)
        except FileNotFoundError:
            raise _went_away(checkpoint) from None
        yield kept


def _take(file: Location, target: Path) -> None:
    """Link a file, or copy it from another file system or from a store."""
    if isinstance(file, Path):
        with suppress(OSError):
            os.link(file, target)
            return
    with file.open("rb") as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy)


def _went_away(checkpoint: Location) -> InspectorError:
    return InspectorError(
        f"{checkpoint} went away while it was compared: the running job deleted it; name a newer one or a savepoint"
    )


def has_state(entry: Entry) -> bool:
    """Return whether Flink takes an operator's entry for state: it then must have an operator in the job."""
    if entry.state.getCoordinatorState() is not None:
        return True
    return any(subtask.hasState() for subtask in each(entry.state.getStates()))


def set_against(entries: Sequence[Entry], job: Sequence[PlannedOperator], comparison: Comparison) -> list[Pair]:
    """Compare ids and maximum parallelism; return the pairs of state and operator, in the job's order."""
    by_id = {each_id: operator for operator in reversed(job) for each_id in operator.ids}
    pairs: list[Pair] = []
    limits: dict[tuple[int, int], list[Entry]] = {}
    for entry in entries:
        operator = by_id.get(entry.id)
        if operator is not None:
            # Flink takes over the state's maximum, unless the job configures another one.
            if operator.max_parallelism not in (-1, entry.max_parallelism):
                limits.setdefault((entry.max_parallelism, operator.max_parallelism), []).append(entry)
            elif operator.parallelism > entry.max_parallelism and has_state(entry):
                comparison.refused.append(
                    f"{entry.label}: the job runs it in {count(operator.parallelism, 'task')}, and the maximum"
                    f" parallelism of its state is {entry.max_parallelism}"
                )
            reason = in_flight_refusal([entry], operator.parallelism)
            if reason and operator.keeps_order:
                comparison.refused.append(f"{entry.label}: {reason}")
            elif size := in_flight_bytes(entry):
                comparison.not_compared.append(
                    f"{entry.label}: {size_words(size)} of records that barriers overtook, which need the same exchange"
                )
            if entry.finished:
                comparison.not_compared.append(
                    f"{entry.label}: its tasks had ended; Flink refuses a job that chains it with others than before"
                )
            if has_state(entry):
                pairs.append((entry, operator))
        elif has_state(entry):
            comparison.dropped.append(entry.label)
            comparison.refused.append(
                f"{entry.label}: its state ({size_words(entry.state_bytes)}) has no operator in the job;"
                f" Flink looks for one with {_identity(entry)}"
            )
    pairs.sort(key=lambda pair: job.index(pair[1]))
    for (before, now), found in limits.items():
        named = [entry.label for entry, _ in pairs if entry in found]
        without = len(found) - len(named)
        named += [f"{count(without, 'operator')} without state"] if without else []
        comparison.refused.append(
            f"the maximum parallelism is {before} in the checkpoint and set to {now} in the job, and cannot change:"
            f" {', '.join(named)}"
        )
    taken = {entry.id for entry, _ in pairs}
    comparison.empty = [
        operator.label for operator in job if operator.keeps_state and not taken.intersection(operator.ids)
    ]
    return pairs


def _identity(entry: Entry) -> str:
    return f"the uid {entry.uid}" if entry.uid else f"the id {entry.id}, which Flink made from the plan (no uid)"


def _read_elsewhere(jvm: Any, entry: Entry, operator: PlannedOperator) -> str | None:
    """Say why an operator that is not opened cannot take its state; None when it can, or when it is opened."""
    names = entry.lists.keys()
    try:
        if READER_STATE in names or operator.is_source:
            _read_splits(jvm, entry, operator)
        elif {WRITER_STATE, COMMITTER_STATE} & names or operator.is_sink:
            _read_sink(jvm, entry, operator)
        elif operator.is_python:
            _compare_key(jvm, entry, operator)
    except InspectorError as error:
        return str(error)
    return None


def _read_splits(jvm: Any, entry: Entry, operator: PlannedOperator) -> None:
    if not operator.is_source:
        raise InspectorError(f"its state is that of a source, and the job's operator is a {operator.short_kind}")
    source = field(operator.node.getOperatorFactory(), "source")
    read = jvm.org.apache.flink.core.io.SimpleVersionedSerialization.readVersionAndDeSerialize
    try:
        for element in list_state(jvm, entry, READER_STATE):
            read(source.getSplitSerializer(), element)
        if state := enumerator_state(jvm, entry):
            source.getEnumeratorCheckpointSerializer().deserialize(*state)
    except Py4JJavaError as error:
        raise InspectorError(f"the job's source cannot read its positions ({java_cause(error)})") from None


def _read_sink(jvm: Any, entry: Entry, operator: PlannedOperator) -> None:
    """Read what a writer kept, by the job's sink. A sink without such a state passes over it."""
    if not operator.is_sink:
        if not operator.kind.startswith("org.apache.flink."):
            # Paimon's committer keeps the same name.
            return
        raise InspectorError(f"its state is that of a sink, and the job's operator is a {operator.short_kind}")
    # The names of the states do not tell a writer from a committer: a restored writer has the committer's, too.
    if operator.kind != WRITER or WRITER_STATE not in entry.lists:
        return
    sink = field(operator.node.getOperatorFactory(), "sink")
    keeps_state = jvm.java.lang.Class.forName("org.apache.flink.api.connector.sink2.SupportsWriterState")
    if not keeps_state.isInstance(sink):
        return
    read = jvm.org.apache.flink.core.io.SimpleVersionedSerialization.readVersionAndDeSerialize
    try:
        for element in list_state(jvm, entry, WRITER_STATE):
            read(sink.getWriterStateSerializer(), element)
    except Py4JJavaError as error:
        raise InspectorError(f"the job's sink cannot read what its writers kept ({java_cause(error)})") from None


def _compare_key(jvm: Any, entry: Entry, operator: PlannedOperator) -> None:
    snapshot = key_snapshot(jvm, entry)
    serializer = operator.node.getStateKeySerializer()
    if snapshot is None or serializer is None:
        return
    if serializer.snapshotConfiguration().resolveSchemaCompatibility(snapshot).isIncompatible():
        raise InspectorError("the job's keys are of another type than those of its state")
