"""Tiers and shards of the tests: which of them run, in which order, and what is said about those that do not.

A test belongs to the tier `quick` unless it is marked `ci` or `full`; a tier runs the tests of the tiers before it too.
tests/README.md says what each tier is for.
"""

from __future__ import annotations

import functools
import json
import math
import os
import secrets
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from faultline.files import replace_text
from faultline.verbs.programs import TIERS
from tests import record

_EXAMPLES_LEFT_OUT = 4
os.environ.setdefault("FAULTLINE_SEED", str(secrets.randbelow(1_000_000)))
SEED = int(os.environ["FAULTLINE_SEED"])
"""First seed of the drawn examples and orders; it differs from run to run, is printed, and can be set."""


def tier() -> str:
    """Return the tier that runs; all processes of a run have it from the first one."""
    return os.environ.get("FAULTLINE_TIER", "full")


def examples(number: int) -> int:
    """Return how many examples of a property are tried: all in `full`, else a quarter."""
    return number if tier() == "full" else max(1, number // _EXAMPLES_LEFT_OUT)


def seeds(number: int) -> range:
    """Return the seeds of as many drawn examples: others in each run."""
    return range(SEED, SEED + examples(number))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that scripts/test.sh uses."""
    group = parser.getgroup("faultline")
    group.addoption("--tier", choices=TIERS, default="full", help="run tests up to this tier (default: all)")
    group.addoption("--rest", action="store_true", help="leave out the tests of the tiers before")
    group.addoption("--shard", metavar="K/N", type=_shard, help="run part K of N of the tests")
    group.addoption("--record", action="store_true", help="put what is green on record (tests/record.json)")


def _shard(text: str) -> tuple[int, int]:
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise pytest.UsageError(f"--shard is K/N with K from 1 to N, e.g. 2/7, not '{text}'")
    return int(number), int(count)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Hand the tier on to the processes of this run, and the seed to Hypothesis."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(SEED)
    os.environ["FAULTLINE_TIER"] = config.getoption("tier")
    if not hasattr(config, "workerinput"):
        # A process of pytest-xdist that is interrupted hands nothing back, so it writes what it has found at once.
        folder = tempfile.mkdtemp(prefix="faultline-tiers-")
        config.add_cleanup(lambda: shutil.rmtree(folder))
        os.environ["FAULTLINE_FOUND"] = folder
        config.pluginmanager.register(_Report(config), "faultline-report")


def pytest_report_header() -> str:
    """Say how the run can be repeated."""
    return f"tier {tier()}, FAULTLINE_SEED={SEED}"


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test."""
    return next((name for name in reversed(TIERS) if item.get_closest_marker(name)), TIERS[0])


@functools.cache
def _is_split(file: str) -> bool:
    return "pytest.mark.split" in Path(file).read_text(encoding="utf-8")


def unit_of(nodeid: str) -> str:
    """Return what a worker runs without a break: the test's file, or the test when its file is marked `split`."""
    file = nodeid.partition("::")[0]
    return nodeid if _is_split(file) else file


class _Units(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each worker whole units, in the order of the collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Units:
    """Share the tests among the processes of a run by units."""
    return _Units(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the tests of the tier and the shard, and put those first that take longest."""
    units = {item: unit_of(item.nodeid) for item in items}
    known = record.read()
    chosen = TIERS.index(config.getoption("tier"))
    numbers = {item: TIERS.index(tier_of(item)) for item in items}
    kept = [item for item in items if numbers[item] <= chosen]
    left_out = Counter(TIERS[numbers[item]] for item in items if numbers[item] > chosen)
    if config.getoption("rest"):
        kept = [item for item in kept if numbers[item] == chosen]
    if shard := config.getoption("shard"):
        places = record.shard_of((units[item] for item in kept), known, shard[1])
        kept = [item for item in kept if places[units[item]] == shard[0]]
    # One that is not on record may be the longest.
    kept.sort(key=lambda item: -known[units[item]].seconds if units[item] in known else -math.inf)
    gone = set(items) - set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in gone])
    items[:] = kept
    found = {"left_out": dict(left_out), "whole": dict(Counter(units.values()))}
    replace_text(Path(os.environ["FAULTLINE_FOUND"], f"{os.getpid()}.json"), json.dumps(found))


class _Report:
    """In the first process of a run: what was left out, and what is green."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seconds: dict[str, float] = defaultdict(float)
        self.passed: Counter[str] = Counter()
        self.not_green: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the phases of each test of a unit."""
        unit = unit_of(report.nodeid)
        self.seconds[unit] += report.duration
        if report.outcome != "passed":
            self.not_green.add(unit)
        elif report.when == "call":
            self.passed[unit] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what the run has left out, and put what is green on record."""
        # All processes have found the same.
        written = next(Path(os.environ["FAULTLINE_FOUND"]).glob("*.json"), None)
        found: dict[str, dict[str, int]] = json.loads(written.read_bytes()) if written else {}
        lines = list(_left_out(self.config.getoption("tier"), found.get("left_out", {})))
        if self.config.getoption("record"):
            whole = found.get("whole", {})
            units = {*whole}
            if parts := {record.ROOT / word.partition("::")[0] for word in self.config.args if "::" in word}:
                # Some tests of a file were chosen, which proves nothing of the file; those of a split file are units.
                whole = {unit: count for unit, count in whole.items() if record.ROOT / unit not in parts}
                units |= record.read().keys()
            green = {unit for unit in self.passed if unit not in self.not_green and not _has_fewer_examples(unit)}
            complete = {unit for unit in green if self.passed[unit] == whole.get(unit)}
            lines.append(record.add({unit: (self.seconds[unit], self.passed[unit]) for unit in complete}, units))
            lines += [f"not green, so not on record: {unit}" for unit in sorted(self.not_green)]
        for line in lines:
            terminalreporter.write_line(line)


def _has_fewer_examples(unit: str) -> bool:
    return tier() != "full" and unit.startswith("tests/judge/")


def _left_out(running: str, numbers: dict[str, int]) -> Iterable[str]:
    for name, number in numbers.items():
        command = "scripts/test.sh full --shard K/N" if name == "full" else f"scripts/test.sh {name}"
        yield f"left out: {number} tests of the tier {name}; {command} runs them"
    if running != "full":
        yield "left out: three of four drawn examples; scripts/test.sh full tries all"
