"""Checkpoints that are not where they were written, for which Spark's own readers need corrected paths.

The operator metadata of transformWithState names its schema files by absolute path. Spark finds no other way to
them: it refuses to read or to restart from a checkpoint that was copied or moved.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from faultline.inspector.spark.operator_metadata import OperatorMetadata, logged_files
from faultline.storage.location import Location
from faultline.storage.reading import posix_path


def written_elsewhere(metadata: OperatorMetadata, operator: Location) -> str | None:
    """Return the folder in which the checkpoint was written, as Spark names it; None when it is this one.

    `operator` is the folder `state/N` that holds the metadata.
    """
    for schema in metadata.schemas:
        there, found, _ = schema.rpartition(f"/state/{operator.name}/_stateSchema/")
        if found and urlsplit(there).path != str(posix_path(operator.parent.parent.absolute())):
            return there
    return None


@contextlib.contextmanager
def corrected(checkpoint: Path, elsewhere: dict[str, str]) -> Iterator[Path]:
    """Yield a folder of links to the checkpoint's files whose operator metadata names the schema files here.

    `elsewhere` has for each operator's number the folder that its metadata names. The checkpoint does not change.
    """
    # It loads every kind of archive, and few checkpoints were moved.
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    with TemporaryDirectory(prefix="inspector-") as folder:
        copy = Path(folder).resolve()
        _link(checkpoint, copy, {"state"})
        _link(checkpoint / "state", copy / "state", set(elsewhere))
        for number, there in elsewhere.items():
            operator = checkpoint / "state" / number
            _link(operator, copy / "state" / number, {"_metadata"})
            for file in logged_files(operator):
                text = file.read_text(encoding="utf-8").replace(f'"{there}/', f'"{copy.as_uri()}/')
                target = copy / file.relative_to(checkpoint)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        yield copy


def _link(source: Path, target: Path, but: set[str]) -> None:
    target.mkdir(exist_ok=True)
    for child in source.iterdir():
        if child.name not in but:
            (target / child.name).symlink_to(child.resolve(), target_is_directory=child.is_dir())
