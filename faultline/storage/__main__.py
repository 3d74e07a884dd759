"""Show what an engine has written: `python -m faultline.storage PLACE`.

A folder: the size in bytes and the name of each file below it. A file: its content. Exit codes: 0 shown, 1 it cannot be
read, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence

from faultline.command import run
from faultline.storage.location import Location
from faultline.storage.reading import Tree, walk
from faultline.storage.words import location_argument


def files_below(folder: Location) -> Tree:
    """List the files below a folder, while engines remove old files there. Raises OSError."""
    while True:
        try:
            return walk(folder, skipped=())
        except FileNotFoundError:
            if not folder.exists():
                raise


def show(location: Location) -> None:
    """Print it. Raises OSError."""
    if not location.is_dir():
        with location.open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)
        return
    found = files_below(location)
    lines = {name: f"{size:12}" for name, size in found.files.items()} | found.special
    for name in sorted(lines):
        print(f"{lines[name]}  {name}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/files.sh", description="Show what an engine has written.")
    parser.add_argument(
        "location", type=location_argument, metavar="PLACE", help="a folder or a file; also s3://BUCKET/PATH"
    )
    location: Location = parser.parse_args(arguments).location
    try:
        show(location)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"files: {error.filename or location} cannot be read: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run("files", main)
