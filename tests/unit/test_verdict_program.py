"""The verdict on several pipelines, and on a job that may have more to commit by its JobManager."""

from __future__ import annotations

from typing import Any

import pytest

from faultline.formats.verdict import ALL, NAMES, Outcome, Verdict
from faultline.verdict.checkers import CHECKERS
from faultline.verdict.checkers.flink import records_left
from faultline.verdict.program import of_one_source


def test_every_checker_and_no_other_can_be_asked_for() -> None:
    assert (*CHECKERS, ALL) == NAMES


def test_the_source_holds_only_if_it_is_the_topic_that_the_pipelines_read() -> None:
    source, flink = (Verdict(name, Outcome.HOLDS, "all is there") for name in ("source", "flink"))
    other = {"source": "visits", "flink": "other", "spark": "visits"}
    judged = of_one_source(source, other)
    assert judged.outcome is Outcome.UNKNOWN
    assert "flink has read other; judge with STACK_VISITS_TOPIC=other" in judged.reason
    assert of_one_source(flink, other) == flink
    assert of_one_source(source, {"source": "visits", "flink": "visits"}) == source
    violated = Verdict("source", Outcome.VIOLATED, "one is lost")
    assert of_one_source(violated, other) == violated


def done(number: int, *, size: int = 0, kind: str = "CHECKPOINT") -> dict[str, Any]:
    """A finished checkpoint in the form of Flink's REST interface."""
    return {"id": number, "checkpoint_type": kind, "persisted_data": size}


@pytest.mark.parametrize(
    ("completed", "savepoint", "is_active", "unaligned", "words"),
    [
        (done(3), None, True, False, ""),
        (None, None, True, False, "has no checkpoint of its own yet; wait for one"),
        # Beside a running job a savepoint commits nothing.
        (None, done(1, kind="SAVEPOINT"), True, False, "has no checkpoint of its own yet; wait for one"),
        (None, done(1, kind="SYNC_SAVEPOINT"), False, True, ""),
        (None, None, False, False, ""),
        (None, None, False, True, "has no checkpoint of its own yet; restore the job"),
        (done(3, size=2000), None, True, True, "chk-3 of the job holds 2,000 bytes of records that barriers overtook"),
        (done(3, size=2000), done(4, kind="SYNC_SAVEPOINT"), False, True, ""),
    ],
)
def test_a_job_has_records_left_by_its_newest_checkpoint(
    completed: object, savepoint: object, is_active: bool, unaligned: bool, words: str
) -> None:
    latest = {"completed": completed, "savepoint": savepoint}
    left = records_left("a", latest, is_active=is_active, unaligned=unaligned)
    assert (left is None) == (not words)
    assert left is None or words in left.text
