"""The generator on real Kafka: the topic has the stream, record for record."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from faultline.settings import ROOT
from faultline.waiting import wait_until
from tests.stack.broker import Broker
from tests.stack.children import Spawn
from tests.stack.flink_accounts import read_all

pytestmark = [pytest.mark.timeout(300)]
FLAGS = [
    "--start",
    "2026-01-01T00:00:00Z",
    "--late-percent",
    "3",
    "--duplicated-percent",
    "3",
    "--unparsable-percent",
    "3",
]


def start(spawn: Spawn, broker: Broker, topic: str, *flags: str) -> subprocess.Popen[str]:
    # The ledger belongs beside the broker's own files, not into the clone.
    settings = {
        "STACK_KAFKA_BOOTSTRAP": broker.bootstrap,
        "STACK_VISITS_TOPIC": topic,
        "STACK_HOME": str(broker.log.parent),
    }
    return spawn([str(ROOT / "faultline" / "services" / "generator.sh"), *FLAGS, *flags], os.environ | settings)


def read(broker: Broker, topic: str) -> list[list[tuple[str, str, int]]]:
    """Return key, value and timestamp of the records of each partition, in order."""
    found: list[list[tuple[str, str, int]]] = [[], []]
    for (partition, _), key, value, timestamp, _ in read_all(broker.bootstrap, topic):
        found[partition].append((key.decode(), value.decode("utf-8", "surrogateescape"), timestamp))
    return found


def expected(total: int) -> list[list[tuple[str, str, int]]]:
    """Return the same of what the generator prints, without Kafka."""
    printed = subprocess.run(
        [str(ROOT / "faultline" / "services" / "generator.sh"), *FLAGS, "--total", str(total), "--to-stdout"],
        stdout=subprocess.PIPE, check=True,
    ).stdout  # fmt: skip
    found: list[list[tuple[str, str, int]]] = [[], []]
    for line in printed.splitlines():
        record = json.loads(line)
        found[record["partition"]].append((record["key"], record["value"], record["timestamp"]))
    return found


def test_the_topic_is_the_stream(spawn: Spawn, broker: Broker) -> None:
    broker.create_topics("generator_stream")
    done = start(spawn, broker, "generator_stream", "--rate", "0", "--event-rate", "10", "--total", "3000")
    out, _ = done.communicate(timeout=120)
    result = json.loads(out)
    assert done.returncode == 0
    assert result["sent"] == result["acknowledged"] == 3000
    assert read(broker, "generator_stream") == expected(3000)


def test_sigterm_flushes_and_states_the_counts(spawn: Spawn, broker: Broker) -> None:
    broker.create_topics("generator_sigterm")
    process = start(spawn, broker, "generator_sigterm", "--rate", "300")
    wait_until(lambda: any(read(broker, "generator_sigterm")), "a visit", seconds=120)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    result = json.loads(out)
    assert process.returncode == 0
    assert result["sent"] == result["acknowledged"] == sum(len(part) for part in read(broker, "generator_sigterm")) > 0
    assert f"{result['sent']} sent, {result['acknowledged']} acknowledged" in err


def test_a_topic_that_is_missing_is_one_line(spawn: Spawn, broker: Broker) -> None:
    process = start(spawn, broker, "generator_nowhere", "--wait-seconds", "1")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.count("\n") == 1
    assert "topic generator_nowhere" in err
