"""The spread of work over processes, from answers of Flink's and Spark's REST APIs; this module sends no requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from faultline.copies import taskmanager_service


def shares(figures: Mapping[str, float]) -> dict[str, float]:
    """Each figure in units of a fair share: 1.0 when all are equal. No work at all is shared equally."""
    fair = sum(figures.values()) / len(figures) if figures else 0.0
    return {name: figure / fair if fair else 1.0 for name, figure in figures.items()}


def records_by_taskmanager(vertex: Mapping[str, Any], metric: str) -> dict[str, int]:
    """Records of a step by TaskManager: `/jobs/JOB/vertices/STEP`. `metric`: `read-records` or `write-records`."""
    found: dict[str, int] = defaultdict(int)
    for subtask in vertex["subtasks"]:
        found[taskmanager_service(subtask["taskmanager-id"])] += int(subtask["metrics"][metric])
    return dict(found)


def records_by_executor(tasks: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Records that tasks have read, by executor: `/applications/APP/stages/STAGE/ATTEMPT/taskList`."""
    found: dict[str, int] = defaultdict(int)
    for task in tasks:
        found[task["executorId"]] += int(task.get("taskMetrics", {}).get("inputMetrics", {}).get("recordsRead", 0))
    return dict(found)


def worker_of(executor: Mapping[str, Any], workers: Mapping[int, str]) -> str | None:
    """The service that runs an executor: its log is on its worker's page. `workers`: by the port of their page."""
    return next(
        (workers[port] for url in executor["executorLogs"].values() if (port := urlsplit(url).port) in workers), None
    )
