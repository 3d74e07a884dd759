"""`_metadata` of a checkpoint or savepoint, loaded by Flink's `Checkpoints.loadCheckpointMetadata`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from faultline.inspector.errors import InspectorError, UnknownFormat
from faultline.inspector.flink.folder import METADATA
from faultline.inspector.flink.jvm import each, java_cause
from faultline.settings import Settings
from faultline.storage.place import Place
from faultline.storage.words import place_of


@dataclass(frozen=True)
class Entry:
    """One operator's entry: `state` is Flink's own OperatorState; name and uid are None before Flink 2.0."""

    id: str
    name: str | None
    uid: str | None
    parallelism: int
    max_parallelism: int
    state_bytes: int
    state: Any

    @property
    def label(self) -> str:
        """The operator's name in reports: uid, name, or the hash when there is neither."""
        return self.uid or self.name or self.id


def load_metadata(jvm: Any, folder: Place) -> Any:
    """Flink's CheckpointMetadata of the folder.

    Raises InspectorError when `_metadata` is missing, unreadable, cut short or of an unknown version.
    """
    file = folder / METADATA
    if not file.is_file():
        raise InspectorError(f"{file} is missing: without it the folder is no checkpoint and cannot be restored")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InspectorError(f"{file} cannot be read: {error.strerror}") from None
    stream = jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(content))
    try:
        checkpoints = jvm.org.apache.flink.runtime.checkpoint.Checkpoints
        return checkpoints.loadCheckpointMetadata(stream, _class_loader(jvm), folder.resolve().as_uri())
    except Py4JJavaError as error:
        cause = java_cause(error)
        if "Unrecognized checkpoint version number" in cause:
            raise UnknownFormat(
                f"{file} is of a version that the installed Flink does not know ({cause}): unknown, another release"
                " of Flink wrote it"
            ) from None
        hint = "it is cut short or damaged" if "EOF" in cause else "it is damaged, or of a version not known here"
        raise InspectorError(f"{file} is not a whole checkpoint metadata file: {hint} ({cause})") from None


def _class_loader(jvm: Any) -> Any:
    return jvm.java.lang.ClassLoader.getSystemClassLoader()


def operators(jvm: Any, metadata: Any) -> list[Entry]:
    """List the operators that have an entry, in the order of the file."""
    found = []
    for state in each(jvm, metadata.getOperatorStates()):
        name, uid = state.getOperatorName(), state.getOperatorUid()
        found.append(
            Entry(
                id=state.getOperatorID().toHexString(),
                name=name.orElse(None) or None,
                uid=uid.orElse(None) or None,
                parallelism=state.getParallelism(),
                max_parallelism=state.getMaxParallelism(),
                state_bytes=state.getStateSize(),
                state=state,
            )
        )
    return found


def _stream_handles(jvm: Any, handle: Any) -> Iterator[Any]:
    """Find the stream handles inside a state handle, whatever Flink wrapped them in."""
    kind = handle.getClass().getSimpleName()
    if kind.startswith("Incremental"):
        yield from _stream_handles(jvm, handle.getMetaDataStateHandle())
        for part in [*each(jvm, handle.getPrivateState()), *each(jvm, handle.getSharedState())]:
            yield from _stream_handles(jvm, part.getHandle())
    elif kind in ("KeyGroupsStateHandle", "KeyGroupsSavepointStateHandle", "OperatorStreamStateHandle"):
        yield from _stream_handles(jvm, handle.getDelegateStateHandle())
    elif kind in ("InputChannelStateHandle", "ResultSubpartitionStateHandle"):
        yield from _stream_handles(jvm, handle.getDelegate())
    else:
        yield handle


def _place(path: Any) -> Place:
    """The place of a file that a handle names, by Flink's Path."""
    uri = path.toUri()
    if uri.getScheme() in (None, "file"):
        return Path(path.getPath())
    return place_of(f"{uri.getScheme()}://{uri.getAuthority()}{path.getPath()}", Settings())


def state_files(jvm: Any, entry: Entry) -> dict[Place, int]:
    """Files outside `_metadata` that the operator's state is in, with their bytes as Flink recorded them.

    A path that several handles share (channel state, file merging) is one entry.
    """
    files: dict[Place, int] = {}
    for subtask in each(jvm, entry.state.getStates()):
        collections = (
            subtask.getManagedOperatorState(),
            subtask.getRawOperatorState(),
            subtask.getManagedKeyedState(),
            subtask.getRawKeyedState(),
            subtask.getInputChannelState(),
            subtask.getResultSubpartitionState(),
        )
        for handle in (handle for collection in collections for handle in each(jvm, collection)):
            for stream in _stream_handles(jvm, handle):
                kind = stream.getClass().getSimpleName()
                if kind in ("FileStateHandle", "RelativeFileStateHandle"):
                    files[_place(stream.getFilePath())] = stream.getStateSize()
                elif kind == "SegmentFileStateHandle":
                    path = _place(stream.getFilePath())
                    files[path] = max(files.get(path, 0), stream.getStartPos() + stream.getStateSize())
    return files


def in_flight_bytes(jvm: Any, entry: Entry) -> int:
    """Bytes of records that were on their way to or from the operator when an unaligned barrier overtook them."""
    handles = (
        handle
        for subtask in each(jvm, entry.state.getStates())
        for channels in (subtask.getInputChannelState(), subtask.getResultSubpartitionState())
        for handle in each(jvm, channels)
    )
    return sum(int(handle.getStateSize()) for handle in handles)


def missing_files(jvm: Any, entry: Entry) -> list[str]:
    """Say what is wrong with each state file of one operator that is gone, or shorter than Flink recorded."""
    problems = []
    for path, size in state_files(jvm, entry).items():
        try:
            found = path.stat().st_size
        except FileNotFoundError:
            problems.append(f"state file {path} of operator {entry.label} is missing")
        except PermissionError:
            problems.append(f"state file {path} of operator {entry.label} cannot be read: no permission")
        else:
            if found < size:
                problems.append(f"state file {path} of operator {entry.label} is cut short: {found} of {size} bytes")
    return problems


def check_files(jvm: Any, entries: list[Entry]) -> None:
    """Raise an InspectorError that names every state file that is gone or cut short."""
    problems = [problem for entry in entries for problem in missing_files(jvm, entry)]
    if problems:
        raise InspectorError("; ".join(problems) + ": a restore would fail; choose another checkpoint")
