"""The output folder of a query: which files are its output, which are leftovers, and which are not files at all."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from faultline.formats.run import SINKS
from faultline.storage.batches import SINK_LOG
from faultline.storage.location import Location
from faultline.storage.reading import walk
from faultline.verdict.checker import Moved
from faultline.verdict.escape import printable
from faultline.verdict.model import EXAMPLES_PER_CATEGORY, Unknown
from faultline.verdict.spark.sink_log import Log, read_sink_log, why_skipped

FILES, FOREACH_APPEND, FOREACH_OVERWRITE = SINKS

# The names of Spark's output files: part-<task>-<job uuid>[-c<file>][.extension]
_SPARK_NAME = re.compile(r"part-\d{5}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-c\d+)?(\.\w+)*")
_BATCH_FOLDER = re.compile(r"batch_id=(\d{1,18})/")


@dataclass(frozen=True)
class OutputFile:
    """One file to read.

    `leftover`: written by an interrupted batch, so that no reader of the log sees it. `order`: files of a smaller one
    were written earlier; None when it is not known. `unread`: readers skip lines that begin at this byte or later.
    """

    name: str
    path: Location
    size: int
    leftover: bool = False
    order: int | None = None
    unread: int | None = None


@dataclass
class Output:
    """The contents of the folder.

    `missing` maps a file that the log names but the folder lacks to its batch; `special` maps an entry that is not
    opened, since it is not a file, to its kind.
    """

    folder: Location
    files: list[OutputFile] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    special: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def list_output(folder: Location, sink: str, committed: int | None) -> Output:
    """List the output of a query; `committed` is the newest batch that its checkpoint calls done.

    For the file sink, only the log decides which files count. Raises Unknown when folder or log cannot be read or do
    not fit together, and Moved when files are removed meanwhile.
    """
    try:
        if not folder.exists():
            return Output(folder, notes=[f"the output folder {folder} does not exist"])
        # List files before the log: a batch that ends in between is in the log, and none of its files is a leftover.
        # Like Hadoop's readers, it skips names that begin with `_` or `.`.
        found = walk(folder, skipped=("_", "."))
        present, output = found.files, Output(folder, special=found.special)
        if sink == FILES:
            _by_the_log(output, present, committed)
        else:
            read = [name for name in sorted(present) if not (sink == FOREACH_APPEND and why_skipped(name))]
            output.files = [
                OutputFile(name, folder / name, present[name], order=_batch_of(name, sink)) for name in read
            ]
            output.notes += [
                f"{printable(name)} is not read by readers of the folder: {why_skipped(name)}"
                for name in sorted(present.keys() - set(read))[:EXAMPLES_PER_CATEGORY]
            ]
        return output
    except FileNotFoundError as error:
        raise Moved(f"{error.filename} was removed while the output was read; judge again") from None
    except OSError as error:
        raise Unknown(f"output {folder} cannot be read: {error.strerror} ({error.filename})") from None


def _batch_of(name: str, sink: str) -> int | None:
    found = _BATCH_FOLDER.match(name) if sink == FOREACH_OVERWRITE else None
    return int(found[1]) if found else None


def _by_the_log(output: Output, present: dict[str, int], committed: int | None) -> None:
    """Separate the files that the sink's log names from leftovers, and list the missing ones."""
    folder = output.folder
    log = read_sink_log(folder)
    if log is None:
        if present:
            raise Unknown(f"{folder} has files but no {SINK_LOG}, so leftovers are not known; is --sink right?")
        return
    log.require_whole(committed)
    _take_logged(output, log, present)
    for name in sorted(present):
        # A file of another program is output like any other: only files that Spark wrote can be leftovers.
        leftover = bool(_SPARK_NAME.fullmatch(name.rpartition("/")[2]))
        output.files.append(OutputFile(name, folder / name, present[name], leftover))


def _take_logged(output: Output, log: Log, present: dict[str, int]) -> None:
    """Add the files as a reader of the log sees them: each as often as it is named, and up to the logged size."""
    resized: list[str] = []
    repeated: list[str] = []
    skipped: list[str] = []
    sizes: dict[str, int | None] = {}
    for entry in log.entries:
        shown = printable(entry.name)
        path = output.folder / entry.name
        if entry.name in sizes:
            repeated.append(f"{shown} is named again by batch {entry.batch} of the sink's log: readers read it again")
            size = sizes[entry.name]
        else:
            size = sizes[entry.name] = present.pop(entry.name, None)
        if entry.skipped:
            skipped.append(f"{shown}, which batch {entry.batch} of the log names, is not read: {entry.skipped}")
            continue
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
            # A reader goes on to the end of the line that begins at the last byte.
            unread = None if size <= entry.size else (entry.size and entry.size + 1)
            output.files.append(OutputFile(entry.name, path, size, order=entry.order, unread=unread))
            if size != entry.size:
                resized.append(f"{shown} has {size:,} bytes, but batch {entry.batch} of the log wrote {entry.size:,}")
    for notes, more in (
        (repeated, "are named again"), (skipped, "are not read"), (resized, "have another size than in the log"),
    ):  # fmt: skip
        output.notes += notes[:EXAMPLES_PER_CATEGORY]
        if len(notes) > EXAMPLES_PER_CATEGORY:
            output.notes.append(f"{len(notes) - EXAMPLES_PER_CATEGORY:,} more files {more}")
