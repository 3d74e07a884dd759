"""Record golden checkpoints again, by real runs on a scratch broker, into their archives. Tools environment.

Usage: python -m tests.golden.record [spark] [flink] [hybrid]      from the project's root; some minutes

Without a word spark and flink; hybrid goes to the archive flink-others. Spark and Flink as pinned. For another release
give an interpreter that has it and its connector:
    GOLDEN_SPARK_PYTHON, GOLDEN_SPARK_JARS (comma-separated), GOLDEN_SPARK_NAME (of the archive, as spark-4.1)
    GOLDEN_FLINK_PYTHON, GOLDEN_FLINK_CONNECTOR, GOLDEN_FLINK_NAME (default flink-2.2)
GOLDEN_SPARK_RECIPES and GOLDEN_FLINK_RECIPES name some recipes, with spaces between; default: all, but Flink's rocksdb,
which is recorded alone: a test computes its windows from the offsets, in a topic without the visits of other recipes.
What Flink's own readers say is recorded beside each checkpoint: `rest.json`, and `savepoint_metadata.json` when
GOLDEN_STATE_PROCESSOR names the jar org.apache.flink:flink-state-processor-api, and GOLDEN_STATE_PYTHON the
interpreter whose Flink has its version (default: the Flink environment).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from faultline.formats.visit import iso_time
from faultline.packages.release import THIS_RELEASE
from faultline.waiting import wait_until
from tests.called import process
from tests.golden.archives import SCRATCH, recorded
from tests.stack.broker import Broker, run_broker
from tests.stack.flink_cluster import PYTHON

HERE = Path(__file__).resolve().parent
REST_PORT = 25181
FIRST_EVENT_MS = 1_767_225_600_000
FLINK_RECIPES = ("exactly-once", "at-least-once", "rocksdb")


def produce(bootstrap: str, first: int, last: int) -> None:
    """Send visits `first` to `last`, half a second of event time apart, of 5 visit ids, over 2 partitions."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(first, last):
        at = FIRST_EVENT_MS + number * 500
        value = json.dumps({"visit_id": f"v{number % 5}", "event_time": iso_time(at)})
        producer.produce("visits", key=f"v{number % 5}", value=value, partition=number % 2, timestamp=at)
    producer.flush()


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=shutil.copy2)


def record_spark(broker: Broker) -> None:
    """Run the recipes of record_spark.py."""
    out = SCRATCH / "spark"
    python = os.environ.get("GOLDEN_SPARK_PYTHON") or sys.executable
    recipes = os.environ.get("GOLDEN_SPARK_RECIPES", "").split()
    subprocess.run([python, str(HERE / "record_spark.py"), str(out), broker.bootstrap, *recipes], check=True)
    with recorded(os.environ.get("GOLDEN_SPARK_NAME") or f"spark-{THIS_RELEASE}") as target:
        for recipe in sorted(out.iterdir()):
            _copy(recipe, target / recipe.name)


def rest(path: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
    """Ask the REST API of the recorded job; None while it does not answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{REST_PORT}{path}", data, {"Content-Type": "application/json"}, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.loads(answer.read() or b"{}")
    except OSError:
        return None


def await_checkpoints(job: str, wanted: int) -> dict[str, Any]:
    """Wait until the job has completed `wanted` checkpoints; returns the REST API's statistics."""

    def enough() -> dict[str, Any] | None:
        statistics = rest(f"/jobs/{job}/checkpoints")
        return dict(statistics) if statistics and statistics["counts"]["completed"] >= wanted else None

    return wait_until(enough, f"{wanted} checkpoints of job {job}", seconds=90)


@contextmanager
def flink_job(broker: Broker, checkpoints: Path, delivery: str, *restore: str) -> Iterator[str]:
    """Run record_flink.py; yields the job id."""
    python = os.environ.get("GOLDEN_FLINK_PYTHON") or str(PYTHON)
    command = [python, str(HERE / "record_flink.py"), broker.bootstrap, str(checkpoints), str(REST_PORT), delivery]
    with subprocess.Popen([*command, *restore], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            job = process.stdout.readline().strip()
            if not job:
                raise SystemExit("the job to record did not start; its error is above")
            yield job
        finally:
            process.kill()


def restored(broker: Broker, folder: Path, delivery: str, paths: list[Path]) -> list[str]:
    """Restore checkpoints by Flink, one after the other; returns its reason where it fails."""
    command = [str(PYTHON), "-m", "tests.golden.restore_flink", broker.bootstrap, str(folder), str(REST_PORT)]
    done = process([*command, delivery, *map(str, paths)], seconds=1500)
    assert done.returncode == 0, done.stderr[-3000:]
    return [str(json.loads(line)) for line in done.stdout.splitlines() if line.startswith('"')]


def record_flink(broker: Broker, target: Path) -> None:
    """Exactly-once with a prepared transaction and open windows, a savepoint, and at-least-once; or RocksDB."""
    for delivery in os.environ.get("GOLDEN_FLINK_RECIPES", "exactly-once at-least-once").split():
        checkpoints = SCRATCH / "flink" / delivery
        checkpoints.mkdir(parents=True)
        with flink_job(broker, checkpoints, delivery) as job:
            start = 1000 * (1 + FLINK_RECIPES.index(delivery))
            # Visits keep coming, so that windows close between checkpoints and transactions have records.
            done = 0
            while done < 3:
                produce(broker.bootstrap, start, start + 40)
                start += 40
                done = (rest(f"/jobs/{job}/checkpoints") or {"counts": {"completed": 0}})["counts"]["completed"]
                time.sleep(0.3)
            if delivery != "at-least-once":
                savepoint(job, checkpoints)
            rest(f"/jobs/{job}", method="PATCH")
            statistics = await_checkpoints(job, 3)
            number = statistics["latest"]["completed"]["id"]
            details = rest(f"/jobs/{job}/checkpoints/details/{number}")
            version = rest("/config")["flink-version"]
            tasks = {
                vertex["name"]: rest(f"/jobs/{job}/checkpoints/details/{number}/subtasks/{vertex['id']}")
                for vertex in rest(f"/jobs/{job}")["vertices"]
            }
        _copy(checkpoints, target / delivery)
        answers = {"flink-version": version, "checkpoint": details, "tasks": tasks}
        (target / delivery / "rest.json").write_text(json.dumps(answers, indent=1))
        savepoint_metadata(target / delivery)


def record_hybrid(broker: Broker) -> None:
    """Run record_flink_hybrid.py."""
    out = SCRATCH / "hybrid-source"
    (out / "cp").mkdir(parents=True)
    command = [str(PYTHON), str(HERE / "record_flink_hybrid.py"), broker.bootstrap, str(out / "cp")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with recorded("flink-others") as target:
        _copy(out / "cp", target / out.name / "cp")


def savepoint(job: str, checkpoints: Path) -> None:
    """Trigger a savepoint in canonical format and wait for it."""
    rest(f"/jobs/{job}/savepoints", {"target-directory": checkpoints.as_uri(), "formatType": "CANONICAL"})
    wait_until(lambda: list(checkpoints.glob("savepoint-*/_metadata")), "a savepoint", seconds=60)


def savepoint_metadata(folder: Path) -> None:
    """Record what Flink's SQL function says of every checkpoint of the folder."""
    jar = os.environ.get("GOLDEN_STATE_PROCESSOR")
    if not jar:
        return
    python = os.environ.get("GOLDEN_STATE_PYTHON") or str(PYTHON)
    paths = sorted(path.parent.relative_to(folder) for path in folder.glob("**/_metadata"))
    done = subprocess.run(
        [python, str(HERE / "savepoint_metadata.py"), *map(str, paths)],
        env={name: value for name, value in os.environ.items() if name != "FLINK_HOME"}
        | {"HADOOP_CLASSPATH": str(Path(jar).resolve())},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(done.stdout.splitlines()[-1])
    (folder / "savepoint_metadata.json").write_text(json.dumps(document, indent=1))


def main() -> None:
    """Record what is named on the command line, or both."""
    wanted = sys.argv[1:] or ["spark", "flink"]
    shutil.rmtree(SCRATCH, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        for broker in run_broker(Path(folder)):
            broker.create_topics("visits", "visit_windows")
            produce(broker.bootstrap, 0, 100)
            if "spark" in wanted:
                record_spark(broker)
            if "hybrid" in wanted:
                record_hybrid(broker)
            if "flink" in wanted:
                with recorded(os.environ.get("GOLDEN_FLINK_NAME", "flink-2.2")) as target:
                    record_flink(broker, target)
    shutil.rmtree(SCRATCH, ignore_errors=True)


if __name__ == "__main__":
    main()
