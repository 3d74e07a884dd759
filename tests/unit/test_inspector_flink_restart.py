"""A restore of a Flink checkpoint writes some windows a second time; the checkpoints beside it decide which."""

from __future__ import annotations

import pytest

from faultline.inspector.flink.restart import predict
from faultline.inspector.model import Report

WINDOWS = [("windows", True)]
"""A sink of Kafka that keeps transactions."""


@pytest.mark.parametrize(
    ("beside", "words"),
    [
        ({}, "is aborted, so nothing is written twice; under at-least-once, results written since would be"),
        ({"later": 2}, "stay in the topic: results written since are written a second time"),
        ({"apart": 1}, "if the job went on after it, what later checkpoints committed stays in the topic"),
        ({"later_runs": 3}, "twice, unless 3 later checkpoints of other runs beside it came of a restore from it"),
        ({"apart": 1, "later_runs": 3}, "twice, unless 3 later checkpoints of other runs beside it"),
    ],
)
def test_what_is_written_twice_follows_from_later_checkpoints(beside: dict[str, int], words: str) -> None:
    report = Report("flink", "checkpoint", "/chk-3", id="3", counts=beside)
    restart = predict(report, [{("visits", 0): 7}], "chk-3", WINDOWS, (), at_end=0)
    assert [each.start for each in restart.partitions] == [7]
    assert words in " ".join(restart.details)
