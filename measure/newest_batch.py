"""The newest committed batch of the default query, wherever its checkpoint is: one JSON object, or null.

Usage: python -m measure.newest_batch

The object has `query`, `batch` and `age_seconds`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from contract.settings import Settings, SettingsError
from places.data import spark_checkpoints
from places.place import Place


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


def main() -> int:
    """Print the answer; returns the exit code."""
    try:
        settings = Settings()
        found = newest_batch(spark_checkpoints(settings) / settings.query())
    except SettingsError as error:
        print(f"newest batch: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"newest batch: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    print(json.dumps(None if found is None else {"query": settings.query(), **found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
