"""A live page with buttons whose samples are those of a recorded run, at the pace at which they were taken.

Usage: python -m tests.stack.page_of_a_run PORT TOKEN FOLDER

The stack that the buttons act on is absent, so each of them fails with its reason. Ends with SIGTERM.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn

from faultline.page.actions import Runner
from faultline.page.server import application
from faultline.page.watching import Watching


def main(port: int, token: str, folder: Path) -> None:
    """Serve until SIGTERM."""
    timeline: dict[str, list[dict[str, Any]]] = json.loads((folder / "timeline.json").read_text(encoding="utf-8"))
    del timeline["events"]
    watching = Watching({}, lambda _: None)
    threading.Thread(target=feed, args=(watching, timeline), daemon=True).start()
    runner = Runner(watching.add, str)
    server = uvicorn.Server(uvicorn.Config(
        application(
            watching, lambda path: (path, True), [f"127.0.0.1:{port}"], token=token, runner=runner, partitions=2,
            ends=lambda: server.should_exit, given_up=lambda: True,
        ),
        port=port, log_level="error", timeout_graceful_shutdown=1,
    ))  # fmt: skip
    server.run()


def feed(watching: Watching, timeline: dict[str, list[dict[str, Any]]]) -> None:
    """Hand on the samples from the moment at which a page is opened."""
    while not watching.is_watched():
        time.sleep(0.02)
    later = time.time() - min(each[0]["at"] for each in timeline.values())
    for source, sample in in_order(timeline):
        time.sleep(max(0.0, sample["at"] + later - time.time()))
        watching.take(source, moved(sample, later))


def in_order(timeline: dict[str, list[dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The samples in the order of their times, each with its source."""
    found = [(source, sample) for source, samples in timeline.items() for sample in samples]
    yield from sorted(found, key=lambda each: float(each[1]["at"]))


def moved(sample: dict[str, Any], later: float) -> dict[str, Any]:
    """The same sample, and the checkpoints that it names, so many seconds later."""
    found = {**sample, "at": sample["at"] + later}
    if "checkpoints" in sample:
        found["checkpoints"] = [{**each, "at": each["at"] + int(later * 1000)} for each in sample["checkpoints"]]
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
