"""A command that is refused leaves no trace; the stack's own addresses are reached past any proxy."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from faultline.settings import ROOT
from faultline.stack.backend import ACTS
from faultline.stack.home import Home, Topics
from faultline.stack.settings import load
from flink_job.rest import call
from tests.called import script

CODES = {
    **{f"{act}.sh kafka": 0 if act == "stop" else 2 for act in ACTS}, "generator_start.sh": 2,
    "flink_restore.sh latest": 2, "flink_cancel.sh": 2, "settle.sh": 2, "consume.sh visits": 2, "status.sh": 1,
    "status.sh --json": 1, "logs.sh kafka": 0, "down.sh": 0,
}  # fmt: skip
"""The exit code of each command where there is no stack: 0 where nothing is left to do."""


def typed(home: Path, line: str) -> subprocess.CompletedProcess[str]:
    return script(*line.split(), STACK_HOME=str(home), STACK_BACKEND="local")


@pytest.mark.parametrize(("line", "code"), CODES.items())
def test_a_command_without_a_stack_makes_no_folder(tmp_path: Path, line: str, code: int) -> None:
    # A folder that is not there is not made either.
    for home in (tmp_path, tmp_path / "new"):
        done = typed(home, line)
        assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
        assert list(tmp_path.iterdir()) == []


def test_a_start_that_is_refused_leaves_a_new_home_as_it_was(tmp_path: Path) -> None:
    assert typed(tmp_path / "new", "up.sh --nonsense").returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_status_without_a_stack_is_one_line_with_the_next_step(tmp_path: Path) -> None:
    done = typed(tmp_path, "status.sh")
    assert (done.returncode, done.stdout) == (1, f"there is no stack in {tmp_path}; start it with scripts/up.sh\n")
    assert json.loads(typed(tmp_path, "status.sh --json").stdout)["problems"] == [done.stdout.strip()]
    Home(tmp_path).claim(Topics())
    assert typed(tmp_path, "status.sh").stdout == f"the stack in {tmp_path} is down; start it with scripts/up.sh\n"


def test_a_script_uses_its_own_clone_wherever_it_is_called(tmp_path: Path) -> None:
    for name in ("json.py", "runpy.py", "faultline.py"):
        (tmp_path / name).write_text("raise SystemExit('a module of the current folder')\n")
    environ = os.environ | {"STACK_HOME": "mine", "STACK_BACKEND": "local"}
    done = subprocess.run(
        [ROOT / "scripts" / "status.sh"], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == (f"there is no stack in {tmp_path}/mine; start it with scripts/up.sh\n", 1)


def test_what_docker_says_is_in_the_message(tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho 'permission denied: /var/run/docker.sock' >&2; exit 1\n")
    docker.chmod(0o755)
    done = script(
        "status.sh", STACK_HOME=str(tmp_path), STACK_BACKEND="compose", PATH=f"{tmp_path}:{os.environ['PATH']}"
    )
    assert "no Docker engine answers (permission denied: /var/run/docker.sock)" in done.stderr


def test_a_script_works_through_a_link(tmp_path: Path) -> None:
    for name in ("help.sh", "demo.sh"):
        (tmp_path / name).symlink_to(ROOT / "scripts" / name)
    environ = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    for words in (["help.sh"], ["demo.sh", "--help"]):
        assert subprocess.run(words, env=environ, cwd=tmp_path, capture_output=True, check=False).returncode == 0


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the library's name
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"jobs": []}')

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_no_proxy_is_between_us_and_the_jobmanager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert call(f"http://127.0.0.1:{server.server_port}", "/jobs/overview") == {"jobs": []}
        server.shutdown()


def test_programs_reach_this_machine_past_a_proxy() -> None:
    environ = load({"http_proxy": "http://proxy:3128", "no_proxy": "intern.example"}, {}, {}).environment()
    assert environ["http_proxy"] == "http://proxy:3128"
    for name in ("no_proxy", "NO_PROXY"):
        assert {"localhost", "127.0.0.1", "::1"} <= set(environ[name].split(","))
    assert environ["no_proxy"].startswith("intern.example,")
