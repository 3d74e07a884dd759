"""Growth of `.compact` files and of state: measured from sizes and times, and said with a forecast."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from faultline.inspector.flink.report import folder_report
from faultline.inspector.growth import DAY_MS, bytes_per_day, sentence
from faultline.inspector.model import Growth, Report, as_dict, report_from
from faultline.inspector.spark.report import read_report
from tests.golden.archives import golden

FILES = golden("spark-4.0") / "files_windowed"
FLINK = golden("flink-2.2") / "exactly-once"


def test_a_straight_line_is_continued() -> None:
    assert bytes_per_day([(0, 100), (1000, 110), (2000, 120), (3000, 130)]) == 10 * DAY_MS // 1000
    assert bytes_per_day([(0, 100), (1000, 100), (2000, 100), (3000, 100)]) == 0
    assert bytes_per_day([(0, 130), (1000, 120), (2000, 110), (3000, 100)]) == -10 * DAY_MS // 1000


@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [(0, 100), (1000, 110), (2000, 120)],
        [(5, 1), (5, 2), (5, 3), (5, 4)],
        [(0, 100), (1000, 900), (2000, 50), (3000, 700), (4000, 200)],
    ],
)
def test_without_a_line_there_is_no_forecast(sizes: list[tuple[int, int]]) -> None:
    assert bytes_per_day(sizes) is None


def growth_of(report: Report) -> dict[str, Growth]:
    assert report_from(as_dict(report)).growth == report.growth
    return {each.what.partition(",")[0]: each for each in report.growth}


def test_compact_files_grow_by_their_entries() -> None:
    found = growth_of(read_report(FILES / "checkpoint", None, FILES / "output"))
    assert set(found) == {"sources/0/9.compact", "_spark_metadata/9.compact"}
    source = found["sources/0/9.compact"]
    log = FILES / "checkpoint" / "sources" / "0"
    assert source.size == (log / "9.compact").stat().st_size
    # The run took 12 entries of about 120 bytes each, one a batch.
    entry = sum(len((log / str(number)).read_bytes()) for number in range(9)) / 9
    assert source.per_day == pytest.approx(entry * 11 / source.span_ms * DAY_MS, rel=0.05)
    assert "every compaction writes all of it again" in sentence(source)


def test_snapshots_of_the_state_grow_or_not(tmp_path: Path) -> None:
    """Only names and sizes of state files are read, so files of any bytes will do."""
    checkpoint = shutil.copytree(FILES / "checkpoint", tmp_path / "query")
    assert "state of operator 0" not in growth_of(read_report(checkpoint, None, None))
    for version in (2, 5, 8, 11, 13):
        for partition in (0, 1):
            (checkpoint / "state" / "0" / str(partition) / f"{version}.snapshot").write_bytes(b"x" * 100 * version)
    state = growth_of(read_report(checkpoint, None, None))["state of operator 0"]
    assert state.size == 2 * 1300
    assert state.per_day is not None and state.per_day > 0
    (checkpoint / "state" / "0" / "0" / "8.snapshot").write_bytes(b"x" * 90_000)
    assert growth_of(read_report(checkpoint, None, None))["state of operator 0"].per_day is None


def test_checkpoints_of_flink_grow(tmp_path: Path) -> None:
    (job,) = [each for each in FLINK.iterdir() if len(each.name) == 32 and any(each.glob("chk-*"))][:1]
    copy = tmp_path / job.name
    source = next(job.glob("chk-*"))
    for number in range(1, 6):
        shutil.copytree(source, copy / f"chk-{number}")
        (copy / f"chk-{number}" / "more-state").write_bytes(b"x" * 1000 * number)
        os.utime(copy / f"chk-{number}" / "_metadata", (60 * number, 60 * number))
    (found,) = folder_report(copy)[0].growth
    assert (found.what, found.span_ms) == ("checkpoints chk-1 to chk-5", 240_000)
    assert found.per_day == 1000 * 1440
    (copy / "shared").mkdir()
    (copy / "shared" / "a").write_bytes(b"RocksDB's files are shared")
    assert folder_report(copy)[0].growth == []
    assert folder_report(copy / "chk-2")[0].growth == []
