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


def home_of(metadata: OperatorMetadata, operator: Location) -> str | None:
    """Return the place that wrote the checkpoint, as Spark names it; None when that place is this one.

    `operator` is the folder `state/N` that holds the metadata.
    """
    for schema in metadata.schemas:
        home, found, _ = schema.rpartition(f"/state/{operator.name}/_stateSchema/")
        if found and urlsplit(home).path != str(posix_path(operator.parent.parent.absolute())):
            return home
    return None


@contextlib.contextmanager
def corrected(checkpoint: Path, homes: dict[str, str]) -> Iterator[Path]:
    """Yield a folder of links to the checkpoint's files whose operator metadata names the schema files here.

    `homes` has for each operator's number the place that its metadata names; the checkpoint itself does not change.
    """
    # It loads every kind of archive, and few checkpoints were moved.
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    with TemporaryDirectory(prefix="inspector-") as folder:
        place = Path(folder).resolve()
        _link(checkpoint, place, {"state"})
        _link(checkpoint / "state", place / "state", set(homes))
        for number, home in homes.items():
            operator = checkpoint / "state" / number
            _link(operator, place / "state" / number, {"_metadata"})
            for file in logged_files(operator):
                text = file.read_text(encoding="utf-8").replace(f'"{home}/', f'"{place.as_uri()}/')
                target = place / file.relative_to(checkpoint)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        yield place


def _link(source: Path, target: Path, but: set[str]) -> None:
    target.mkdir(exist_ok=True)
    for child in source.iterdir():
        if child.name not in but:
            (target / child.name).symlink_to(child.resolve(), target_is_directory=child.is_dir())
