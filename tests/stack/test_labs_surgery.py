"""Walkthroughs 15 and 16 as a person runs them; docs/spark_checkpoint_surgery.md is what walkthrough 15 measures."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.locks import spark_releases
from tests.stack.releases import made_python
from tests.stack.shown import shown_of, was_printed
from tests.stack.test_labs import processes_in, walk

pytestmark = [pytest.mark.full, pytest.mark.split, pytest.mark.timeout(1800)]

PROVES = {
    "15_delete_x_then_start": [
        "docs/spark_checkpoint_surgery.md is what was measured.",
        "lines that differ: 0",
        "`commits/3`, foreachBatch append: duplicated: 10",
        "`commits/3`, `offsets/3`, file sink: lost: 10",
        "already 60 rows in it; `failOnDataLoss=true`, file sink: lost: 40",
        "CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS",
    ],
    "16_good_practice": [
        "rows with the column: 10",
        "one aggregation more: STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
        "a key of another type: STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
        "old checkpoint, partitions of state: 2",
        "failOnDataLoss=true: KAFKA_DATA_LOSS.PARTITIONS_DELETED",
        "startingOffsets from the old one: lost, duplicated: (0, 0)",
        "visits_v2: 50 rows of 50, 0 lost, 0 duplicated",
    ],
}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lock", spark_releases())
def test_the_column_of_another_release_is_what_is_measured(lock: str, tmp_path: Path) -> None:
    release = lock.partition("-")[2]
    made_python(release)
    done = walk("15_delete_x_then_start", tmp_path, "--spark", release)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert "lines that differ: 0" in done.stdout


@pytest.mark.parametrize("name", list(PROVES))
def test_a_walkthrough_proves_its_sentences(name: str, tmp_path: Path) -> None:
    done = walk(name, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    for text in PROVES[name]:
        assert text in done.stdout
    assert [line for line in shown_of(name) if not was_printed(line, done.stdout)] == []
    assert "NOT PROVEN" not in done.stdout
    assert "FAILED" not in done.stdout
    assert "Traceback" not in done.stderr
    assert {path.name for path in (tmp_path / "output" / "labs").iterdir()} == {name, f"{name}.lock"}
    assert processes_in(tmp_path) == []
