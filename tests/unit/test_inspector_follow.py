"""Following of checkpoints, which goes on when their folder cannot be read for a while."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.inspector.flink import follow as module
from faultline.inspector.flink.folder import CheckpointFolder
from faultline.inspector.flink.follow import follow
from faultline.inspector.flink.report import describe
from faultline.inspector.model import Report
from faultline.storage.location import Location


def test_following_goes_on_after_a_folder_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chk-1").mkdir()
    asked: Iterator[bool] = iter([True, False, False, True])

    def folders(root: Location) -> list[CheckpointFolder]:
        if not next(asked):
            raise OSError(5, "the object store does not answer", str(root))
        return []

    turns = iter([False] * 4 + [True])
    monkeypatch.setattr(module, "_folders", folders)
    follow(tmp_path, 0.0, lambda: next(turns))
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line)["checkpoints"] == []
    assert next(asked, None) is None


def test_a_checkpoint_that_could_not_be_read_is_read_again_when_the_store_is_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [CheckpointFolder(tmp_path / "job" / "chk-1", "job", "chk-1", 1, True, "", 5.0, 5.0, 10)]
    there: Iterator[bool] = iter([True, False, True])
    reads: Iterator[bool] = iter([False, True])

    def folders(root: Location) -> list[CheckpointFolder]:
        if not next(there):
            raise OSError(5, "the object store does not answer", str(root))
        return whole

    def metadata(jvm: object, folder: Location) -> object:
        if not next(reads):
            raise OSError(5, "the object store does not answer", str(folder))
        return None

    turns = iter([False] * 3 + [True])
    monkeypatch.setattr(module, "_folders", folders)
    monkeypatch.setattr(module, "flink_jvm", lambda roots: contextlib.nullcontext())
    monkeypatch.setattr(module, "load_metadata", metadata)
    monkeypatch.setattr(module, "operators", lambda found: [])
    monkeypatch.setattr(module, "all_offsets", lambda jvm, entries: {})
    follow(tmp_path, 0.0, lambda: next(turns))
    found = [json.loads(line)["checkpoints"] for line in capsys.readouterr().out.splitlines()]
    assert ["unknown" in each for [each] in found] == [True, False]


def test_a_folder_that_never_could_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def folders(root: Location) -> list[CheckpointFolder]:
        raise OSError(5, "the object store does not answer", str(root))

    monkeypatch.setattr(module, "_folders", folders)
    with pytest.raises(OSError, match="does not answer"):
        follow(tmp_path, 0.0, lambda: False)


def test_a_checkpoint_that_is_deleted_before_it_is_described_keeps_its_report(tmp_path: Path) -> None:
    report = Report("flink", "checkpoint", str(tmp_path / "chk-1"), problems=["it cannot be restored"])
    describe(None, report, [], 5)
    assert report.problems == ["it cannot be restored"]
