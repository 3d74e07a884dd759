"""The live page: one web server on loopback, for a stack that runs, or that comes up later.

Usage: python -m faultline.page.server [--buttons]

Without a flag it is read-only. With --buttons it runs on the host, beside the scripts, and offers the actions of
faultline/page/actions.py to whoever has the token of the address that it prints.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from faultline.command import CommandError, Flags, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from faultline.messages import heard
from faultline.page import lessons
from faultline.page.connections import REQUEST_SECONDS, Impatient
from faultline.page.following import STOP
from faultline.page.guard import LARGEST_BODY, Guard
from faultline.page.watching import MOST_PAGES, Full, Watching
from faultline.player.document import LIVE_SCRIPTS, SCRIPTS, STATIC, STYLES, live, saved
from faultline.probes.reached import reached_sample
from faultline.probes.watch import Make, Sample, samplers, windows_sample
from faultline.settings import Settings, artifacts

_KINDS = {".js": "text/javascript", ".css": "text/css"}
_JOB, _NAME = re.compile(r"[0-9a-f]{32}"), re.compile(r"chk-[0-9]{1,12}")
_INSPECTOR_SECONDS = 60
_TICK_SECONDS = 1.0
_CONNECTIONS = 64
_END_SECONDS = 2

Inspect = Callable[[str], tuple[str, bool]]
"""Opens a checkpoint with the inspector, and returns its words and whether it succeeded: a failure may be over at the
next call."""


class Page:
    """The answers of the server. `runner`: what runs actions, None when it is read-only. `ends`: it ends now.

    `partitions`: how many each topic is made with, so that the page keeps their place.
    """

    def __init__(
        self, watching: Watching, inspect: Inspect, runner: Any, ends: Callable[[], bool], partitions: int
    ) -> None:
        self._watching, self._inspect, self._runner, self._ends = watching, inspect, runner, ends
        self._partitions = partitions
        # Read once: no path of a request ever reaches the disk.
        self._files = {name: (STATIC / name).read_bytes() for name in (*STYLES, *SCRIPTS, *LIVE_SCRIPTS)}
        self._words: dict[str, str] = {}
        self._inspecting = asyncio.Lock()

    def routes(self) -> list[Route]:
        """Return the routes that the server answers."""
        return [
            Route("/", self._page),
            Route("/static/{name:path}", self._file),
            Route("/events", self._events),
            Route("/saved", self._saved),
            Route("/checkpoint/{job}/{name}", self._checkpoint),
            Route("/act", self._act, methods=["POST"]),
        ]

    async def _page(self, _: Request) -> Response:
        actions = self._runner.as_json() if self._runner else []
        data = {
            "mode": "live", "title": "live", "items": [], "actions": actions, "lessons": lessons.as_json(),
            "partitions": self._partitions,
        }  # fmt: skip
        return HTMLResponse(live(data))

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            return PlainTextResponse("there is no such file\n", status_code=404)
        return Response(self._files[name], media_type=_KINDS[Path(name).suffix])

    async def _events(self, _: Request) -> Response:
        return StreamingResponse(self._messages(), media_type="text/event-stream")

    async def _messages(self) -> AsyncIterator[str]:
        try:
            with self._watching.page() as queue:
                yield "retry: 1000\n\n"
                # A page that is too far behind gets no more messages: its browser asks again.
                while self._watching.has(queue) and not self._ends():
                    try:
                        yield await asyncio.wait_for(queue.get(), _TICK_SECONDS)
                    except TimeoutError:
                        yield self._watching.tick()
        except Full:
            yield f"retry: 10000\nevent: full\ndata: {json.dumps({'most': MOST_PAGES})}\n\n"

    async def _saved(self, _: Request) -> Response:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        items = self._watching.items()
        if not items:
            return PlainTextResponse("nothing was watched yet\n", status_code=404)
        data = {"mode": "replay", "title": f"recorded until {now}", "items": items}
        name = f"faultline-{now.replace(':', '')}.html"
        page = await run_in_threadpool(saved, data)
        return HTMLResponse(page, headers={"content-disposition": f'attachment; filename="{name}"'})

    async def _checkpoint(self, request: Request) -> Response:
        """Answer with the inspector's report on a retained checkpoint: each checkpoint is opened once."""
        job, name = request.path_params["job"], request.path_params["name"]
        path = self._retained().get(f"{job}/{name}")
        if not _JOB.fullmatch(job) or not _NAME.fullmatch(name) or path is None:
            return PlainTextResponse("this checkpoint is not retained\n", status_code=404)
        async with self._inspecting:
            if path not in self._words:
                said, is_whole = await run_in_threadpool(self._inspect, path)
                if not is_whole:
                    return PlainTextResponse(said)
                self._words[path] = said
        return PlainTextResponse(self._words[path])

    def _retained(self) -> dict[str, str]:
        """Path or URI of each retained checkpoint, as the services name it, by `<job id>/<name>`."""
        listed = [item["checkpoints"] for item in self._watching.items() if item["kind"] == "retained"]
        return {f"{each['job_id']}/{each['name']}": each["path"] for each in (listed[-1] if listed else ())}

    async def _act(self, request: Request) -> Response:
        from faultline.page.actions import Refused  # noqa: PLC0415  # not in the image of the page

        body = b""
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                async for part in request.stream():
                    body += part
                    if len(body) > LARGEST_BODY:
                        return PlainTextResponse("too large\n", status_code=413)
        except TimeoutError:
            return PlainTextResponse("the request did not come in time\n", status_code=408)
        try:
            wanted = json.loads(body)
            name, checkpoint = wanted.get("action"), wanted.get("checkpoint")
        except (ValueError, AttributeError, RecursionError):
            return PlainTextResponse("not an action\n", status_code=400)
        try:
            path = self._retained().get(checkpoint) if isinstance(checkpoint, str) else None
            await run_in_threadpool(self._runner.start, name, path)
        except Refused as why:
            return PlainTextResponse(f"{why}\n", status_code=why.status)
        return PlainTextResponse("started\n", status_code=202)


def _output(command: Sequence[str]) -> tuple[str, bool]:
    """Return a command's output, and whether the command has succeeded."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=_INSPECTOR_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"the inspector did not end within {_INSPECTOR_SECONDS} s", False
    return done.stdout or done.stderr, done.returncode == 0


def application(
    watching: Watching, inspect: Inspect, hosts: Sequence[str], *, token: str, runner: Any, partitions: int,
    ends: Callable[[], bool], given_up: Callable[[], bool],
) -> Any:  # fmt: skip
    """The server's application. `ends`: whether it ends now, `given_up`: without waiting for an action."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watching.begin()
        yield
        await run_in_threadpool(watching.end)
        if runner:
            await run_in_threadpool(runner.end, given_up)

    page = Page(watching, inspect, runner, ends, partitions)
    return Guard(Starlette(routes=page.routes(), lifespan=lifespan), hosts, token)


def hosts_of(settings: Settings, port: int) -> list[str]:
    """The names under which the server answers, each with its port."""
    names = [*settings.text("WEB_NAMES").split(","), settings.text("BIND_ADDRESS")]
    return [f"{name}:{port}" for name in dict.fromkeys(names)]


def shown(settings: Settings) -> tuple[Watching, Inspect]:
    """Return the sources of a page that runs beside the services, in a container or on this machine."""
    python = str(artifacts() / "venv-flink" / "bin" / "python")

    def follow(folder: Path) -> Sequence[str]:
        return [python, "-m", "faultline.inspector.flink", "follow", "--until", str(folder / STOP)]

    makers = {
        **samplers(settings),
        "seen": lambda: windows_sample(settings),
        "services": lambda: reached_sample(settings),
    }
    return Watching(makers, follow), lambda path: _output([python, "-m", "faultline.inspector", path, "--no-lag"])


def with_buttons() -> tuple[Settings, Watching, Inspect, Any]:
    """Return the sources and actions of a page that runs on the host, for a stack on either backend."""
    from faultline.page.actions import Runner  # noqa: PLC0415
    from faultline.stack.stack import open_stack  # noqa: PLC0415  # not in the image of the page

    stack = open_stack()

    def now() -> Settings:
        return open_stack().settings.typed

    def maker(name: str) -> Make:
        def make() -> Sample:
            # With the settings of the stack that is up then.
            return samplers(now())[name]()

        return make

    def services() -> Sample:
        return lambda: {"states": dict(open_stack().backend.states())}

    def follow(folder: Path) -> Sequence[str] | None:
        # While a stack is down, nothing may be started that belongs to it.
        command = [sys.executable, "-m", "faultline.stack.watchers", "checkpoints", str(folder)]
        return command if stack.home.up() else None

    def outside(path: str) -> str:
        return open_stack().backend.path_outside(path)

    def inspect(path: str) -> tuple[str, bool]:
        command = ["python", "-m", "faultline.inspector", path, "--no-lag"]
        try:
            with heard() as said:
                done = open_stack().backend.tool(command, environment="flink", capture=True)
        except CommandError as error:
            return str(error), False
        return done.stdout or "\n".join(said), done.returncode == 0

    makers = {
        **{name: maker(name) for name in samplers(now())},
        "seen": lambda: windows_sample(now()),
        "services": services,
    }
    # A stack that comes up may have other ports, or be on the other backend.
    watching = Watching(makers, follow, stack.home.up)
    return now(), watching, inspect, Runner(watching.add, outside)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C; returns the exit code."""
    parser = Flags("page.sh", prog="scripts/page.sh", description="The live page.")
    parser.add_argument("--buttons", action="store_true", help="offer actions; needs the scripts beside it")
    chosen = parser.parse_args(arguments)
    token, runner = "", None
    if chosen.buttons:
        settings, watching, inspect, runner = with_buttons()
        port, token = settings.number("PAGE_BUTTONS_PORT"), secrets.token_urlsafe(16)
    else:
        settings = Settings()
        port = settings.number("PAGE_PORT")
        watching, inspect = shown(settings)
    listener = _listen(settings.bind_host("page"), port)
    address = f"http://{settings.text('BIND_ADDRESS')}:{port}/"
    # After # it stays in the browser: no server and no log gets it.
    sys.stdout.write(f"{address}#token={token}\n" if token else f"{address}\n")
    sys.stdout.flush()
    server = uvicorn.Server(
        uvicorn.Config(
            application(
                watching, inspect, hosts_of(settings, port), token=token, runner=runner,
                partitions=settings.number("TOPIC_PARTITIONS"), ends=lambda: server.should_exit,
                given_up=lambda: server.force_exit,
            ),
            http=Impatient, log_level="error", access_log=False, server_header=False, date_header=False, ws="none",
            timeout_keep_alive=5, limit_concurrency=_CONNECTIONS, timeout_graceful_shutdown=_END_SECONDS,
        )
    )  # fmt: skip
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    return 0


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        raise CommandError(f"port {port} of {host}: {error.strerror}; choose another with STACK_PAGE_PORT") from None
    # Whoever reads the address may connect at once.
    listener.listen()
    return listener


if __name__ == "__main__":
    run("page.sh", main)
