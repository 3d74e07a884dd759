"""A live page without a stack, in a real browser: too many pages, a server that goes, and buttons that are pressed.

Some have the samples of a recorded run: tests/stack/page_of_a_run.py.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.page.pictures.browser import Browser
from faultline.page.watching import MOST_PAGES
from faultline.ports import free_ports
from faultline.settings import ROOT, as_environment
from faultline.waiting import wait_until
from tests.stack.browser import window
from tests.stack.test_page_replay import CONTRAST, SHIFT, STEADY
from tests.unit.test_page_replay import KILL
from tests.unit.test_page_server import PYTHON, Server, started

__all__ = ["window"]
pytestmark = pytest.mark.ci

WAIT_SECONDS = 60
START_SECONDS = 240
"""For a server or a script of the stack to start, on a busy machine."""


def wait(window: Browser, place: str, words: str, seconds: float = WAIT_SECONDS) -> None:
    wait_until(lambda: words in window.part(place), f"'{words}'", seconds=seconds, explain=lambda: window.part(place))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    yield from started(tmp_path, "--buttons")


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}/#token={server.token}"


def test_a_page_too_many_says_so_and_comes_in_when_one_is_closed(window: Browser, server: Server) -> None:
    with contextlib.ExitStack() as others:
        for _ in range(MOST_PAGES):
            next(others.enter_context(server.events()))
        window.open(address(server))
        wait(window, "state", "full")
        assert window.part("story").startswith("16 pages are open, and the server allows no more.")
    wait(window, "state", "no stack")


def test_a_server_that_has_gone_is_shown(window: Browser, tmp_path: Path) -> None:
    for server in started(tmp_path, "--buttons"):
        window.open(address(server))
        wait(window, "state", "no stack")
    wait(window, "state", "no server")
    assert window.part("story").endswith("It shows the last known state.")


def test_a_button_is_pressed_once_and_its_end_is_shown(window: Browser, server: Server) -> None:
    window.open(address(server))
    wait(window, "state", "no stack")
    window.run("document.getElementById('actions').open = true")
    button = "document.querySelector(`#actions [data-action='taskmanager-kill']`)"
    pressed = window.run(
        f"const button = {button}; button.focus(); button.click();"
        "return [button.disabled, document.activeElement.id, document.getElementById('said').textContent]"
    )
    assert pressed == [True, "said", "taskmanager kill ..."]
    window.press(" ")
    wait(window, "said", "failed: taskmanager kill")
    assert window.run(f"return {button}.disabled") is False
    commands = "return Faultline.page.store.of('event').filter((item) => item.what === 'command').length"
    assert window.run(commands) == 1


def test_a_chosen_checkpoint_that_went_stays_and_is_refused(window: Browser, server: Server) -> None:
    window.open(address(server))
    wait(window, "state", "no stack")
    held = (
        "const held = (at, ...names) => Faultline.page.store.add({ kind: 'retained', at, checkpoints:"
        " names.map((name) => ({ job_id: 'a'.repeat(32), name, at: 0 })) });"
    )
    window.run(f"document.getElementById('actions').open = true; {held} held(Date.now() / 1000, 'chk-6', 'chk-7')")
    chosen = "document.querySelector('.choose select')"
    wait_until(lambda: window.run(f"return {chosen}.options.length") == 2, "two checkpoints", seconds=WAIT_SECONDS)
    window.run(f"{chosen}.value = '{'a' * 32}/chk-6'; {chosen}.dispatchEvent(new Event('change'))")
    shown = window.run("return document.querySelector(`[data-action='restore'] code`).textContent")
    assert shown.endswith(f"/checkpoints/flink/{'a' * 32}/chk-6")
    window.run(f"{held} held(Date.now() / 1000 + 1, 'chk-7', 'chk-8')")
    wait_until(
        lambda: window.run(f"return {chosen}.selectedOptions[0].textContent") == "chk-6 (deleted)", "the choice",
        seconds=WAIT_SECONDS,
    )  # fmt: skip
    window.run("document.querySelector(`[data-action='restore']`).click()")
    assert window.part("said") == "chk-6 (deleted): choose another checkpoint"


@pytest.fixture
def of_a_run(tmp_path: Path) -> Iterator[Server]:
    """It shows a recorded run from its first sample on, and its buttons act on a stack that is absent."""
    [port] = free_ports("127.0.0.1", 1)
    environ = os.environ | as_environment({"HOME": str(tmp_path), "BACKEND": "local"}) | {"PYTHONPATH": str(ROOT)}
    command = [PYTHON, "-m", "tests.stack.page_of_a_run", str(port), "token", str(KILL)]
    with subprocess.Popen(command, env=environ, cwd=ROOT) as process:
        try:
            wait_until(lambda: listens(port), "the server", seconds=START_SECONDS)
            yield Server(port, "token")
        finally:
            process.terminate()
            process.wait(timeout=WAIT_SECONDS)


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


STATES = (
    "window.states = []; new MutationObserver(() => window.states.push(document.getElementById('state').textContent))"
    ".observe(document.getElementById('state'), { childList: true });"
)


@pytest.mark.parametrize("width", [390, 1280])
def test_a_live_page_begins_at_its_first_sample_and_stands_still(window: Browser, of_a_run: Server, width: int) -> None:
    window.size(width, 844)
    window.open(address(of_a_run))
    window.run(STATES)
    wait(window, "state", "running")
    assert set(window.run("return window.states")) <= {"starting", "running"}
    # The oldest checkpoint of the run was complete 28 s before the first sample.
    assert window.run("const { store } = Faultline.page; return store.begin - store.of('done')[0].at") > 20
    assert window.run("const { store } = Faultline.page; return store.end - store.begin") < 20
    rows = "return document.querySelector('#strips .row:last-child').getBoundingClientRect().bottom"
    assert window.run(rows) < 844
    wait(window, "state", "restoring")
    assert window.run(SHIFT) < STEADY
    assert window.run(CONTRAST) == []


def test_whoever_moves_by_keyboard_stays_where_they_are(window: Browser, of_a_run: Server) -> None:
    window.size(1280, 900)
    window.open(address(of_a_run))
    names = "return [...document.querySelectorAll('#done button')].map((each) => each.textContent)"
    wait_until(lambda: window.run(names), "a checkpoint", seconds=WAIT_SECONDS)
    [*_, oldest] = window.run(names)
    window.run("[...document.querySelectorAll('#done button')].pop().focus()")
    # The table has four checkpoints of Flink: by then the oldest of them would have gone.
    wait_until(lambda: len(set(window.run(names)) - {oldest}) == 4, "newer checkpoints", seconds=WAIT_SECONDS)
    assert window.run("return document.activeElement.textContent") == oldest
    window.run("document.activeElement.blur()")
    wait_until(lambda: oldest not in window.run(names), "the oldest one to go", seconds=WAIT_SECONDS)


def test_what_a_button_did_stands_below_it(window: Browser, of_a_run: Server) -> None:
    window.size(390, 844)
    window.open(address(of_a_run))
    wait(window, "state", "running")
    window.run("document.getElementById('actions').open = true")
    for action, label, words in (
        ("taskmanager-kill", "failed: taskmanager kill", "exit code 2: service taskmanager is absent"),
        ("judge-now", "done: judge as it is now", "UNKNOWN"),
    ):
        window.run(f"document.querySelector(`#actions [data-action='{action}']`).click()")
        wait(window, "said", label, START_SECONDS)
        assert words in window.part("said")
        below = window.run(
            f"const button = document.querySelector(`#actions [data-action='{action}']`).getBoundingClientRect();"
            "return document.getElementById('said').getBoundingClientRect().top - button.bottom"
        )
        assert 0 <= below < 20
        assert window.run(CONTRAST) == []
    assert "scripts/verdict.sh all --json --as-is" in window.part("said")


def test_a_button_of_a_lesson_has_its_words_below_it(window: Browser, of_a_run: Server) -> None:
    window.open(address(of_a_run))
    wait(window, "state", "running")
    window.run("document.getElementById('lessons').open = true")
    for _ in range(2):
        window.run("document.querySelector('#lessons .next').click()")
    window.run("document.querySelector('#lessons [data-action]').click()")
    wait(window, "said", "failed: taskmanager kill")
    window.run("document.querySelector('#lessons .next').focus(); document.querySelector('#lessons .next').click()")
    assert window.run("return Boolean(document.getElementById('said').closest('#lessons'))")
    for _ in range(3):
        window.press(" ")
    # The last step: the button does nothing, and keeps the focus.
    assert window.run("return document.querySelector('#lessons .turn span').textContent") == "step 5 of 5"
    assert window.run("return document.activeElement.className") == "next"
