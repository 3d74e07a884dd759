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
from faultline.storage.place import Place
from faultline.storage.reading import Tree, walk
from faultline.storage.words import place_argument


def files_below(folder: Place) -> Tree:
    """List the files below a folder, while engines remove old files there. Raises OSError."""
    while True:
        try:
            return walk(folder, skipped=())
        except FileNotFoundError:
            if not folder.exists():
                raise


def show(place: Place) -> None:
    """Print it. Raises OSError."""
    if not place.is_dir():
        with place.open("rb") as content:
            shutil.copyfileobj(content, sys.stdout.buffer)
        return
    found = files_below(place)
    lines = {name: f"{size:12}" for name, size in found.files.items()} | found.special
    for name in sorted(lines):
        print(f"{lines[name]}  {name}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/files.sh", description="Show what an engine has written.")
    parser.add_argument("place", type=place_argument, metavar="PLACE", help="a folder or a file; also s3://BUCKET/PATH")
    place: Place = parser.parse_args(arguments).place
    try:
        show(place)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"files: {error.filename or place} cannot be read: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    run("files", main)
