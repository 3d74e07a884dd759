"""The tables of upgrades are those of docs/upgrades.json, and each restart did what was predicted."""

from __future__ import annotations

import json

from tests.golden.upgrades import KNOWN, PAGE, RECORD, page
from tests.stack.releases import is_as_said

UPGRADES = json.loads(RECORD.read_text())


def test_the_tables_are_those_of_the_record() -> None:
    text = PAGE.read_text()
    assert page(UPGRADES, text) == text


def test_every_restart_of_spark_did_what_was_predicted() -> None:
    assert {"3.5", "4.0", "4.1"} <= {each["written"] for each in UPGRADES["spark"]}
    for each in UPGRADES["spark"]:
        assert is_as_said((each["predicted"], each["step"]), each["error"], each["committed"]), each


def test_every_restore_of_flink_did_what_was_predicted() -> None:
    assert {"1.20", "2.0"} <= {each["written"] for each in UPGRADES["flink"] if each["restored"] == KNOWN}
    for each in UPGRADES["flink"]:
        assert (each["predicted"] == "impossible") == bool(each["error"]), each
