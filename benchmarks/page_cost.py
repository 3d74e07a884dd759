"""Benchmark of the live page: its server and its inspector on this machine, and the frames that a browser draws.

Usage: python -m benchmarks.page_cost [VISITS_PER_SECOND [SECONDS]]

The benchmark has parts of SECONDS each, on one stack: no page is open; the browser has an empty page (the baseline of
the frames); the browser has the live page; the same page when no more visits come. The page must show each visit that
the broker has acknowledged.
"""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass

import psutil

from benchmarks.cpu import Disturbance, service_seconds
from benchmarks.own_stack import OwnStack, own_stack, run_benchmark
from benchmarks.table import row, said
from faultline.messages import say
from faultline.settings import ROOT
from faultline.stack.errors import StackError
from faultline.stack.processes import of_stack
from faultline.stack.services import TABLE
from faultline.verdict.cluster import Cluster
from faultline.waiting import wait_until

_PARTITIONS = 8
_BLANK = "about:blank"
_SETTINGS = {"TOPIC_PARTITIONS": str(_PARTITIONS)}
_SERVER, _PAGE = "faultline.page.server", "page"
_BYTES_A_MIB = 2**20
_STEADY_SECONDS = 20
"""JVMs compile, and both pipelines catch up."""
_OPENING_SECONDS = 30
_MEASURED_PARTS = 3
_WIDTHS = "{:<36} {:>10} {:>7} {:>6} {:>10} {:>6} {:>9} {:>7} {:>11}"


@dataclass(frozen=True)
class Part:
    """One part of the measurement. Shares are of one core; memory in MiB; `frames` as benchmarks/page_frames.py."""

    visits: int
    server: float
    inspector: float
    pipelines: float
    memory: float
    frames: dict[str, float]
    disturbed: bool


def _server(stack: OwnStack) -> psutil.Process:
    """The process of the page's server. Raises StackError when it does not run."""
    found = [psutil.Process(process.pid) for process in of_stack(stack.mark) if process.service == _PAGE]
    server = next((process for process in found if _SERVER in process.cmdline()), None)
    if server is None:
        raise StackError("the page's server does not run")
    return server


def _cpu(stack: OwnStack) -> tuple[float, float, float]:
    """CPU seconds so far of the page's server, its inspector, and all other services."""
    server = sum(_server(stack).cpu_times()[:2])
    page = service_seconds(stack.mark, _PAGE)
    others = sum(service_seconds(stack.mark, each.name) for each in TABLE if each.name != _PAGE)
    return server, page - server, others


def _visits(stack: OwnStack) -> int:
    """Return how many visits the topic has."""
    settings = stack.settings.typed
    spans = Cluster(settings.bootstrap).spans(settings.text("VISITS_TOPIC"), committed=False)
    return sum(span.end for span in spans.values())


def _open(stack: OwnStack, address: str, seconds: int, shown: int) -> subprocess.Popen[str]:
    """Open a page in a browser; returns when it draws. Raises StackError when it does not."""
    python = str(stack.backend.artifacts.interpreter("pictures"))
    command = [python, "-m", "benchmarks.page_frames", address, str(seconds), str(shown)]
    opened = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert opened.stdout is not None
    if opened.stdout.readline().strip() != "ready":
        raise StackError(f"no frames: {opened.communicate()[1].strip()}")
    return opened


def measure_part(stack: OwnStack, address: str | None, seconds: int, shown: int = 0) -> Part:
    """Measure for so many seconds. `shown`: visits that the page must show in the end. Raises StackError."""
    opened = _open(stack, address, seconds, shown) if address else None
    disturbance = Disturbance(stack.mark)
    began, visits, first = time.monotonic(), _visits(stack), _cpu(stack)
    time.sleep(seconds)
    last, more, took = _cpu(stack), _visits(stack) - visits, time.monotonic() - began
    memory, disturbed = _server(stack).memory_info().rss / _BYTES_A_MIB, disturbance.disturbed()
    frames: dict[str, float] = {}
    if opened:
        said, wrong = opened.communicate()
        if opened.returncode:
            raise StackError(f"no frames: {wrong.strip()}")
        frames = json.loads(said)
        if shown and frames["visits"] != shown:
            raise StackError(f"the page shows {frames['visits']} of {shown} visits: not a valid measurement", 1)
    server, inspector, pipelines = ((now - then) / took for now, then in zip(last, first, strict=True))
    return Part(more, server, inspector, pipelines, memory, frames, disturbed)


def start(stack: OwnStack) -> str:
    """Start everything but the generator; returns the page's address."""
    for environment in (_PAGE, "pictures"):
        stack.backend.artifacts.make_environment(environment)
    stack.start("kafka", "jobmanager", "taskmanager")
    stack.topics()
    stack.start("spark", _PAGE)
    submit = next(each for each in TABLE if each.name == "submit")
    stack.ask(submit, *submit.command)
    return f"http://{stack.settings.values['BIND_ADDRESS']}:{stack.settings.values['PAGE_PORT']}/"


def run(rate: int, seconds: int) -> None:
    """Measure all parts on one stack, and print the table."""
    with own_stack(_SETTINGS) as stack:
        address = start(stack)
        total = rate * (_STEADY_SECONDS + _MEASURED_PARTS * seconds + (_MEASURED_PARTS - 1) * _OPENING_SECONDS)
        with stack.filling(total, rate) as filling:
            steady = rate * _STEADY_SECONDS
            wait_until(lambda: _visits(stack) >= steady, f"{steady} visits", seconds=_STEADY_SECONDS * 5)
            row(
                _WIDTHS, f"{_PARTITIONS} partitions, {seconds} s each", "visits/s", "server", "MiB", "inspector",
                "ratio", "frames/s", "p99 ms", "longest ms",
            )  # fmt: skip
            for name, opened in (("nobody looks", None), ("an empty page", _BLANK), ("the page", address)):
                say(f"{name} ...")
                _show(name, measure_part(stack, opened, seconds), seconds)
            say("the rest of the visits ...")
            if filling.wait(seconds=total / rate + _OPENING_SECONDS):
                raise StackError(
                    f"the broker has acknowledged {filling.last_line()} visits of {total}: not a valid measurement", 1
                )
        say("the page, no visits ...")
        _show("the page, no visits", measure_part(stack, address, seconds, shown=total), seconds)
        print(f"{total} visits were sent, and the page shows {total}")


def _show(name: str, found: Part, seconds: int) -> None:
    names = ("frames", "p99", "longest")
    frames = [f"{found.frames[each]:.0f}" if each in found.frames else "-" for each in names]
    row(
        _WIDTHS, said(name, disturbed=found.disturbed), f"{found.visits / seconds:.0f}",
        f"{found.server:.1%}", f"{found.memory:.0f}", f"{found.inspector:.1%}",
        f"{found.server / found.pipelines:.3f}", *frames,
    )  # fmt: skip


if __name__ == "__main__":
    run_benchmark("page.sh", run, VISITS_PER_SECOND="10000", SECONDS="60")
