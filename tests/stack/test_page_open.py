"""A live page without a stack, in a real browser: too many pages, a server that goes, and buttons that are pressed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.page.pictures.browser import Browser
from faultline.page.watching import MOST_PAGES
from faultline.waiting import wait_until
from tests.stack.browser import window
from tests.unit.test_page_server import Server, started

__all__ = ["window"]
pytestmark = pytest.mark.ci

WAIT_SECONDS = 60


def wait(window: Browser, place: str, words: str) -> None:
    wait_until(
        lambda: words in window.part(place), f"'{words}'", seconds=WAIT_SECONDS, explain=lambda: window.part(place)
    )


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
