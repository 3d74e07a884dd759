"""The synchronizer on real Kafka: a SIGKILL inside a batch, a SIGTERM, and the output of each sink."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from faultline.formats.visit import output_line
from faultline.settings import ROOT
from faultline.waiting import wait_until
from spark_job.options import SINKS
from tests.stack.broker import Broker

pytestmark = [pytest.mark.timeout(600)]

# What a topic may hold: line breaks of each kind, bytes that are not UTF-8, an empty value.
STRANGE = [
    b'{"visit_id":"a",\r\n\r\n "event_time":"2026-01-01T00:00:00Z"}',
    b"\xff\xfe\x00 no UTF-8 \xc3(",
    b"\xff\n\r\xff and a line break",
    "é€\U0001f600\u2028".encode(),
    b"\n",
    b" blanks  stay ",
    b"",
    None,
]


class Run:
    """A synchronizer in its own process group, as the local backend starts it; its messages go to a file."""

    def __init__(self, home: Path, broker: Broker, topic: str, *flags: str) -> None:
        self.log = home / "log"
        environ = os.environ | {
            "STACK_HOME": str(home), "STACK_KAFKA_BOOTSTRAP": broker.bootstrap, "STACK_VISITS_TOPIC": topic,
            "STACK_SPARK_UI_PORT": "0",
        }  # fmt: skip
        with self.log.open("wb") as log:
            command = [str(ROOT / "faultline" / "services" / "spark.sh"), *flags]
            self.process = subprocess.Popen(command, env=environ, stderr=log, start_new_session=True)

    def words(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(
            lambda: condition() or self.process.poll() is not None, what, seconds=180, every=0.05, explain=self.words
        )
        assert condition(), f"no {what}:\n{self.words()}"

    def signal_group(self, number: int) -> int:
        os.killpg(self.process.pid, number)
        return self.process.wait(timeout=180)


@pytest.fixture
def run(tmp_path: Path, broker: Broker, request: pytest.FixtureRequest) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []
    topic = re.sub(r"\W", "_", request.node.name)
    broker.create_topics(topic)

    def start(*flags: str) -> Run:
        runs.append(Run(tmp_path, broker, topic, *flags))
        return runs[-1]

    yield start
    for item in runs:
        if item.process.poll() is None:
            item.signal_group(signal.SIGKILL)


def send(broker: Broker, topic: str, values: list[bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number, value in enumerate(values):
        producer.produce(topic, value, key=str(number).encode())
    assert producer.flush(30) == 0


def lines_of(sink: str, output: Path) -> Counter[bytes]:
    files = [path for path in output.rglob("part-*") if "_temporary" not in path.parts]
    if sink == "files":
        log = [
            path.read_text().splitlines()[1:] for path in (output / "_spark_metadata").iterdir() if path.name[0] != "."
        ]
        files = [
            Path(path) for path in {json.loads(line)["path"].removeprefix("file://") for part in log for line in part}
        ]
    return Counter(line for path in files for line in path.read_bytes().split(b"\n")[:-1])


@pytest.mark.parametrize(
    "sink", [sink if sink == "files" else pytest.param(sink, marks=pytest.mark.full) for sink in SINKS]
)
def test_killed_inside_a_batch(
    sink: str, tmp_path: Path, broker: Broker, run: Callable[..., Run], request: pytest.FixtureRequest
) -> None:
    topic = re.sub(r"\W", "_", request.node.name)
    query = "visits_json" if sink == "files" else f"visits_json_{sink.replace('-', '_')}"
    checkpoint = tmp_path / "checkpoints" / "spark" / query
    sent: list[bytes | None] = STRANGE + [f"line {number}".encode() for number in range(500)]
    send(broker, topic, sent)

    flags = ("--sink", sink, "--trigger", "1 second", "--max-offsets-per-trigger", "200")
    held = run(*flags, "--hold-batch", "1")
    held.wait_for(lambda: "batch 1 held between offsets/1 and commits/1" in held.words(), "held batch")
    assert Path(f"{checkpoint}.held").read_text() == "1\n"
    assert (checkpoint / "offsets" / "1").exists()
    assert not (checkpoint / "commits" / "1").exists()
    assert held.signal_group(signal.SIGKILL) == -signal.SIGKILL
    planned = (checkpoint / "offsets" / "1").read_bytes()

    again = run(*flags)
    again.wait_for((checkpoint / "commits" / "2").exists, "batch 2")
    assert again.signal_group(signal.SIGTERM) == 0
    assert (checkpoint / "offsets" / "1").read_bytes() == planned
    # No half batch is left behind.
    batches = [
        {path.name for path in (checkpoint / log).iterdir() if path.name.isdecimal()} for log in ("offsets", "commits")
    ]
    assert batches[0] == batches[1]
    assert re.search(r"batch 1 \(re-run\): .* 2\d\d rows|batch 1 \(re-run\): .* 1\d\d rows", again.words())

    assert run("--sink", sink, "--trigger", "available-now").process.wait(timeout=180) == 0
    expected = Counter(output_line(value) for value in sent)
    observed = lines_of(sink, tmp_path / "output" / query)
    assert expected - observed == Counter()
    repeated = (observed - expected).total()
    if sink == "foreach-append":
        # The naive sink had written the batch before it was killed, and wrote it once more.
        assert 100 <= repeated <= 200
    else:
        assert repeated == 0


@pytest.mark.ci
def test_sigterm_finishes_the_batch_that_runs(
    tmp_path: Path, broker: Broker, run: Callable[..., Run], request: pytest.FixtureRequest
) -> None:
    topic = request.node.name
    checkpoint = tmp_path / "checkpoints" / "spark" / "visits_json"
    send(broker, topic, [b"line"] * 100)
    held = run("--trigger", "1 second", "--hold-batch", "0")
    held.wait_for(Path(f"{checkpoint}.held").exists, "held batch")
    os.killpg(held.process.pid, signal.SIGTERM)
    held.wait_for(lambda: "stopping after batch 0" in held.words(), "reaction to SIGTERM")
    assert held.process.poll() is None
    Path(f"{checkpoint}.release").touch()
    assert held.process.wait(timeout=180) == 0
    assert (checkpoint / "commits" / "0").exists()
    assert lines_of("files", tmp_path / "output" / "visits_json") == Counter({b"line": 100})


@pytest.mark.ci
def test_offsets_that_are_gone_are_an_error(
    tmp_path: Path, broker: Broker, run: Callable[..., Run], request: pytest.FixtureRequest
) -> None:
    topic = request.node.name
    send(broker, topic, [b"line"] * 100)
    assert run("--trigger", "available-now").process.wait(timeout=180) == 0
    offsets = tmp_path / "checkpoints" / "spark" / "visits_json" / "offsets" / "0"
    (offsets.parent / ".0.crc").unlink()
    offsets.write_text(re.sub(r'"0":\d+', '"0":100000', offsets.read_text()))
    failed = run("--trigger", "available-now")
    assert failed.process.wait(timeout=180) == 1
    assert "Some data may have been lost" in failed.words()
    assert "Traceback" not in failed.words()
