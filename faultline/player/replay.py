"""A recorded run as one HTML file, which plays it without a stack, without a server and without a network.

Usage: python -m faultline.player.replay FOLDER...

FOLDER: the results of scripts/faults.sh, of one row or of all rows of a run. Prints the address of each file.
Exit codes: 0 written, 2 there is no recorded run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from faultline.command import CommandError, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.player.document import saved
from faultline.player.items import of_timeline

REPORT = "report.html"
TIMELINE = "timeline.json"
_NEXT = "scripts/faults.sh run NAME records one below results/"
_SPARK_WORDS = ("spark_before", "spark_after")
"""Names of the inspector's reports on Spark's checkpoint, before the fault and after the verdict."""
FLINK_WORDS = "inspected"
"""Below it, what it has said of each checkpoint of Flink as it was completed: `<job id>/chk-N.txt`."""


class ReplayError(CommandError):
    """There is no recorded run, or it cannot be read; the message names it and the next step."""


def write(folder: Path) -> Path:
    """Write report.html of one row of a run, beside its timeline.json, and return its path. Raises ReplayError."""
    file = folder / REPORT
    file.write_text(saved(recording(folder)), encoding="utf-8")
    return file


def recording(folder: Path) -> dict[str, Any]:
    """Return what the page draws of one row. Raises ReplayError."""
    timeline = _read(folder / TIMELINE)
    if not isinstance(timeline, dict) or "events" not in timeline:
        raise ReplayError(f"{folder / TIMELINE} is not a timeline of scripts/faults.sh; {_NEXT}")
    result = _read(folder / "result.json", {})
    items = of_timeline(timeline)
    verdict = _read(folder / "verdict.json", None)
    if verdict is not None:
        at = max((item["at"] for item in items), default=0.0)
        items.append({"kind": "verdict", "at": at, "verdict": verdict})
    return {
        "mode": "replay",
        "title": result.get("row", folder.name),
        "promise": result.get("promise", ""),
        "why": result.get("why", ""),
        "outcome": result.get("outcome", ""),
        "reason": result.get("reason", ""),
        "checks": result.get("checks", []),
        "times": result.get("times", {}),
        "inspector": {
            name: file.read_text(encoding="utf-8", errors="replace") for name, file in _words(folder) if file.is_file()
        },
        "items": items,
    }


def rows_of(folder: Path) -> list[Path]:
    """The rows with a timeline in a folder of results, or the folder itself when it is one. Raises ReplayError."""
    if (folder / TIMELINE).is_file():
        return [folder]
    found = sorted(file.parent for file in folder.glob(f"*/{TIMELINE}")) if folder.is_dir() else []
    if not found:
        raise ReplayError(f"{folder} has no recorded run ({TIMELINE}); {_NEXT}")
    return found


def _read(file: Path, default: Any = ...) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if default is not ...:
            return default
        raise ReplayError(f"{file} is missing; {_NEXT}") from None
    except OSError as error:
        raise ReplayError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ReplayError(f"{file} is damaged ({error}); {_NEXT}") from None


def _words(folder: Path) -> Iterator[tuple[str, Path]]:
    """Files with words of the inspector, by the names that the page knows."""
    for name in _SPARK_WORDS:
        yield name, folder / f"{name}.txt"
    below = folder / FLINK_WORDS
    for file in sorted(below.glob("**/*.txt")):
        yield str(file.relative_to(below).with_suffix("")), file


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    for name in arguments:
        for folder in rows_of(Path(name)):
            print(write(folder).resolve().as_uri())
    return 0


if __name__ == "__main__":
    run("page.sh", lambda: main(sys.argv[1:]))
