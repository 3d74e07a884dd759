"""The verdict as a process against a real broker: what it reads, what it refuses, its exit codes and its JSON."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but the stubs do not re-export it
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from faultline.formats.run import FLINK_RUN_FILE, as_json, flink_run_of
from faultline.settings import ROOT, Settings, as_environment
from faultline.verdict.cluster import Cluster
from faultline.verdict.loading import Parse
from faultline.verdict.records import Batch, Record, Span, batch_of
from faultline.verdict.source.reader import RECORDS, record_rows
from faultline.verdict.sources import Sources
from faultline.verdict.spark.reader import SENT, sent_rows
from faultline.waiting import wait_until
from tests.judge.flink_world import (
    START,
    Outputs,
    Source,
    add,
    add_visit,
    placed,
    random_source,
    run_job,
    settle,
)
from tests.judge.spark_world import Topic, even_batches, write_output
from tests.stack.broker import Broker, run_broker
from tests.stack.children import Spawn

pytestmark = pytest.mark.ci


def require_only_progress(messages: str) -> None:
    """Fail unless these are what a slow machine prints: that it waits, and how far it has read."""
    progress = re.compile(r" +waiting for |(topic \S+|output|ledger): [\d,]+ of [\d,]+ (records|bytes)$")
    assert all(progress.match(line) for line in messages.splitlines()), messages


def until_it_waits(verdict: subprocess.Popen[str], what: str) -> None:
    """Return when a verdict says that it waits for this; fail when it ends first."""
    assert verdict.stderr
    said: list[str] = []
    for line in verdict.stderr:
        said.append(line)
        if f"waiting for {what}" in line:
            return
    pytest.fail(f"the verdict has not waited for {what}: {said}")


@dataclass
class Stack:
    """Topics of one test's own on the shared broker, and a home for output, checkpoints and ledgers."""

    broker: Broker
    home: Path
    spawn: Spawn
    name: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def __post_init__(self) -> None:
        self.visits, self.windows, self.late, self.rejected = (
            f"{kind}-{self.name}" for kind in ("visits", "windows", "late", "rejected")
        )
        self.broker.create_topics(self.visits, self.windows, self.late, self.rejected)
        self.settings = {
            "STACK_KAFKA_BOOTSTRAP": self.broker.bootstrap,
            "STACK_HOME": str(self.home),
            "STACK_VISITS_TOPIC": self.visits,
            "STACK_VISIT_WINDOWS_TOPIC": self.windows,
            "STACK_VISITS_LATE_TOPIC": self.late,
            "STACK_VISITS_REJECTED_TOPIC": self.rejected,
            "STACK_FLINK_GROUP_ID": f"group-{self.name}",
            "STACK_FLINK_WINDOW_SECONDS": "10",
            "STACK_FLINK_OUT_OF_ORDERNESS_SECONDS": "5",
        }

    def send(self, topic: str, records: Iterable[Record], producer: Producer | None = None) -> None:
        chosen = producer or Producer({"bootstrap.servers": self.broker.bootstrap, "enable.idempotence": True})
        for record in records:
            chosen.produce(
                topic, record.value, record.key, partition=record.partition, timestamp=record.timestamp,
                headers=list(record.headers),
            )  # fmt: skip
        assert chosen.flush(30) == 0

    def transaction(self) -> Producer:
        settings = {"bootstrap.servers": self.broker.bootstrap, "transactional.id": uuid.uuid4().hex}
        producer = Producer(settings)
        producer.init_transactions(30)
        producer.begin_transaction()
        return producer

    def send_source(self, source: Source) -> None:
        self.send(self.visits, (record for records in source.values() for record in records))

    def send_outputs(self, outputs: Outputs) -> None:
        self.send(self.windows, outputs.windows)
        self.send(self.late, outputs.late)
        self.send(self.rejected, outputs.rejected)

    def commit_group(self, ends: dict[int, int]) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap})
        offsets = [TopicPartition(self.visits, partition, end) for partition, end in ends.items()]
        group = f"group-{self.name}"
        request = [ConsumerGroupTopicPartitions(group, offsets)]

        def committed() -> bool:
            answer = admin.alter_consumer_group_offsets(request)[group].result(30)
            return all(item.error is None for item in answer.topic_partitions or [])

        # A broker that has just started first creates its topic of offsets.
        wait_until(committed, f"the offsets of {group}", seconds=60)

    def write_lines(self, source: Source, *, committed: int | None = None) -> list[Path]:
        """Write what a faultless synchronizer makes of a source, in three batches."""
        topic = Topic({partition: [record.value for record in records] for partition, records in source.items()})
        query = write_output(self.home, topic, even_batches(topic, 3), committed=committed, topic_name=self.visits)
        return [file for file in query.files.values() if file.stat().st_size]

    def checkpoint(self) -> Path:
        return self.home / "checkpoints" / "spark" / "visits_json"

    def start_verdict(self, *arguments: str, **shell: str) -> subprocess.Popen[str]:
        environ = os.environ | {"PYTHONPATH": str(ROOT)} | self.settings | as_environment(shell)
        return self.spawn([sys.executable, "-m", "faultline.verdict", *arguments], environ)

    def verdict(self, *arguments: str, **shell: str) -> tuple[int, dict[str, object]]:
        process = self.start_verdict(*arguments, "--json", **shell)
        stdout, stderr = process.communicate(timeout=600)
        require_only_progress(stderr)
        return process.returncode, json.loads(stdout)


@pytest.fixture
def stack(broker: Broker, tmp_path: Path, spawn: Spawn) -> Stack:
    return Stack(broker, tmp_path, spawn)


def world(seed: int = 1, records: int = 80) -> tuple[Source, Outputs]:
    """A settled source with late and unparsable records, and what a faultless job makes of it."""
    chance = random.Random(seed)
    source = settle(random_source(chance, records=records))
    outputs = run_job(source, chance)
    assert outputs.late
    assert outputs.rejected
    return source, outputs


def ends_of(source: Source) -> dict[int, int]:
    return {partition: len(records) for partition, records in source.items()}


def caught_up(stack: Stack) -> tuple[Source, Outputs]:
    """Everything is sent, written and committed."""
    source, outputs = world()
    stack.send_source(source)
    stack.send_outputs(outputs)
    stack.commit_group(ends_of(source))
    stack.write_lines(source)
    return source, outputs


def test_spark_holds_and_each_tampering_is_violated(stack: Stack) -> None:
    source, _ = world()
    stack.send_source(source)
    file = stack.write_lines(source)[0]
    total = sum(ends_of(source).values())
    code, verdict = stack.verdict("spark")
    assert (code, verdict["outcome"], verdict["observed"]) == (0, "holds", total)

    lines = file.read_bytes().splitlines(keepends=True)
    for tampered, counts in (
        (lines[1:], (1, 0, 0)),
        ([*lines, lines[0]], (0, 1, 0)),
        ([*lines, b'{"visit_id":"stranger"}\n'], (0, 0, 1)),
    ):
        file.write_bytes(b"".join(tampered))
        code, verdict = stack.verdict("spark")
        assert (code, verdict["outcome"]) == (1, "violated")
        assert (verdict["lost"], verdict["duplicated"], verdict["unexpected"]) == counts
        assert verdict["examples"]
    file.unlink()
    code, verdict = stack.verdict("spark")
    assert (code, verdict["lost"]) == (1, len(lines))
    assert file.name in json.dumps(verdict["examples"])


def test_flink_holds_and_each_tampering_is_violated(stack: Stack) -> None:
    source, outputs = world()
    stack.send_source(source)
    stack.commit_group(ends_of(source))
    committed = stack.transaction()
    stack.send(stack.windows, outputs.windows, committed)
    committed.commit_transaction(30)
    stack.send(stack.late, outputs.late)
    stack.send(stack.rejected, outputs.rejected)
    code, verdict = stack.verdict("flink")
    assert (code, verdict["outcome"], verdict["pending"], verdict["closing"]) == (0, "holds", 0, 2)
    assert (verdict["late"], verdict["rejected"]) == (len(outputs.late), len(outputs.rejected))
    assert "no settings of a run" in json.dumps(verdict["notes"])
    assert "no ledger" in json.dumps(verdict["notes"])

    # An aborted transaction is not output.
    aborted = stack.transaction()
    stack.send(stack.windows, outputs.windows[:1], aborted)
    aborted.abort_transaction(30)
    assert stack.verdict("flink")[0] == 0

    stack.send(stack.windows, outputs.windows[-1:])
    code, verdict = stack.verdict("flink")
    assert (code, verdict["duplicated"], verdict["lost"], verdict["unexpected"]) == (1, 1, 0, 0)

    stack.send(stack.late, outputs.late[:1])
    stack.send(stack.rejected, outputs.late[:1])
    stack.send(stack.windows, [outputs.windows[0]._replace(value=b"{}")])
    dumped = stack.home / "found"
    code, verdict = stack.verdict("flink", "--dump", str(dumped))
    assert (code, verdict["duplicated"], verdict["lost"], verdict["unexpected"]) == (1, 2, 0, 2)
    for category in ("lost", "duplicated", "unexpected", "disordered", "pending"):
        found = (dumped / f"flink.{category}.jsonl").read_text(encoding="utf-8").splitlines()
        assert len(found) == verdict[category]
        assert all(json.loads(line)["category"] == category for line in found)


def test_a_job_that_is_behind_is_unknown_and_waited_for(stack: Stack) -> None:
    source, outputs = world()
    stack.send_source(source)
    stack.send_outputs(outputs)
    code, verdict = stack.verdict("flink", "--wait", "0")
    assert (code, verdict["outcome"]) == (2, "unknown")
    assert "no checkpoint" in str(verdict["reason"])
    ends = ends_of(source)
    stack.commit_group(ends | {1: 12})
    code, verdict = stack.verdict("flink", "--wait", "2")
    assert code == 2
    assert f"{ends[0] + 12} of {sum(ends.values())}" in str(verdict["reason"])
    assert re.search(r"it has not moved in \d+ s of waiting", str(verdict["reason"]))
    waiting = stack.start_verdict("flink", "--wait", "60")
    until_it_waits(waiting, f"flink: the job has committed {ends[0] + 12} of ")
    stack.commit_group(ends)
    assert waiting.wait(60) == 0
    assert waiting.communicate()[0]


def test_a_pipeline_that_stands_still_never_holds(stack: Stack) -> None:
    source, outputs = world(records=400)
    stack.send_source(source)
    half = {partition: records[: len(records) // 4] for partition, records in source.items()}
    stack.commit_group(ends_of(half))
    stack.send_outputs(run_job(half, random.Random(1)))
    stack.write_lines(source, committed=0)
    for pipeline, as_is, reason in (
        ("flink", (0, "holds"), "judged as it is: the records on "),
        # Without a commit nothing says what is due.
        ("spark", (2, "unknown"), "no batch is committed in "),
    ):
        code, verdict = stack.verdict(pipeline, "--wait", "1")
        assert (code, verdict["outcome"]) == (2, "unknown"), verdict
        code, verdict = stack.verdict(pipeline, "--as-is")
        assert (code, verdict["outcome"]) == as_is, verdict
        assert reason in str(verdict["reason"])
        assert int(str(verdict["pending"])) > 0
    # What is wrong already is violated, behind or not.
    stack.send(stack.windows, outputs.windows[-1:])
    stack.send(stack.windows, outputs.windows[-1:])
    assert stack.verdict("flink", "--wait", "1")[0] == 1


def test_an_open_transaction_is_unknown_and_waited_for(stack: Stack) -> None:
    source, outputs = world()
    stack.send_source(source)
    stack.commit_group(ends_of(source))
    stack.send(stack.late, outputs.late)
    stack.send(stack.rejected, outputs.rejected)
    opened = stack.transaction()
    stack.send(stack.windows, outputs.windows, opened)
    code, verdict = stack.verdict("flink", "--wait", "1")
    assert code == 2
    assert "open transaction from offset 0" in str(verdict["reason"])
    waiting = stack.start_verdict("flink", "--wait", "60")
    until_it_waits(waiting, f"flink: {stack.windows} partition ")
    opened.commit_transaction(30)
    assert waiting.wait(60) == 0
    assert waiting.communicate()[0]


def test_a_source_written_in_transactions_is_judged(stack: Stack) -> None:
    source, outputs = world()
    committed = stack.transaction()
    stack.send(stack.visits, (record for records in source.values() for record in records), committed)
    committed.commit_transaction(30)
    # The group ends at the last record: behind it is only the transaction's marker.
    stack.commit_group(ends_of(source))
    stack.send_outputs(outputs)
    stack.write_lines(source)
    code, verdict = stack.verdict("all")
    assert (code, verdict["outcome"]) == (0, "holds"), verdict


@pytest.mark.parametrize("pipeline", ["spark", "flink"])
def test_records_behind_an_open_transaction_of_the_source_are_unknown(stack: Stack, pipeline: str) -> None:
    source, _ = caught_up(stack)
    opened = stack.transaction()
    add_visit(source, 0, "hidden", START)
    stack.send(stack.visits, source[0][-1:], opened)
    code, verdict = stack.verdict(pipeline, "--wait", "1")
    assert (code, verdict["outcome"]) == (2, "unknown")
    assert "1 offset after it cannot be read" in str(verdict["reason"])
    opened.abort_transaction(30)
    assert stack.verdict(pipeline)[0] == 0


@pytest.mark.parametrize("pipeline", ["spark", "flink"])
def test_a_source_that_moves_is_unknown(stack: Stack, pipeline: str) -> None:
    caught_up(stack)
    stop = threading.Event()

    def send() -> None:
        while not stop.wait(0.3):
            new: Source = {0: []}
            add_visit(new, 0, "new", START + 90_000)
            stack.send(stack.visits, new[0])

    sender = threading.Thread(target=send)
    sender.start()
    try:
        code, verdict = stack.verdict(pipeline)
    finally:
        stop.set()
        sender.join()
    assert (code, verdict["outcome"]) == (2, "unknown")
    assert "grew during the verdict" in str(verdict["reason"])


@pytest.mark.parametrize("pipeline", ["spark", "flink"])
def test_nothing_read_is_unknown(stack: Stack, pipeline: str) -> None:
    code, verdict = stack.verdict(pipeline)
    assert (code, verdict["outcome"]) == (2, "unknown")
    assert "is empty: nothing was read" in str(verdict["reason"])


def test_deleted_records_and_a_checkpoint_of_another_topic_are_unknown(stack: Stack) -> None:
    source, _ = caught_up(stack)
    longer = {partition: list(records) for partition, records in source.items()}
    add(longer, 1, b"x", b"x", START)
    stack.write_lines(longer)
    code, verdict = stack.verdict("spark")
    assert code == 2
    assert "not the topic that was read" in str(verdict["reason"])
    stack.write_lines(source)
    admin = AdminClient({"bootstrap.servers": stack.broker.bootstrap})
    for future in admin.delete_records([TopicPartition(stack.visits, 0, 3)]).values():
        future.result(30)
    for pipeline in ("spark", "flink"):
        code, verdict = stack.verdict(pipeline)
        assert code == 2
        assert "begins at offset 3" in str(verdict["reason"])


def test_a_compacted_topic_is_unknown(stack: Stack) -> None:
    caught_up(stack)
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, stack.visits, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": stack.broker.bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)
    for pipeline in ("spark", "flink"):
        code, verdict = stack.verdict(pipeline)
        assert code == 2
        assert "is compacted" in str(verdict["reason"])


def test_settings_come_from_the_run_and_contradictions_are_refused(stack: Stack) -> None:
    caught_up(stack)
    leave_run(stack, "first")
    # The caller's shell has other settings.
    assert stack.verdict("flink", FLINK_WINDOW_SECONDS="20", FLINK_OUT_OF_ORDERNESS_SECONDS="60")[0] == 0
    leave_run(stack, "second", FLINK_WINDOW_SECONDS="20")
    code, verdict = stack.verdict("flink")
    assert code == 2
    assert "with different settings: window_seconds" in str(verdict["reason"])
    code, verdict = stack.verdict("spark", "--sink", "foreach-append", "--checkpoint", str(stack.checkpoint()))
    assert code == 2
    assert "belongs to sink files" in str(verdict["reason"])


def leave_run(stack: Stack, job: str, **changed: str) -> None:
    file = stack.home / "checkpoints" / "flink" / job / FLINK_RUN_FILE
    file.parent.mkdir(parents=True)
    file.write_text(
        as_json(flink_run_of(Settings(stack.settings | as_environment(changed)), job_id=job)), encoding="utf-8"
    )


def test_offsets_of_another_job_tell_nothing(stack: Stack) -> None:
    caught_up(stack)
    leave_run(stack, "first")
    assert stack.verdict("flink")[0] == 0
    leave_run(stack, "second", VISIT_WINDOWS_TOPIC="other")
    code, verdict = stack.verdict("flink")
    assert code == 2
    assert f"commits offsets in the same group group-{stack.name}" in str(verdict["reason"])


def test_a_loss_shows_once_the_transaction_that_was_open_is_over(stack: Stack) -> None:
    source, outputs = world()
    stack.send_source(source)
    stack.commit_group(ends_of(source))
    _, *rest = outputs.windows
    stack.send_outputs(replace(outputs, windows=placed(rest)))
    producer = stack.transaction()
    stack.send(stack.windows, outputs.windows[-1:], producer)
    code, verdict = stack.verdict("flink", "--as-is", "--wait", "1")
    assert (code, verdict["lost"], bool(verdict["pending"])) == (0, 0, True)
    assert "a missing record counts as pending" in str(verdict["notes"])
    judging = stack.start_verdict("flink", "--as-is", "--json")
    until_it_waits(judging, "flink: the end of open transactions")
    producer.abort_transaction(30)
    stdout, _ = judging.communicate(timeout=300)
    assert (judging.returncode, json.loads(stdout)["lost"]) == (1, 1)


def test_no_broker_and_no_topic_are_unknown(stack: Stack) -> None:
    code, verdict = stack.verdict("flink", "--bootstrap", "127.0.0.1:9")
    assert code == 2
    assert "127.0.0.1:9 does not answer" in str(verdict["reason"])
    code, verdict = stack.verdict("spark", VISITS_TOPIC="no-such-topic")
    assert code == 2
    assert "no-such-topic does not exist" in str(verdict["reason"])


def test_a_broker_whose_group_coordinator_still_loads_is_waited_for(tmp_path: Path) -> None:
    # The first question about a group makes a new broker create its topic of offsets.
    for broker in run_broker(tmp_path):
        broker.create_topics("visits")
        assert Cluster(broker.bootstrap).group_offsets("no-such-group", "visits") == {}


def test_both_pipelines_share_a_table_that_ends_in_their_verdicts(stack: Stack) -> None:
    _, outputs = caught_up(stack)
    stack.send(stack.windows, outputs.windows[-1:])
    process = stack.start_verdict("all")
    stdout, stderr = process.communicate(timeout=600)
    require_only_progress(stderr)
    assert process.returncode == 1
    *_, spark, flink = stdout.splitlines()
    assert spark.startswith("spark: HOLDS")
    assert flink.startswith("flink: VIOLATED")
    assert "duplicated: window " in stdout
    assert f"source: no ledger: topic {stack.visits} was written by other programs" in stdout


def test_a_failure_in_one_pipeline_does_not_cost_the_others_verdict(stack: Stack) -> None:
    caught_up(stack)
    damaged = next((stack.home / "output").glob("*/_spark_metadata/*"))
    damaged.write_text("damaged", encoding="utf-8")
    code, verdict = stack.verdict("all")
    assert (code, verdict["outcome"]) == (2, "unknown")
    outcomes = {each["pipeline"]: each["outcome"] for each in verdict["verdicts"]}  # type: ignore[attr-defined]
    assert outcomes == {"spark": "unknown", "flink": "holds"}


def test_many_records_are_read_by_several_processes(stack: Stack) -> None:
    written = subprocess.run(
        [sys.executable, "-m", "benchmarks.faultless", "420000", "4", "120"],
        cwd=ROOT, env=os.environ | stack.settings, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert written == ["420004", "105000", "420004"]
    code, verdict = stack.verdict("all")
    assert (code, verdict["outcome"]) == (0, "holds"), verdict
    observed = [each["observed"] for each in verdict["verdicts"]]  # type: ignore[attr-defined]
    assert observed == [420_004, 105_000]


class CountingCluster(Cluster):
    """A real one, which keeps what it was asked to read."""

    asked: ClassVar[list[Mapping[int, Span]]] = []

    def read(self, topic: str, spans: Mapping[int, Span]) -> Iterator[Batch]:
        self.asked.append(dict(spans))
        return super().read(topic, spans)


def test_checkers_share_one_read_which_goes_on_where_a_topic_has_grown(stack: Stack, tmp_path: Path) -> None:
    records = [Record(number % 2, number // 2, b"key", b"%d" % number, 1000 + number) for number in range(10)]
    stack.send(stack.visits, records[:6])
    cluster = CountingCluster(stack.broker.bootstrap)
    cluster.asked.clear()
    sources = Sources(cluster, tmp_path)
    sources.add(stack.visits, record_rows)
    sources.add(stack.visits, sent_rows)

    def read(schema: pa.Schema, end: int) -> list[tuple[object, ...]]:
        spans = {partition: Span(0, end) for partition in (0, 1)}
        parse = record_rows if schema is RECORDS else sent_rows
        tables = [rows for _, rows in sources.rows(stack.visits, spans, schema, parse)]
        return sorted(tuple(row.values()) for rows in tables for row in rows.to_pylist())

    def expected(parse: Parse, chosen: list[Record]) -> list[tuple[object, ...]]:
        return sorted(tuple(row.values()) for row in parse(batch_of(chosen)).to_pylist())

    assert read(RECORDS, 3) == expected(record_rows, records[:6])
    assert read(SENT, 3) == expected(sent_rows, records[:6])
    stack.send(stack.visits, records[6:])
    assert read(SENT, 5) == expected(sent_rows, records)
    assert read(RECORDS, 2) == expected(record_rows, records[:4])
    assert cluster.asked == [{partition: Span(*span)} for span in ((0, 3), (3, 5)) for partition in (0, 1)]

    admin = AdminClient({"bootstrap.servers": stack.broker.bootstrap})
    admin.delete_topics([stack.visits])[stack.visits].result(30)
    wait_until(lambda: stack.visits not in cluster.topics(), "the topic to be gone", seconds=60)
    stack.broker.create_topics(stack.visits)
    stack.send(stack.visits, records[:2])
    assert read(RECORDS, 1) == expected(record_rows, records[:2])
