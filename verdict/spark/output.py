"""The output folder of a query: which files are its output, which are leftovers, and which are not files at all."""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path

from contract.run import SINKS
from verdict.checker import Moved
from verdict.escape import printable
from verdict.model import EXAMPLES_PER_CATEGORY, Unknown
from verdict.spark.sink_log import METADATA_FOLDER, Log, read_sink_log

FILES, FOREACH_APPEND, FOREACH_OVERWRITE = SINKS

# The names of Spark's output files: part-<task>-<job uuid>[-c<file>][.extension]
_SPARK_NAME = re.compile(r"part-\d{5}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-c\d+)?(\.\w+)*")
_BATCH_FOLDER = re.compile(r"batch_id=(\d{1,18})/")
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True)
class OutputFile:
    """One file to read.

    `leftover`: written by an interrupted batch, so that no reader of the log sees it. `batch`: files of a smaller batch
    were written earlier; None when it is not known.
    """

    name: str
    path: Path
    size: int
    leftover: bool = False
    batch: int | None = None


@dataclass
class Output:
    """The contents of the folder.

    `missing` maps a file that the log names but the folder lacks to its batch; `special` maps an entry that is not
    opened, since it is not a file, to its kind.
    """

    folder: Path
    files: list[OutputFile] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    special: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def list_output(folder: Path, sink: str, committed: int | None) -> Output:
    """List the output of a query; `committed` is the newest batch that its checkpoint calls done.

    For the file sink, only the log decides which files count. Raises Unknown when folder or log cannot be read or do
    not fit together, and Moved when files are removed meanwhile.
    """
    try:
        if not folder.exists():
            return Output(folder, notes=[f"the output folder {folder} does not exist"])
        # List files before the log: a batch that ends in between is in the log, and none of its files is a leftover.
        present, special = _walk(folder)
        output = Output(folder, special=special)
        if sink == FILES:
            _by_the_log(output, present, committed)
        else:
            output.files = [
                OutputFile(name, folder / name, present[name], batch=_batch_of(name, sink)) for name in sorted(present)
            ]
        return output
    except FileNotFoundError as error:
        raise Moved(f"{error.filename} was removed while the output was read; judge again") from None
    except OSError as error:
        raise Unknown(f"output {folder} cannot be read: {error.strerror} ({error.filename})") from None


def _walk(root: Path) -> tuple[dict[str, int], dict[str, str]]:
    """Find the files below a folder, with their sizes, and entries that are neither file nor folder, with their kind.

    Like Hadoop's readers, it skips names that begin with `_` or `.`. Each folder is read once: a link to one
    that is already read would repeat its lines, or never end.
    """
    files: dict[str, int] = {}
    special: dict[str, str] = {}
    read: set[tuple[int, int]] = set()
    folders = [("", root)]
    links: list[tuple[str, Path]] = []
    while folders or links:
        prefix, folder = folders.pop() if folders else links.pop()
        found = folder.stat()
        if (found.st_dev, found.st_ino) in read:
            special[prefix.removesuffix("/")] = "a link to a folder that is already read"
            continue
        read.add((found.st_dev, found.st_ino))
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(("_", ".")):
                    continue
                name = prefix + entry.name
                mode, size = _look_at(entry)
                if stat.S_ISDIR(mode):
                    # Links last: their target is read under its own name, if it has one here.
                    (links if entry.is_symlink() else folders).append((f"{name}/", folder / entry.name))
                elif stat.S_ISREG(mode):
                    files[name] = size
                else:
                    special[name] = _KINDS.get(stat.S_IFMT(mode), "a broken link")
    return files, special


def _look_at(entry: os.DirEntry[str]) -> tuple[int, int]:
    """Find mode and size of the target of an entry; mode 0 for a broken link."""
    try:
        found = entry.stat()
        return found.st_mode, found.st_size
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP) or not entry.is_symlink():
            raise
        return 0, 0


def _batch_of(name: str, sink: str) -> int | None:
    found = _BATCH_FOLDER.match(name) if sink == FOREACH_OVERWRITE else None
    return int(found[1]) if found else None


def _by_the_log(output: Output, present: dict[str, int], committed: int | None) -> None:
    """Separate the files that the sink's log names from leftovers, and list the missing ones."""
    folder = output.folder
    log = read_sink_log(folder)
    if log is None:
        if present:
            raise Unknown(f"{folder} has files but no {METADATA_FOLDER}, so leftovers are not known; is --sink right?")
        return
    log.require_whole(committed)
    _take_logged(output, log, present)
    for name in sorted(present):
        # A file of another program is output like any other: only files that Spark wrote can be leftovers.
        leftover = bool(_SPARK_NAME.fullmatch(name.rpartition("/")[2]))
        output.files.append(OutputFile(name, folder / name, present[name], leftover))


def _take_logged(output: Output, log: Log, present: dict[str, int]) -> None:
    resized, taken = [], set()
    for entry in log.entries:
        shown = printable(entry.name)
        if entry.name in taken:
            output.notes.append(f"{shown} is named twice in the sink's log; its lines count once")
            continue
        taken.add(entry.name)
        path = output.folder / entry.name
        size = present.pop(entry.name, None)
        if size is None:
            # Written since the folder was listed, or missing.
            size = path.stat().st_size if path.is_file() else None
        if size is None and entry.size:
            output.missing[entry.name] = entry.batch
        elif size is None:
            output.notes.append(
                f"file {shown}, which batch {entry.batch} of the sink's log names, is missing; it was empty"
            )
        else:
            output.files.append(OutputFile(entry.name, path, size, batch=entry.batch))
            if size != entry.size:
                resized.append(f"{shown} has {size:,} bytes, but batch {entry.batch} of the log wrote {entry.size:,}")
    output.notes += resized[:EXAMPLES_PER_CATEGORY]
    if len(resized) > EXAMPLES_PER_CATEGORY:
        output.notes.append(f"{len(resized) - EXAMPLES_PER_CATEGORY:,} more files have another size than in the log")
