"""The inspector on the running stack: what it follows, how far behind a restart is, what the restart then does."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from faultline.formats.visit import iso_time, parse_visit
from faultline.waiting import wait_until
from tests.stack.flink_accounts import read_all
from tests.stack.running_stack import ROOT, RunningStack

pytestmark = [pytest.mark.timeout(600)]

LIMIT_SECONDS = 120
WINDOW_MS = 10_000
SPLITS = re.compile(r"Adding split\(s\) to reader: (.*)")
SPLIT = re.compile(r"Partition: visits-(\d+), StartingOffset: (-?\d+)")


class Following:
    """Output of scripts/inspect.sh --follow --json so far."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def steps(self) -> list[dict[str, Any]]:
        whole_lines = self.out.read_text().rpartition("\n")[0].splitlines()
        return [step for line in whole_lines for step in json.loads(line)["steps"]]

    def wait_for(self, what: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        return wait_until(
            lambda: next(filter(condition, self.steps()), None),
            what,
            seconds=LIMIT_SECONDS,
            explain=lambda: str(self.steps()[-3:]),
        )


@contextmanager
def following(stack: RunningStack, path: Path, out: Path) -> Iterator[Following]:
    """Follow a checkpoint while the block runs, then end as on Ctrl-C."""
    errors = out.with_suffix(".err")
    command = [str(ROOT / "scripts" / "inspect.sh"), "--follow", "--json", str(path)]
    with out.open("wb") as stdout, errors.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, env=stack.environment, start_new_session=True)
        try:
            yield Following(out)
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(timeout=30)
    assert "Traceback" not in errors.read_text(), errors.read_text()
    assert "PROBLEM" not in out.read_text()


def open_windows(stack: RunningStack, starts: dict[int, int], watermark: int) -> Counter[tuple[str, int]]:
    """Visits by key and window end that lie below the offsets and whose window the watermark has not passed."""
    windows: Counter[tuple[str, int]] = Counter()
    for (partition, offset), _, value, *_ in read_all(f"127.0.0.1:{stack.kafka_port}", "visits"):
        visit = parse_visit(value)
        if offset < starts.get(partition, 0) and visit is not None:
            window_end = visit.event_time // WINDOW_MS * WINDOW_MS + WINDOW_MS
            if window_end > watermark + 1:
                windows[(visit.visit_id, window_end)] += 1
    return windows


def started_from(stack: RunningStack) -> dict[int, int]:
    """Offsets that Flink's reader said it starts from, when it last started."""
    log = (stack.home / ".stack" / "logs" / "taskmanager.log").read_text(encoding="utf-8")
    return {int(partition): int(offset) for partition, offset in SPLIT.findall(SPLITS.findall(log)[-1])}


@pytest.mark.parametrize(
    "mode",
    [pytest.param("exactly-once", marks=[pytest.mark.full]), pytest.param("at-least-once", marks=pytest.mark.full)],
)
def test_flink_restores_as_foretold(mode: str, tmp_path: Path) -> None:
    with RunningStack(tmp_path / "home", "local", FLINK_MODE=mode) as stack:
        folder = stack.home / "checkpoints" / "flink"
        stack.script("up.sh")
        stack.wait_for_checkpoints(2)
        with following(stack, folder, tmp_path / "flink.jsonl") as flink:
            first = max(int(step["number"]) for step in [flink.wait_for("checkpoint", bool), *flink.steps()])
            new = flink.wait_for("new checkpoint", lambda step: step["number"] > first and step["sources"])
        assert {partition["topic"] for partition in new["sources"][0]["partitions"]} == {"visits"}

        stack.script("flink_cancel.sh")
        # Now the topic no longer grows, so the lag does not change.
        stack.script("generator_stop.sh")
        report = stack.inspected(folder, "--limit", "10000")
        starts = {each["partition"]: each["start"] for each in report["restart"]["partitions"]}
        behind = stack.record_count("visits") - sum(starts.values())
        assert behind > 0
        assert sum(each["records"] for each in report["lag"]) == behind
        bootstrap = f"127.0.0.1:{stack.kafka_port}"
        prose = stack.script("inspect.sh", str(folder), "--bootstrap", bootstrap).stdout
        assert f"{behind:,} visit{'s' * (behind > 1)} arrived since" in prose
        repeated = prose.splitlines()[-1]

        [decider] = [each for each in report["operators"] if each["uid"] == "late-or-on-time"]
        [clocks] = decider["state"]
        assert (clocks["name"], [row["partition"] for row in clocks["rows"]]) == ("partition-clocks", ["0", "1"])
        [windows] = [each for each in report["operators"] if each["uid"] == "windows"]
        [store] = [each for each in windows["state"] if each["windows"]]
        # The slowest partition decides up to where windows are closed.
        assert min(row["closed_windows_up_to"] for row in clocks["rows"]) == iso_time(windows["watermark"] + 1)
        expected = open_windows(stack, starts, windows["watermark"])
        assert expected
        shown = {(row["key"], int(row["window_end"])): int(row["value"].split()[1].strip(",")) for row in store["rows"]}
        assert shown == expected
        assert sum(window["visits"] for window in store["windows"]) == expected.total()
        assert {window["end"]: window["keys"] for window in store["windows"]} == Counter(end for _, end in expected)

        assert mode in report["configuration"]["sink"]
        newest = Path(report["steps"][-1]["path"])
        kept = [stack.inspected(path) for path in sorted(newest.parent.glob("chk-*")) if (path / "_metadata").exists()]
        transactions = [(each["id"], one) for each in kept for one in each["transactions"]]
        if mode == "exactly-once":
            # A window closes every 10 s, so one of the checkpoints kept had its transaction to commit.
            assert transactions
            assert all(one["transactional_id"].startswith("visit_windows") for _, one in transactions)
            assert all(number == str(one["checkpoint"]) for number, one in transactions)
            # All of these checkpoints completed. Of the newest, the job may have been cancelled before it could commit.
            for number, one in transactions:
                late = {"open"} if newest.name == f"chk-{number}" else set()
                assert one["fate"] in {"committed", "ended"} | late, one
            assert "under at-least-once" in repeated
        else:
            assert not transactions
            assert "not transactional (at-least-once)" in repeated
            assert f"with {len(expected)} key" in repeated

        said = stack.script("flink_restore.sh", "latest").stderr
        stack.wait_for_checkpoints(1)
        assert started_from(stack) == starts
        assert json.dumps({str(partition): offset for partition, offset in starts.items()}) in said


@pytest.mark.full
def test_spark_goes_on_as_predicted_and_is_followed(tmp_path: Path) -> None:
    with RunningStack(tmp_path / "home", "local") as stack:
        query = stack.home / "checkpoints" / "spark" / "visits_json"
        stack.script("up.sh")
        wait_until((query / "commits" / "1").exists, "two batches", seconds=LIMIT_SECONDS)
        stack.script("spark_stop.sh")
        before = stack.inspected(query)
        assert before["restart"]["action"] == "continue"
        assert not before["problems"]
        starts = {each["partition"]: each["start"] for each in before["restart"]["partitions"]}
        number = before["restart"]["step"]
        with following(stack, query, tmp_path / "spark.jsonl") as spark:
            stack.script("spark_start.sh")
            batch = spark.wait_for(f"batch {number}", lambda step: bool(step["number"] == number))
            spark.wait_for("its commit", lambda step: step["number"] == number and step["state"] == "committed")
        assert {each["partition"]: each["start"] for each in batch["sources"][0]["partitions"]} == starts
        done = {each["partition"]: each["end"] for each in batch["sources"][0]["partitions"]}
        # The generator never stops: what the first inspection called the lag is at least in part in this batch.
        assert sum(done.values()) - sum(starts.values()) >= sum(each["records"] for each in before["lag"])
