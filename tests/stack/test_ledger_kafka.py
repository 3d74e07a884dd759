"""The generator's ledger on real Kafka: its visits are in the topic, and the topic has nothing else."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

from faultline.formats.digest import record_digest
from faultline.formats.ledger import ACKED, FIELDS, SENT, TOPIC, ledger_files
from faultline.settings import ROOT
from faultline.waiting import wait_until
from tests.stack.broker import Broker
from tests.stack.children import Spawn
from tests.stack.flink_accounts import read_all

pytestmark = [pytest.mark.timeout(300)]
TROUBLE = ["--late-percent", "3", "--duplicated-percent", "3", "--unparsable-percent", "3"]
FAST = ["--start", "2026-01-01T00:00:00Z", "--rate", "0", *TROUBLE]


class Content(NamedTuple):
    """Facts of a record that a ledger and a topic can both state."""

    partition: int
    timestamp: int
    digest: bytes
    key: bytes


class Run(NamedTuple):
    """One file of the ledger."""

    topic_id: str
    sent: dict[int, Content]
    acked: dict[int, tuple[int, int]]
    torn: str


def has_acknowledged(ledger: Path, topic: str, earlier_runs: int) -> bool:
    return any(ACKED in file.read_text() for file in ledger_files(ledger, topic)[earlier_runs:])


def is_gone(admin: AdminClient, topic: str) -> bool:
    return topic not in admin.list_topics(timeout=10).topics


def start(
    spawn: Spawn, broker: Broker, home: Path, topic: str, *flags: str, limit: str = "unlimited"
) -> subprocess.Popen[str]:
    """Start a generator; `limit` in KiB for the size of a file simulates a full disk."""
    environ = os.environ | {
        "STACK_KAFKA_BOOTSTRAP": broker.bootstrap,
        "STACK_VISITS_TOPIC": topic,
        "STACK_HOME": str(home),
    }
    generator = [str(ROOT / "faultline" / "services" / "generator.sh"), *flags]
    return spawn(["bash", "-c", f'ulimit -f {limit} && exec "$@"', "-", *generator], environ)


def read_ledger(file: Path) -> Run:
    """Read a ledger; only its last line may be torn."""
    *whole, torn = file.read_text(encoding="ascii").split("\n")
    sent: dict[int, Content] = {}
    acked: dict[int, tuple[int, int]] = {}
    header = dict(zip(FIELDS, whole[0].split(","), strict=True))
    assert header["event"] == TOPIC
    for text in whole[1:]:
        line = dict(zip(FIELDS, text.split(","), strict=True))
        number, partition = int(line["number"]), int(line["partition"])
        if line["event"] == SENT:
            assert number == len(sent)
            digest, key = bytes.fromhex(line["digest"]), unquote_to_bytes(line["key"])
            sent[number] = Content(partition, int(line["timestamp"]), digest, key)
        else:
            assert line["event"] == ACKED
            assert number in sent and number not in acked
            acked[number] = (partition, int(line["kafka_offset"]))
    return Run(header["digest"], sent, acked, torn)


def read_topic(broker: Broker, topic: str) -> dict[tuple[int, int], Content]:
    """Return each record by partition and offset."""
    return {
        where: Content(where[0], timestamp, record_digest(key, value), key)
        for where, key, value, timestamp, _ in read_all(broker.bootstrap, topic)
    }


def check(runs: list[Run], topic: dict[tuple[int, int], Content]) -> None:
    """Each acknowledged record is where the ledger says; each other record is one that was sent."""
    unanswered: Counter[Content] = Counter()
    places: set[tuple[int, int]] = set()
    for run in runs:
        assert {number: topic[place] for number, place in run.acked.items()} == {
            number: run.sent[number] for number in run.acked
        }
        assert not places & set(run.acked.values()) and len(set(run.acked.values())) == len(run.acked)
        places |= set(run.acked.values())
        unanswered.update(content for number, content in run.sent.items() if number not in run.acked)
    rest = Counter(content for place, content in topic.items() if place not in places)
    assert not rest - unanswered


def topic_id(broker: Broker, topic: str) -> str:
    """Return the id as kafka-topics.sh shows it; librdkafka writes it with + and / in the place of - and _."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    found = str(admin.describe_topics(TopicCollection([topic]))[topic].result(timeout=30).topic_id)
    return found.translate(str.maketrans("+/", "-_"))


def test_a_run_that_ends_well_has_every_record_acknowledged(spawn: Spawn, broker: Broker, tmp_path: Path) -> None:
    broker.create_topics("ledger_whole")
    process = start(spawn, broker, tmp_path, "ledger_whole", *FAST, "--total", "3000")
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    (file,) = ledger_files(tmp_path / "ledger", "ledger_whole")
    run, topic = read_ledger(file), read_topic(broker, "ledger_whole")
    assert json.loads(out)["sent"] == len(run.sent) == len(run.acked) == len(topic) == 3000
    assert run.topic_id == topic_id(broker, "ledger_whole")
    assert run.torn == ""
    check([run], topic)


@pytest.mark.parametrize("rate", ["0", "400"])
def test_sigkill_in_full_flight_leaves_the_truth(spawn: Spawn, broker: Broker, tmp_path: Path, rate: str) -> None:
    name = f"ledger_sigkill_{rate}"
    broker.create_topics(name)
    for seed in range(3):
        process = start(spawn, broker, tmp_path, name, *FAST, "--rate", rate, "--seed", str(seed))
        acknowledged = functools.partial(has_acknowledged, tmp_path / "ledger", name, seed)
        wait_until(acknowledged, "an acknowledged visit", seconds=120)
        assert process.poll() is None
        time.sleep(0.5 + 0.37 * seed)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    runs = [read_ledger(file) for file in ledger_files(tmp_path / "ledger", name)]
    assert len(runs) == 3
    assert all(run.acked for run in runs)
    if rate == "0":
        assert any(len(run.acked) < len(run.sent) for run in runs), "nothing was in flight"
    check(runs, read_topic(broker, name))


def test_a_ledger_that_is_full_ends_the_run(spawn: Spawn, broker: Broker, tmp_path: Path) -> None:
    broker.create_topics("ledger_full")
    process = start(spawn, broker, tmp_path, "ledger_full", *FAST, "--total", "5000", limit="50")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert err.count("cannot be written") == 1
    assert "cannot be written" in err.splitlines()[-1]
    (file,) = ledger_files(tmp_path / "ledger", "ledger_full")
    assert file.stat().st_size == 50 * 1024
    run, topic = read_ledger(file), read_topic(broker, "ledger_full")
    assert 0 < len(topic) == json.loads(out)["sent"] <= len(run.sent)
    check([run], topic)


def test_without_a_ledger_nothing_is_sent(spawn: Spawn, broker: Broker, tmp_path: Path) -> None:
    broker.create_topics("ledger_none")
    (tmp_path / "ledger").write_text("in the place of the folder")
    process = start(spawn, broker, tmp_path, "ledger_none", *FAST, "--total", "10")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err.startswith("generator: the ledger ") and err.count("\n") == 1
    assert read_topic(broker, "ledger_none") == {}


def test_a_topic_that_was_created_again_has_another_id(spawn: Spawn, broker: Broker, tmp_path: Path) -> None:
    for _ in range(2):
        broker.create_topics("ledger_again")
        process = start(spawn, broker, tmp_path, "ledger_again", *FAST, "--total", "10")
        process.communicate(timeout=60)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for future in admin.delete_topics(["ledger_again"]).values():
            future.result(timeout=30)
        wait_until(functools.partial(is_gone, admin, "ledger_again"), "the end of the topic", seconds=60)
    first, second = (read_ledger(file) for file in ledger_files(tmp_path / "ledger", "ledger_again"))
    assert len(first.acked) == len(second.acked) == 10
    assert first.topic_id != second.topic_id
