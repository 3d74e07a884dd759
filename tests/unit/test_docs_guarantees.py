"""docs/guarantees.md has every row and every control, as they are now."""

from __future__ import annotations

import re

from faults.guarantees import PAGE, control, promised
from faults.rows import CONTROL_ROWS, ROWS


def test_the_page_has_each_row_with_its_promise_and_figures() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for row in ROWS.values():
        [line] = [line for line in lines if line.startswith(f"| `{row.name}` |")]
        assert line.startswith(promised(row)), f"{row.name} has changed; run it, and write the page again"
        assert re.fullmatch(r"(?: [\d.]* \|){5}", line.removeprefix(promised(row)))


def test_the_page_has_each_control_and_nothing_else() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert {control(name, rows) for name, rows in CONTROL_ROWS.items()} <= set(lines)
    assert len([line for line in lines if line.startswith("| `")]) == len(ROWS) + len(CONTROL_ROWS)
