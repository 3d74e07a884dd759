"""What a stack with its data in an object store has there, for its status: one JSON object.

Usage: python -m faultline.probes.in_store

`synchronizer`: the newest committed batch of the default query, with `query`, `batch` and `age_seconds`; null before
the first one. `refused`: why the store cannot be read, or takes no object; empty when all is well.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.settings import Settings, SettingsError
from faultline.storage.data import spark_checkpoints
from faultline.storage.place import Place
from faultline.storage.words import place_of
from faultline.storage.writing import require_writable


def newest_batch(checkpoint: Place) -> dict[str, Any] | None:
    """The newest batch, with the seconds since its commit; None before the first one. Raises OSError."""
    try:
        commits = [each for each in (checkpoint / "commits").iterdir() if each.name.isdigit()]
    except FileNotFoundError:
        return None
    if not commits:
        return None
    newest = max(commits, key=lambda each: int(each.name))
    return {"batch": int(newest.name), "age_seconds": round(time.time() - newest.stat().st_mtime, 1)}


def in_store(settings: Settings) -> dict[str, Any]:
    """The answer. Raises SettingsError."""
    found, why = None, ""
    try:
        found = newest_batch(spark_checkpoints(settings) / settings.query())
        require_writable(place_of(settings.data, settings), 1)
    except OSError as error:
        why = str(error.strerror)
    return {"synchronizer": found and {"query": settings.query(), **found}, "refused": why}


def main() -> int:
    """Print the answer; returns the exit code."""
    try:
        print(json.dumps(in_store(Settings())))
    except SettingsError as error:
        print(f"object store: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    run("object store", main)
