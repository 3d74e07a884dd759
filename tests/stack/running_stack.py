"""A separate stack for tests: another home and other ports, so that a stack in use is left alone."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from faultline.faults.rows import ROWS
from faultline.faults.timeline import FLINK, read_lines
from faultline.formats.checkpoint import Checkpoint, of_newest_job
from faultline.settings import as_environment
from faultline.stack.own import own_environment
from faultline.stack.stack import open_stack
from faultline.storage.batches import newest_batch
from faultline.verdict.cluster import Cluster
from faultline.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
COMMAND_LIMIT_SECONDS = 1800
LONG_SECONDS = 3400
"""The limit of a command that takes a quarter of an hour alone, and three times as long beside another worker."""
WELL_SECONDS = 600


class RunningStack:
    """The scripts, acting on a stack in `home` on `backend`. Use as a context manager: the end wipes it."""

    def __init__(self, home: Path, backend: str, **settings: str) -> None:
        self.home = home
        self.environment = own_environment(home, {"BACKEND": backend, **settings})
        self.kafka_port = self.environment["STACK_KAFKA_PORT"]

    def __enter__(self) -> RunningStack:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        done = self.script("down.sh", "--wipe", check=False)
        if done.returncode:
            print(done.stderr)
        # The test's own error is the one to see.
        assert error is not None or done.returncode == 0, done.stderr

    def script(
        self,
        name: str,
        *arguments: str,
        check: bool = True,
        settings: dict[str, str] | None = None,
        seconds: float = COMMAND_LIMIT_SECONDS,
    ) -> subprocess.CompletedProcess[str]:
        """Run scripts/NAME; with `check`, fail with all of its output."""
        done = subprocess.run(
            [str(ROOT / "scripts" / name), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=self.environment | as_environment(settings or {}),
            stdin=subprocess.DEVNULL,
            timeout=seconds,
        )
        if check:
            assert done.returncode == 0, f"{name} {arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def states(self) -> dict[str, str]:
        """State of each service, by scripts/status.sh."""
        report = json.loads(self.script("status.sh", "--json", check=False).stdout)
        return {each["service"]: each["state"] for each in report["services"]}

    def wait_until_well(self) -> dict[str, Any]:
        """Wait until scripts/status.sh finds no problem; return its report.

        A backlog that the last start or pause left is a problem until the pipeline has worked it off.
        """
        report: dict[str, Any] = {}

        def well() -> bool:
            report.update(json.loads(self.script("status.sh", "--json", check=False).stdout))
            return bool(report["well"])

        wait_until(well, "a stack that is well", seconds=WELL_SECONDS, explain=lambda: str(report["problems"]))
        return report

    def require_all_running(self) -> None:
        """Fail with the state and the last lines of each service that does not run."""
        wrong = {service: state for service, state in self.states().items() if state != "running"}
        assert not wrong, {name: (state, self.script("logs.sh", name, "8").stdout) for name, state in wrong.items()}

    def verdict(self, pipeline: str, *arguments: str) -> tuple[int, dict[str, Any]]:
        """Exit code and JSON of scripts/verdict.sh."""
        done = self.script("verdict.sh", pipeline, "--json", *arguments, check=False)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def job(self, *arguments: str) -> dict[str, Any]:
        """The output of scripts/flink_status.sh, after the wait in `arguments`."""
        return dict(json.loads(self.script("flink_status.sh", *arguments).stdout))

    def wait_for_checkpoints(self, count: int) -> dict[str, Any]:
        """Wait until the job has completed `count` more checkpoints."""
        wanted = int(self.job()["checkpoints_completed"]) + count
        return self.job("--wait-checkpoints", str(wanted), "--wait-seconds", "300")

    def newest_checkpoint(self) -> Checkpoint:
        """The newest complete checkpoint; after it there may be one that is being written."""
        return of_newest_job(open_stack({}, self.environment).checkpoints())[-1]

    def inspected(self, path: Path | str, *arguments: str) -> dict[str, Any]:
        """The JSON of scripts/inspect.sh on a path of the stack."""
        return dict(json.loads(self.script("inspect.sh", "--json", *arguments, str(path)).stdout))

    def faults(self, *words: str, rows: int = 1) -> Path:
        """Run rows of the fault matrix, or a negative control with its rows; returns the folder of the results."""
        done = self.script("faults.sh", "run", *words, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
        assert f"{rows} of {rows} rows passed" in done.stdout
        return max((self.home / "results").iterdir())

    def newest_batch(self) -> int:
        """The newest batch that Spark has committed, on a disk; -1 before the first."""
        folder = self.home / "checkpoints" / "spark" / "visits_json" / "commits"
        return -1 if (batch := newest_batch(folder)) is None else batch

    def wait_for_batches(self, count: int) -> None:
        """Wait until Spark has committed this number of further batches."""
        wanted = self.newest_batch() + count
        wait_until(lambda: self.newest_batch() >= wanted, f"batch {wanted}", seconds=COMMAND_LIMIT_SECONDS)

    def wait_for_records(self, topic: str, count: int) -> None:
        """Wait until this number of further records has arrived."""
        wanted = self.record_count(topic) + count
        wait_until(
            lambda: self.record_count(topic) >= wanted, f"{wanted} records of {topic}", seconds=COMMAND_LIMIT_SECONDS
        )

    def record_count(self, topic: str) -> int:
        """Return how many records the topic has had, those of open transactions among them."""
        spans = Cluster(f"127.0.0.1:{self.kafka_port}").spans(topic, committed=False)
        return sum(span.end for span in spans.values())


def require_what_a_row_saw(folder: Path) -> None:
    """Fail unless a row's folder has its page, its checks and samples of everything that was watched."""
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "default-src 'none'" in (folder / "report.html").read_text(encoding="utf-8")
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert result["outcome"] == "passed"
    # Of a stack that cannot settle, only the verdicts are asked.
    assert len(result["checks"]) >= (2 if ROWS[folder.name].unsettled else 6)
    timeline = json.loads((folder / "timeline.json").read_text(encoding="utf-8"))
    assert {"events", "kafka", "flink", "spark", "seen", "checkpoints"} == set(timeline)
    assert timeline["flink"]
    assert any("offsets" in each for sample in timeline["checkpoints"] for each in sample["checkpoints"])


def require_positions(folders: Sequence[Path]) -> None:
    """Fail unless the watchers of these rows, which share a stack, have seen how far the job reads.

    One row may see none: Flink's metrics come when its fetcher has time, and a row does not wait for them.
    """
    samples = [sample for folder in folders for sample in read_lines(folder / FLINK)]
    seen = Counter(
        str(sample.get("unknown", f"{sample.get('running_tasks')} of {sample.get('tasks')} tasks run"))
        for sample in samples
    )
    assert any(sample.get("position") for sample in samples), seen


@pytest.fixture(scope="module")
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """A stack that is up and has completed checkpoints; the test's file may have SETTINGS, and another BACKEND."""
    settings: dict[str, str] = getattr(request.module, "SETTINGS", {})
    with RunningStack(
        tmp_path_factory.mktemp("stack"), getattr(request.module, "BACKEND", "local"), **settings
    ) as running:
        running.script("up.sh")
        running.wait_for_checkpoints(2)
        yield running
