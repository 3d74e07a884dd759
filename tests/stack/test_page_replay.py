"""A file that plays a recorded run, in a real browser: what it shows at which moment, by mouse, keyboard and phone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faultline.page.pictures.browser import Browser
from faultline.player.replay import recording, write
from faultline.waiting import wait_until
from tests.stack.browser import window
from tests.unit.test_page_replay import APPEND, KILL

__all__ = ["window"]
pytestmark = pytest.mark.ci

WIDTHS = (390, 1280, 2560)
LEFT, RIGHT, SPACE, HOME, END = "\ue012", "\ue014", " ", "\ue011", "\ue010"


@pytest.fixture(scope="module")
def kill(tmp_path_factory: pytest.TempPathFactory) -> str:
    return address_of(KILL, tmp_path_factory.mktemp("kill"))


@pytest.fixture(scope="module")
def append(tmp_path_factory: pytest.TempPathFactory) -> str:
    return address_of(APPEND, tmp_path_factory.mktemp("append"))


def address_of(run: Path, folder: Path) -> str:
    shutil.copytree(run, folder, dirs_exist_ok=True)
    return write(folder).as_uri()


@pytest.fixture(autouse=True)
def _no_complaints(window: Browser) -> Iterator[None]:
    """Fail when the page has an error, or wanted something from a network."""
    window.size(1280, 900)
    window.prefer()
    window.complaints()
    yield
    assert window.complaints() == []


def opened(window: Browser, address: str, second: float | None = None) -> None:
    window.open(f"{address}#" if second is None else f"{address}#{second}")


def second_of(window: Browser) -> float:
    return float(window.run("const page = Faultline.page; return page.player.at - page.store.begin"))


def moment(run: Path, what: str) -> float:
    """The second of a phase of a recorded run."""
    return float(next(each["at"] for each in recording(run)["items"] if each.get("text") == what)) - begin(run)


def begin(run: Path) -> float:
    """The time of the first sample of the log."""
    return float(item(run, "log")["at"])


def item(run: Path, kind: str) -> dict[str, Any]:
    return next(each for each in recording(run)["items"] if each["kind"] == kind)


def test_the_states_of_a_run_have_their_words(window: Browser, kill: str) -> None:
    opened(window, kill, moment(KILL, "break") - 2)
    assert window.part("state") == "running"
    assert window.part("again") == window.part("verdict") == ""
    opened(window, kill, moment(KILL, "break") + 3)
    assert window.part("state") == "fault"
    assert "scripts/kill.sh taskmanager" in window.part("story")
    opened(window, kill, moment(KILL, "heal") + 2)
    assert window.part("state") == "restoring"
    opened(window, kill, 10_000)
    assert window.part("verdict").splitlines()[0] == "HOLDS"


def test_what_was_read_again_is_shaded_with_its_number(window: Browser, append: str) -> None:
    again, verdict = item(APPEND, "again"), item(APPEND, "verdict")["verdict"]
    opened(window, append, again["at"] - begin(APPEND) + 1)
    assert window.part("again") == f"Spark reads {again['visits']} visits again, from {again['name']}"
    rows = window.run(
        "return [...document.querySelectorAll('#strips .row')].map((row) => ({"
        "  width: row.querySelector('rect.again').getBoundingClientRect().width,"
        "  words: row.querySelector('rect.again title').textContent}))"
    )
    assert [row["width"] > 10 for row in rows] == [True] * len(again["begin"])
    for partition, row in enumerate(rows):
        visits = again["end"][str(partition)] - again["begin"][str(partition)]
        assert f"Spark: {visits} visits again" in row["words"]
    opened(window, append, 10_000)
    [spark] = [each for each in verdict["verdicts"] if each["pipeline"] == "spark"]
    assert window.part("verdict").splitlines()[0] == "VIOLATED"
    assert f"spark violated: {spark['duplicated']} duplicated" in window.part("verdict")
    assert spark["duplicated"] == again["visits"]


def test_offsets_are_those_of_the_samples(window: Browser, kill: str) -> None:
    second = moment(KILL, "break")
    opened(window, kill, second)
    items = recording(KILL)["items"]
    at = begin(KILL) + second
    last = [each for each in items if each["kind"] == "log" and each["at"] <= at][-1]
    ends = window.run("return [...document.querySelectorAll('#strips .end')].map((each) => each.textContent)")
    assert ends == [f"{end:,}" for end in last["visits"].values()]


def test_it_plays_by_itself_and_by_keyboard(window: Browser, kill: str) -> None:
    opened(window, kill)
    first = second_of(window)
    wait_until(lambda: second_of(window) > first + 0.5, "the run to play", seconds=20)
    window.press(SPACE)
    stands = second_of(window)
    assert "play" in window.part("play")
    window.press(RIGHT)
    window.press(RIGHT)
    window.press(LEFT)
    assert second_of(window) == pytest.approx(stands + 1, abs=0.01)
    window.press(END)
    assert window.part("verdict").startswith("HOLDS")
    window.press(HOME)
    assert second_of(window) == pytest.approx(0, abs=0.01)
    window.press("f")
    assert second_of(window) == pytest.approx(moment(KILL, "break") - 3, abs=0.01)


def test_with_reduced_motion_nothing_moves_by_itself(window: Browser, kill: str) -> None:
    window.prefer(prefers_reduced_motion="reduce")
    opened(window, kill)
    first = second_of(window)
    window.run("return new Promise((done) => setTimeout(done, 600))")
    assert second_of(window) == first


def test_the_scrubber_and_the_events_choose_a_moment(window: Browser, kill: str) -> None:
    opened(window, kill, 1)
    window.run(
        "const scrub = document.getElementById('scrub'); scrub.value = 500; scrub.dispatchEvent(new Event('input'))"
    )
    length = float(window.run("const { store } = Faultline.page; return store.end - store.begin"))
    assert second_of(window) == pytest.approx(length / 2, abs=0.2)
    window.run(
        "[...document.querySelectorAll('#happened button')].find((each) => /kill/.test(each.textContent)).click()"
    )
    assert second_of(window) == pytest.approx(moment(KILL, "scripts/kill.sh taskmanager"), abs=0.01)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_it_fits_its_window_and_can_be_read(window: Browser, append: str, width: int, scheme: str) -> None:
    window.prefer(prefers_color_scheme=scheme)
    window.size(width, 900)
    opened(window, append, 10_000)
    assert window.run("return document.documentElement.scrollWidth") <= width
    # On a phone too the log is on the first screen, below the verdict.
    assert window.run("return document.querySelector('#strips .row:last-child').getBoundingClientRect().bottom") < 900
    assert window.run(SHIFT) < STEADY
    assert (
        window.run(
            "return [...document.querySelectorAll('p, td, li, button, text')].filter((each) =>"
            " each.getClientRects().length && parseFloat(getComputedStyle(each).fontSize) < 11).length"
        )
        == 0
    )
    faint = window.run(CONTRAST)
    assert faint == [], json.dumps(faint)


CONTRAST = """
const curve = (part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
const channel = (value) => curve(value / 255);
const light = ([red, green, blue]) => 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
const opacity = (each) => {
  let product = 1;
  for (let up = each; up; up = up.parentElement) product *= Number(getComputedStyle(up).opacity);
  return product;
};
const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
const ground = (each) => {
  for (let up = each; up; up = up.parentElement) {
    const colour = parts(getComputedStyle(up).backgroundColor);
    if (colour.length < 4 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const faint = [];
for (const each of document.querySelectorAll('h1, h2, p, li, dt, dd, td, th, button, code, summary, .end, .name')) {
  if (!each.getClientRects().length || !each.textContent.trim() || each.closest('.future, :disabled')) continue;
  const [behind, share] = [ground(each), opacity(each)];
  const colour = parts(getComputedStyle(each).color).slice(0, 3);
  const seen = colour.map((part, place) => share * part + (1 - share) * behind[place]);
  const [one, other] = [light(seen), light(behind)];
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (contrast < 4.5) faint.push([each.className || each.tagName, each.textContent.slice(0, 30), contrast]);
}
return faint;
"""
"""Text with less contrast than WCAG 2 asks for, level AA."""
SHIFT = """
return new Promise((done) => {
  let sum = 0;
  const watch = (list) => { for (const each of list.getEntries()) if (!each.hadRecentInput) sum += each.value; };
  new PerformanceObserver(watch).observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(sum), 500);
});
"""
"""The sum of the shifts of the layout since the page was opened, as in https://wicg.github.io/layout-instability/."""
STEADY = 0.02
"""A line of a table that grows by a word; 0.1 is the limit for a good page."""


def test_it_begins_at_the_first_sample(window: Browser, kill: str) -> None:
    opened(window, kill, 0)
    done = [each["at"] for each in recording(KILL)["items"] if each["kind"] == "done"]
    assert done[0] < begin(KILL) - 20
    assert window.part("state") == "running"
    ends = window.run("return [...document.querySelectorAll('#strips .end')].map((each) => each.textContent)")
    assert ends == [f"{end:,}" for end in item(KILL, "log")["visits"].values()]
    assert window.run("return document.querySelectorAll('#strips .reads:not([display])').length") == 2
    length = float(window.run("const { store } = Faultline.page; return store.end - store.begin"))
    assert length == pytest.approx(recording(KILL)["items"][-1]["at"] - begin(KILL))


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_moves_while_it_loads_and_plays(window: Browser, kill: str, width: int) -> None:
    window.size(width, 844)
    opened(window, kill)
    wait_until(lambda: "Broken" in window.part("story"), "the fault", seconds=30)
    assert window.run(SHIFT) < STEADY


def test_two_engines_can_be_distinguished_without_colour(window: Browser, kill: str) -> None:
    opened(window, kill, moment(KILL, "break") - 2)
    lanes = window.run(
        "const row = document.querySelector('#strips .row');"
        "const top = (name) => row.querySelector(name).getBoundingClientRect().top;"
        "return { flink: top('.reads'), log: top('.log'), spark: top('.committed') }"
    )
    assert lanes["flink"] < lanes["log"] < lanes["spark"]


def test_everything_that_can_be_pressed_is_reached_by_tab(window: Browser, kill: str) -> None:
    opened(window, kill, 5)
    hidden = window.run(
        "return [...document.querySelectorAll('button, input, a, summary')]"
        ".filter((each) => each.getClientRects().length && each.tabIndex < 0).length"
    )
    assert hidden == 0


def test_words_of_the_inspector_open_and_close(window: Browser, tmp_path: Path) -> None:
    shutil.copytree(KILL, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("inspected"))
    job = json.loads((KILL / "timeline.json").read_text(encoding="utf-8"))["flink"][0]["job_id"]
    (tmp_path / "inspected" / job).mkdir(parents=True)
    (tmp_path / "spark_before.txt").write_text("Spark checkpoint in <folder>\n", encoding="utf-8")
    opened(window, write(tmp_path).as_uri(), 5)
    assert window.run("return document.querySelectorAll('#done button').length") == 0
    name = window.run("return document.querySelector('#done tr.flink th').textContent")
    (tmp_path / "inspected" / job / f"{name}.txt").write_text("Flink checkpoint in <folder>\n", encoding="utf-8")
    opened(window, write(tmp_path).as_uri(), 5)
    for button, words in (("#inspected", "Spark checkpoint in <folder>"), ("#done", "Flink checkpoint in <folder>")):
        window.run(f"document.querySelector('{button} button').click()")
        assert window.part("text").strip() == words
        window.run("document.getElementById('close').click()")
        assert not window.run("return document.getElementById('words').open")


def test_it_asks_nothing_of_any_network(window: Browser, kill: str) -> None:
    opened(window, kill, 5)
    assert window.run("return performance.getEntriesByType('resource').map((each) => each.name)") == []
