"""The lab's own folder, the only place where a lab writes and deletes."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faultline.command import CommandError
from faultline.settings import Settings


class LabFolder:
    """`<STACK_HOME>/output/labs/<name>`. Everything a lab deletes goes through `delete`."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    @classmethod
    def of(cls, settings: Settings, name: str) -> LabFolder:
        """Return the folder of the lab `name`, e.g. `13_failure_before_the_commit`."""
        return cls(settings.home / "output" / "labs" / name)

    def __truediv__(self, name: str) -> Path:
        return self.root / name

    @contextmanager
    def claimed(self, *, clean: bool, command: str) -> Iterator[None]:
        """Lock the folder for one run, empty at its beginning; `clean` removes files of an earlier run.

        `command`: what the user types. Raises CommandError: in use, files left, points
        elsewhere, cannot be written.
        """
        lock = self.root.with_name(f"{self.root.name}.lock")
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with lock.open("a") as file:
                self._require_own()
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise CommandError(f"{self.root} is in use by another run of this lab; wait for its end") from None
                if clean:
                    for entry in list(self.root.iterdir()):
                        self.delete(entry)
                elif any(self.root.iterdir()):
                    raise CommandError(f"{self.root} has files of an earlier run; start clean: {command} --clean")
                yield
        except FileExistsError:
            raise CommandError(f"{self.root} is not a folder; remove it and run again") from None
        except PermissionError as error:
            raise CommandError(f"{error.filename} cannot be written; change its owner or set STACK_HOME") from None

    def delete(self, path: Path) -> None:
        """Delete a file, or a folder with its contents. A link is deleted, never its target.

        Raises CommandError, with nothing deleted, when the path is not inside the lab's own folder.
        """
        self._require_own()
        # Resolve the parent, not the name: a link itself is deleted, not its target.
        place = path.parent.resolve() / path.name
        if path.name in {"", ".", ".."} or not place.is_relative_to(self.root) or place == self.root:
            raise CommandError(f"{path} is not inside the lab's own folder {self.root}; a lab deletes nothing else")
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()

    def delete_logged(self, path: Path) -> None:
        """Delete a file and the checksum that Hadoop's local file system keeps beside it (`.NAME.crc`)."""
        self.delete(path)
        checksum = path.with_name(f".{path.name}.crc")
        if checksum.exists():
            self.delete(checksum)

    def _require_own(self) -> None:
        real = Path(os.path.realpath(self.root))
        if real != self.root:
            raise CommandError(f"{self.root} is a link to {real}; a lab deletes nothing there: remove the link")
