"""A submitted job and Flink's own statistics of it: records read, checkpoints and restores in seconds and bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.own_stack import OwnStack
from faultline.stack.errors import StackError
from faultline.waiting import LOOK_SECONDS, wait_until
from flink_job.cancel import cancel
from flink_job.rest import FlinkError, call, checkpoints

JOB = "flink_job/stateful_flink_consumer.py"
"""The windowing job."""
READ_SECONDS = 1800.0
_LIMIT_SECONDS = 180.0
_COMPLETED, _FAILED = "COMPLETED", "FAILED"
# By the names that flink_job/names.py gives.
_WINDOWS = "windows per visit_id"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that has ended.

    `seconds`: from its trigger to the last acknowledgement; `full_bytes`: all that a restore reads; `written_bytes`:
    what this checkpoint wrote, less than that when it is incremental; `in_flight_bytes`: records that it holds because
    barriers overtook them.
    """

    number: int
    complete: bool
    seconds: float
    full_bytes: int
    written_bytes: int
    in_flight_bytes: int


def checkpoint_of(entry: Mapping[str, Any]) -> Checkpoint | None:
    """Read one entry of the JobManager's statistics; None while it is in progress."""
    if entry["status"] not in (_COMPLETED, _FAILED):
        return None
    complete = entry["status"] == _COMPLETED
    acknowledged = entry["latest_ack_timestamp"]
    milliseconds = acknowledged - entry["trigger_timestamp"] if complete else entry["end_to_end_duration"]
    return Checkpoint(
        number=entry["id"],
        complete=complete,
        seconds=milliseconds / 1000,
        full_bytes=entry["state_size"],
        written_bytes=entry["checkpointed_size"],
        in_flight_bytes=entry["persisted_data"],
    )


def ended(statistics: Mapping[str, Any]) -> list[Checkpoint]:
    """The checkpoints that have ended, of those that the JobManager remembers; savepoints are left out."""
    entries = [entry for entry in statistics["history"] if not entry["is_savepoint"]]
    return [found for entry in entries if (found := checkpoint_of(entry)) is not None]


def initializing_seconds(subtasks: Sequence[Mapping[str, Any]]) -> float:
    """Seconds that the slowest task of an operator took to restore its state: from INITIALIZING to RUNNING."""
    times = [task["timestamps"] for task in subtasks]
    return max(float(each["RUNNING"] - each["INITIALIZING"]) for each in times) / 1000


def run_since(task: Mapping[str, Any], since: float) -> bool:
    """Return whether a task runs that was started after a moment in seconds since the epoch."""
    times = task["timestamps"]
    return bool(times["INITIALIZING"] / 1000 > since and times["RUNNING"] >= times["INITIALIZING"])


class Job:
    """A job, asked by the JobManager's REST API."""

    def __init__(self, base: str, job: str) -> None:
        self._base, self._path = base, f"/jobs/{job}"
        self.id = job

    def steps(self) -> list[dict[str, Any]]:
        """Its steps, the source first, as `/jobs/JOB` lists them."""
        return list(call(self._base, self._path)["vertices"])

    def step(self, number: int) -> dict[str, Any]:
        """A step with its subtasks: `/jobs/JOB/vertices/STEP`."""
        return dict(call(self._base, f"{self._path}/vertices/{self.steps()[number]['id']}"))

    def records_read(self) -> int:
        """The counter of the source operator, all its tasks together."""
        path = f"{self._path}/vertices/{self.steps()[0]['id']}/subtasks/metrics"
        listed = [metric["id"] for metric in call(self._base, path)]
        names = [name for name in listed if name.startswith("Source__") and name.endswith(".numRecordsIn")]
        if not names:
            return 0
        return int(sum(metric.get("sum", 0) for metric in call(self._base, f"{path}?get={names[0]}")))

    def wait_until_read(
        self, records: int, look: Callable[[], object] = lambda: None, *, every: float = LOOK_SECONDS
    ) -> None:
        """Wait until the source has read so many records, and call `look` each time. Raises StackError for more."""

        def read() -> bool:
            look()
            return self.records_read() >= records

        wait_until(read, f"{records} records to be read", seconds=READ_SECONDS, every=every)
        self.require_read(records)

    def require_read(self, records: int) -> None:
        """Raise StackError unless the source has read so many records, and no more."""
        if (found := self.records_read()) != records:
            raise StackError(f"{found} records were read of {records}: not a valid measurement", 1)

    def statistics(self) -> dict[str, Any]:
        """Checkpoint statistics."""
        return checkpoints(self._base, self.id)

    def checkpoint(self) -> Checkpoint:
        """Take a checkpoint now and wait for it. Raises StackError when it fails."""
        request = call(self._base, f"{self._path}/checkpoints", method="POST")["request-id"]

        def done() -> dict[str, Any] | None:
            answer: dict[str, Any] = call(self._base, f"{self._path}/checkpoints/{request}")
            return answer if answer["status"]["id"] == _COMPLETED else None

        answer = wait_until(done, "a checkpoint", seconds=_LIMIT_SECONDS, every=0.05)
        number = answer["operation"].get("checkpointId")
        if number is None:
            raise StackError(f"the checkpoint failed: {answer['operation'].get('failure-cause')}", 1)
        found = checkpoint_of(call(self._base, f"{self._path}/checkpoints/details/{number}"))
        if found is None or not found.complete:
            raise StackError(f"checkpoint {number} is not complete", 1)
        return found

    def wait_until_restored(self, since: float) -> float:
        """Wait until all tasks run that were restored after a moment in seconds since the epoch.

        Returns the seconds in which the tasks with the windows restored their state.
        """
        times: dict[str, list[Mapping[str, Any]]] = {}

        def runs() -> bool:
            restored = self.statistics()["latest"]["restored"]
            if not restored or restored["restore_timestamp"] / 1000 <= since:
                return False
            times.update({each["name"]: self._subtasks(each["id"]) for each in self.steps()})
            # The JobManager's answers can be seconds old: those on the tasks that were killed are not meant.
            return all(run_since(task, since) for tasks in times.values() for task in tasks)

        wait_until(runs, "the restored job to run", seconds=_LIMIT_SECONDS, despite=(FlinkError,))
        (name,) = (name for name in times if _WINDOWS in name)
        return initializing_seconds(times[name])

    def _subtasks(self, vertex: str) -> list[Mapping[str, Any]]:
        return list(call(self._base, f"{self._path}/vertices/{vertex}/subtasktimes")["subtasks"])

    def cancel(self) -> None:
        """Cancel the job and wait for its end."""
        cancel(self._base, self.id)


def submitted(stack: OwnStack, program: str = JOB, *flags: str) -> Job:
    """Submit a job by its program, a path below the project's folder, and wait until it runs. Raises StackError."""
    command = ("python", "-m", "flink_job.submit", "--program", program, *flags)
    return Job(stack.settings.typed.flink_rest, stack.ask(stack.service("jobmanager"), *command).strip())
