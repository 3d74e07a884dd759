"""The tiers of the tests: each test in one shard, a record of what is green, and promises that the quick tier holds."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from tests import record
from tests.record import Green

ROOT = Path(__file__).resolve().parents[2]
pytest_plugins = ("pytester",)


def green(seconds: float, commit: str = "0123456789ab") -> Green:
    return Green(seconds, 1, commit, "2026-01-01")


def test_each_unit_is_in_one_shard_and_shards_take_about_as_long() -> None:
    known = {f"tests/stack/test_{number:02}.py": green(60.0 + 7 * (number % 10)) for number in range(90)}
    for shards in (1, 2, 5, 7):
        places = record.shard_of(known, known, shards)
        assert places.keys() == known.keys()
        assert set(places.values()) == set(range(1, shards + 1))
        totals = [sum(known[unit].seconds for unit in known if places[unit] == shard) for shard in set(places.values())]
        assert max(totals) - min(totals) <= 2 * max(each.seconds for each in known.values())


def test_a_unit_that_never_ran_has_a_shard_too() -> None:
    assert record.shard_of(["tests/a.py", "tests/b.py"], {}, 2) == {"tests/a.py": 1, "tests/b.py": 2}


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    assert record.read(file) == {}
    known = {"tests/b.py": green(2.5), "tests/a.py::test_x[1]": green(1)}
    record.write(known, file)
    assert record.read(file) == known


def test_a_green_unit_replaces_its_line_and_leaves_those_of_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, here = tmp_path / "record.json", "tests/unit/test_tiers.py"
    other, gone = "tests/unit/test_docs.py", "tests/unit/test_that_is_gone.py"
    record.write({f"{here}::test_renamed": green(1), other: green(2), gone: green(3)}, file)
    monkeypatch.setattr(record, "clean_commit", lambda: None)
    assert "not committed" in record.add({here: (4, 10)}, [here], file)
    assert record.read(file).keys() == {f"{here}::test_renamed", other, gone}
    monkeypatch.setattr(record, "clean_commit", lambda: "abc")
    record.add({here: (4, 10)}, [here], file)
    found = record.read(file)
    assert found.keys() == {here, other}
    assert (found[here].seconds, found[here].passed, found[here].commit) == (4, 10, "abc")


def test_a_file_that_was_never_green_is_named() -> None:
    here = "tests/unit/test_tiers.py"
    assert here in record.never_green({})
    assert here not in record.never_green({f"{here}::test_x": green(1)})


@functools.cache
def tree_of(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def functions_of(file: str) -> dict[str, ast.FunctionDef]:
    """The test functions of a file by name; none where there is no file."""
    nodes = tree_of(file).body if (ROOT / file).is_file() else []
    return {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}


def test_the_record_of_this_tree_names_tests_that_exist() -> None:
    units = [unit.partition("::") for unit in record.read()]
    assert units
    gone = [
        f"{file}::{name}"
        for file, _, name in units
        if not (tests := functions_of(file)) or (name and name.partition("[")[0] not in tests)
    ]
    assert gone == []


SUITE = """
import pytest
def test_quick(): pass
@pytest.mark.ci
def test_ci(): pass
@pytest.mark.full
def test_full(): pass
@pytest.mark.full
@pytest.mark.split
@pytest.mark.parametrize("number", [1, 2])
def test_split(number): pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # The inner run sets it; the outer one goes on with its own.
    monkeypatch.setenv("FAULTLINE_TIER", "full")
    pytester.makeconftest(
        "from tests.tiers import pytest_addoption, pytest_collection_modifyitems, pytest_configure\n"
        "from tests.tiers import pytest_report_header, pytest_xdist_make_scheduler\n"
    )
    pytester.makeini(
        "[pytest]\naddopts = --import-mode=importlib -p no:cacheprovider\nmarkers =\n  ci: c\n  full: f\n  split: s\n"
    )
    pytester.mkpydir("suite").joinpath("test_x.py").write_text(SUITE)
    return pytester


@pytest.mark.parametrize(
    ("flags", "ran", "left_out"),
    [
        ("--tier quick", 1, ["1 tests of the tier ci", "3 tests of the tier full", "three of four"]),
        ("--tier ci", 2, ["3 tests of the tier full", "three of four"]),
        ("--tier ci --rest -n 2", 1, ["3 tests of the tier full", "three of four"]),
        ("--tier full", 5, []),
    ],
)
def test_a_tier_runs_its_tests_and_says_what_it_leaves_out(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, flags: str, ran: int, left_out: list[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = (suite.runpytest_subprocess if "-n" in flags else suite.runpytest_inprocess)(*flags.split())
    done.assert_outcomes(passed=ran)
    said = [line for line in done.outlines if line.startswith("left out: ")]
    assert len(said) == len(left_out)
    assert all(words in line for words, line in zip(left_out, said, strict=True))


def test_all_shards_together_run_each_test_once(suite: pytest.Pytester) -> None:
    ran: list[str] = []
    for shard in ("1/3", "2/3", "3/3"):
        done = suite.runpytest_inprocess("-v", "-p", "no:xdist", "--shard", shard)
        ran += re.findall(r"^\S+::(\S+) PASSED", done.stdout.str(), re.MULTILINE)
    assert sorted(ran) == ["test_ci", "test_full", "test_quick", "test_split[1]", "test_split[2]"]


def test_a_chosen_test_is_put_on_record_where_tests_are_units(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[set[str]] = []

    def add(greens: dict[str, tuple[float, int]], _units: set[str]) -> str:
        added.append({*greens})
        return "added"

    monkeypatch.setattr(record, "add", add)
    split = "suite/test_x.py"
    suite.mkpydir("whole").joinpath("test_y.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    unit, whole = f"{split}::test_split[1]", "whole/test_y.py"
    for chosen in ([unit], [f"{whole}::test_a"], [whole], [unit, whole]):
        suite.runpytest_inprocess("-p", "no:xdist", "--record", *chosen)
    assert added == [{unit}, set(), {whole}, {unit, whole}]


PROMISE = re.compile(r"\| .+ \| `(tests/\S+\.py)::(\w+)` \|")


def test_what_is_promised_of_the_quick_tier_is_held_by_a_test_of_it() -> None:
    page = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    section = page.partition("\n## What the quick tier proves")[2].partition("\n## ")[0]
    _, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    assert rows
    for row in rows:
        found = PROMISE.fullmatch(row)
        assert found, row
        file, name = found.groups()
        marks = [ast.unparse(mark) for mark in functions_of(file)[name].decorator_list]
        marks += [
            ast.unparse(node.value)
            for node in tree_of(file).body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        ]
        assert not any(re.search(r"mark\.(ci|full)\b", mark) for mark in marks if "param(" not in mark), (file, name)
