"""faults/cut_off.sh with this machine's real firewall: who asks decides, and each connection is cut both ways."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

from faultline.faults.model import Need
from faultline.faults.needs import why_not
from faultline.ports import free_ports
from faultline.settings import ROOT
from faultline.waiting import wait_until
from tests.called import process

WHY_NOT = why_not(Need.CUT_OFF)
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))

NODE = """
import socket, sys, threading
def serve(port):
    listener = socket.create_server(("127.0.0.1", port))
    def answer(peer):
        while data := peer.recv(64):
            peer.sendall(data)
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
def ask(port):
    try:
        if port not in kept:
            kept[port] = socket.create_connection(("127.0.0.1", port), timeout=1)
        kept[port].sendall(b"?")
        return kept[port].recv(64) == b"?"
    except OSError:
        return False
kept = {}
for port in sys.argv[1].split(","):
    threading.Thread(target=serve, args=(int(port),), daemon=True).start()
for line in sys.stdin:
    print(ask(int(line)), flush=True)
"""
"""It answers on its ports, and asks a port that it reads: on the connection that it has, or on a new one."""


class Node:
    """A program with an inner port, where other nodes ask, and an outer one, for everybody."""

    def __init__(self, inner: int, outer: int) -> None:
        self.inner, self.outer = inner, outer
        self.process = subprocess.Popen(
            [sys.executable, "-c", NODE, f"{inner},{outer}"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def reaches(self, port: int) -> bool:
        """Return whether it gets an answer from a port."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{port}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline() == "True\n"

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.communicate()


def cut_off(*words: str) -> subprocess.CompletedProcess[str]:
    return process([str(ROOT / "faultline" / "faults" / "cut_off.sh"), *words])


def rules() -> str:
    return process(["iptables", "--list-rules"]).stdout


@pytest.fixture
def nodes() -> Iterator[list[Node]]:
    ports = free_ports("127.0.0.1", 6)
    made: list[Node] = []
    with contextlib.ExitStack() as ends:
        for inner, outer in zip(ports[::2], ports[1::2], strict=True):
            made.append(Node(inner, outer))
            ends.callback(made[-1].end)
        ends.callback(cut_off, "join", str(made[0].inner))
        wait_until(lambda: all(one.reaches(other.outer) for one in made for other in made), "the nodes", seconds=60)
        yield made


@pytest.mark.parametrize("connected", [True, False], ids=["existing connections", "new connections"])
def test_a_node_is_cut_off_from_the_others_and_from_nothing_else(nodes: list[Node], connected: bool) -> None:
    one, *others = nodes
    if connected:
        assert all(node.reaches(each.inner) for node in nodes for each in nodes)
    done = cut_off("cut", str(one.inner), ",".join(str(each.inner) for each in others))
    assert done.returncode == 0, done.stderr
    assert not any(one.reaches(each.inner) for each in others)
    assert not any(each.reaches(one.inner) for each in others)
    assert one.reaches(one.inner)
    assert all(each.reaches(other.inner) for each in others for other in others)
    assert all(each.reaches(one.outer) and one.reaches(each.outer) for each in others)
    assert cut_off("join", str(one.inner)).returncode == 0
    assert f"faultline-{one.inner}" not in rules()
    assert all(node.reaches(each.outer) for node in nodes for each in nodes)
    if not connected:
        # A connection that was cut while it was there is late: its sender waits longer each time.
        assert all(node.reaches(each.inner) for node in nodes for each in nodes)


def test_a_node_is_joined_as_often_as_one_likes(nodes: list[Node]) -> None:
    assert cut_off("join", str(nodes[0].inner)).returncode == 0


def test_what_cannot_be_cut_off_is_one_line(nodes: list[Node]) -> None:
    [free] = free_ports("127.0.0.1", 1)
    done = cut_off("cut", str(free), str(nodes[0].inner))
    assert (done.returncode, done.stderr) == (1, f"cut_off.sh: nothing listens on port {free}\n")
