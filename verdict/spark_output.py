"""The output folder of a Spark query: which files are its output, which are leftovers, and their lines."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from verdict.model import Unknown

METADATA_FOLDER = "_spark_metadata"

_READ_BYTES = 4_194_304

# The names that Spark gives its output files: part-<task>-<job uuid>[-c<file>][.extension]
_SPARK_NAME = re.compile(r"part-\d{5}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-c\d+)?(\.\w+)*")


@dataclass(frozen=True)
class OutputFile:
    """One file to read; `leftover`: written by an interrupted batch, so that no reader of the log sees it."""

    name: str
    path: Path
    leftover: bool


@dataclass
class Output:
    """What the folder holds.

    `exists` is false without a folder; `logged` says whether the sink keeps a log there; `missing` maps a file that
    the log names but the folder lacks to its batch; `resized` are sentences on files whose size is not the logged one.
    """

    folder: Path
    exists: bool = True
    logged: bool = False
    files: list[OutputFile] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    resized: list[str] = field(default_factory=list)


def list_output(folder: Path, *, with_log: bool) -> Output:
    """List the output of a query; `with_log` for the file sink, whose log alone says which files count.

    Raises Unknown when the folder or its log cannot be read.
    """
    try:
        if not folder.is_dir():
            return Output(folder, exists=False)
        # The files before the log: a batch that ends in between then is in the log, and none of its files a leftover.
        present = {str(path.relative_to(folder)): path for path in _data_files(folder)}
        log = folder / METADATA_FOLDER
        if not with_log or not log.is_dir():
            return Output(folder, files=[OutputFile(name, present[name], False) for name in sorted(present)])
        output = Output(folder, logged=True)
        for batch, entry in _log_entries(log):
            name = _name_in(folder, entry["path"])
            path = folder / name
            if not path.is_file():
                output.missing[name] = batch
                continue
            present.pop(name, None)
            output.files.append(OutputFile(name, path, False))
            if path.stat().st_size != entry["size"]:
                output.resized.append(
                    f"{name} has {path.stat().st_size:,} bytes, but batch {batch} of the log wrote {entry['size']:,}"
                )
        for name in sorted(present):
            # Someone else's file is output like any other: only what Spark itself wrote can be a leftover.
            output.files.append(OutputFile(name, present[name], bool(_SPARK_NAME.fullmatch(present[name].name))))
        return output
    except OSError as error:
        raise Unknown(f"output {folder} cannot be read: {error.strerror} ({error.filename})") from None


def lines(file: OutputFile) -> Iterator[tuple[list[int], list[bytes]]]:
    """Read a file's lines in batches: the bytes before each line, and the lines without their newline."""
    position = 0
    try:
        with file.path.open("rb") as stream:
            while found := stream.readlines(_READ_BYTES):
                starts = list(itertools.accumulate(map(len, found), initial=position))
                position = starts.pop()
                yield starts, [line.removesuffix(b"\n") for line in found]
    except OSError as error:
        raise Unknown(f"output file {file.path} cannot be read: {error.strerror}; judge again") from None


def line_at(file: OutputFile, position: int) -> bytes:
    """Read the line that begins at a position."""
    with file.path.open("rb") as stream:
        stream.seek(position)
        return stream.readline().removesuffix(b"\n")


def _data_files(folder: Path) -> Iterator[Path]:
    """Walk the folder as Hadoop's readers do: names that begin with `_` or `.` are not data."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("_", ".")):
            continue
        if path.is_dir():
            yield from _data_files(path)
        else:
            yield path


def _log_entries(log: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Read the file sink's log: the newest `N.compact`, which has all up to N, then each later batch.

    Each file: a line `v1`, then one JSON object a line with `path` (a URI), `size` in bytes and `action`.
    (Spark's FileStreamSinkLog and CompactibleFileStreamLog.)
    """
    batches = {}
    for file in log.iterdir():
        number, _, suffix = file.name.partition(".")
        if number.isdecimal() and suffix in ("", "compact"):
            batches[int(number)] = file
    start = max((batch for batch, file in batches.items() if file.suffix == ".compact"), default=0)
    for batch in sorted(batch for batch in batches if batch >= start):
        version, *entries = batches[batch].read_text(encoding="utf-8").splitlines() or [""]
        if version != "v1":
            raise Unknown(f"{batches[batch]} is not a sink log of version v1; the output's log is damaged")
        for line in entries:
            try:
                entry = json.loads(line)
                known = isinstance(entry["path"], str) and isinstance(entry["size"], int) and entry["action"] == "add"
            except (ValueError, KeyError, TypeError):
                known = False
            if not known:
                raise Unknown(f"{batches[batch]} has an entry that cannot be read: {line[:80]}")
            yield batch, entry


def _name_in(folder: Path, uri: object) -> str:
    """Find a logged file's name under the folder that is judged.

    The URI is absolute and may have been written under another root (in a container): what counts is the
    part below the last folder of the output's name; a path without that name is taken as a file of the folder.
    """
    path = PurePosixPath(unquote(urlsplit(str(uri)).path))
    if path.is_relative_to(folder):
        return str(path.relative_to(folder))
    parts = path.parts[:-1]
    if folder.name in parts:
        last = len(parts) - 1 - parts[::-1].index(folder.name)
        return "/".join(path.parts[last + 1 :])
    return path.name
