"""docs/guarantees.md has every row and every control, as they are now."""

from __future__ import annotations

import re
from typing import Any

import pytest

from faults.guarantees import PAGE, control, page, promised
from faults.model import Outcome
from faults.rows import CONTROL_ROWS, GROUPS, ROWS

NAMES = [*ROWS, *(row.name for rows in CONTROL_ROWS.values() for row in rows)]


def results() -> list[dict[str, Any]]:
    return [{"row": name, "outcome": "passed", "seed": 1, "attempts": 1, "times": {}} for name in NAMES]


@pytest.mark.parametrize("name", ROWS)
def test_the_page_has_each_row_with_its_promise_and_figures(name: str) -> None:
    [line] = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{name}` |")]
    assert line.startswith(promised(ROWS[name])), f"{name} has changed; run it, and write the page again"
    assert re.fullmatch(r"(?: [\d.]* \|){6}", line.removeprefix(promised(ROWS[name])))


def test_the_page_has_each_control_and_nothing_else() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert {control(name, rows) for name, rows in CONTROL_ROWS.items()} <= set(lines)
    assert len([line for line in lines if line.startswith("| `")]) == len(ROWS) + len(CONTROL_ROWS)
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")][: len(GROUPS)] == list(GROUPS)


def test_rows_that_are_missing_make_no_page() -> None:
    with pytest.raises(ValueError, match=f"not in the results: {NAMES[0]}$"):
        page(results()[1:], [])


def test_a_row_that_failed_once_makes_no_page() -> None:
    failed = {**results()[0], "outcome": Outcome.FAILED.value}
    with pytest.raises(ValueError, match=f"not passed: {NAMES[0]}$"):
        page([failed, *results()], [])
    assert page(results(), [])
