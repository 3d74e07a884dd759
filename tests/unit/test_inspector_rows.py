"""Rows of state as CSV, and their difference by key."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from faultline.formats.arguments import inspector_arguments
from faultline.inspector.__main__ import main
from faultline.inspector.errors import InspectorError
from faultline.inspector.rows import COLUMNS, compare, documents, write_changes_csv, write_csv
from tests.called import refused
from tests.golden.archives import golden


def row(key: Any, value: Any, **more: Any) -> dict[str, Any]:
    return {"operator": "windows", "state": "counts", "kind": "value", "key": key, "value": value} | more


def changes(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> set[tuple[str, Any, Any, Any]]:
    found = documents(compare(before, after), None)
    return {(each["change"], str(each["key"]), each["before"], each["after"]) for each in found}


def test_keys_are_added_removed_and_changed() -> None:
    before, after = [row("a", 1), row("b", 2), row("c", 3)], [row("c", 3), row("b", 5), row("d", None)]
    assert changes(before, after) == {("removed", "a", 1, None), ("changed", "b", 2, 5), ("added", "d", None, None)}
    [state] = compare(before, after)
    assert (state.operator, state.state, state.same, len(state.changes)) == ("windows", "counts", 1, 3)


def test_a_key_has_an_entry_for_each_window_and_each_key_of_a_map() -> None:
    before = [row("a", 1, window_end=10), row("a", 1, window_end=20), row("a", 1, entry="x"), row("a", 1, entry="y")]
    after = [row("a", 1, window_end=10), row("a", 2, window_end=20), row("a", 1, entry="x"), row("a", 3, entry="y")]
    [state] = compare(before, after)
    assert state.same == 2
    assert [(each.row["window_end"], each.row["entry"], each.after) for each in state.changes] == [
        (20, None, "2"), (None, "y", "3"),
    ]  # fmt: skip


def test_elements_of_a_list_have_no_key_and_are_compared_as_a_bag() -> None:
    before, after = [row(None, 1), row(None, 1), row(None, 2)], [row(None, 2), row(None, 1)]
    assert changes(before, after) == {("removed", "None", 1, None)}
    assert not changes(before, before[::-1])


def test_a_key_that_is_text_is_not_a_number() -> None:
    assert changes([row("1", 1)], [row(1, 1)]) == {("removed", "1", 1, None), ("added", "1", None, 1)}


def test_csv_has_json_where_a_value_is_neither_text_nor_a_number() -> None:
    out = io.StringIO()
    write_csv([row("a,b", [1, "ä"]), row({"id": 7}, "text", window_start=0, window_end=10), row(None, None)], out)
    first, second, third = csv.DictReader(io.StringIO(out.getvalue()))
    assert tuple(first) == COLUMNS
    assert (first["key"], first["value"]) == ("a,b", '[1, "ä"]')
    assert (second["key"], second["window_start"], second["value"]) == ('{"id": 7}', "0", "text")
    assert (third["key"], third["value"]) == ("", "")


def test_changes_as_csv_are_limited_by_state() -> None:
    found = compare([row(str(n), n) for n in range(5)], [row(str(n), n + n % 2, window_end=None) for n in range(4)])
    out = io.StringIO()
    write_changes_csv(found, 2, out)
    lines = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert [(line["change"], line["key"], line["before"], line["after"]) for line in lines] == [
        ("changed", "1", "1", "2"), ("changed", "3", "3", "4"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["x", "--csv"], "--csv and --operator go with --state"),
        (["x", "--operator", "windows"], "--csv and --operator go with --state"),
        (["x", "--state", "--csv", "--json"], "--csv goes with neither --json nor --follow"),
        (["x", "--state", "--limit", "-1"], "--limit at least 0"),
    ],
)
def test_wrong_usage(words: list[str], why: str) -> None:
    assert why in refused(inspector_arguments, *words)


def test_a_limit_has_the_default_of_its_output() -> None:
    shown, written = inspector_arguments(["x", "--state"]), inspector_arguments(["x", "--state", "--csv"])
    assert (shown.rows, written.limit) == (5, None)
    assert inspector_arguments(["x", "--limit", "7"]).rows == 7


def test_states_of_two_engines_are_not_compared(tmp_path: Path) -> None:
    spark = golden("spark-4.0") / "files_windowed" / "checkpoint"
    flink = next(golden("flink-job").glob("*/chk-*"))
    with pytest.raises(InspectorError, match="one of the two checkpoints is of Spark and one of Flink"):
        main(["--diff", str(spark), str(flink), "--state"])
