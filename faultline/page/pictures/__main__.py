"""Take the pictures in docs/pictures/ of a stack that runs, and of the live page playing recorded runs.

Usage: python -m faultline.page.pictures cancelled|running|page

`running`: the Flink job's graph and its checkpoints, the synchronizer's page. `cancelled`: the job after a cancel.
`page`: needs no stack; it also writes docs/a_recorded_crash.html. Exit codes: 0 all are saved, 2 one is not.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.direct import open_direct
from faultline.page.pictures.browser import Browser, PictureError, browser
from faultline.player.document import saved
from faultline.player.replay import recording
from faultline.settings import ROOT, Settings
from tests.golden.archives import golden

FOLDER = ROOT / "docs" / "pictures"
RUNS = golden("runs")
CRASH, NAIVE = "taskmanager-kill", "sink-foreach-append"
SAMPLE = ROOT / "docs" / "a_recorded_crash.html"


def newest_job(rest: str) -> str:
    """The id of the job that began last. Raises PictureError when there is none."""
    try:
        with open_direct(f"{rest}/jobs/overview", 30) as answer:
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


def page(window: Browser, _flink: str, _spark: str, folder: Path) -> None:
    """The live page in its main states, from recorded runs."""
    SAMPLE.write_text(saved(recording(RUNS / CRASH)), encoding="utf-8")
    end = 1_000_000.0
    with tempfile.TemporaryDirectory(prefix="pictures-") as scratch:
        naive = Path(scratch) / "naive.html"
        naive.write_text(saved(recording(RUNS / NAIVE)), encoding="utf-8")
        for name, file, second, size, scheme in (
            ("page_running", SAMPLE, moment(CRASH, text="break") - 0.5, (1280, 780), "dark"),
            ("page_fault", SAMPLE, moment(CRASH, text="break") + 3, (1280, 780), "dark"),
            ("page_read_again", SAMPLE, moment(CRASH, what="recovered") + 1.5, (1280, 780), "dark"),
            ("page_holds", SAMPLE, end, (1280, 780), "light"),
            ("page_violated", naive, end, (1280, 780), "dark"),
            ("page_phone", naive, end, (390, 844), "dark"),
        ):
            window.size(*size)
            window.prefer(prefers_color_scheme=scheme)
            window.open(f"{file.as_uri()}#{second}")
            window.picture(folder / f"{name}.png")


def moment(run: str, **fields: str) -> float:
    """The second of the first item of a recorded run that has these fields, from the first sample of the log on."""
    items = recording(RUNS / run)["items"]
    found, first = (
        next(each for each in items if wanted.items() <= each.items()) for wanted in (fields, {"kind": "log"})
    )
    return float(found["at"] - first["at"])


def main() -> int:
    """Run the command line; returns the exit code."""
    wanted = {"running": running, "cancelled": cancelled, "page": page}.get("".join(sys.argv[1:]))
    settings = Settings()
    spark = f"http://{settings.text('BIND_ADDRESS')}:{settings.text('SPARK_UI_PORT')}"
    if wanted is None:
        raise PictureError("which ones? running, cancelled or page")
    with browser() as window:
        wanted(window, settings.flink_rest.split(",")[0], spark, FOLDER)
    return 0


if __name__ == "__main__":
    run("pictures.sh", main)
