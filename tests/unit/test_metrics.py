"""The exporter's metrics from given samples, and the configuration with which Prometheus asks for them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from faultline.formats.verdict import SOURCE, NewestVerdict, Outcome, Verdict, Verdicts
from faultline.ports import free_ports
from faultline.services import prometheus
from faultline.settings import ROOT, Settings, artifacts, as_environment
from faultline.waiting import wait_until
from tests.called import process, program

PYTHON = str(artifacts() / "venv-page" / "bin" / "python")
COLLECT = """
import ast, sys
from prometheus_client import CollectorRegistry, generate_latest
from faultline.probes.exporter import Exporter
registry = CollectorRegistry()
registry.register(Exporter(ast.literal_eval(sys.stdin.read()), "visits"))
sys.stdout.write(generate_latest(registry).decode())
"""
TOPICS = {
    "last_stable_offset": {"visits": {0: 100}, "visit_windows": {0: 7}},
    "high_watermark": {"visits": {0: 100}, "visit_windows": {0: 9}},
    "group": {0: 60},
    "under_replicated": 2,
}
FLINK = {
    "state": "RUNNING", "running_tasks": 3, "tasks": 4, "restarts": 1, "checkpoints_completed": 5,
    "latest_at": 1_500_500,
}  # fmt: skip
SPARK = {"batch": 3, "committed_at": 1600.5, "offsets": {"0": 110}}
IN_CONTAINER = {"STACK_JOBMANAGER_HOST": "jobmanager"}
LIMIT_SECONDS = 60


def exposed(samples: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The samples that Prometheus gets, by metric and labels."""
    done = subprocess.run(
        [PYTHON, "-c", COLLECT], input=repr(samples), capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=LIMIT_SECONDS,
    )  # fmt: skip
    return read(done.stdout)


def read(text: str) -> dict[str, float]:
    """The samples of an exposition; each name has its type once."""
    types = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")]
    assert len(types) == len(set(types))
    lines = [line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    return {name.removeprefix("faultline_"): float(value) for name, _, value in lines}


def recent(**sample: Any) -> dict[str, Any]:
    return {"at": time.time(), **sample}


def test_each_sample_becomes_metrics() -> None:
    states = {"kafka": "answers", "taskmanager": "silent for 6 s", "generator": "visits come in", "spark": "not known"}
    found = exposed(
        {
            "topics": recent(**TOPICS),
            "flink": recent(**FLINK),
            "spark": recent(**SPARK),
            "services": recent(states=states),
        }
    )
    assert {name: value for name, value in found.items() if name.startswith("source")} == {
        f'source_answers{{source="{name}"}}': 1.0 for name in ("topics", "flink", "spark", "services")
    }
    assert {name: value for name, value in found.items() if name.startswith("service_")} == {
        'service_answers{service="kafka"}': 1.0,
        'service_answers{service="taskmanager"}': 0.0,
        'service_answers{service="generator"}': 1.0,
    }
    assert found['topic_high_watermark{partition="0",topic="visit_windows"}'] == 9.0
    assert found['topic_last_stable_offset{partition="0",topic="visit_windows"}'] == 7.0
    assert found["under_replicated_partitions"] == 2.0
    assert found['consumer_lag{partition="0",pipeline="flink"}'] == 40.0
    # The batch was sampled later, and is ahead of the end that was sampled first.
    assert found['consumer_lag{partition="0",pipeline="spark"}'] == 0.0
    assert (found["flink_job_runs"], found["flink_tasks_running"], found["flink_tasks"]) == (0.0, 3.0, 4.0)
    assert (found["flink_restarts"], found["flink_checkpoints_completed"]) == (1.0, 5.0)
    assert (found["flink_checkpoint_timestamp_seconds"], found["spark_commit_timestamp_seconds"]) == (1500.5, 1600.5)


def test_no_number_stands_for_what_is_not_known() -> None:
    old = {"at": time.time() - 11, **FLINK}
    found = exposed({"topics": recent(unknown="no answer"), "flink": old, "spark": recent(**SPARK)})
    assert {name for name in found if not name.startswith("spark_")} == {
        f'source_answers{{source="{name}"}}' for name in ("topics", "flink", "spark")
    }
    assert found['source_answers{source="topics"}'] == found['source_answers{source="flink"}'] == 0.0
    before_the_first = exposed({"flink": recent(**{**FLINK, "latest_at": None})})
    assert "flink_checkpoint_timestamp_seconds" not in before_the_first


def answers(port: int) -> dict[str, float] | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return read(answer.read().decode())
    except OSError:
        return None


def test_without_a_stack_it_answers_with_the_newest_verdict_alone(tmp_path: Path) -> None:
    given = Verdicts((Verdict(SOURCE, Outcome.HOLDS, ""), Verdict("flink", Outcome.VIOLATED, "two lost", lost=2)))
    settings = Settings({"STACK_HOME": str(tmp_path)})
    settings.newest_verdict.parent.mkdir()
    NewestVerdict(1234.5, given).write(settings.newest_verdict)
    assert NewestVerdict.read(settings.newest_verdict) == NewestVerdict(1234.5, given)
    port, nobody = free_ports("127.0.0.1", 2)
    silent = {"HOME": str(tmp_path), "METRICS_PORT": str(port), "KAFKA_PORT": str(nobody), "FLINK_UI_PORT": str(nobody)}
    command = [PYTHON, "-m", "faultline.probes.exporter"]
    environ = os.environ | as_environment(silent)
    with subprocess.Popen(command, cwd=ROOT, env=environ, stderr=subprocess.PIPE, text=True) as process:
        try:
            found: dict[str, float] = {}

            def is_told() -> bool:
                found.clear()
                found.update(answers(port) or {})
                return "verdict_timestamp_seconds" in found

            wait_until(is_told, "the verdict", seconds=LIMIT_SECONDS)
            taken = program("faultline.probes.exporter", python=PYTHON, **as_environment(silent))
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=LIMIT_SECONDS) == 0
    assert found["verdict_timestamp_seconds"] == 1234.5
    assert found['verdict_outcome{outcome="violated",pipeline="flink"}'] == 1.0
    assert found['verdict_outcome{outcome="holds",pipeline="flink"}'] == 0.0
    assert found['verdict_records{category="lost",pipeline="flink"}'] == 2.0
    assert found['source_answers{source="topics"}'] == found['source_answers{source="spark"}'] == 0.0
    assert not any(name.startswith(("topic", "consumer", "flink", "spark")) for name in found)
    assert taken.returncode == 2
    assert taken.stderr == (
        f"exporter: port {port} of 127.0.0.1: Address already in use; choose another with STACK_METRICS_PORT\n"
    )


def test_each_service_of_the_stack_is_a_target() -> None:
    copies = {"STACK_FLINK_TASKMANAGERS": "3", "STACK_FLINK_JOBMANAGERS": "2", "STACK_METRICS_PORT": "9111"}
    made = prometheus.configuration(Settings(copies | {"STACK_SPARK_UI_PORT": "9222"}))
    jobs = {each["job_name"]: each for each in made["scrape_configs"]}
    targets = {
        name: {each["labels"]["service"]: each["targets"] for each in job["static_configs"]}
        for name, job in jobs.items()
    }
    flink = ("jobmanager", "jobmanager-2", "taskmanager", "taskmanager-2", "taskmanager-3")
    assert targets == {
        "flink": {name: [f"{name}:9111"] for name in flink},
        "spark": {"spark": ["spark:9222"]},
        "exporter": {"exporter": ["exporter:9111"]},
    }
    # The label `service` of a sample is of the service that it speaks of, and not of the exporter.
    assert jobs["exporter"]["honor_labels"] is True
    assert made["global"]["scrape_interval"] == "5s"


def test_prometheus_lets_no_other_page_of_the_web_read_and_forgets_soon() -> None:
    settings = Settings({"STACK_PROMETHEUS_PORT": "9333", "STACK_METRICS_BIND_HOST": "0.0.0.0"})
    words = prometheus.command(settings, "made.yml", "data")
    [origin] = [word.partition("=")[2] for word in words if word.startswith("--web.cors.origin=")]
    assert re.fullmatch(origin, "http://127.0.0.1:9333")
    assert not re.fullmatch(origin, "http://127x0.0.1:9333")
    assert "--web.listen-address=0.0.0.0:9333" in words
    assert "--storage.tsdb.retention.time=2h" in words
    assert not any(word.startswith(("--web.enable-admin-api", "--web.enable-lifecycle")) for word in words)


def test_without_the_program_there_is_one_line(tmp_path: Path) -> None:
    python = process(["which", "python3"]).stdout.strip()
    done = program("faultline.services.prometheus", python=python, PATH=str(tmp_path), STACK_HOME=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == "prometheus: there is no prometheus on PATH; install Debian's package, or use its image\n"
