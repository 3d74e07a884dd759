"""Lines and sentences that several rows use."""

from __future__ import annotations

from faultline.faults.catalogue import CATALOGUE
from faultline.faults.judges.moments import WRITTEN
from faultline.faults.steps import STATUS, Inside, Line, Probe, Start, Step, Stop, job_status, until

NOTHING = "nothing is lost or repeated"
ABORTED = "the windows of the open transaction are aborted, and written again from the checkpoint"
SAME_RANGE = "the batch runs again with the range in its offsets file, and replaces what it had written"
RETRIES = "producers are idempotent and retry; consumers go on at their offsets"

LARGE = "--rate 4000"
"""100,000 visits in 25 s."""


WINDOWS_WRITTEN = Probe("faultline.probes.open_transactions", "visit_windows --wait 60")
"""Windows are written and not committed."""

CHECKPOINT_BEGUN = job_status("--wait-begun --wait-seconds 30", STATUS)
"""A checkpoint is triggered and not complete: one of its tasks, or the broker, stands still. Keeps the job's status."""

FIRST_CHECKPOINT = job_status("--wait-checkpoints 1 --wait-seconds 120")
"""The job of a new stack has a checkpoint to continue from."""

BATCH_HELD = (
    Stop("spark"),
    Start("spark", "--hold-batch next"),
    until(180, "test -s {notes}.held"),
)
"""A batch has its offsets file and no commit, and waits."""

BATCH_WRITING = Inside("spark", "python -m faultline.probes.planned --wait-written 120", WRITTEN)
"""A batch has written a file, and has no commit. Keeps its number."""

SERVICES = ("kafka", "jobmanager", "taskmanager", "spark", "generator")

CHECKPOINTS_ON_A_SMALL_DISK = (Line("faultline/faults/small_disk.sh mount {flink} 32"),)
CHECKPOINTS_BACK = (Line("faultline/faults/small_disk.sh unmount {flink}"),)


def broken(name: str) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The lines of a fault in the catalogue: what breaks, and what repairs."""
    return CATALOGUE[name].breaks, CATALOGUE[name].heals


def left_open(topic: str, milliseconds: int) -> Inside:
    """Leave a transaction open: written and not ended; the broker aborts it after so many milliseconds."""
    return Inside("generator", f"python -m faultline.faults.leave_open {topic} {milliseconds}")
