"""The state of a stack: each service, the Flink job, the synchronizer, both backlogs, and the problems."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from faultline.formats.status import Backlog, FlinkJob, Progress
from faultline.messages import say
from faultline.settings import own_store
from faultline.stack import preflight
from faultline.stack.backend import PAUSED, RUNNING
from faultline.stack.errors import StackError

if TYPE_CHECKING:
    from faultline.stack.stack import Stack

_MIB = 1 << 20
_MISSED_CHECKPOINTS = 5
_LEAST_SECONDS = 30.0
"""A checkpoint is late when so many are missing, and at least so much time has passed: a restart takes seconds."""
_MANY_FAILURES = 3
_BACKLOG_SECONDS = 60.0
"""A pipeline is too far behind when the source takes longer than this to grow by as much."""
_ON_ITS_WAY = ("CREATED", "INITIALIZING", "RESTARTING", "FAILING", "SUSPENDED")
"""A job is suspended while no JobManager leads; the next leader continues it."""


@dataclass(frozen=True)
class ServiceStatus:
    """One service: its name, its state, and the resident MiB of its processes."""

    service: str
    state: str
    memory_mib: int


@dataclass(frozen=True)
class Status:
    """The state of a stack. `down`: nothing of it runs, and nothing should."""

    backend: str
    chosen: Mapping[str, str]
    """Settings that were chosen for this stack instead of those in `.env`; name to value."""
    services: tuple[ServiceStatus, ...]
    flink_job: FlinkJob | None
    progress: Progress | None
    """None when it could not be asked."""
    disk_free_mib: int
    problems: tuple[str, ...]
    down: bool

    @property
    def well(self) -> bool:
        """True without problems."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """The object of `status.sh --json`."""
        job, progress = self.flink_job, (self.progress or Progress()).as_json()
        return {
            "backend": self.backend,
            "chosen": dict(self.chosen),
            "services": [asdict(each) for each in self.services],
            "flink_job": job and {**asdict(job), "latest_age_seconds": job.latest_age_seconds},
            "synchronizer": progress["synchronizer"],
            "behind": progress["behind"],
            "disk_free_mib": self.disk_free_mib,
            "problems": list(self.problems),
            "well": self.well,
        }


def status(stack: Stack) -> Status:
    """Collect the state of everything."""
    states = stack.backend.states()
    # Before the questions: on Compose they run in the containers of services, and would count.
    resident = stack.backend.memories()
    services = tuple(
        ServiceStatus(row.name, states[row.name], resident.get(row.name, 0) // _MIB) for row in stack.services
    )
    problems = [
        f"{row.name} is {states[row.name]}; {_next_step(row.name, states[row.name])}"
        for row in stack.services
        if states[row.name] == PAUSED or (states[row.name] != RUNNING and not row.may_finish)
    ]
    down = stack.home.up() is None and not {RUNNING, PAUSED}.intersection(states.values())
    if down:
        root = stack.home.root
        what = f"the stack in {root} is down" if stack.home.marker() else f"there is no stack in {root}"
        problems = [f"{what}; start it with scripts/up.sh"]
    managed = any(states[row.name] == RUNNING for row in stack.copies("jobmanager"))
    with ThreadPoolExecutor() as side:
        # Each of both programs takes longer to start than to answer.
        asked = None if down else side.submit(copy_context().run, _progress, stack, states)
        job = _job(stack) if managed else None
    progress = asked.result() if asked else Progress()
    if progress is None:
        problems.append("the batches and the backlogs are not known; the reason is above")
    if managed and (job is None or job.state != "RUNNING"):
        way = "wait until it runs" if job and job.state in _ON_ITS_WAY else "restore it with scripts/flink_restore.sh"
        problems.append(f"the Flink job is {job.state if job else 'missing'}; {way}")
    problems += _of_job(job) if job else []
    if progress and progress.refused:
        problems.append(f"{progress.refused}; {_next_step_of_store(stack.settings.values)}")
    problems += _of_backlogs((progress and progress.behind) or {}, states)
    free = preflight.free_mebibytes(stack.home.root)
    if free < preflight.RUN_MIB:
        problems.append(f"only {free} MiB of disk are free at {stack.home.root}; checkpoints will fail when it is full")
    return Status(
        stack.backend.name, stack.settings.chosen, services, job, progress, free, tuple(problems), down,
    )  # fmt: skip


def _of_job(job: FlinkJob) -> list[str]:
    """The problems of a job: it fails again and again, or its newest checkpoint is old."""
    problems = []
    if job.recent_failures >= _MANY_FAILURES:
        problems.append(
            f"the Flink job failed {job.recent_failures} times in two minutes: {job.newest_failure}; "
            "see scripts/logs.sh taskmanager"
        )
    allowed = max(_LEAST_SECONDS, _MISSED_CHECKPOINTS * job.checkpoint_interval_ms / 1000)
    age = time.time() - max(job.submitted_at, job.latest_at or 0) / 1000
    if job.state == "RUNNING" and age > allowed:
        problems.append(
            f"the Flink job has completed no checkpoint for {age:.0f} s, and one is due every "
            f"{job.checkpoint_interval_ms / 1000:g} s; see scripts/logs.sh taskmanager"
        )
    return problems


def _of_backlogs(behind: Mapping[str, Backlog | None], states: Mapping[str, str]) -> list[str]:
    """A problem for each pipeline whose backlog is too large for the rate of the source."""
    service_of = {"spark": "spark", "flink": "taskmanager"}
    return [
        f"{name} is behind by {found.offsets:,} offsets, which the source writes in {found.seconds:.0f} s; "
        f"wait if it catches up, else see scripts/logs.sh {service_of[name]}"
        for name, found in behind.items()
        if found and found.seconds and found.seconds > _BACKLOG_SECONDS and states.get(service_of[name]) == RUNNING
    ]


def _next_step(name: str, state: str) -> str:
    return f"resume it with scripts/resume.sh {name}" if state == PAUSED else f"start it with scripts/start.sh {name}"


def _job(stack: Stack) -> FlinkJob | None:
    command = ["python", "-m", "flink_job.status"]
    done = stack.backend.execute(stack.running("jobmanager"), command, capture=True, check=False)
    try:
        return FlinkJob.from_json(json.loads(done.stdout))
    except ValueError:
        # The reason is already on stderr.
        return None
    except KeyError as error:
        raise StackError(f"flink_job.status prints no {error}: its image is another one; run scripts/up.sh") from None


def _next_step_of_store(values: Mapping[str, str]) -> str:
    """Return the next step when the store takes no object: a full store says only that the write failed."""
    if not own_store(values):
        return "is it full, or may its key not write?"
    more = f"scripts/stop.sh store, then STACK_STORE_VOLUMES={2 * int(values['STORE_VOLUMES'])} scripts/start.sh store"
    room = f"STORE_VOLUMES={values['STORE_VOLUMES']} of {values['STORE_VOLUME_MB']} MB"
    return f"scripts/logs.sh store says why; if it is full ({room}), give it more: {more}"


def _progress(stack: Stack, states: Mapping[str, str]) -> Progress | None:
    """Ask faultline.probes.progress; None when it fails, and the reason is on stderr."""
    without = ["broker"] if all(states[row.name] != RUNNING for row in stack.copies("kafka")) else []
    without += ["store"] if stack.data and states.get("store", RUNNING) != RUNNING else []
    command = ["python", "-m", "faultline.probes.progress", *(word for each in without for word in ("--without", each))]
    try:
        done = stack.backend.tool(command, capture=True, beside=stack.service("spark"))
        return Progress.from_json(json.loads(done.stdout))
    except StackError as error:
        say(str(error))
        return None
    except ValueError:
        return None
