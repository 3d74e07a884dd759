"""The small cluster's benchmarks: shares, answers of the engines and of the object store, and what is missed."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.cluster_runs import Batch, Run, batches_in
from benchmarks.cluster_table import greatest_shares, missed, show_costs, show_shares
from benchmarks.cpu import seconds_by_name
from benchmarks.spread import records_by_executor, records_by_taskmanager, shares, worker_of
from benchmarks.store_requests import Requests, parse
from faultline.copies import taskmanager_service
from faultline.stack.errors import StackError

METRICS = """# HELP SeaweedFS_s3_request_total Counter of s3 requests.
# TYPE SeaweedFS_s3_request_total counter
SeaweedFS_s3_request_total{bucket="faultline",code="200",type="GET"} 20
SeaweedFS_s3_request_total{bucket="faultline",code="404",type="GET"} 3
SeaweedFS_s3_request_total{bucket="faultline",code="200",type="LIST"} 7
SeaweedFS_s3_request_total{bucket="faultline",code="200",type="PUT"} 1.5e+03
SeaweedFS_s3_request_total{bucket="faultline",code="200",type="POST"} 2
SeaweedFS_s3_request_total{bucket="faultline",code="204",type="DELETE"} 99
SeaweedFS_s3_in_flight_requests{type="PUT"} 1
"""


def test_a_fair_share_is_one() -> None:
    assert shares({"a": 150.0, "b": 50.0}) == {"a": 1.5, "b": 0.5}
    assert shares({"a": 7.0}) == {"a": 1.0}
    assert shares({"a": 0.0, "b": 0.0}) == {"a": 1.0, "b": 1.0}
    assert shares({}) == {}


def test_records_of_a_step_are_counted_by_taskmanager() -> None:
    assert taskmanager_service("taskmanager-2_20260101T000000.000001") == "taskmanager-2"
    subtasks = [
        {"taskmanager-id": "taskmanager_1", "metrics": {"read-records": 10, "write-records": 1}},
        {"taskmanager-id": "taskmanager-2_2", "metrics": {"read-records": 20, "write-records": 2}},
        {"taskmanager-id": "taskmanager_1", "metrics": {"read-records": 30, "write-records": 3}},
    ]
    assert records_by_taskmanager({"subtasks": subtasks}, "read-records") == {"taskmanager": 40, "taskmanager-2": 20}
    assert records_by_taskmanager({"subtasks": subtasks}, "write-records") == {"taskmanager": 4, "taskmanager-2": 2}


def test_records_of_a_stage_are_counted_by_executor() -> None:
    tasks: list[dict[str, Any]] = [
        {"executorId": "0", "taskMetrics": {"inputMetrics": {"recordsRead": 5}}},
        {"executorId": "1", "taskMetrics": {"inputMetrics": {"recordsRead": 6}}},
        {"executorId": "0", "taskMetrics": {"inputMetrics": {"recordsRead": 7}}},
        # It has not ended.
        {"executorId": "1"},
    ]
    assert records_by_executor(tasks) == {"0": 12, "1": 6}


def test_an_executor_is_found_by_the_page_of_its_worker() -> None:
    workers = {8091: "spark-worker", 8092: "spark-worker-2"}
    url = "http://127.0.0.1:8092/logPage/?appId=app-1&executorId=0&logType=stdout"
    assert worker_of({"executorLogs": {"stdout": url}}, workers) == "spark-worker-2"
    assert worker_of({"executorLogs": {}}, workers) is None


def run(visits: int, first: float, second: float, **read: int) -> Run:
    return Run(visits, {"one": first, "two": second, "kafka": 100.0}, read)


def test_what_a_million_visits_cost() -> None:
    found = run(200_000, 4, 5)
    assert found.per_million(["one", "two"]) == pytest.approx(45.0)
    assert found.per_million(["one", "another"]) == pytest.approx(20.0)


def test_the_greatest_share_of_any_run_counts(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [run(100, 10, 10, one=70, two=30), run(100, 12, 8, one=50, two=50)]
    assert greatest_shares(runs, lambda each: {k: float(v) for k, v in each.read.items()}) == {"one": 1.4, "two": 1.0}
    assert show_shares("job", runs, ["one", "two"]) == pytest.approx(1.4)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["one", "50", "1.40", "11.0", "1.20"],
        ["two", "50", "1.00", "9.0", "1.00"],
    ]


def test_the_ratio_is_the_median_of_the_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_costs("TaskManagers", [10.0, 20.0, 10.0], [11.0, 20.0, 20.0]) == pytest.approx(1.1)
    assert capsys.readouterr().out.split() == ["TaskManagers", "10.0", "10.0-20.0", "20.0", "11.0-20.0", "1.10"]
    assert show_costs("store", [], [2.0]) == 0.0
    assert capsys.readouterr().out.split() == ["store", "-", "2.0", "2.0-2.0"]


def test_a_cost_of_nothing_is_no_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_costs("TaskManagers", [10.0, -0.1], [11.0, 12.0]) == 0.0
    assert len(capsys.readouterr().out.split()) == 5
    with pytest.raises(StackError, match="the TaskManagers: no CPU seconds were counted"):
        missed(1.0, {"the TaskManagers": 0.0})


def test_an_aim_that_is_missed_is_named_with_its_number() -> None:
    assert missed(1.3, {"the TaskManagers": 1.15}) == []
    [share, ratio] = missed(1.31, {"the TaskManagers": 1.16, "driver and executors": 0.9})
    assert share == "MISSED: the greatest share is 1.31, the aim 1.30"
    assert ratio.startswith("MISSED: the TaskManagers need 1.16 times")


def test_the_stores_requests_by_what_is_charged() -> None:
    assert parse(METRICS) == Requests(writes=1509, reads=23)
    assert parse("") == Requests(0, 0)
    assert Requests(5, 7) - Requests(2, 3) == Requests(3, 4)


def test_a_kind_of_request_that_is_not_known_is_no_measurement() -> None:
    with pytest.raises(StackError, match="requests of the kind 'SELECT'"):
        parse('SeaweedFS_s3_request_total{bucket="b",code="200",type="SELECT"} 1')


def test_a_batch_has_its_rows_and_a_file_for_each_partition_with_visits() -> None:
    log = (
        "synchronizer: files from visits at 127.0.0.1:9092 to s3://faultline/output\n"
        "synchronizer: batch 0: visits-0 [0, 5), visits-1 [0, 0), 5 rows, 0.41 s\n"
        "synchronizer: batch 1: visits-0 [5, 7), visits-1 [0, 3), 5 rows, 0.41 s\n"
    )
    assert batches_in(log) == [Batch(0, 1, 5), Batch(1, 2, 5)]


def test_a_thread_counts_under_its_new_name_without_its_number() -> None:
    before = {1: ("Executor task 0", 4.0)}
    now = {1: ("shuffle-7", 5.5), 2: ("s3a-transfer-fa", 0.5), 3: ("shuffle-8", 1.0)}
    assert seconds_by_name(before, now) == {"shuffle": 2.5, "s3a-transfer-fa": 0.5}
