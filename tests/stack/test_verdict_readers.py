"""The verdict as a process against a real broker: what it reads, what it refuses, its exit codes and its JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from contract.settings import ROOT
from contract.visit import iso_time, output_line
from tests.stack.broker import Broker
from tests.unit.verdict_world import WINDOW_MS, visit

pytestmark = pytest.mark.stack

PART = "part-00000-00000000-0000-4000-8000-00000000000{}-c000.txt"


@dataclass
class Stack:
    """Topics of one test's own on the shared broker, and a home for output and checkpoints."""

    broker: Broker
    home: Path
    name: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def __post_init__(self) -> None:
        self.visits, self.windows, self.late, self.rejected = (
            f"{kind}-{self.name}" for kind in ("visits", "windows", "late", "rejected")
        )
        self.output = self.home / "output" / "visits_json"
        self.checkpoint = self.home / "checkpoints" / "spark" / "visits_json"
        self.broker.create_topics(self.visits, self.windows, self.late, self.rejected)

    def produce(
        self, topic: str, records: list[tuple[int, bytes]], headers: list[dict[str, str]] | None = None
    ) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap, "enable.idempotence": True})
        for number, (partition, value) in enumerate(records):
            named = [(key, text.encode()) for key, text in headers[number].items()] if headers else []
            producer.produce(topic, value, partition=partition, headers=named)  # type: ignore[arg-type]
        assert producer.flush(30) == 0

    def transaction(self) -> Producer:
        settings = {"bootstrap.servers": self.broker.bootstrap, "transactional.id": uuid.uuid4().hex}
        producer = Producer(settings)
        producer.init_transactions(30)
        producer.begin_transaction()
        return producer

    def commit_group(self, ends: dict[int, int]) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        offsets = [TopicPartition(self.visits, partition, end) for partition, end in ends.items()]
        group = f"group-{self.name}"
        request = [ConsumerGroupTopicPartitions(group, offsets)]
        answer = admin.alter_consumer_group_offsets(request)[group].result(30)
        assert all(item.error is None for item in answer.topic_partitions or [])

    def write_output(self, lines: list[bytes], ends: dict[int, int], batch: int = 0) -> Path:
        log, commits, offsets = (
            self.output / "_spark_metadata",
            self.checkpoint / "commits",
            self.checkpoint / "offsets",
        )
        for folder in (log, commits, offsets):
            folder.mkdir(parents=True, exist_ok=True)
        file = self.output / PART.format(batch)
        file.write_bytes(b"".join(line + b"\n" for line in lines))
        # Paths as a container writes them.
        uri = f"file:///faultline/output/visits_json/{file.name}"
        entry = {"path": uri, "size": file.stat().st_size, "isDir": False, "action": "add"}
        (log / str(batch)).write_text(f"v1\n{json.dumps(entry)}")
        (offsets / str(batch)).write_text(f"v1\n{{}}\n{json.dumps({self.visits: ends})}")
        (commits / str(batch)).write_text("v1\n{}")
        return file

    def start_verdict(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        settings = {
            "KAFKA_BOOTSTRAP": self.broker.bootstrap,
            "STACK_HOME": str(self.home),
            "VISITS_TOPIC": self.visits,
            "VISIT_WINDOWS_TOPIC": self.windows,
            "VISITS_LATE_TOPIC": self.late,
            "VISITS_REJECTED_TOPIC": self.rejected,
            "FLINK_GROUP_ID": f"group-{self.name}",
            "FLINK_WINDOW_SECONDS": "10",
            "FLINK_OUT_OF_ORDERNESS_SECONDS": "5",
        }
        return subprocess.Popen(
            [sys.executable, "-m", "verdict", *arguments],
            cwd=ROOT,
            env=os.environ | settings | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def verdict(self, *arguments: str, **environment: str) -> tuple[int, dict[str, object]]:
        process = self.start_verdict(*arguments, "--json", **environment)
        stdout, stderr = process.communicate(timeout=90)
        assert not stderr, stderr
        return process.returncode, json.loads(stdout)


@pytest.fixture
def stack(broker: Broker, tmp_path: Path) -> Iterator[Stack]:
    yield Stack(broker, tmp_path)


VISITS = [(number % 2, visit(f"v{number % 3}", number * 1_000)) for number in range(40)]
ENDS = {0: 20, 1: 20}


def window(visit_id: str, start: int, times: list[int]) -> bytes:
    names = ("window_start", "window_end", "first_event_time", "last_event_time")
    moments = (start, start + WINDOW_MS, min(times), max(times))
    document = {name: iso_time(moment) for name, moment in zip(names, moments, strict=True)}
    return json.dumps(document | {"visit_id": visit_id, "count": len(times)}).encode()


def all_windows() -> list[tuple[int, bytes]]:
    times: dict[tuple[str, int], list[int]] = {}
    for _, value in VISITS:
        document = json.loads(value)
        moment = 1_767_225_600_000 + 1_000 * int(document["event_time"][17:19])
        times.setdefault((document["visit_id"], moment - moment % WINDOW_MS), []).append(moment)
    return [
        (0, window(visit_id, start, found)) for (visit_id, start), found in times.items() if start % 60_000 < 30_000
    ]


def test_spark_holds_and_each_tampering_is_violated(stack: Stack) -> None:
    stack.produce(stack.visits, VISITS)
    lines = [output_line(value) for _, value in VISITS]
    file = stack.write_output(lines, ENDS)
    code, verdict = stack.verdict("spark")
    assert (code, verdict["outcome"], verdict["observed"]) == (0, "holds", 40)

    for tampered, counts in (
        (lines[1:], (1, 0, 0)),
        ([*lines, lines[7]], (0, 1, 0)),
        ([*lines, visit("stranger", 0)], (0, 0, 1)),
    ):
        file.write_bytes(b"\n".join(tampered) + b"\n")
        code, verdict = stack.verdict("spark")
        assert (code, verdict["outcome"]) == (1, "violated")
        assert (verdict["lost"], verdict["duplicated"], verdict["unexpected"]) == counts
        assert verdict["examples"]
    file.unlink()
    code, verdict = stack.verdict("spark")
    assert (code, verdict["lost"]) == (1, 40)
    assert file.name in json.dumps(verdict["examples"])


def test_flink_holds_and_each_tampering_is_violated(stack: Stack) -> None:
    late, broken = visit("v0", -60_000), b"{ no visit"
    stack.produce(stack.visits, [*VISITS, (0, late), (1, broken)])
    stack.commit_group({0: 21, 1: 21})
    place = [{"source.partition": "0", "source.offset": "20"}]
    stack.produce(stack.late, [(1, late)], place)
    stack.produce(stack.rejected, [(1, broken)], [{"source.partition": "1", "source.offset": "20", "reason": "x"}])
    windows = all_windows()
    committed = stack.transaction()
    for partition, value in windows:
        committed.produce(stack.windows, value, partition=partition)
    committed.commit_transaction(30)
    code, verdict = stack.verdict("flink")
    assert (code, verdict["outcome"], verdict["late"], verdict["rejected"]) == (0, "holds", 1, 1)
    records = verdict["records"]
    assert records == {"source": 42, "in_windows": 30, "late": 1, "rejected": 1, "pending": 10, "lost": 0}

    # An aborted transaction is no output.
    aborted = stack.transaction()
    aborted.produce(stack.windows, windows[0][1], partition=0)
    aborted.flush(30)
    aborted.abort_transaction(30)
    assert stack.verdict("flink")[0] == 0

    stack.produce(stack.windows, [windows[2]])
    code, verdict = stack.verdict("flink")
    assert (code, verdict["duplicated"], verdict["lost"], verdict["unexpected"]) == (1, 1, 0, 0)

    stack.produce(stack.late, [(0, late)], place)
    stack.produce(stack.rejected, [(0, late)], place)
    stack.produce(stack.windows, [(1, b"{}")])
    code, verdict = stack.verdict("flink")
    assert (code, verdict["duplicated"], verdict["lost"], verdict["unexpected"]) == (1, 2, 0, 2)


def test_flink_with_a_window_removed_is_violated(stack: Stack) -> None:
    stack.produce(stack.visits, VISITS)
    stack.commit_group(ENDS)
    _, *windows = all_windows()
    stack.produce(stack.windows, windows)
    code, verdict = stack.verdict("flink")
    assert (code, verdict["lost"], verdict["duplicated"], verdict["unexpected"]) == (1, 1, 0, 0)
    assert json.loads(all_windows()[0][1])["window_start"] in json.dumps(verdict["examples"])


def test_a_job_that_is_behind_is_unknown_and_waited_for(stack: Stack) -> None:
    stack.produce(stack.visits, VISITS)
    stack.produce(stack.windows, all_windows())
    code, verdict = stack.verdict("flink", "--wait", "0")
    assert (code, verdict["outcome"]) == (2, "unknown")
    assert "no checkpoint" in str(verdict["reason"])
    stack.commit_group({0: 20, 1: 12})
    code, verdict = stack.verdict("flink", "--wait", "0")
    assert code == 2
    assert "32 of 40" in str(verdict["reason"])
    waiting = stack.start_verdict("flink", "--wait", "60")
    time.sleep(3)
    assert waiting.poll() is None
    stack.commit_group(ENDS)
    assert waiting.wait(60) == 0
    assert waiting.communicate()[0]


def test_an_open_transaction_is_unknown_and_waited_for(stack: Stack) -> None:
    stack.produce(stack.visits, VISITS)
    stack.commit_group(ENDS)
    opened = stack.transaction()
    for partition, value in all_windows():
        opened.produce(stack.windows, value, partition=partition)
    opened.flush(30)
    code, verdict = stack.verdict("flink", "--wait", "1")
    assert code == 2
    assert "open transaction from offset 0" in str(verdict["reason"])
    waiting = stack.start_verdict("flink", "--wait", "60")
    time.sleep(3)
    assert waiting.poll() is None
    opened.commit_transaction(30)
    assert waiting.wait(60) == 0
    assert waiting.communicate()[0]


@pytest.mark.parametrize("pipeline", ["spark", "flink"])
def test_a_source_that_moves_is_unknown(stack: Stack, pipeline: str) -> None:
    stack.produce(stack.visits, VISITS)
    stack.commit_group(ENDS)
    stack.produce(stack.windows, all_windows())
    stack.write_output([value for _, value in VISITS], ENDS)
    stop = threading.Event()

    def send() -> None:
        while not stop.wait(0.3):
            stack.produce(stack.visits, [(0, visit("new", 90_000))])

    sender = threading.Thread(target=send)
    sender.start()
    try:
        code, verdict = stack.verdict(pipeline)
    finally:
        stop.set()
        sender.join()
    assert (code, verdict["outcome"]) == (2, "unknown")
    assert "still grows" in str(verdict["reason"])


@pytest.mark.parametrize("pipeline", ["spark", "flink"])
def test_nothing_read_is_unknown(stack: Stack, pipeline: str) -> None:
    code, verdict = stack.verdict(pipeline)
    assert (code, verdict["outcome"]) == (2, "unknown")
    assert "is empty: nothing was read" in str(verdict["reason"])


def test_deleted_records_and_a_checkpoint_of_another_topic_are_unknown(stack: Stack) -> None:
    stack.produce(stack.visits, VISITS)
    stack.write_output([value for _, value in VISITS], {0: 20, 1: 21})
    code, verdict = stack.verdict("spark")
    assert code == 2
    assert "not the topic that was read" in str(verdict["reason"])
    admin = AdminClient({"bootstrap.servers": stack.broker.bootstrap})
    for future in admin.delete_records([TopicPartition(stack.visits, 0, 3)]).values():
        future.result(30)
    stack.commit_group(ENDS)
    for pipeline in ("spark", "flink"):
        code, verdict = stack.verdict(pipeline)
        assert code == 2
        assert "begins at offset 3" in str(verdict["reason"])


def test_no_broker_and_no_topic_are_unknown(stack: Stack) -> None:
    code, verdict = stack.verdict("flink", "--bootstrap", "127.0.0.1:9")
    assert code == 2
    assert "127.0.0.1:9 does not answer" in str(verdict["reason"])
    code, verdict = stack.verdict("spark", VISITS_TOPIC="no-such-topic")
    assert code == 2
    assert "no-such-topic does not exist" in str(verdict["reason"])


def test_both_pipelines_share_a_table_that_ends_in_their_verdicts(stack: Stack) -> None:
    stack.produce(stack.visits, VISITS)
    stack.commit_group(ENDS)
    stack.produce(stack.windows, [*all_windows(), all_windows()[0]])
    stack.write_output([value for _, value in VISITS], ENDS)
    process = stack.start_verdict("all")
    stdout, stderr = process.communicate(timeout=90)
    assert (process.returncode, stderr) == (1, "")
    *_, spark, flink = stdout.splitlines()
    assert spark.startswith("spark: HOLDS")
    assert flink.startswith("flink: VIOLATED")
    assert "duplicated: window " in stdout
