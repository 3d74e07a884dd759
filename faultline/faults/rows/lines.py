"""Lines and sentences that several rows use."""

from __future__ import annotations

from faultline.faults.catalogue import catalogue
from faultline.faults.judges.moments import WRITTEN
from faultline.faults.model import Step

FAULT = catalogue()

NOTHING = "nothing is lost or repeated"
ABORTED = "the windows of the open transaction are aborted, and written again from the checkpoint"
SAME_RANGE = "the batch runs again with the range in its offsets file, and replaces what it had written"
RETRIES = "producers are idempotent and retry; consumers go on at their offsets"

LARGE = "--rate 4000"
"""100,000 visits in 25 s."""


def until(seconds: int, condition: str) -> str:
    """A line that waits for a condition, so long at most; Ctrl-C ends it too."""
    return f"timeout --foreground {seconds} bash -c 'until {condition}; do sleep 0.1; done'"


WINDOWS_WRITTEN = Step("scripts/open_transactions.sh visit_windows --wait 60")
"""Windows are written and not committed."""

STATUS = "status.json"
CHECKPOINT_BEGUN = Step(
    until(30, f'scripts/flink_status.sh >{{results}}/{STATUS} && grep --quiet "in_progress.: 1" {{results}}/{STATUS}')
)
"""A checkpoint is triggered and not complete: one of its tasks, or the broker, stands still. Keeps the job's status."""

BATCH_HELD = (
    Step("scripts/spark_stop.sh"),
    Step("scripts/spark_start.sh --hold-batch next"),
    Step(until(180, "test -s {notes}.held")),
)
"""A batch has its offsets file and no commit, and waits."""

BATCH_WRITING = Step(
    f"scripts/exec.sh spark python -m faultline.probes.planned --wait-written 120 >{{results}}/{WRITTEN}"
)
"""A batch has written a file, and has no commit. Keeps its number."""

FROM_LATEST = '--from "$(python -m faultline.inspector.flink resolve latest)"'
"""The arguments of a submit that continues from the newest checkpoint, in the JobManager's environment."""

SERVICES = ("kafka", "jobmanager", "taskmanager", "spark", "generator")

CHECKPOINTS_ON_A_SMALL_DISK = (Step("faultline/faults/small_disk.sh mount {flink} 32"),)
CHECKPOINTS_BACK = (Step("faultline/faults/small_disk.sh unmount {flink}"),)


def broken(name: str) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The lines of a fault in the catalogue: what breaks, and what repairs."""
    return FAULT[name].breaks, FAULT[name].heals


def left_open(topic: str, milliseconds: int) -> Step:
    """A line that leaves a transaction open: written and not ended; the broker aborts it after so many milliseconds."""
    return Step(
        'scripts/exec.sh generator python -c "import os; from kafka import KafkaProducer; '
        "from faultline.settings import Settings; producer = KafkaProducer(bootstrap_servers=Settings().bootstrap, "
        f"transactional_id='foreign', transaction_timeout_ms={milliseconds}); producer.init_transactions(); "
        f"producer.begin_transaction(); [producer.send('{topic}', b'of nobody').get(30) for _ in range(16)]; "
        'os._exit(0)"'
    )


def changed_job(change: str, arguments: str) -> str:
    """The line that submits a changed copy of the job: `change` is a sed expression on its Python files."""
    return (
        "scripts/exec.sh jobmanager bash -c 'copy=$(mktemp -d) && cp -r .env faultline flink_job $copy && (cd $copy && "
        f'sed -i.before "{change}" flink_job/*.py && '
        f"PYTHONPATH=$copy:$PYTHONPATH python -m flink_job.submit {arguments}); code=$?; rm -r $copy; exit $code'"
    )
