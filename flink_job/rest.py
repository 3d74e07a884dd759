"""The parts of the JobManager's REST API that the scripts use.

Paths and fields: https://nightlies.apache.org/flink/flink-docs-release-2.2/docs/ops/rest_api/
"""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from faultline.command import CommandError
from faultline.copies import taskmanager_service
from faultline.direct import open_direct
from faultline.waiting import attempts

TERMINAL_STATES = frozenset({"FINISHED", "CANCELED", "FAILED", "SUSPENDED"})
TIMEOUT_SECONDS = 30
STARTING_LIMIT_SECONDS = 180
"""Seconds that a JobManager may answer 503, as it does until its dispatcher is elected."""


class FlinkError(CommandError):
    """The cluster does not answer or refuses; the message names the cause and the next step."""


def call(base: str, path: str, method: str = "GET", *, seconds: float = STARTING_LIMIT_SECONDS) -> Any:
    """Return the JSON answer of a JobManager, waiting for one that is still starting. Raises FlinkError.

    `base`: the address of the JobManager, or those of all of them with commas between: each answers for the leader, so
    the first that runs is asked. `seconds`: the wait for one that is starting, and, up to 30, for each answer.
    """
    bases = base.split(",")
    # A standby passes requests on to a leader that was killed until another is elected.
    not_yet = {HTTPStatus.SERVICE_UNAVAILABLE, *([HTTPStatus.INTERNAL_SERVER_ERROR] if len(bases) > 1 else [])}
    for _ in attempts(seconds):
        try:
            return _first_answer(bases, path, method, min(seconds, TIMEOUT_SECONDS))
        except urllib.error.HTTPError as error:
            refused = error
            if error.code not in not_yet:
                break
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise FlinkError(f"no JobManager answers at {base} ({error}); is the service jobmanager up?") from error
    raise FlinkError(f"{base}{path}: the JobManager answers {refused.code} {refused.reason}") from refused


def _first_answer(bases: Sequence[str], path: str, method: str, seconds: float) -> Any:
    """Ask one address after the other until one answers; raises what the last one raised."""
    *others, last = bases
    for base in others:
        try:
            return _answer(base + path, method, seconds)
        except urllib.error.HTTPError:
            raise
        except OSError:
            continue
    return _answer(last + path, method, seconds)


def _answer(address: str, method: str, seconds: float) -> Any:
    request = urllib.request.Request(address, method=method)
    with open_direct(request, seconds) as response:
        return json.loads(response.read() or b"{}")


def is_absent(error: FlinkError) -> bool:
    """Return whether the address has no listener or no container; one that is paused or cut off has."""
    cause = error.__cause__
    reason = cause.reason if isinstance(cause, urllib.error.URLError) else cause
    return isinstance(reason, (ConnectionRefusedError, socket.gaierror))


def jobs_named(base: str, name: str) -> list[dict[str, Any]]:
    """Jobs of that name, newest first: `{"jid", "state", "start-time" (ms), ...}`. Raises FlinkError."""
    jobs = [job for job in call(base, "/jobs/overview")["jobs"] if job["name"] == name]
    return sorted(jobs, key=lambda job: int(job["start-time"]), reverse=True)


def active_job(base: str, name: str) -> dict[str, Any] | None:
    """The job of that name that is not in a terminal state, if there is one. Raises FlinkError."""
    return next((job for job in jobs_named(base, name) if job["state"] not in TERMINAL_STATES), None)


def checkpoints(base: str, job_id: str, *, seconds: float = STARTING_LIMIT_SECONDS) -> dict[str, Any]:
    """Checkpoint statistics of a job: `counts`, `latest.completed`, `latest.restored`, ... Raises FlinkError."""
    answer = call(base, f"/jobs/{job_id}/checkpoints", seconds=seconds)
    return dict(answer)


def failures(base: str, job_id: str) -> list[tuple[int, str]]:
    """The failures of a job, the newest first: milliseconds since the epoch and innermost cause. Raises FlinkError."""
    entries = call(base, f"/jobs/{job_id}/exceptions")["exceptionHistory"]["entries"]
    return [(int(each["timestamp"]), cause(each["stacktrace"])) for each in entries]


def working_taskmanager(base: str, job_id: str) -> str:
    """The TaskManager that runs the job's first task, by the name of its service. Raises FlinkError."""
    vertex = call(base, f"/jobs/{job_id}")["vertices"][0]["id"]
    managers = call(base, f"/jobs/{job_id}/vertices/{vertex}/taskmanagers")["taskmanagers"]
    return taskmanager_service(managers[0]["taskmanager-id"])


def cause(stacktrace: str) -> str:
    """The line of the innermost cause in a stack trace."""
    head, *lines = stacktrace.splitlines()
    inner = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return inner[-1] if inner else head
