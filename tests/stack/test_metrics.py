"""Prometheus on Compose: every service is a target, the queries of the page have metrics, and faults show in time."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.parse
import urllib.request
from datetime import datetime
from typing import Any

import pytest

from faultline.settings import ROOT
from faultline.stack.home import Home
from faultline.waiting import wait_until
from tests.stack.running_stack import RunningStack

pytestmark = [pytest.mark.compose, pytest.mark.full, pytest.mark.timeout(2400)]
BACKEND = "compose"
SETTINGS = {"METRICS": "1"}

LIMIT_SECONDS = 180
VISIBLE_SECONDS = 15
MEBIBYTES = 300
QUERY = re.compile(r"^```promql\n(.+?)\n```$", re.MULTILINE)
FAULTS = {
    "taskmanager": 'up{service="taskmanager"}',
    "generator": 'faultline_service_answers{service="generator"}',
    "spark": 'up{service="spark"}',
    "kafka": 'faultline_service_answers{service="kafka"}',
}
"""A query for each service that says within the time that it was killed: its value becomes 0."""


def ask(stack: RunningStack, path: str, **words: str) -> Any:
    """The data of an answer of Prometheus."""
    port = stack.environment["STACK_PROMETHEUS_PORT"]
    address = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(words)}"
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.loads(answer.read())["data"]


def names_in(query: str) -> set[str]:
    """The names of metrics in a query."""
    plain = re.sub(r'"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\bby \([^)]*\)', "", query)
    return set(re.findall(r"\b[a-z][A-Za-z0-9_]*\b(?!\s*\()", plain))


def queries() -> list[str]:
    """The queries of the page."""
    return QUERY.findall((ROOT / "docs" / "metrics.md").read_text(encoding="utf-8"))


def container(stack: RunningStack, service: str) -> str:
    """Name of a service's container."""
    return f"{Home(stack.home).require_marker().project}-{service}-1"


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], capture_output=True, text=True, check=True).stdout.strip()


def test_every_target_is_up(stack: RunningStack) -> None:
    stack.require_all_running()
    wanted = {"jobmanager", "taskmanager", "spark", "exporter"}

    def are_up() -> bool:
        targets = ask(stack, "targets")["activeTargets"]
        return {each["labels"]["service"] for each in targets if each["health"] == "up"} == wanted

    wait_until(are_up, "every target", seconds=LIMIT_SECONDS, explain=lambda: str(ask(stack, "targets")))


def test_every_metric_of_the_page_is_scraped(stack: RunningStack) -> None:
    # One metric is of the newest verdict: there is none before the first.
    stack.verdict("all", "--as-is")
    typed = queries()
    assert len(typed) >= 10
    wanted = set[str]().union(*map(names_in, typed))
    assert {"up", "faultline_consumer_lag", "faultline_verdict_outcome"} <= wanted

    def missing() -> set[str]:
        return wanted - set(ask(stack, "label/__name__/values"))

    wait_until(lambda: not missing(), "every metric", seconds=LIMIT_SECONDS, explain=lambda: str(missing()))
    empty = [query for query in typed if not ask(stack, "query", query=query)["result"]]
    assert empty == []


def test_no_other_page_of_the_web_may_read(stack: RunningStack) -> None:
    port = stack.environment["STACK_PROMETHEUS_PORT"]
    found = {}
    for origin in ("http://evil.example", f"http://127.0.0.1:{port}"):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/labels", headers={"Origin": origin})
        with urllib.request.urlopen(request, timeout=30) as answer:
            found[origin] = answer.headers.get("Access-Control-Allow-Origin")
    assert found == {"http://evil.example": None, f"http://127.0.0.1:{port}": f"http://127.0.0.1:{port}"}


@pytest.mark.parametrize("service", FAULTS)
def test_a_killed_service_is_visible_in_time(stack: RunningStack, service: str) -> None:
    query = FAULTS[service]
    wait_until(
        lambda: [each["value"][1] for each in ask(stack, "query", query=query)["result"]] == ["1"],
        f"{query} to be 1", seconds=LIMIT_SECONDS,
    )  # fmt: skip
    stack.script("kill.sh", service)
    ended = docker("inspect", "--format", "{{.State.FinishedAt}}", container(stack, service))
    # Docker writes nanoseconds.
    killed = datetime.fromisoformat(f"{ended[:26].rstrip('Z')}+00:00").timestamp()

    def zeros() -> list[float]:
        """Times of the samples after the kill that say 0."""
        [found] = ask(stack, "query", query=f"{query}[2m]")["result"]
        return [float(at) for at, value in found["values"] if at > killed and value == "0"]

    wait_until(lambda: bool(zeros()), f"{query} to be 0", seconds=LIMIT_SECONDS)
    assert zeros()[0] - killed <= VISIBLE_SECONDS
    stack.script("start.sh", service)


def test_both_together_need_little_memory(stack: RunningStack) -> None:
    used = {}
    for service in ("exporter", "prometheus"):
        shown = docker("stats", "--no-stream", "--format", "{{.MemUsage}}", container(stack, service)).split()[0]
        found = re.fullmatch(r"([\d.]+)(KiB|MiB|GiB)", shown)
        assert found is not None, shown
        used[service] = float(found[1]) * {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}[found[2]]
    assert 0 < sum(used.values()) < MEBIBYTES, used
