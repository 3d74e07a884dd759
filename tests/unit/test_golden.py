"""Archives of golden data: the same files give the same bytes, and the processes of a run share one unpacked copy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from faultline.settings import ROOT
from tests.golden import archives


def test_recording_gives_the_same_bytes_until_a_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "ARCHIVES", tmp_path)
    path = tmp_path / "spark-9.9.tar.xz"
    with archives.recorded("spark-9.9") as folder:
        for name in ("b/2", "a/.1.crc", "a/1"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(name)
    first = path.read_bytes()
    with archives.recorded("spark-9.9") as folder:
        assert {str(file.relative_to(folder)) for file in folder.rglob("*/*")} == {"a/.1.crc", "a/1", "b/2"}
        os.utime(folder / "a" / "1", (1, 1))
        (folder / "b" / "2").chmod(0o600)
    assert path.read_bytes() == first
    with archives.recorded("spark-9.9") as folder:
        (folder / "b" / "2").write_text("3")
    assert path.read_bytes() != first


USES = """
import sys
from tests.golden.archives import golden
print(golden("flink-job"), flush=True)
sys.stdin.read()
"""


def test_processes_of_a_run_share_a_copy_and_the_last_one_removes_it(tmp_path: Path) -> None:
    environ = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "PYTEST_XDIST_TESTRUNUID": "a-run"}
    users = [
        subprocess.Popen(
            [sys.executable, "-c", USES], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    folders = {user.stdout.readline().strip() for user in users if user.stdout}
    (folder,) = map(Path, folders)
    assert folder.is_relative_to(tmp_path)
    for user, left in zip(users, ([folder.parent], []), strict=True):
        assert list(folder.rglob("chk-5/_metadata"))
        user.communicate()
        assert user.returncode == 0
        assert list(tmp_path.iterdir()) == left
