"""Reads files on a disk: JSON lines, CSV and Parquet, one file or a folder, with or without the log of Spark's sink."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pyarrow as pa

from faultline.command import first_line
from faultline.pipelines.spec import Output, SpecError
from faultline.storage.batches import SINK_LOG
from faultline.storage.reading import walk
from faultline.verdict.model import Unknown
from faultline.verdict.spark.output import FILES, FOREACH_OVERWRITE, OutputFile, list_output
from faultline.verdict.store import Store

BROKEN = "broken line"
"""Column of `output` with a line that is not JSON; NULL in other rows."""
CSV = "delim = ',', quote = '\"', skip = 0, nullstr = '', allow_quoted_nulls = false"
"""The form of CSV files, for DuckDB."""
LINES = pa.schema([("line", pa.string()), ("folders", pa.string())])
"""The lines of JSON files; `folders`: an object with what the names of a file's folders (`day=2026-07-01`) say."""
_PATTERN = re.compile(r"[*?\[]")
_CAUSES = ("Candidate", "Error when", "Original Line", "Possible")
_BATCH_BYTES = 8 << 20
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_NESTED = ("STRUCT", "MAP", "JSON")


def load(store: Store, output: Output, columns: dict[str, str]) -> list[str]:
    """Make the table `output` of the files that a reader of the sink sees."""
    files, notes = _files(Path(output.path))
    if output.reader == "json":
        in_folders = _load_lines(store, Path(output.path), files)
        if not output.sql:
            _take_members(store, output, columns, in_folders)
        return notes
    # DuckDB takes a name for a pattern.
    names = [_PATTERN.sub(r"[\g<0>]", str(each.path)) for each in files if each.size]
    if not names:
        listed = ", ".join(f"NULL::VARCHAR AS {sql_name(name)}" for name in columns)
        store.execute(f"CREATE OR REPLACE TABLE output AS SELECT {listed} WHERE false")
        return notes
    asked: dict[str, object] = {"names": names}
    if output.reader == "parquet":
        read, more = "read_parquet", "union_by_name = true, hive_partitioning = true"
    else:
        # Nothing is guessed: a guess skips lines. NULL has no quotes, and an empty text has them, as Spark writes them.
        read, more = "read_csv", f"all_varchar = true, hive_partitioning = true, {CSV}, escape = $escape"
        asked["escape"] = output.escape
        if output.header:
            more += ", header = true, union_by_name = true"
        else:
            # The columns are those of the query, in its order.
            more += ", header = false, names = $columns"
            asked["columns"] = list(columns)
    try:
        store.execute(f"CREATE OR REPLACE TABLE output AS SELECT * FROM {read}($names, {more})", **asked)
    except duckdb.Error as error:
        raise Unknown(f"output {output.path} cannot be read as {output.reader}: {in_a_line(error)}") from None
    return notes


def in_a_line(error: duckdb.Error) -> str:
    """Say what DuckDB says, with the cause that stands in a line of its own, and without the picture of the place."""
    cause = next((line for line in str(error).splitlines()[1:] if line.startswith(_CAUSES)), "")
    return f"{first_line(error)} {cause}".strip()


def _files(path: Path) -> tuple[list[OutputFile], list[str]]:
    """List the files to read, and notes on others. Raises Unknown."""
    if path.is_file():
        return [OutputFile(path.name, path, path.stat().st_size)], []
    if not path.exists():
        raise Unknown(f"output {path} does not exist; did the pipeline write anything?")
    has_log = (path / SINK_LOG).is_dir()
    # Without a log, files in subfolders count too: not only Spark writes such a folder.
    found = list_output(path, FILES if has_log else FOREACH_OVERWRITE, None)
    notes = list(found.notes)
    # The log gives each of its files an order.
    seen = [each for each in found.files if each.order is not None or not has_log]
    others = [each for each in found.files if has_log and each.order is None and not each.leftover]
    if others:
        notes.append(f"{len(others)} files are not in {SINK_LOG}, as {others[0].name}: readers skip them")
    leftovers = sum(each.leftover for each in found.files)
    if leftovers:
        notes.append(f"{leftovers} files of interrupted batches are not in {SINK_LOG}: readers skip them")
    notes += [f"file {name}, which batch {batch} wrote, is missing" for name, batch in found.missing.items()]
    return seen, notes


def _load_lines(store: Store, folder: Path, files: list[OutputFile]) -> set[str]:
    """Fill the table `output` with lines; returns the columns that names of folders say."""
    store.create("output", LINES)
    in_folders: set[str] = set()
    for each in files:
        said = _of_folders(each.path.relative_to(folder).parent.parts)
        in_folders |= said.keys()
        folders = pa.scalar(json.dumps(said))
        for lines in _lines(each):
            store.append("output", pa.table([pa.array(lines, pa.string()), pa.repeat(folders, len(lines))], LINES))
    return in_folders


def _of_folders(names: Sequence[str]) -> dict[str, str | None]:
    """Return the columns that Spark's `partitionBy` writes as names of folders.

    Source: org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils, escapePathName and DEFAULT_PARTITION_NAME.
    """
    named = [name.split("=", 1) for name in names if "=" in name]
    return {unquote(name): None if value == _NULL_FOLDER else unquote(value) for name, value in named}


def _lines(file: OutputFile) -> Iterator[list[str]]:
    """Yield lists of lines up to the size that was seen; a torn last line is one, too. Raises Unknown."""
    left = file.size if file.unread is None else file.unread
    try:
        with file.path.open("rb") as raw:
            packed = file.name.endswith(".gz")
            stream = gzip.GzipFile(fileobj=raw) if packed else raw
            rest = b""
            while part := stream.read(_BATCH_BYTES if packed else min(_BATCH_BYTES, left)):
                left -= len(part)
                *whole, rest = (rest + part).split(b"\n")
                yield [line.decode("utf-8", "replace") for line in whole if line.strip()]
            if rest.strip():
                yield [rest.decode("utf-8", "replace")]
    except (OSError, EOFError) as error:
        raise Unknown(f"output file {file.path} cannot be read: {error}; judge again") from None


def _take_members(store: Store, output: Output, columns: dict[str, str], in_folders: set[str]) -> None:
    """Replace the lines by the members that the query's columns name.

    Raises SpecError when no line has a member that the query yields: Spark leaves out those that are NULL.
    """
    store.execute("ALTER TABLE output RENAME TO output_line")
    valid = "json_valid(line)"
    paths = {name: "$." + '"' + name.replace('"', '\\"') + '"' for name in columns}
    members, tests = [], []
    for name, kind in columns.items():
        path, arrow = _quoted(paths[name]), "->" if is_nested(kind) else "->>"
        member, test = f"line {arrow} {path}", f"json_exists(line, {path})"
        if name in in_folders:
            # Spark takes a column from the folder when the file has it, too.
            said = f"json_exists(folders, {path})"
            member, test = f"CASE WHEN {said} THEN folders {arrow} {path} ELSE {member} END", f"{test} OR {said}"
        members.append(f"CASE WHEN {valid} THEN {member} END AS {sql_name(name)}")
        tests.append(f"count(*) FILTER (CASE WHEN {valid} THEN {test} ELSE false END)")
    broken = f"CASE WHEN NOT {valid} THEN line END AS {sql_name(BROKEN)}"
    store.execute(f"CREATE OR REPLACE TABLE output AS SELECT {', '.join([*members, broken])} FROM output_line")
    whole, *having = store.numbers(f"SELECT count(*) FILTER ({valid}), {', '.join(tests)} FROM output_line")
    store.execute("DROP TABLE output_line")
    for name, lines in zip(columns, having, strict=True):
        if whole and not lines and store.numbers(f"SELECT count({sql_name(name)}) FROM expected")[0]:
            raise SpecError(
                f"output {output.path} has no member {name!r} in any line; name the columns of expected.sql like those "
                "of the output, or make them by output.sql"
            )


def is_nested(kind: str) -> bool:
    """Return whether a type of DuckDB has parts."""
    return kind.endswith("[]") or kind.startswith(_NESTED)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def sql_name(text: str) -> str:
    """Quote the name of a column for a query."""
    return '"' + text.replace('"', '""') + '"'


def mark(output: Output) -> object:
    """Return the number of files and their bytes, also of those that no log names yet."""
    path = Path(output.path)
    try:
        sizes = [path.stat().st_size] if path.is_file() else list(walk(path, skipped=("_", ".")).files.values())
    except OSError:
        return None
    return (len(sizes), sum(sizes)) if sum(sizes) else None


def reach(output: Output) -> None:
    """Raise Unknown when the output is there and cannot be listed."""
    path = Path(output.path)
    if path.exists():
        _files(path)
