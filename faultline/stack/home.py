"""The folders that a stack owns on disk. They are marked; nothing else is ever removed.

    HOME/.stack              run state and logs; the broker's data on the local backend
    HOME/checkpoints/spark   HOME/checkpoints/flink   HOME/output   HOME/ledger
    HOME/store               the object store's data and its key, for a stack that has one

Each has a marker with the id of the stack. `docker-compose up` without the scripts writes the same markers
(docker/permissions.sh).
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from faultline.files import replace_text
from faultline.stack.errors import StackError

MARKER = ".faultline.json"
LAYOUT = 2
"""Increased when files of an older version can no longer be used."""

_OWNED = (".stack", "checkpoints/spark", "checkpoints/flink", "output", "ledger", "store")
_NOT_OURS = {"output": ("notebooks",)}
"""Files that users write there are kept."""
_WITHOUT_A_STACK = {"output": ("labs", "pipelines"), ".stack": ("jupyter",)}
"""Folders there of programs of the project that need no stack."""
_HARMLESS = {MARKER, "README.md", ".gitignore"}
_UP_FILE = "up.json"


@dataclass(frozen=True)
class Topics:
    """Properties of a stack that its topics are bound to.

    With other properties, checkpoints would name offsets of other topics.
    """

    backend: str = ""
    """The backend that has them: `local` or `compose`."""
    brokers: int = 1
    """Number of brokers that have the topics."""
    data: str = ""
    """Location of the checkpoints: the setting DATA; empty: the folders of the home."""
    profile: str = ""
    """The profile that they were made with; empty for none."""


@dataclass(frozen=True)
class Marker:
    """`stack`: id; `home`: where it was made, empty from a container; `project`: name of its Compose project."""

    stack: str
    home: str
    project: str
    layout: int
    topics: Topics = Topics()


@dataclass(frozen=True)
class Up:
    """The record of a stack that is up: its backend, and the settings that were chosen for it."""

    backend: str
    explicit: dict[str, str]


class Home:
    """The folders of one stack."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / ".stack"

    def folders(self) -> list[Path]:
        """Every folder that a stack owns, whether it exists or not."""
        return [self.root / name for name in _OWNED]

    def marker(self) -> Marker | None:
        """Read the markers; None when there is none. Raises StackError when they contradict each other."""
        found = {folder: marker for folder in self.folders() if (marker := _read(folder / MARKER))}
        for folder, marker in found.items():
            first_folder, first = next(iter(found.items()))
            if marker.stack != first.stack:
                raise StackError(
                    f"{folder} belongs to stack {marker.stack}, {first_folder} to stack {first.stack}: topics, "
                    "checkpoints and outputs go together; move one of them away"
                )
        return next(iter(found.values()), None)

    def _require_layout(self, marker: Marker) -> None:
        """Raise StackError for files that cannot be used any more; such a stack can be stopped all the same."""
        if marker.layout != LAYOUT:
            raise StackError(
                f"{self.root} has a stack of another version of Faultline; scripts/down.sh --wipe ends it and removes "
                f"its topics, checkpoints and outputs, then start again (this version has layout {LAYOUT})"
            )

    def require_marker(self) -> Marker:
        """Read the marker. Raises StackError when no stack was ever started here."""
        marker = self.marker()
        if marker is None:
            raise StackError(f"no stack was ever started in {self.root}; start one with scripts/up.sh")
        self._require_layout(marker)
        return marker

    def claim(self, topics: Topics) -> Marker:
        """Make and mark the folders of this stack.

        Raises StackError, with nothing changed, when one holds files that no stack wrote, when the home is a copy of
        another one, or when its topics go with something else.
        """
        known = self.marker()
        marker = known or _new_marker(self.root)
        if known is not None:
            self._require_layout(known)
            self._require_own(known)
            self.require_topics_on(topics)
        for folder in self.folders():
            if _read(folder / MARKER) is None and (stranger := self._stranger(folder)):
                raise StackError(
                    f"{folder} has files of an older version or of another program ({stranger}); "
                    "move them away, then run again"
                )
        written = Marker(marker.stack, str(self.root), marker.project, LAYOUT, topics)
        for folder in self.folders():
            _write(folder, written)
        return written

    def _require_own(self, marker: Marker) -> None:
        elsewhere = Path(marker.home) if marker.home else self.root
        if elsewhere != self.root and (theirs := Home(elsewhere).marker_or_none()) and theirs.stack == marker.stack:
            raise StackError(
                f"{self.root} is a copy of the stack in {elsewhere}, and its topics are there; remove the copies of "
                f"{', '.join(_OWNED)} here, then run again"
            )

    def require_topics_on(self, topics: Topics) -> None:
        """Raise StackError when the topics of this home go with something else."""
        marker = self.marker()
        if marker is None:
            return
        theirs = marker.topics
        if theirs.backend and theirs.backend != topics.backend:
            raise StackError(
                f"the topics of the checkpoints in {self.root} are on backend {theirs.backend}; use --backend "
                f"{theirs.backend}, or start clean (scripts/down.sh --wipe --backend {theirs.backend})"
            )
        if theirs.profile != topics.profile:
            raise StackError(
                f"the topics in {self.root} are of {_profile(theirs.profile)}, not of {_profile(topics.profile)}; "
                "leave --profile and STACK_PROFILE out, or start clean (scripts/down.sh --wipe)"
            )
        if theirs.brokers != topics.brokers:
            raise StackError(
                f"the topics in {self.root} are for KAFKA_BROKERS={theirs.brokers}, not {topics.brokers}; use "
                f"STACK_KAFKA_BROKERS={theirs.brokers}, or start clean (scripts/down.sh --wipe)"
            )
        if theirs.data != topics.data:
            raise StackError(
                f"the checkpoints of the topics in {self.root} are {_where(theirs.data)}, not {_where(topics.data)}; "
                "use the same setting DATA, or start clean (scripts/down.sh --wipe)"
            )

    def profile(self) -> dict[str, str]:
        """The profile of this home's topics, as a setting; none without one."""
        marker = self.marker_or_none()
        return {"PROFILE": marker.topics.profile} if marker and marker.topics.profile else {}

    def marker_or_none(self) -> Marker | None:
        """Read the marker; None also when it cannot be read."""
        try:
            return self.marker()
        except StackError:
            return None

    def _stranger(self, folder: Path) -> str | None:
        """Return the name of a file in an unmarked folder that a stack would have to own."""
        if not folder.is_dir():
            return None
        spared = {*_HARMLESS, *_NOT_OURS.get(folder.name, ()), *_WITHOUT_A_STACK.get(folder.name, ())}
        return next((entry.name for entry in sorted(folder.iterdir()) if entry.name not in spared), None)

    @property
    def has_store(self) -> bool:
        """True when the stack's own object store has kept something here."""
        folder = self.root / "store"
        return folder.is_dir() and any(entry.name not in _HARMLESS for entry in folder.iterdir())

    def marked(self) -> list[Path]:
        """The folders that are marked: what `--wipe` removes."""
        return [folder for folder in self.folders() if _read(folder / MARKER)]

    def wipe(self) -> list[Path]:
        """Remove marked folders and their files, except files that users wrote; returns what was removed.

        Raises PermissionError when files belong to another user.
        """
        removed = self.marked()
        for folder in removed:
            spared = _NOT_OURS.get(folder.name, ())
            # The marker goes last: an interrupted wipe can be run again.
            for entry in sorted(folder.iterdir(), key=lambda entry: entry.name == MARKER):
                if entry.name not in spared:
                    _remove(entry)
            # A link to a folder elsewhere is a person's.
            if not folder.is_symlink() and not any(folder.iterdir()):
                folder.rmdir()
        return removed

    def remember(self, up: Up) -> None:
        """Record that the stack is up."""
        self.state.mkdir(parents=True, exist_ok=True)
        replace_text(self.state / _UP_FILE, json.dumps(asdict(up), indent=1) + "\n")

    def forget(self) -> None:
        """Remove that record, if it exists."""
        (self.state / _UP_FILE).unlink(missing_ok=True)

    def up(self) -> Up | None:
        """Read that record; None when the stack is down, or when the record is damaged."""
        try:
            document = json.loads((self.state / _UP_FILE).read_text(encoding="utf-8"))
            return Up(str(document["backend"]), {str(name): str(value) for name, value in document["explicit"].items()})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None


def _profile(name: str) -> str:
    return f"profile {name}" if name else "no profile"


def _where(data: str) -> str:
    return f"in {data}" if data else "on the disk"


def _new_marker(root: Path) -> Marker:
    name = uuid.uuid4().hex[:8]
    return Marker(name, str(root), f"faultline-{name}", LAYOUT)


def _read(path: Path) -> Marker | None:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StackError(f"{path} cannot be read ({error}); it says which stack owns the folder") from None
    try:
        return Marker(
            str(document["stack"]), str(document["home"]), str(document["project"]), int(document["layout"]),
            Topics(
                str(document.get("backend", "")), int(document.get("brokers", 1)), str(document.get("data", "")),
                str(document.get("profile", "")),
            ),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError):
        raise StackError(f"{path} is not a marker of Faultline; it must say which stack owns the folder") from None


def _write(folder: Path, marker: Marker) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        document = asdict(marker)
        topics = document.pop("topics")
        replace_text(folder / MARKER, json.dumps({**document, **topics}) + "\n")
    except OSError as error:
        raise StackError(
            f"folder {folder} cannot be written ({error.strerror}); choose another place with STACK_HOME"
        ) from None


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()


def names(folders: Iterable[Path]) -> str:
    """List folders for a message."""
    return ", ".join(str(folder) for folder in folders)
