"""The newest batches of a synchronizer's checkpoint, read from files as Spark writes them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from faultline.formats.run import SPARK_RUN_FILE
from faultline.probes.batches import newest_batches
from faultline.probes.replayed import Restores
from faultline.verdict.model import Unknown

HEAD = 'v1\n{"batchWatermarkMs":0}\n'


def plan(checkpoint: Path, batch: int, ends: tuple[int, int], at: float) -> None:
    write(checkpoint / "offsets" / str(batch), f'{HEAD}{{"visits":{{"0":{ends[0]},"1":{ends[1]}}}}}', at)


def commit(checkpoint: Path, batch: int, at: float) -> None:
    write(checkpoint / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}', at)


def write(file: Path, text: str, at: float) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    os.utime(file, (at, at))


def batches(checkpoint: Path, begun: float) -> dict[str, Any]:
    """The newest batches, when the newest run of the query has claimed the checkpoint at this time."""
    write(checkpoint / SPARK_RUN_FILE, "", begun)
    return newest_batches(checkpoint, checkpoint / SPARK_RUN_FILE)


def two_batches(checkpoint: Path) -> None:
    plan(checkpoint, 0, (10, 20), 100)
    commit(checkpoint, 0, 101)
    plan(checkpoint, 1, (15, 22), 105)


def test_before_the_first_commit_nothing_is_known(tmp_path: Path) -> None:
    plan(tmp_path, 0, (10, 20), 100)
    with pytest.raises(Unknown, match="no committed batch"):
        batches(tmp_path, 99)


def test_a_planned_batch_has_its_range(tmp_path: Path) -> None:
    two_batches(tmp_path)
    found = batches(tmp_path, 99)
    assert (found["batch"], found["committed_at"], found["offsets"]) == (0, 101, {"0": 10, "1": 20})
    assert found["planned"] == {"batch": 1, "begin": {"0": 10, "1": 20}, "end": {"0": 15, "1": 22}, "visits": 7}
    assert found["again"] is None


def test_a_batch_that_an_earlier_run_had_planned_runs_again(tmp_path: Path) -> None:
    two_batches(tmp_path)
    again = batches(tmp_path, 200)["again"]
    assert (again["visits"], again["restored_at"]) == (7, 200)
    commit(tmp_path, 1, 201)
    found = batches(tmp_path, 200)
    assert (found["batch"], found["planned"]) == (1, None)
    assert found["again"]["batch"] == 1


def test_a_batch_that_the_earlier_run_has_committed_does_not(tmp_path: Path) -> None:
    two_batches(tmp_path)
    commit(tmp_path, 1, 106)
    assert batches(tmp_path, 200)["again"] is None


def test_without_settings_of_a_run_nothing_runs_again(tmp_path: Path) -> None:
    two_batches(tmp_path)
    assert newest_batches(tmp_path, tmp_path / SPARK_RUN_FILE)["again"] is None


def test_a_damaged_file_is_unknown(tmp_path: Path) -> None:
    two_batches(tmp_path)
    write(tmp_path / "offsets" / "1", "", 105)
    with pytest.raises(Unknown, match="cannot be read"):
        batches(tmp_path, 99)


def held(*names: str) -> dict[str, object]:
    return {"checkpoints": [{"path": f"/c/{name}", "offsets": {"0": 100}} for name in names]}


def job(
    position: int | None, restored: str | None = None, at: int = 1, now: float = 0.001, name: str = "a"
) -> dict[str, object]:
    read = {} if position is None else {"0": position}
    found: dict[str, object] = {"at": now, "job_id": name, "state": "RUNNING", "position": read}
    return {**found, "restored_from": restored and f"file:/c/{restored}", "restored_at": restored and at}


@pytest.fixture
def restores() -> Restores:
    """One that knows a checkpoint."""
    made = Restores()
    made.checkpoints(held("chk-1"))
    return made


def test_a_restore_reads_again_what_was_read_after_the_checkpoint(restores: Restores) -> None:
    assert restores.flink(job(130)) == []
    [found] = restores.flink(job(None, "chk-1"))
    assert (found["name"], found["begin"], found["end"], found["visits"]) == ("chk-1", {"0": 100}, {"0": 130}, 30)
    assert restores.flink(job(101, "chk-1")) == []


def test_a_checkpoint_in_a_store_is_known_by_its_uri() -> None:
    restores = Restores()
    restores.checkpoints({"checkpoints": [{"path": "s3://bucket/c/chk-1", "offsets": {"0": 100}}]})
    restores.flink(job(130))
    [found] = restores.flink({**job(None), "restored_from": "s3://bucket/c/chk-1", "restored_at": 1})
    assert (found["name"], found["visits"]) == ("chk-1", 30)


def test_the_same_checkpoint_restored_twice_counts_twice(restores: Restores) -> None:
    restores.flink(job(130))
    restores.flink(job(None, "chk-1", at=1))
    restores.flink(job(120, "chk-1", at=1))
    [found] = restores.flink(job(None, "chk-1", at=2))
    assert found["visits"] == 20


def test_a_restore_waits_until_the_checkpoint_was_read() -> None:
    restores = Restores()
    restores.flink(job(130))
    assert restores.flink(job(None, "chk-1")) == []
    [found] = restores.checkpoints(held("chk-1"))
    assert found["visits"] == 30


def test_a_restore_before_the_first_sample_is_not_known(restores: Restores) -> None:
    assert restores.flink(job(150, "chk-1")) == []


def test_a_new_job_without_a_restore_begins_with_nothing_read(restores: Restores) -> None:
    restores.flink(job(5000))
    # Another stack: its job reads a new log from the beginning.
    restores.flink(job(None, now=1.0, name="b"))
    restores.flink(job(110, now=1.5, name="b"))
    [found] = restores.flink(job(None, "chk-1", at=2000, now=2.0, name="b"))
    assert (found["end"], found["visits"]) == ({"0": 110}, 10)


def test_a_job_that_is_restored_as_another_one_reads_again_what_the_first_had_read(restores: Restores) -> None:
    restores.flink(job(130))
    restores.flink(job(None, now=0.5))
    # Its first samples do not name the restore yet.
    assert restores.flink(job(None, now=60.0, name="b")) == []
    [found] = restores.flink(job(None, "chk-1", at=60_500, now=61.0, name="b"))
    assert found["visits"] == 30


def test_a_restore_after_a_time_without_samples_has_no_number(restores: Restores) -> None:
    restores.flink(job(130))
    assert restores.flink(job(None, "chk-1", at=60_000, now=61.0)) == []
