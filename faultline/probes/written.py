"""Lines that the synchronizer has written since a row began: whether the load was what the row says.

Usage: python -m faultline.probes.written FOLDER

FOLDER has `begin.json` of faultline/probes/watch.py. Prints one line of JSON: `repeated`, how many lines of the files
since then repeat another one, byte for byte; `longest`, the bytes of the longest one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from faultline.command import run
from faultline.probes.watch import BEGIN
from faultline.settings import Settings
from faultline.storage.data import spark_outputs
from faultline.storage.location import Location


def lines_since(output: Location, began: float) -> dict[str, int]:
    """Return the numbers for the files that were written after this time. Raises OSError."""
    seen: set[bytes] = set()
    repeated = longest = 0
    for file in output.rglob("part-*"):
        if file.stat().st_mtime <= began:
            continue
        with file.open("rb") as lines:
            for line in lines:
                digest = blake2b(line, digest_size=16).digest()
                repeated += digest in seen
                longest = max(longest, len(line))
                seen.add(digest)
    return {"repeated": repeated, "longest": longest}


def main(arguments: Sequence[str]) -> int:
    """Print the numbers; returns the exit code."""
    settings = Settings()
    began = (Path(arguments[0]) / BEGIN).stat().st_mtime
    print(json.dumps(lines_since(spark_outputs(settings) / settings.query(), began)))
    return 0


if __name__ == "__main__":
    run("written", lambda: main(sys.argv[1:]))
