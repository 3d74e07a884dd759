"""State of planned batches, and the lines that were written, read from files as Spark writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faultline.probes.batches import batch_range
from faultline.probes.planned import NoneWritten, as_it_is, being_written, lines_of, wait_written
from faultline.probes.written import lines_since
from faultline.storage.batches import SINK_LOG
from tests.unit.test_probes_batches import commit, plan, write


def logged(uri: str) -> str:
    """An entry of the sink's log."""
    return json.dumps({"path": uri, "size": 1, "action": "add"})


def test_lines_of_a_batch_are_those_of_its_own_files(tmp_path: Path) -> None:
    log = tmp_path / SINK_LOG
    log.mkdir()

    def write(file: str, *names: str) -> None:
        entries = [logged(f"file://{tmp_path}/{name}".replace(" ", "%20")) for name in names]
        (log / file).write_text("\n".join(["v1", *entries]), encoding="utf-8")

    for number, name in enumerate(("part a", "b", "c", "d"), 1):
        (tmp_path / name).write_text("{}\n" * number, encoding="utf-8")
    write("0", "part a", "b")
    write("1.compact", "part a", "b", "c")
    write("2", "d")
    assert [lines_of(tmp_path, batch) for batch in range(4)] == [3, 3, 4, 0]


def test_a_batch_has_its_range_and_the_lines_of_the_sinks_log(tmp_path: Path) -> None:
    checkpoint, output = tmp_path / "checkpoint", tmp_path / "output"
    plan(checkpoint, 0, (10, 20), 100)
    plan(checkpoint, 1, (15, 22), 105)
    output.mkdir()
    assert as_it_is(checkpoint, output, 1) == {"range": batch_range(checkpoint, 1), "lines": None, "committed_at": None}
    (output / SINK_LOG).mkdir()
    (output / "part-0").write_text("a\nb\n", encoding="utf-8")
    (output / SINK_LOG / "1").write_text(f"v1\n{logged('file:///elsewhere/part-0')}", encoding="utf-8")
    commit(checkpoint, 1, 110)
    assert as_it_is(checkpoint, output, 1) == {"range": batch_range(checkpoint, 1), "lines": 2, "committed_at": 110.0}
    assert as_it_is(checkpoint, output, 2) == {"range": None, "lines": 0, "committed_at": None}


def test_a_batch_is_being_written_between_its_first_file_and_its_commit(tmp_path: Path) -> None:
    checkpoint, output = tmp_path / "checkpoint", tmp_path / "output"
    plan(checkpoint, 9, (1, 1), 50)
    commit(checkpoint, 9, 60)
    write(output / "part-0", "", 55)
    assert being_written(checkpoint, output) is None
    plan(checkpoint, 10, (2, 2), 100.5)
    assert being_written(checkpoint, output) is None
    with pytest.raises(NoneWritten):
        wait_written(checkpoint, output, 0.3)
    write(output / "batch_id=10" / "part-0", "", 101)
    assert wait_written(checkpoint, output, 0.3) == 10
    commit(checkpoint, 10, 102)
    assert being_written(checkpoint, output) is None


def test_a_plan_and_a_file_of_one_second_are_of_one_batch_where_times_are_whole_seconds(tmp_path: Path) -> None:
    checkpoint, output = tmp_path / "checkpoint", tmp_path / "output"
    plan(checkpoint, 3, (1, 1), 50)
    write(output / "part-0", "", 49)
    assert being_written(checkpoint, output) is None
    write(output / "part-1", "", 50)
    assert being_written(checkpoint, output) == 3
    # Unless the sink's log has it for the batch before.
    log = output / SINK_LOG
    log.mkdir()
    for name in ("2", "2.compact"):
        (log / name).write_text(f"v1\n{logged('s3a://bucket/output/part-1')}", encoding="utf-8")
        assert being_written(checkpoint, output) is None
        (log / name).unlink()
    assert being_written(checkpoint, output) == 3
    plan(checkpoint, 3, (1, 1), 50.5)
    write(output / "part-1", "", 50.5)
    assert being_written(checkpoint, output) is None


def test_lines_since_are_those_of_newer_files(tmp_path: Path) -> None:
    for name, text, at in (("part-0", "long line\nold\n", 10), ("part-1", "a\nbb\n", 20), ("x/part-2", "bb\nbb\n", 30)):
        write(tmp_path / name, text, at)
    assert lines_since(tmp_path, 15) == {"repeated": 2, "longest": 3}
    assert lines_since(tmp_path, 30) == {"repeated": 0, "longest": 0}
