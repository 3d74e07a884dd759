"""The live page's server without a stack: who may ask, who may act, and what it says while nothing answers."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from faultline.settings import ROOT, artifacts
from faultline.stack.own import own_environment
from faultline.waiting import wait_until
from tests.called import program

PYTHON = str(artifacts() / "venv-page" / "bin" / "python")
LIMIT_SECONDS = 60
Header = tuple[str, str]


@dataclass
class Answer:
    """The answer of a server; names of headers are in small letters."""

    status: int
    headers: dict[str, str]
    text: str


@dataclass
class Server:
    """A server that runs, and the token of the address that it printed."""

    port: int
    token: str

    @property
    def host(self) -> Header:
        return ("Host", f"127.0.0.1:{self.port}")

    @property
    def origin(self) -> Header:
        return ("Origin", f"http://127.0.0.1:{self.port}")

    @property
    def right(self) -> tuple[Header, ...]:
        """The headers of a request of the page itself."""
        return (self.host, self.origin, ("X-Faultline-Token", self.token))

    @contextlib.contextmanager
    def asked(self, method: str, path: str, *headers: Header, body: bytes = b"") -> Iterator[http.client.HTTPResponse]:
        """Send a request with these headers and no other."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value.encode())
            if method not in ("GET", "HEAD"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            with connection.getresponse() as answer:
                yield answer

    def ask(self, method: str, path: str, *headers: Header, body: bytes = b"") -> Answer:
        with self.asked(method, path, *headers, body=body) as answer:
            found = {name.lower(): value for name, value in answer.getheaders()}
            # The messages of an open page have no end.
            text = "" if found.get("content-type", "").startswith("text/event-stream") else answer.read().decode()
            return Answer(answer.status, found, text)

    def status(self, method: str, path: str, *headers: Header, body: bytes = b"") -> int:
        return self.ask(method, path, *headers, body=body).status

    def act(self, document: Any, *headers: Header) -> tuple[int, str]:
        answer = self.ask("POST", "/act", *(headers or self.right), body=json.dumps(document).encode())
        return answer.status, answer.text

    @contextlib.contextmanager
    def events(self) -> Iterator[Iterator[tuple[str, Any]]]:
        """The messages of a page that is open."""
        with self.asked("GET", "/events", self.host) as answer:
            assert answer.status == 200
            yield messages(answer)


def messages(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in answer:
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def started(home: Path, *flags: str) -> Iterator[Server]:
    environ = own_environment(home, {"BACKEND": "local"}) | {"PYTHONPATH": str(ROOT)}
    command = [PYTHON, "-m", "faultline.page.server", *flags]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/(?:#token=(\S+))?\n", process.stdout.readline())
            assert found
            yield Server(int(found[1]), found[2] or "")
        finally:
            process.terminate()
            process.wait(timeout=LIMIT_SECONDS)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It only shows, as beside the services."""
    yield from started(tmp_path_factory.mktemp("shown"))


@pytest.fixture(scope="module")
def buttons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """It acts, as scripts/page.sh starts it."""
    yield from started(tmp_path_factory.mktemp("buttons"), "--buttons")


PATHS = ("/", "/events", "/saved", "/static/page.css", "/checkpoint/x/y", "/act", "/none")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.:{port}", ""]
)
def test_a_foreign_name_of_this_address_is_refused(buttons: Server, path: str, host: str) -> None:
    assert buttons.status("GET", path, ("Host", host.format(port=buttons.port))) == 403


def test_a_request_has_one_host(buttons: Server) -> None:
    assert buttons.status("GET", "/") in (400, 403)
    assert buttons.status("GET", "/", buttons.host, ("Host", "evil.example")) in (400, 403)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_the_names_of_loopback_are_answered(buttons: Server, name: str) -> None:
    assert buttons.status("GET", "/", ("Host", f"{name}:{buttons.port}")) == 200


FOREIGN = [
    ("Origin", "http://evil.example"), ("Origin", "null"), ("Origin", "http://127.0.0.1:1"), ("Origin", "http://127.0.0.1"),
    ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site"),
]  # fmt: skip


@pytest.mark.parametrize("header", FOREIGN, ids=str)
@pytest.mark.parametrize("path", PATHS)
def test_a_foreign_page_cannot_read(buttons: Server, path: str, header: Header) -> None:
    assert buttons.status("GET", path, buttons.host, header) == 403


OPENS = (("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"))


def test_a_link_on_a_foreign_page_opens_the_page_and_nothing_else(buttons: Server) -> None:
    assert buttons.status("GET", "/", buttons.host, *OPENS) == 200
    assert buttons.status("GET", "/", ("Host", "evil.example"), *OPENS) == 403
    for path in PATHS[1:]:
        assert buttons.status("GET", path, buttons.host, *OPENS) == 403
    assert buttons.status("POST", "/", *buttons.right, *OPENS) == 403
    for frame in ("iframe", "image", "empty"):
        assert buttons.status("GET", "/", buttons.host, *OPENS[:2], ("Sec-Fetch-Dest", frame)) == 403


@pytest.mark.parametrize("header", FOREIGN, ids=str)
def test_a_foreign_page_cannot_act_with_the_token_either(buttons: Server, header: Header) -> None:
    token = ("X-Faultline-Token", buttons.token)
    own = () if header[0] == "Origin" else (buttons.origin,)
    assert buttons.act({"action": "job-cancel"}, buttons.host, *own, header, token)[0] == 403


@pytest.mark.parametrize("token", [None, "", "wrong", "{token}x", "é"])
def test_without_the_token_nothing_is_done(buttons: Server, token: str | None) -> None:
    more = () if token is None else (("X-Faultline-Token", token.format(token=buttons.token)),)
    status, words = buttons.act({"action": "job-cancel"}, buttons.host, buttons.origin, *more)
    assert (status, "token" in words) == (403, True)


def test_without_an_origin_nothing_is_done(buttons: Server) -> None:
    assert buttons.act({"action": "job-cancel"}, buttons.host, ("X-Faultline-Token", buttons.token))[0] == 403


def test_a_page_that_only_shows_does_nothing(shown: Server) -> None:
    assert shown.token == ""
    for token in ("", "x"):
        assert shown.act({"action": "job-cancel"}, shown.host, shown.origin, ("X-Faultline-Token", token))[0] == 403
    page = shown.ask("GET", "/", shown.host).text
    assert '"actions":[]' in page


def test_the_token_is_in_no_answer(buttons: Server) -> None:
    assert len(buttons.token) >= 20
    with buttons.events() as events:
        said = [next(events)]
        assert buttons.act({"action": "taskmanager-kill"})[0] == 202
        while "failed: taskmanager kill" not in str(said[1:]):
            said.append(next(events))
        assert buttons.token not in str(said)
        for path in PATHS:
            answer = buttons.ask("GET", path, buttons.host)
            assert buttons.token not in answer.text + str(answer.headers), path


@pytest.mark.parametrize(
    "document",
    [
        {"action": "scripts/kill.sh kafka"}, {"action": "../page"}, {"action": None}, {"action": ["job-cancel"]},
        {"action": "job-cancel; true"}, {}, {"command": "true"},
    ],
    ids=str,
)  # fmt: skip
def test_only_names_of_the_list_are_actions(buttons: Server, document: dict[str, Any]) -> None:
    assert buttons.act(document)[0] == 404


@pytest.mark.parametrize(
    "checkpoint", [None, "", "/tmp", "latest", "../../etc", "a/chk-1", "$(true)", 1, ["x"]], ids=str
)
def test_only_a_retained_checkpoint_can_be_restored(buttons: Server, checkpoint: object) -> None:
    assert buttons.act({"action": "restore", "checkpoint": checkpoint})[0] == 409


@pytest.mark.parametrize(
    ("body", "status"), [(b"", 400), (b"{", 400), (b"[]", 400), (b"1", 400), (b"[" * 4000, 400), (b"x" * 5000, 413)]
)
def test_a_body_that_is_no_action_is_refused(buttons: Server, body: bytes, status: int) -> None:
    assert buttons.status("POST", "/act", *buttons.right, body=body) == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"])
def test_other_methods_are_refused(buttons: Server, method: str) -> None:
    assert buttons.status(method, "/", *buttons.right) == 405


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/static//etc/passwd",
        "/static/index.html", "/static/", "/static/vendor/../page.css", "/%00", "//etc/passwd",
        "/checkpoint/..%2f..%2fetc/passwd", "/checkpoint/" + "0" * 32 + "/chk-1",
    ],
)  # fmt: skip
def test_a_path_reaches_no_other_file(buttons: Server, path: str) -> None:
    assert buttons.status("GET", path, buttons.host) == 404


@pytest.mark.parametrize("path", PATHS[:1] + PATHS[2:])
def test_each_answer_keeps_the_browser_from_more_than_is_meant(buttons: Server, path: str) -> None:
    headers = buttons.ask("GET", path, buttons.host).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def test_it_listens_on_loopback_only(buttons: Server) -> None:
    lines = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    listening = [local for _, local, _, state, *_ in lines if state == "0A" and local.endswith(f":{buttons.port:04X}")]
    assert listening == [f"0100007F:{buttons.port:04X}"]


@pytest.mark.ci
def test_without_a_stack_it_says_what_does_not_answer(shown: Server) -> None:
    found: dict[str, str] = {}
    with shown.events() as events:
        for _, data in events:
            found |= {item["source"]: item["text"] for item in data.get("items", []) if item["kind"] == "unknown"}
            if {"flink", "spark"} <= found.keys() and "does not answer" in found.get("kafka", ""):
                break
    assert "no JobManager answers" in found["flink"]
    assert "no committed batch" in found["spark"]


def test_an_action_that_fails_is_shown_with_its_reason(buttons: Server) -> None:
    texts: list[str] = []
    with buttons.events() as events:
        next(events)
        assert buttons.act({"action": "taskmanager-kill"}) == (202, "started\n")
        for _, data in events:
            texts += [item["text"] for item in data.get("items", []) if item["kind"] == "event"]
            if "failed: taskmanager kill" in texts:
                break
    assert texts[0] == "scripts/kill.sh taskmanager"
    assert texts[1].startswith("exit code 2: service taskmanager is absent")


def test_what_was_watched_is_one_file(shown: Server) -> None:
    with shown.events() as events:
        next(events)
        next(events)
        answer = shown.ask("GET", "/saved", shown.host)
    assert answer.status == 200
    assert re.fullmatch(r'attachment; filename="faultline-[\dTZ-]+\.html"', answer.headers["content-disposition"])
    assert answer.text.startswith("<!doctype html>")


@pytest.mark.ci
def test_connections_that_say_nothing_do_not_keep_others_from_an_answer(shown: Server) -> None:
    held = [socket.create_connection(("127.0.0.1", shown.port), timeout=LIMIT_SECONDS) for _ in range(80)]
    try:
        for each in held[:15]:
            each.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        wait_until(lambda: shown.status("GET", "/", shown.host) == 200, "an answer", seconds=LIMIT_SECONDS)
    finally:
        for each in held:
            each.close()


@pytest.mark.ci
def test_a_request_that_never_ends_is_given_up(buttons: Server) -> None:
    head = "".join(f"{name}: {value}\r\n" for name, value in (*buttons.right, ("Content-Length", "20")))
    with socket.create_connection(("127.0.0.1", buttons.port), timeout=LIMIT_SECONDS) as held:
        held.sendall(f"POST /act HTTP/1.1\r\n{head}\r\n{{".encode())
        assert b" 408 " in held.recv(200)


def test_a_flood_of_requests_leaves_it_answering(shown: Server) -> None:
    with shown.events() as events:
        next(events)
        for _ in range(300):
            assert shown.status("GET", "/static/page.css", shown.host) == 200
            assert shown.status("GET", "/", ("Host", "evil.example")) == 403
        assert next(events)[0] in ("more", "tick")


def test_it_ends_without_an_error_while_a_page_is_open(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    servers = started(tmp_path)
    server = next(servers)
    with server.events() as events:
        next(events)
        assert list(servers) == []
    assert capfd.readouterr().err == ""


def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = program("faultline.page.server", python=PYTHON, STACK_HOME=str(tmp_path), STACK_PAGE_PORT=port)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"page\.sh: port {port} .*STACK_PAGE_PORT\n", done.stderr)
