"""The parts of the JobManager's REST API that the scripts use.

Paths and fields: https://nightlies.apache.org/flink/flink-docs-release-2.2/docs/ops/rest_api/
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any

TERMINAL_STATES = frozenset({"FINISHED", "CANCELED", "FAILED", "SUSPENDED"})
TIMEOUT_SECONDS = 10
STARTING_LIMIT_SECONDS = 60
"""How long a JobManager may answer 503, as it does until its dispatcher is elected."""
STARTING_POLL_SECONDS = 0.3


class FlinkError(Exception):
    """The cluster does not answer or refuses; the message names the cause and the next step."""


def call(base: str, path: str, method: str = "GET") -> Any:
    """Return the JSON answer of `base + path`, waiting for a JobManager that is still starting. Raises FlinkError."""
    request = urllib.request.Request(base + path, method=method)
    deadline = time.monotonic() + STARTING_LIMIT_SECONDS
    while True:
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                return json.loads(response.read() or b"{}")
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() >= deadline:
                raise FlinkError(f"{base}{path}: the JobManager answers {error.code} {error.reason}") from error
            time.sleep(STARTING_POLL_SECONDS)
        except (OSError, ValueError) as error:
            raise FlinkError(f"no JobManager answers at {base} ({error}); is the service jobmanager up?") from error


def jobs_named(base: str, name: str) -> list[dict[str, Any]]:
    """Jobs of that name, newest first: `{"jid", "state", "start-time" (ms), ...}`. Raises FlinkError."""
    jobs = [job for job in call(base, "/jobs/overview")["jobs"] if job["name"] == name]
    return sorted(jobs, key=lambda job: int(job["start-time"]), reverse=True)


def active_job(base: str, name: str) -> dict[str, Any] | None:
    """The job of that name that is not in a terminal state, if there is one. Raises FlinkError."""
    return next((job for job in jobs_named(base, name) if job["state"] not in TERMINAL_STATES), None)


def checkpoints(base: str, job_id: str) -> dict[str, Any]:
    """Checkpoint statistics of a job: `counts`, `latest.completed`, `latest.restored`, ... Raises FlinkError."""
    answer = call(base, f"/jobs/{job_id}/checkpoints")
    return dict(answer)
