"""docs/upgrades.md is rendered from docs/upgrades.json, and each restart did what was predicted."""

from __future__ import annotations

import json

from tests.golden.upgrades import KNOWN, PAGE, RECORD, page
from tests.stack.releases import Prediction, is_as_said

UPGRADES = json.loads(RECORD.read_text())


def test_the_page_is_that_of_the_record() -> None:
    assert PAGE.read_text() == page(UPGRADES)


def test_every_restart_of_spark_did_what_was_predicted() -> None:
    assert {"3.5", "4.0", "4.1"} <= {each["written"] for each in UPGRADES["spark"]}
    for each in UPGRADES["spark"]:
        assert is_as_said(Prediction(each["predicted"], each["step"]), each["error"], each["committed"]), each


def test_only_an_error_about_the_checkpoint_shows_that_a_restart_is_impossible() -> None:
    of_spark = "[STREAM_FAILED] Query [id = 1] terminated with exception: batch 11 doesn't exist"
    assert is_as_said(Prediction("impossible", 12), of_spark, [])
    for other in (
        "",
        "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.",
        "[STREAM_FAILED] x",
    ):
        assert not is_as_said(Prediction("impossible", 12), other, [])


def test_every_restore_of_flink_did_what_was_predicted() -> None:
    assert {"1.20", "2.0"} <= {each["written"] for each in UPGRADES["flink"] if each["restored"] == KNOWN}
    for each in UPGRADES["flink"]:
        assert (each["predicted"] == "impossible") == bool(each["error"]), each
