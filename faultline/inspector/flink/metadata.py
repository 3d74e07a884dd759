"""`_metadata` of a checkpoint or savepoint, loaded by Flink's `Checkpoints.loadCheckpointMetadata`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError

from faultline.inspector.errors import InspectorError, UnknownFormat
from faultline.inspector.flink.folder import METADATA
from faultline.inspector.flink.jvm import each, java_cause, system_loader
from faultline.inspector.words import size_words
from faultline.settings import Settings, SettingsError
from faultline.storage.location import Location
from faultline.storage.words import location_of

CHANGELOG = "ChangelogStateBackendHandle"
"""Handles of the changelog state backend: state as it was written at times, and the changes since."""
FROM_ELSEWHERE = ("Unrecognized checkpoint version number", "ClassNotFoundException", "InvalidClassException")
"""Words of Flink on another release's `_metadata`; a class is that of its properties (MetadataV4Serializer)."""
HINTS = {
    "EOF": "it is cut short or damaged",
    ": -1": "it is cut short or damaged",
    "no longer supported": "Flink no longer reads what this release wrote",
    "": "it is damaged, or of a version not known here",
}
"""Words of Flink on a `_metadata`, and their meaning; the last of them fits all."""
OPERATOR_STATE = ("ManagedOperatorState", "RawOperatorState")
KEYED_STATE = ("ManagedKeyedState", "RawKeyedState")
CHANNEL_STATE = ("InputChannelState", "ResultSubpartitionState")
"""The parts of a subtask's state (OperatorSubtaskState); a raw one is what the operator wrote itself."""
KINDS = {"SPLIT_DISTRIBUTE": "list", "UNION": "union list", "BROADCAST": "broadcast"}


@dataclass(frozen=True)
class Entry:
    """One operator's entry: `state` is Flink's own OperatorState; name and uid are None before Flink 2.0.

    `finished`: all its tasks had ended before the checkpoint (FullyFinishedOperatorState).
    """

    id: str
    name: str | None
    uid: str | None
    parallelism: int
    max_parallelism: int
    state_bytes: int
    state: Any
    finished: bool = False

    @property
    def label(self) -> str:
        """The operator's name in reports: uid, name, or the hash when there is neither."""
        return self.uid or self.name or self.id

    @cached_property
    def _handles(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {part: [] for part in (*OPERATOR_STATE, *KEYED_STATE, *CHANNEL_STATE)}
        for subtask in each(self.state.getStates()):
            for part in found:
                found[part] += each(getattr(subtask, f"get{part}")())
        return found

    def handles(self, *parts: str) -> list[Any]:
        """The state handles of all subtasks in these parts of their state."""
        return [handle for part in parts for handle in self._handles[part]]

    @cached_property
    def lists(self) -> dict[str, tuple[str, int]]:
        """Its list states: the kind, by which a restore gives it to tasks (OperatorStateHandle.Mode), and the elements.

        They identify an operator: a source has READER_STATE. Elements of all subtasks count; a broadcast state is one.
        """
        found: dict[str, tuple[str, int]] = {}
        for handle in self.handles(*OPERATOR_STATE):
            for name, places in handle.getStateNameToPartitionOffsets().items():
                kind = KINDS[places.getDistributionMode().toString()]
                found[name] = kind, found.get(name, ("", 0))[1] + len(places.getOffsets())
        return found

    @property
    def coordinator_bytes(self) -> int:
        """Bytes for its coordinator, which a restore hands to it (CheckpointCoordinator.restoreStateToCoordinators)."""
        handle = self.state.getCoordinatorState()
        return 0 if handle is None else int(handle.getStateSize())


def load_metadata(jvm: Any, folder: Location) -> Any:
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
    try:
        stream = jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(content))
        checkpoints = jvm.org.apache.flink.runtime.checkpoint.Checkpoints
        # As text: Flink's Path takes the %20 of a URI for a name.
        return checkpoints.loadCheckpointMetadata(stream, system_loader(jvm), str(folder.resolve()))
    except Py4JError as error:
        cause = java_cause(error)
        if isinstance(error, Py4JNetworkError) or "OutOfMemoryError" in cause:
            raise UnknownFormat(
                f"{file} has {size_words(len(content))}, more than this program has memory for: its content is unknown"
            ) from None
        if any(word in cause for word in FROM_ELSEWHERE):
            raise UnknownFormat(
                f"{file} is of a version that the installed Flink does not know ({cause}): unknown, another release"
                " of Flink wrote it, or it is damaged"
            ) from None
        hint = next((words for word, words in HINTS.items() if word in cause), HINTS[""])
        raise InspectorError(f"{file} is not a whole checkpoint metadata file: {hint} ({cause})") from None


def kind_of(metadata: Any, folder: Location) -> tuple[bool, bool]:
    """Return whether it is a savepoint, and one in the format of its state backend.

    Raises UnknownFormat when its properties, one serialized object, lack a part: what a restore makes of that is not
    known.
    """
    properties = metadata.getCheckpointProperties()
    if properties is None:
        return False, False
    try:
        savepoint = bool(properties.isSavepoint())
        return savepoint, savepoint and str(properties.getCheckpointType().getFormatType()) == "NATIVE"
    except Py4JError as error:
        cause = java_cause(error)
        raise UnknownFormat(f"{folder / METADATA}: unknown, its properties lack a part ({cause})") from None


def master_hooks(metadata: Any) -> list[str]:
    """List the states of master hooks by the names of the hooks.

    A restore gives each to the job's hook of that name, and fails where the job has none (MasterHooks.
    restoreMasterHooks).
    """
    return [f"{state.name()} ({size_words(len(state.bytes()))})" for state in each(metadata.getMasterStates())]


def operators(metadata: Any) -> list[Entry]:
    """List the operators that have an entry, in the order of the file."""
    found = []
    for state in each(metadata.getOperatorStates()):
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
                finished=state.isFullyFinished(),
            )
        )
    return found


def _stream_handles(handle: Any) -> Iterator[tuple[Any, bool]]:
    """Find the streams inside a state handle, whatever Flink wrapped them in, and whether each is a file of RocksDB.

    RocksDB's files are copied up to their end (RocksDBStateDownloader), and RocksDB alone decides on their length.

    Operator state of merged files is in a FileMergingOperatorStreamStateHandle, channel state of merged files in a
    MergedInputChannelStateHandle or MergedResultSubpartitionStateHandle (MetadataV2V3SerializerBase,
    ChannelStateHandleSerializerV2).
    """
    kind = "" if handle is None else handle.getClass().getSimpleName()
    if kind.startswith("Incremental"):
        yield from _stream_handles(handle.getMetaDataStateHandle())
        for part in [*each(handle.getPrivateState()), *each(handle.getSharedState())]:
            yield from ((stream, True) for stream, _ in _stream_handles(part.getHandle()))
    elif kind.startswith(CHANGELOG):
        for part in [
            *each(handle.getMaterializedStateHandles()),
            *each(handle.getNonMaterializedStateHandles()),
        ]:
            yield from _stream_handles(part)
    elif kind == "ChangelogStateHandleStreamImpl":
        for part in each(handle.getHandlesAndOffsets()):
            yield from _stream_handles(part.getField(0))
    elif kind.startswith("KeyGroups") or kind.endswith("OperatorStreamStateHandle"):
        yield from _stream_handles(handle.getDelegateStateHandle())
    elif kind.endswith(("InputChannelStateHandle", "ResultSubpartitionStateHandle")):
        yield from _stream_handles(handle.getDelegate())
    else:
        yield handle, False


@dataclass
class StateFiles:
    """Files outside `_metadata` that state is in, with their bytes as Flink recorded them.

    `here`: those that can be looked at. `elsewhere`: those on a file system that cannot be reached from here, by the
    URI that Flink has. A file that several handles share (channel state, file merging) is one entry. `copied`: those
    of `here` that are RocksDB's own.
    """

    here: dict[Location, int] = field(default_factory=dict)
    copied: set[Location] = field(default_factory=set)
    elsewhere: dict[str, int] = field(default_factory=dict)


def state_files(entry: Entry, parts: tuple[str, ...] = (*OPERATOR_STATE, *KEYED_STATE, *CHANNEL_STATE)) -> StateFiles:
    """Find the files of an operator's state, or of some parts of it.

    Raises Py4JError for a kind of handle that is not known here, InspectorError for one around nothing, which Flink
    reads from a `_metadata` and cannot open.
    """
    found = StateFiles()
    for handle in entry.handles(*parts):
        for stream, copied in _stream_handles(handle):
            if stream is None:
                raise InspectorError(f"operator {entry.label}: a handle of its state has no stream to open")
            kind = stream.getClass().getSimpleName()
            if kind in ("FileStateHandle", "RelativeFileStateHandle"):
                _add(found, stream.getFilePath(), stream.getStateSize(), copied=copied)
            elif kind == "SegmentFileStateHandle":
                _add(found, stream.getFilePath(), stream.getStartPos() + stream.getStateSize())
    return found


def _add(found: StateFiles, path: Any, size: int, *, copied: bool = False) -> None:
    """Add the file that a handle names by Flink's Path; one that has no address here is elsewhere."""
    uri = path.toUri()
    file: Location = Path(path.getPath())
    if uri.getScheme() not in (None, "file"):
        name = f"{uri.getScheme()}://{uri.getAuthority() or ''}{path.getPath()}"
        try:
            file = location_of(name, Settings())
        except (SettingsError, OSError, ValueError):
            found.elsewhere[name] = max(found.elsewhere.get(name, 0), size)
            return
    found.here[file] = max(found.here.get(file, 0), size)
    if copied:
        found.copied.add(file)


def in_flight_bytes(entry: Entry) -> int:
    """Bytes of records that were on their way to or from the operator when an unaligned barrier overtook them."""
    return sum(int(handle.getStateSize()) for handle in entry.handles(*CHANNEL_STATE))


def missing_files(entry: Entry, files: StateFiles | None = None) -> list[str]:
    """Say what is wrong with each state file of one operator that is gone, or shorter than Flink recorded.

    A file of a store that gives no answer, or that this user may not look at, goes to `elsewhere`.
    """
    files = state_files(entry) if files is None else files
    problems = []
    for path, size in list(files.here.items()):
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError, ValueError):
            # A ValueError is a name that no file can have.
            problems.append(f"state file {path} of operator {entry.label} is missing")
        except OSError:
            files.elsewhere[str(path)] = files.here.pop(path)
        else:
            what = f"state file {path} of operator {entry.label}"
            if S_ISDIR(found.st_mode):
                problems.append(f"{what} is a folder")
            elif found.st_size < size and path not in files.copied:
                problems.append(f"{what} is cut short: {found.st_size} of {size} bytes")
    return problems


def opens_all_the_same(jvm: Any, entry: Entry, files: StateFiles) -> bool:
    """Return whether only files of list states are shorter than recorded, and Flink opens them.

    Flink compares no sizes: DefaultOperatorStateBackendBuilder reads each list where the metadata says that it begins.
    """
    lists, *others = (*OPERATOR_STATE, *KEYED_STATE, *CHANNEL_STATE)
    # Parts of state may share a file.
    of_lists = state_files(entry, (lists,)).here.keys() - state_files(entry, tuple(others)).here.keys()
    for path, size in files.here.items():
        whole = path.is_file() and (path in files.copied or path.stat().st_size >= size)
        if not whole and not (path.is_file() and path in of_lists):
            return False
    handles = jvm.java.util.ArrayList()
    for handle in entry.handles(lists):
        handles.add(handle)
    flink = jvm.org.apache.flink
    configuration, closeables = flink.api.common.ExecutionConfig(), flink.core.fs.CloseableRegistry()
    new_builder = flink.runtime.state.DefaultOperatorStateBackendBuilder
    try:
        new_builder(system_loader(jvm), configuration, False, handles, closeables).build().dispose()
    except Py4JError:
        return False
    return True


def check_files(entries: list[Entry]) -> None:
    """Raise an InspectorError that names every state file that is gone or cut short."""
    problems = [problem for entry in entries for problem in missing_files(entry)]
    if problems:
        raise InspectorError("; ".join(problems) + ": a restore would fail; choose another checkpoint")
