"""Take the pictures in docs/pictures/ of a stack that runs.

Usage: python -m pictures cancelled|running

`running`: the Flink job's graph and its checkpoints, the synchronizer's page. `cancelled`: the job after a cancel.
Exit codes: 0 all are saved, 2 one is not.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path

from contract.settings import ROOT, Settings
from pictures.browser import Browser, PictureError, browser

FOLDER = ROOT / "docs" / "pictures"


def newest_job(rest: str) -> str:
    """The id of the job that began last. Raises PictureError when there is none."""
    try:
        with urllib.request.urlopen(f"{rest}/jobs/overview", timeout=30) as answer:
            jobs = json.load(answer)["jobs"]
    except OSError as error:
        raise PictureError(f"{rest} does not answer ({error}); start the stack with scripts/up.sh") from None
    if not jobs:
        raise PictureError("the JobManager knows no job; submit one with scripts/flink_submit.sh")
    return str(max(jobs, key=lambda job: job["start-time"])["jid"])


def running(window: Browser, flink: str, spark: str, folder: Path) -> None:
    """The pages while everything runs."""
    job = f"{flink}/#/job/running/{newest_job(flink)}"
    window.save(f"{job}/overview", "visit_windows: Writer", folder / "flink_graph.png", height=1000)
    window.save(f"{job}/checkpoints", "Latest Completed Checkpoint", folder / "flink_checkpoints.png", height=780)
    window.save(f"{spark}/StreamingQuery/", "Active Streaming Queries", folder / "spark_queries.png", height=380)


def cancelled(window: Browser, flink: str, _spark: str, folder: Path) -> None:
    """The job's page after a cancel: its checkpoints are still listed."""
    job = f"{flink}/#/job/completed/{newest_job(flink)}"
    window.save(f"{job}/checkpoints", "Latest Completed Checkpoint", folder / "flink_cancelled.png", height=800)


def main() -> int:
    """Run the command line; returns the exit code."""
    wanted = {"running": running, "cancelled": cancelled}.get("".join(sys.argv[1:]))
    settings = Settings()
    spark = f"http://{settings.text('BIND_ADDRESS')}:{settings.text('SPARK_UI_PORT')}"
    try:
        if wanted is None:
            raise PictureError("which ones? running or cancelled")
        with browser() as window:
            wanted(window, settings.flink_rest.split(",")[0], spark, FOLDER)
    except PictureError as error:
        sys.stderr.write(f"pictures: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
