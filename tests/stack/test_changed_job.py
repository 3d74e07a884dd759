"""The job as the documentation changes it, run: each patch does what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from faultline.formats.visit import iso_time
from tests.changed_job import apply, copy_of_the_job, patches
from tests.stack.flink_accounts import read_all
from tests.stack.flink_cluster import START, Cluster

pytestmark = [pytest.mark.full]

# Two visits of one user; the first looks at a page twice.
VIEWS = [("a", 1, "/x"), ("a", 2, "/x"), ("a", 7, "/y"), ("b", 3, "/x")]


def windows_of(cluster: Cluster, name: str, tmp_path: Path) -> list[dict[str, Any]]:
    """Apply a patch to a copy of the job, run it, and return the windows that it writes."""
    copy = copy_of_the_job(tmp_path / "changed")
    assert apply(patches()[name], copy) == ""
    producer = Producer({"bootstrap.servers": cluster.broker.bootstrap, "enable.idempotence": True})
    views = [*VIEWS, *(("closing", 60, "/") for _ in cluster.partitions)]
    for number, (visit_id, second, page) in enumerate(views):
        at = START + second * 1000
        visit = {"visit_id": visit_id, "event_time": iso_time(at), "user_id": "u", "page": page}
        partition = number % len(cluster.partitions) if visit_id == "closing" else 0
        producer.produce(cluster.topics.visits, json.dumps(visit), partition=partition, timestamp=at)
    producer.flush()
    cluster.environment["PYTHONPATH"] = str(copy)
    cluster.drain(cluster.submit())
    found = [json.loads(value) for _, _, value, *_ in read_all(cluster.broker.bootstrap, cluster.topics.windows)]
    return sorted(found, key=lambda window: json.dumps(window, sort_keys=True))


def test_another_aggregate(cluster: Cluster, tmp_path: Path) -> None:
    found = windows_of(cluster, "Another aggregate", tmp_path)
    assert [(w["visit_id"], w["count"], w["pages"]) for w in found] == [("b", 1, 1), ("a", 3, 2)]


def test_another_key(cluster: Cluster, tmp_path: Path) -> None:
    assert [(w["user_id"], w["count"]) for w in windows_of(cluster, "Another key", tmp_path)] == [("u", 4)]


def test_sliding_windows(cluster: Cluster, tmp_path: Path) -> None:
    found = windows_of(cluster, "Sliding windows", tmp_path)
    starts = {(w["visit_id"], w["window_start"]): w["count"] for w in found}
    assert starts == {
        ("a", iso_time(START - 5000)): 2, ("a", iso_time(START)): 3, ("a", iso_time(START + 5000)): 1,
        ("b", iso_time(START - 5000)): 1, ("b", iso_time(START)): 1,
    }  # fmt: skip
