"""Events of a row with their times, one JSON object a line, and the samples that the watcher takes meanwhile."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from faultline.messages import say

EVENTS = "events.jsonl"
FLINK = "flink.jsonl"
SPARK = "spark.jsonl"
CHECKPOINTS = "checkpoints.jsonl"
"""Written by `python -m faultline.inspector.flink follow`."""
SEEN = "seen.jsonl"
KAFKA = "kafka.jsonl"
SAMPLES = (KAFKA, FLINK, SPARK, SEEN, CHECKPOINTS)
"""All but the last are written by faultline/probes/watch.py."""
_TAIL_BYTES = 64 * 1024


class Timeline:
    """Writes the events of a row to its folder, and shows them."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / EVENTS
        self._begin = time.time()

    def phase(self, name: str) -> None:
        """Begin a phase: load, break, heal, settle or judge."""
        self.add("phase", name)
        say(f"-- {name}")

    def add(self, kind: str, text: str) -> None:
        """Add an event that happens now. `kind`: phase, command, broken, note."""
        line = json.dumps({"at": time.time(), "kind": kind, "text": text})
        with self._file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def command(self, line: str) -> None:
        """Add and show a command."""
        self.add("command", line)
        say(f"   {time.time() - self._begin:5.1f} s  $ {line}")


def broken_at(folder: Path) -> float:
    """Return when the fault of a row was last there."""
    return max(float(each["at"]) for each in read_lines(folder / EVENTS) if each["kind"] == "broken")


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines; a torn last line is left out."""
    if not file.exists():
        return []
    lines = []
    for text in file.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def broker_samples(folder: Path) -> list[dict[str, Any]]:
    """Return the samples of the broker, without those to which it gave no answer."""
    return [each for each in read_lines(folder / KAFKA) if "stable" in each]


def ends_before(folder: Path, at: float) -> dict[str, Any]:
    """Return the last sample of the broker up to this time; without one, a sample of no partition."""
    samples = [each for each in broker_samples(folder) if each["at"] <= at]
    return max(samples, key=lambda each: float(each["at"]), default={"at": 0.0, "stable": {}, "windows": {}})


def committed_since(folder: Path, sample: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the windows that a reader has seen and that were not committed yet at a sample of the broker."""
    stable = sample["stable"]
    return [each for each in read_lines(folder / SEEN) if each["offset"] >= stable.get(str(each["partition"]), 0)]


def last_samples(file: Path, count: int) -> list[dict[str, Any]]:
    """Read the last samples of a file that grows; a torn last line is left out."""
    if not file.exists():
        return []
    with file.open("rb") as lines:
        lines.seek(max(0, file.stat().st_size - _TAIL_BYTES))
        whole = lines.read().rpartition(b"\n")[0].splitlines()
    return [json.loads(line) for line in whole[-count:]]


def write_timeline(folder: Path) -> dict[str, Any]:
    """Put events and samples into timeline.json, and return it: `events`, and the samples by name."""
    found = {Path(name).stem: read_lines(folder / name) for name in (EVENTS, *SAMPLES)}
    (folder / "timeline.json").write_text(json.dumps(found), encoding="utf-8")
    return found
