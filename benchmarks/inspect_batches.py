"""Benchmark of the inspector on a Spark checkpoint of many batches, compared with only reading the files.

Usage: python -m benchmarks.inspect_batches [BATCHES]

The checkpoint is a recorded one, continued: each batch has the files that Spark wrote for one, with its own ends.
Both programs are restarted for each run; the table has the median of the runs, and the batches that each counted.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.own_stack import run_benchmark
from benchmarks.table import row
from faultline.settings import ROOT
from tests.golden.archives import golden

RECORDED = golden("spark-4.0") / "kafka_killed" / "checkpoint"
RUNS = 5
ROWS_A_BATCH = 10
READ_ALL = """
import pathlib, sys
checkpoint = pathlib.Path(sys.argv[1])
logs = {name: [path.read_bytes() for path in (checkpoint / name).iterdir()] for name in ("offsets", "commits")}
print(len(logs["offsets"]))
"""
LAST_BATCH_SHOWN = "1"
_WIDTHS = "{:<32} {:>12} {:>8} {:>6}"


def continued(folder: Path, batches: int) -> None:
    """Write a checkpoint of that many batches, all committed."""
    (folder / "metadata").write_bytes((RECORDED / "metadata").read_bytes())
    version, settings, ends = (RECORDED / "offsets" / "1").read_text("utf-8").splitlines()
    topics: dict[str, dict[str, int]] = json.loads(ends)
    (folder / "offsets").mkdir()
    (folder / "commits").mkdir()
    commit = (RECORDED / "commits" / "1").read_bytes()
    for batch in range(batches):
        end = (batch + 1) * ROWS_A_BATCH
        moved = {topic: dict.fromkeys(partitions, end) for topic, partitions in topics.items()}
        (folder / "offsets" / str(batch)).write_text("\n".join((version, settings, json.dumps(moved))), "utf-8")
        (folder / "commits" / str(batch)).write_bytes(commit)


def timed(command: list[str]) -> tuple[float, str]:
    """Run a program RUNS times; its median seconds and what it printed. Raises CalledProcessError when it fails."""
    seconds, printed = [], ""
    for _ in range(RUNS):
        started = time.monotonic()
        printed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds), printed


def measure(batches: int) -> int:
    """Measure with so many batches and print the table; returns the exit code, 1 when the counts differ."""
    with tempfile.TemporaryDirectory(prefix="inspect-batches-") as scratch:
        checkpoint = Path(scratch)
        continued(checkpoint, batches)
        reading, read = timed([sys.executable, "-c", READ_ALL, scratch])
        shown = ["--json", "--last", LAST_BATCH_SHOWN]
        inspecting, report = timed([sys.executable, "-m", "faultline.inspector", scratch, *shown])
    counted = json.loads(report)["counts"]["batches"]
    row(_WIDTHS, f"checkpoint of {batches} batches", "batches read", "seconds", "ratio")
    row(_WIDTHS, "reading every file", int(read), f"{reading:.2f}", "1.00")
    row(_WIDTHS, "scripts/inspect.sh, its program", counted, f"{inspecting:.2f}", f"{inspecting / reading:.2f}")
    return 0 if counted == int(read) == batches else 1


if __name__ == "__main__":
    run_benchmark("inspector.sh", measure, BATCHES="10000")
