"""Run Prometheus in the foreground: write its configuration, exec it.

Usage: python -m faultline.services.prometheus

Its data is in the stack's state folder, and is as short-lived as its container. Standard library only: its image has no
packages of Python.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from faultline.command import CommandError, run
from faultline.copies import name_of
from faultline.settings import Settings

SCRAPE_SECONDS = 5
_RETENTION = ("--storage.tsdb.retention.time=2h", "--storage.tsdb.retention.size=48MB")
_LIMITS = {"GOMEMLIMIT": "96MiB", "GOMAXPROCS": "2"}
"""Of its heap; its data is in memory beside it."""
_NEW_AT_EACH_START = "host|tm_id|task_attempt_id|task_attempt_num"
"""Labels of Flink's whose values a restart changes: with them, each restart would make new series of all metrics."""


def configuration(settings: Settings) -> dict[str, Any]:
    """The configuration: a target for each service that answers, under the label `service`. Raises SettingsError."""
    answer = settings.number("METRICS_PORT")
    flink = [
        name_of(service, copy)
        for service, count in (("jobmanager", "FLINK_JOBMANAGERS"), ("taskmanager", "FLINK_TASKMANAGERS"))
        for copy in range(1, settings.number(count) + 1)
    ]
    dropped = [{"action": "labeldrop", "regex": _NEW_AT_EACH_START}]
    return {
        "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "scrape_timeout": f"{SCRAPE_SECONDS - 1}s"},
        "scrape_configs": [
            {**_job("flink", flink, answer), "metric_relabel_configs": dropped},
            {**_job("spark", ["spark"], settings.number("SPARK_UI_PORT")), "metrics_path": "/metrics/prometheus"},
            # Its samples say of which service they are.
            {**_job("exporter", ["exporter"], answer), "honor_labels": True},
        ],
    }


def _job(name: str, services: Sequence[str], port: int) -> dict[str, Any]:
    targets = [{"targets": [f"{service}:{port}"], "labels": {"service": service}} for service in services]
    return {"job_name": name, "static_configs": targets}


def command(settings: Settings, file: str, data: str) -> list[str]:
    """Prometheus with a configuration and a folder for its data. Raises SettingsError."""
    port = settings.number("PROMETHEUS_PORT")
    address = f"http://{settings.text('BIND_ADDRESS')}:{port}"
    return [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={data}",
        *_RETENTION,
        f"--web.listen-address={settings.bind_host('metrics')}:{port}",
        f"--web.external-url={address}/",
        # By default any page of the web may read its answers.
        f"--web.cors.origin={re.escape(address)}",
        "--log.level=warn",
    ]


def main() -> int:
    """Exec Prometheus; returns only by an error. Raises CommandError."""
    settings = Settings()
    folder = settings.state / "prometheus"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "prometheus.yml"
    # YAML has JSON in it.
    file.write_text(json.dumps(configuration(settings), indent=2), encoding="utf-8")
    words = command(settings, str(file), str(folder / "data"))
    try:
        os.execvpe(words[0], words, {**os.environ, **_LIMITS})
    except FileNotFoundError:
        raise CommandError("there is no prometheus on PATH; install Debian's package, or use its image") from None


if __name__ == "__main__":
    run("prometheus", main)
