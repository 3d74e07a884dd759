"""The position of the running job: the offset that its source reports as a metric of each partition.

The JobManager answers from what it fetched before, and a question makes it fetch again, at most once in
`metrics.fetcher.update-interval` (MetricFetcherImpl of Flink). So the first answer is as old as the question before it.
"""

from __future__ import annotations

import re

from flink_job.rest import call

_OFFSET = re.compile(r"\.KafkaSourceReader\.topic\.(?P<topic>.+)\.partition\.(?P<partition>\d+)\.currentOffset$")
_SOURCE = "Source"
_FETCH_SECONDS = 1.0
"""`metrics.fetcher.update-interval` in flink_job/conf/config.yaml."""
_PAUSE_SECONDS = 5.0
"""The longest time between two questions of which the second answer is still taken for the present."""


def position(base: str, job_id: str, topic: str) -> dict[int, int]:
    """Return the offset of the next record that the job reads, by partition; empty when no task reports one.

    It may be of the past: see `Recent`. Raises FlinkError.
    """
    found: dict[int, int] = {}
    for vertex in call(base, f"/jobs/{job_id}")["vertices"]:
        if not vertex["name"].startswith(_SOURCE):
            continue
        path = f"/jobs/{job_id}/vertices/{vertex['id']}/subtasks/metrics"
        names = {each["id"]: match for each in call(base, path) if (match := _OFFSET.search(each["id"]))}
        wanted = [name for name, match in names.items() if match["topic"] == topic]
        for value in call(base, f"{path}?get={','.join(wanted)}&agg=max") if wanted else []:
            # The metric is the last record that was read; below 0 nothing was read yet.
            if value["max"] >= 0:
                found[int(names[value["id"]]["partition"])] = int(value["max"]) + 1
    return found


class Recent:
    """Tells which positions are recent: at most 6 s old, and 1.5 s when somebody asks twice a second."""

    def __init__(self) -> None:
        self._attempt: object = None
        self._since = self._asked = 0.0

    def is_recent(self, attempt: object, now: float) -> bool:
        """Return whether a position that is asked for at `now`, in seconds, is recent.

        `attempt`: what changes when the job is submitted or its tasks start again, since the metrics of the tasks
        before stay until the next fetch; None while not all tasks run.
        """
        if attempt != self._attempt or now - self._asked > _PAUSE_SECONDS:
            self._since = now
        self._attempt, self._asked = attempt, now
        return attempt is not None and now - self._since > _FETCH_SECONDS
