"""Foreign web pages against the real servers: Flink's REST server, Spark's UI and Kafka's listener."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from faultline.settings import ROOT, artifacts
from faultline.stack.own import own_environment
from faultline.waiting import wait_until
from tests.stack.broker import Broker

pytestmark = pytest.mark.ci

FLINK_PYTHON = str(artifacts() / "venv-flink" / "bin" / "python")
LIMIT_SECONDS = 120
JOB = "guarded"
# An endless job that needs no broker, with checkpoints, which the scripts report.
FLINK_PROGRAM = f"""
from pyflink.table import EnvironmentSettings, TableEnvironment
tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
tables.get_config().set("pipeline.name", "{JOB}").set("execution.checkpointing.interval", "1s")
tables.execute_sql("CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1')")
tables.execute_sql("CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')")
tables.execute_sql("INSERT INTO nowhere SELECT n FROM numbers")
"""
# The synchronizer's session, with a job to kill in it, until stdin ends.
SPARK_PROGRAM = """
import sys, tempfile, threading
from pathlib import Path
from faultline.settings import Settings
from faultline.waiting import wait_until
from spark_job.options import parse
from spark_job.session import check_guard, configuration, launch
settings = Settings()
check_guard()
with tempfile.TemporaryDirectory() as scratch:
    spark = launch(configuration(parse([], settings), settings, Path(scratch)), settings, {})
    context = spark.sparkContext
    rows = context.parallelize([1], 1)
    threading.Thread(target=rows.foreach, args=(lambda _: __import__("time").sleep(600),), daemon=True).start()
    while not context.statusTracker().getActiveJobsIds():
        pass
    print(context.uiWebUrl, flush=True)
    sys.stdin.read()
    context._jsc.sc().stop()
"""
FOREIGN_PAGE = ("Origin", "http://evil.example")
# What a browser sends when the user follows a link to a page.
LINK = (("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"))


class Page:
    """A guarded server: its port, and a path that it answers with 200."""

    def __init__(self, port: int, path: str) -> None:
        self.port = port
        self.path = path

    @property
    def host(self) -> tuple[str, str]:
        return ("Host", f"127.0.0.1:{self.port}")

    @property
    def origin(self) -> tuple[str, str]:
        return ("Origin", f"http://127.0.0.1:{self.port}")

    def ask(
        self, method: str, path: str, *headers: tuple[str, str], body: bytes = b""
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request with these headers and no other. Returns status, headers and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_SECONDS)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in (*headers, ("Content-Length", str(len(body)))):
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            connection.close()

    def status(self, *headers: tuple[str, str], method: str = "GET", path: str = "") -> int:
        """The status of the answer."""
        return self.ask(method, path or self.path, *headers)[0]


class Flink(Page):
    """A JobManager and a TaskManager with one running job, submitted by `flink run`."""

    def __init__(self, home: Path) -> None:
        own = own_environment(home, {"FLINK_JOB_NAME": JOB})
        ui, self.rpc = int(own["STACK_FLINK_UI_PORT"]), int(own["STACK_FLINK_RPC_PORT"])
        super().__init__(ui, "/overview")
        self.home = home
        self.environment = own | {"STACK_FLINK_REST": f"http://127.0.0.1:{ui}", "PYTHONPATH": str(ROOT)}

    def job(self) -> dict[str, Any]:
        """The newest job: its id and state."""
        jobs = json.loads(self.ask("GET", "/jobs/overview", self.host)[2])["jobs"]
        return dict(max(jobs, key=lambda job: job["start-time"]))

    def module(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run a module of the job's scripts."""
        return subprocess.run(
            [FLINK_PYTHON, "-m", name],
            env=self.environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
        )  # fmt: skip

    def run(self) -> None:
        """`flink run`, with the client's own configuration; returns when the job runs."""
        program = self.home / "program.py"
        program.write_text(FLINK_PROGRAM)
        command = f'eval "$("{FLINK_PYTHON}" -m flink_job.configuration client)"; exec "$FLINK_HOME/bin/flink" run '
        command += f'-d --python {program} --pyClientExecutable "{FLINK_PYTHON}" --pyExecutable "{FLINK_PYTHON}"'
        done = subprocess.run(
            ["bash", "-c", command],
            env=self.environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        wait(f"the job {JOB}", lambda: self.job()["state"] == "RUNNING")


def wait(what: str, done: Any) -> None:
    """Wait until `done()`; a server that does not answer yet is waited for as well."""
    wait_until(done, what, seconds=LIMIT_SECONDS, despite=(OSError, http.client.HTTPException, ValueError, KeyError))


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    home = tmp_path_factory.mktemp("flink")
    page = Flink(home)
    services = []
    try:
        for service in ("jobmanager", "taskmanager"):
            with (home / f"{service}.log").open("wb") as log:
                services.append(
                    subprocess.Popen(
                        [str(ROOT / "faultline" / "services" / f"{service}.sh")],
                        env=page.environment, stdout=log, stderr=log, start_new_session=True,
                    )
                )  # fmt: skip
        wait("a TaskManager", lambda: json.loads(page.ask("GET", "/overview", page.host)[2])["taskmanagers"])
        page.run()
        yield page
    finally:
        for process in services:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    home = tmp_path_factory.mktemp("spark")
    environment = os.environ | {"STACK_HOME": str(home), "STACK_SPARK_UI_PORT": "0", "PYTHONPATH": str(ROOT)}
    with (home / "spark.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SPARK_PROGRAM],
            env=environment, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            start_new_session=True,
        )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert url, (home / "spark.log").read_text()
        yield Page(int(url.rpartition(":")[2]), "/jobs/")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.fixture(params=["flink", "spark"])
def page(request: pytest.FixtureRequest) -> Page:
    """Both servers: they share one rule."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def test_the_own_page_and_programs_pass(page: Page) -> None:
    own_page = (page.origin, ("Sec-Fetch-Site", "same-origin"), ("Referer", f"{page.origin[1]}/"))
    assert page.status(page.host) == 200
    # An address that is typed.
    assert page.status(page.host, ("Sec-Fetch-Site", "none")) == 200
    assert page.status(page.host, *own_page) == 200
    for name in ("localhost", "LocalHost", "[::1]"):
        host = f"{name}:{page.port}"
        assert page.status(("Host", host), ("Origin", f"http://{host}")) == 200
    # Flink's own client and the health check leave the port out.
    assert page.status(("Host", "127.0.0.1")) == 200


def test_a_foreign_host_is_refused(page: Page) -> None:
    hosts = [f"evil.example:{page.port}", "evil.example", f"127.0.0.1.evil.example:{page.port}", "127.0.0.1:1"]
    hosts += [f"jobmanager:{page.port}", f"127.0.0.1.:{page.port}", f"127.0.0.10:{page.port}", f"0.0.0.0:{page.port}"]
    for method in ("GET", "POST", "PATCH", "OPTIONS"):
        for host in hosts:
            assert page.status(("Host", host), method=method) == 403, (method, host)
            # Like a page whose name resolves to this machine: for the browser it is the same origin.
            same = (("Host", host), ("Origin", f"http://{host}"), ("Sec-Fetch-Site", "same-origin"))
            assert page.status(*same, method=method) == 403, (method, host)


def test_a_request_without_one_proper_host_is_refused(page: Page) -> None:
    own = page.host[1]
    requests = [[("Host", host)] for host in ("", f":{page.port}", f"evil.example@{own}", f"evil.example:{own}")]
    for headers in (*requests, [], [page.host, page.host]):
        # Spark's server refuses some of these before the guard, as invalid requests.
        assert page.status(*headers) in (403, 400), headers


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])
def test_a_foreign_origin_is_refused(page: Page, method: str) -> None:
    origins = ["http://evil.example", f"http://evil.example:{page.port}", "null", "", "file://", "http://127.0.0.1"]
    origins += [f"https://127.0.0.1:{page.port}", "http://127.0.0.1:1", f"http://127.0.0.1:{page.port}.evil.example"]
    origins += [f"http://evil.example/127.0.0.1:{page.port}"]
    for origin in origins:
        assert page.status(page.host, ("Origin", origin), method=method) == 403, origin
    assert page.status(page.host, page.origin, FOREIGN_PAGE, method=method) == 403


def test_the_refusal_is_one_line_and_nobody_else_may_read_it(page: Page) -> None:
    status, headers, body = page.ask("GET", page.path, page.host, FOREIGN_PAGE)
    assert (status, body) == (403, b"403: a web page of another origin may not call this server\n")
    assert headers["content-type"].startswith("text/plain")
    assert "access-control-allow-origin" not in headers


def test_a_page_that_sends_no_origin_is_refused(page: Page) -> None:
    """A link, an image, a frame or a form by GET in a foreign page."""
    for site in ("cross-site", "same-site"):
        for kind in ("image", "iframe", "script", "empty", "document"):
            foreign = (page.host, ("Sec-Fetch-Site", site), ("Sec-Fetch-Dest", kind))
            assert page.status(*foreign) == 403
            assert page.status(*foreign, ("Sec-Fetch-Mode", "navigate"), path="/any/path") == 403
    for referer in ("http://evil.example/", "http://127.0.0.1:1/", "https://evil.example", "nonsense"):
        assert page.status(page.host, ("Referer", referer)) == 403


def test_a_link_may_open_the_first_page_and_nothing_else_may(page: Page) -> None:
    assert page.status(page.host, *LINK, ("Sec-Fetch-Dest", "document"), path="/") in (200, 302)
    assert page.status(page.host, *LINK, ("Sec-Fetch-Dest", "iframe"), path="/") == 403
    for headers in ((FOREIGN_PAGE,), ()):
        post = (page.host, *LINK, *headers, ("Sec-Fetch-Dest", "document"))
        assert page.status(*post, method="POST", path="/") == 403
    assert page.status(("Host", "evil.example"), *LINK, ("Sec-Fetch-Dest", "document"), path="/") == 403


def test_no_foreign_page_may_read_what_flink_answers(flink: Flink) -> None:
    allowed = flink.ask("GET", "/overview", flink.host)[1]["access-control-allow-origin"]
    assert allowed == flink.origin[1]


def test_no_foreign_page_cancels_or_submits_a_flink_job(flink: Flink) -> None:
    job = flink.job()
    cancel = f"/jobs/{job['jid']}?mode=cancel"
    assert flink.status(flink.host, FOREIGN_PAGE, method="PATCH", path=cancel) == 403
    for way in ("yarn-cancel", "yarn-stop"):
        path = f"/jobs/{job['jid']}/{way}"
        assert flink.status(flink.host, ("Sec-Fetch-Site", "cross-site"), path=path) == 403
        assert flink.status(flink.host, *LINK, ("Sec-Fetch-Dest", "document"), path=path) == 403
        assert flink.status(("Host", f"evil.example:{flink.port}"), path=path) == 403
    for path in ("/jobs", f"/jobs/{job['jid']}/savepoints", f"/jobs/{job['jid']}/stop"):
        assert flink.status(flink.host, FOREIGN_PAGE, method="POST", path=path) == 403
    assert flink.status(flink.host, FOREIGN_PAGE, method="DELETE", path="/cluster") == 403
    after = flink.job()
    assert (after["jid"], after["state"]) == (job["jid"], "RUNNING")


def test_a_refused_upload_leaves_nothing_on_disk(flink: Flink) -> None:
    boundary = ("Content-Type", "multipart/form-data; boundary=b")
    content = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n' + b"x" * 3_000_000
    upload = (flink.host, FOREIGN_PAGE, boundary)
    status, _, body = flink.ask("POST", "/jobs", *upload, body=content + b"\r\n--b--\r\n")
    assert status == 403 and body.startswith(b"403: ")
    assert not [file for file in (flink.home / ".stack").rglob("*") if file.name == "f"]


def test_a_connection_is_judged_request_by_request(flink: Flink) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", flink.port, timeout=LIMIT_SECONDS)
    try:
        connection.request("GET", "/overview")
        first = connection.getresponse()
        assert (first.status, bool(first.read())) == (200, True)
        connected = connection.sock
        connection.request("GET", "/overview", headers=dict([FOREIGN_PAGE]))
        assert connection.sock is connected is not None
        assert connection.getresponse().status == 403
    finally:
        connection.close()


def test_the_ui_of_flink_and_the_scripts_still_cancel(flink: Flink) -> None:
    """Last of Flink's: each cancel needs its own job, submitted by `flink run`."""
    own_page = (flink.host, ("Sec-Fetch-Site", "same-origin"), ("Referer", f"{flink.origin[1]}/"))
    index = flink.ask("GET", "/", *own_page)
    assert index[0] == 200 and b"<title>" in index[2]

    # The button in the page is a GET.
    job = flink.job()["jid"]
    assert flink.status(*own_page, path=f"/jobs/{job}/yarn-cancel") == 202
    wait("a cancelled job", lambda: flink.job()["state"] == "CANCELED")

    flink.run()
    job = flink.job()["jid"]
    assert flink.status(flink.host, flink.origin, method="PATCH", path=f"/jobs/{job}?mode=cancel") == 202
    wait("a cancelled job", lambda: flink.job()["state"] == "CANCELED")

    flink.run()
    status = flink.module("flink_job.status")
    assert status.returncode == 0 and json.loads(status.stdout)["state"] == "RUNNING", status.stderr
    cancelled = flink.module("flink_job.cancel")
    assert cancelled.returncode == 0, cancelled.stderr
    assert flink.job()["state"] == "CANCELED"


def test_every_kind_of_page_of_spark_is_guarded(spark: Page) -> None:
    pages = ["/jobs/", "/stages/", "/environment/", "/executors/", "/static/webui.js", "/metrics/json/"]
    for path in (*pages, "/api/v1/applications", "/", "/jobs", "/api", "/metrics/json", "/jobs/job/kill", "/none"):
        if path in pages:
            assert spark.status(spark.host, path=path) == 200, path
        for method in ("GET", "POST", "TRACE"):
            assert spark.status(spark.host, FOREIGN_PAGE, method=method, path=path) == 403, (method, path)
            assert spark.status(("Host", f"evil.example:{spark.port}"), method=method, path=path) == 403, (method, path)


def test_a_path_of_spark_without_its_slash_leads_to_the_page(spark: Page) -> None:
    status, headers, _ = spark.ask("GET", "/jobs?status=running", spark.host)
    assert status == 302
    assert headers["location"] == "/jobs/?status=running"


def test_spark_has_no_kill_links(spark: Page) -> None:
    running = f"/api/v1/applications/{application(spark)}/jobs?status=running"
    assert len(json.loads(spark.ask("GET", running, spark.host)[2])) == 1
    assert b"kill" not in spark.ask("GET", "/jobs/", spark.host)[2].lower()
    for path in ("/jobs/job/kill/?id=0", "/stages/stage/kill/?id=0&terminate=true"):
        for method in ("GET", "POST"):
            assert spark.status(spark.host, FOREIGN_PAGE, method=method, path=path) in (403, 404)
            spark.status(spark.host, spark.origin, method=method, path=path)
    assert len(json.loads(spark.ask("GET", running, spark.host)[2])) == 1


def application(spark: Page) -> str:
    """The id of Spark's application."""
    return str(json.loads(spark.ask("GET", "/api/v1/applications", spark.host)[2])[0]["id"])


def dropped(address: tuple[str, int], request: bytes) -> bool:
    """Return whether a server ends the connection without a byte of an answer."""
    with socket.create_connection(address, timeout=LIMIT_SECONDS) as connection:
        try:
            connection.sendall(request)
            return connection.recv(1000) == b""
        except (ConnectionResetError, BrokenPipeError):
            return True


def test_kafka_drops_what_a_browser_sends(broker: Broker) -> None:
    """It takes the first four bytes for the length of a request, which is then beyond its limit."""
    broker.create_topics("web-guard", partitions=1)
    host, _, port = broker.bootstrap.partition(":")
    head = f"/topics/web-guard HTTP/1.1\r\nHost: {broker.bootstrap}\r\nContent-Length: 2\r\n\r\n{{}}"
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert dropped((host, int(port)), f"{method} {head}".encode()), method
    # The start of a TLS connection: a page may ask for https.
    assert dropped((host, int(port)), bytes.fromhex("16030102000100") + bytes(600))
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "web-guard"})
    assert consumer.get_watermark_offsets(TopicPartition("web-guard", 0), timeout=LIMIT_SECONDS) == (0, 0)
    consumer.close()


def test_the_rpc_port_of_flink_drops_what_a_browser_sends(flink: Flink) -> None:
    for method in ("GET", "POST", "OPTIONS"):
        request = f"{method} / HTTP/1.1\r\nHost: 127.0.0.1:{flink.rpc}\r\n\r\n"
        assert dropped(("127.0.0.1", flink.rpc), request.encode()), method
