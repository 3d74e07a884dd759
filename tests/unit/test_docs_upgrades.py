"""The table of upgrades is that of docs/upgrades.json, and each restart did what was predicted."""

from __future__ import annotations

import json

from tests.golden.upgrades import PAGE, RECORD, page
from tests.stack.releases import is_as_said

UPGRADES = json.loads(RECORD.read_text())


def test_the_table_is_that_of_the_record() -> None:
    text = PAGE.read_text()
    assert page(UPGRADES, text) == text


def test_every_restart_did_what_was_predicted() -> None:
    assert {"3.5", "4.0", "4.1"} <= {each["written"] for each in UPGRADES}
    for each in UPGRADES:
        assert is_as_said((each["predicted"], each["step"]), each["error"], each["committed"]), each
