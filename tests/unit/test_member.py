"""Members of JSON documents, as the walkthroughs ask for them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from faultline.settings import ROOT

DOCUMENT = {
    "backend": "local", "services": [{"service": "kafka", "state": "running"}, {"service": "spark", "state": "exited"}],
    "chosen": {"KAFKA_PORT": "9", "DATA": "a b=c"}, "synchronizer": None, "problems": ["one", "two\tlines"], "none": [],
    "operators": [{"uid": "windows", "watermark": 7}, {"uid": "sink"}, {"uid": "late", "watermark": 1767225600000}],
    "steps": [
        {"state": "committed", "sources": [{"partitions": [1]}]},
        {"state": "committed", "sources": [{"partitions": [1, 2]}]}, {"state": "planned", "sources": []},
    ],
}  # fmt: skip


def member(*steps: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-m", "faultline.formats.member", *steps]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(DOCUMENT), capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        ("backend", ["local"]),
        ("services service=spark state", ["exited"]),
        ("chosen", ["DATA=a b=c", "KAFKA_PORT=9"]),
        ("problems", ["one", "two\tlines"]),
        ("none", []),
        ("operators * watermark", ["7", "1767225600000"]),
        ("steps state=committed sources 0 partitions", ["1", "2"]),
        ("operators 1 uid", ["sink"]),
    ],
)
def test_each_value_is_a_line(steps: str, shown: list[str]) -> None:
    assert member(*steps.split()) == (0, shown)


@pytest.mark.parametrize("steps", ["synchronizer batch", "nothing", "services service=page state", "operators 9", "*"])
def test_what_is_not_there_is_an_exit_code(steps: str) -> None:
    assert member(*steps.split()) == (1, [])
