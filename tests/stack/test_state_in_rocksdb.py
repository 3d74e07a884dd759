"""State in RocksDB: a kill and a restore lose nothing, and a savepoint is the way to state on the heap."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.settings import as_environment
from tests.stack.running_stack import RunningStack

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

ON_THE_HEAP = as_environment({"FLINK_STATE_BACKEND": "hashmap"})


def test_from_rocksdb_to_the_heap_by_a_savepoint(tmp_path: Path) -> None:
    with RunningStack(tmp_path, "local", FLINK_STATE_BACKEND="rocksdb") as stack:
        stack.script("up.sh")
        checkpoint = stack.wait_for_checkpoints(3)["latest_checkpoint"]
        stack.script("kill.sh", "taskmanager")
        stack.script("start.sh", "taskmanager")
        assert int(stack.wait_for_checkpoints(1)["restored_from"].rpartition("chk-")[2]) >= checkpoint

        # The client's own way from a retained checkpoint, whose files are below `shared`, too.
        stack.script("flink_cancel.sh")
        newest = stack.newest_checkpoint()
        assert "which checkpoints share" in "\n".join(stack.inspected(newest.path, "--no-lag")["notes"])
        stack.script("flink_restore.sh", "latest")
        assert stack.wait_for_checkpoints(1)["restored_from"].endswith(f"/{newest.name}")

        job = stack.job()["job_id"]
        folder = tmp_path / "checkpoints" / "flink" / "savepoints"
        stack.script("exec.sh", "jobmanager", "flink", "stop", "--savepointPath", str(folder), job)
        (savepoint,) = folder.glob("savepoint-*")
        stack.script("down.sh")
        stack.environment |= ON_THE_HEAP
        stack.script("up.sh")
        state = stack.wait_for_checkpoints(1)
        assert state["restored_from"].endswith(savepoint.name)
        stack.script("generator_stop.sh")
        stack.script("settle.sh")
        code, verdict = stack.verdict("flink")

        # A checkpoint has the format of its backend.
        stack.script("flink_cancel.sh")
        refused = stack.script("flink_restore.sh", newest.path, check=False)
        assert refused.returncode != 0
        assert "Traceback" not in refused.stderr
    assert (code, verdict["outcome"], verdict["lost"], verdict["duplicated"]) == (0, "holds", 0, 0)
    assert verdict["observed"] > 0
