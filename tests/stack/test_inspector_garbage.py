"""Everything starts and restores after the files that the inspector lists are gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from faultline.packages.release import THIS_RELEASE
from faultline.settings import ROOT
from tests.golden.archives import golden
from tests.stack.running_stack import RunningStack
from tests.stack.test_inspector_damage import started

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

LONG_AGO = 1_700_000_000


def plant(file: Path) -> str:
    """A file as a killed writer leaves it, from long ago."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"left over")
    os.utime(file, (LONG_AGO, LONG_AGO))
    return str(file)


def remove(found: dict[str, Any], planted: set[str] | None = None) -> None:
    """Type the lines of a report; the planted files are among those that it lists."""
    assert not found["problems"]
    assert (planted or set()) <= {each["path"] for each in found["files"]}
    for line in found["lines"]:
        subprocess.run(["bash", "-ec", line], check=True)
    assert not [each["path"] for each in found["files"] if Path(each["path"]).exists()]


def garbage(stack: RunningStack, path: Path) -> dict[str, Any]:
    return dict(json.loads(stack.script("inspect.sh", str(path), "--garbage", "--json").stdout))


def test_both_engines_go_on_without_what_is_listed(tmp_path: Path) -> None:
    """State in RocksDB: checkpoints share files. The kills leave what they leave, more is planted beside it."""
    settings = {"FLINK_STATE_BACKEND": "rocksdb", "FLINK_CHECKPOINTS_RETAINED": "3"}
    query, output = tmp_path / "checkpoints" / "spark" / "visits_json", tmp_path / "output" / "visits_json"
    with RunningStack(tmp_path, "local", **settings) as stack:
        stack.script("up.sh")
        stack.wait_for_checkpoints(3)
        for service in ("taskmanager", "spark"):
            stack.script("kill.sh", service)
            stack.script("start.sh", service)
        stack.wait_for_checkpoints(3)
        stack.wait_for_batches(3)

        # While both run: what they are at is not listed, so what is listed may go.
        assert output.is_dir()
        left = {query / "offsets" / f".1.{uuid.uuid4()}.tmp", output / f"part-00000-{uuid.uuid4()}-c000.json"}
        planted = set(map(plant, left))
        remove(garbage(stack, query), planted)
        job = Path(stack.newest_checkpoint().path).parent
        left = {job / place / str(uuid.uuid4()) for place in ("shared", "taskowned", "chk-0")}
        planted = set(map(plant, left))
        remove(garbage(stack, job), planted)
        stack.wait_for_checkpoints(1)
        stack.wait_for_batches(1)

        stack.script("flink_cancel.sh")
        stack.script("kill.sh", "spark")
        remove(garbage(stack, job))
        remove(garbage(stack, query))
        retained = sorted(job.glob("chk-*/_metadata"), key=lambda file: int(file.parent.name.removeprefix("chk-")))
        assert len(retained) == 3
        for metadata in retained:
            stack.script("flink_restore.sh", str(metadata.parent))
            assert stack.wait_for_checkpoints(1)["restored_from"].endswith(f"/{metadata.parent.name}")
            if metadata != retained[-1]:
                stack.script("flink_cancel.sh")
        stack.script("start.sh", "spark")
        stack.wait_for_batches(1)
        stack.script("generator_stop.sh")
        stack.script("settle.sh")
        code, verdict = stack.verdict("spark")
    assert (code, verdict["outcome"], verdict["lost"], verdict["duplicated"]) == (0, "holds", 0, 0)


def test_spark_starts_with_state_of_the_kept_batches_alone(tmp_path: Path) -> None:
    """The newest two batches are kept, as with few to retain, and what the others have left is removed."""
    folder = Path(shutil.copytree(golden(f"spark-{THIS_RELEASE}") / "files_windowed", tmp_path / "query"))
    checkpoint, output = folder / "checkpoint", folder / "output"
    last = max(int(file.name) for file in (checkpoint / "offsets").iterdir() if file.name.isdecimal())
    for number in range(last - 1):
        (checkpoint / "offsets" / str(number)).unlink()
        (checkpoint / "offsets" / f".{number}.crc").unlink()
    left = {plant(output / f"part-00000-{uuid.uuid4()}-c000.json")}
    words = ["--garbage", "--json", "--sink", str(output), str(checkpoint)]
    command = [sys.executable, "-m", "faultline.inspector", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    for part in ("/state/", "/commits/"):
        assert any(part in each["path"] for each in found["files"]), part
    remove(found, left)
    assert started(tmp_path / "answer.json", folder) == {"query": ""}
    assert (checkpoint / "commits" / str(last + 1)).exists()
