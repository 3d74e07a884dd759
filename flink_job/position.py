"""The position of the running job: the offset that its source reports as a metric of each partition."""

from __future__ import annotations

import re

from flink_job.rest import call

_OFFSET = re.compile(r"\.KafkaSourceReader\.topic\.(?P<topic>.+)\.partition\.(?P<partition>\d+)\.currentOffset$")
_SOURCE = "Source"


def position(base: str, job_id: str, topic: str) -> dict[int, int]:
    """Return the offset of the next record that the job reads, by partition; empty when no task reports one.

    Flink fetches metrics once in `metrics.fetcher.update-interval`: the job may be further by now. Raises FlinkError.
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
