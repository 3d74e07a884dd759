"""What a row's checks make of a verdict, and of the sink's log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.jobs import AT_LEAST_ONCE
from faults.judge import Predicted
from faults.judges.batches import RepeatsBatch
from faults.judges.windows import LosesPrepared, RepeatsSinceCheckpoint
from faults.model import Row
from faults.rows import ROWS
from faults.sink_log import SINK_LOG, lines_of
from faults.verdicts import none_holds, of_verdict

KILL = ROWS["taskmanager-kill"]
OLDER = ROWS["cancel-restore-older"]
OUTAGE = ROWS["outage-longer-than-the-transaction-timeout"]
APPEND = ROWS["sink-foreach-append"]
COUNTS = ("lost", "duplicated", "unexpected", "disordered", "pending")


def one(pipeline: str, outcome: str = "holds", **counts: int) -> dict[str, Any]:
    return {"pipeline": pipeline, "outcome": outcome, **dict.fromkeys((*COUNTS, "late", "rejected"), 0), **counts}


def verdict(flink: dict[str, Any], spark: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"verdicts": [spark or one("spark"), flink], "source": one("source")}


def passes(row: Row, found: dict[str, Any], predicted: Predicted | None = None) -> bool:
    return all(check.ok for check in of_verdict(row, found, predicted or Predicted()))


@pytest.mark.parametrize(
    ("row", "predicted", "right"),
    [
        (KILL, Predicted(), one("flink")),
        (OLDER, Predicted(repeated=7), one("flink", "violated", duplicated=7)),
        (OUTAGE, Predicted(lost=3), one("flink", "violated", lost=3)),
        (replace(KILL, mode=AT_LEAST_ONCE), Predicted(), one("flink", "violated", duplicated=5)),
        (replace(KILL, mode=AT_LEAST_ONCE), Predicted(), one("flink")),
    ],
)
def test_a_row_passes_with_what_is_predicted_and_with_nothing_else(
    row: Row, predicted: Predicted, right: dict[str, Any]
) -> None:
    assert passes(row, verdict(right), predicted)
    for name in COUNTS:
        if name != "duplicated" or row.mode != AT_LEAST_ONCE:
            wrong = {**right, "outcome": "violated", name: right[name] + 1}
            assert not passes(row, verdict(wrong), predicted), name
    assert not passes(row, verdict(one("flink", "unknown")), predicted)
    assert not passes(row, {**verdict(right), "source": None}, predicted)


def test_a_batch_that_is_written_twice_is_all_that_is_wrong() -> None:
    predicted = Predicted(lines=10)
    right = one("spark", "violated", duplicated=10)
    assert passes(APPEND, verdict(one("flink"), right), predicted)
    for name in COUNTS:
        assert not passes(APPEND, verdict(one("flink"), {**right, name: right[name] + 1}), predicted), name
    assert not passes(APPEND, verdict(one("flink"), one("spark", "unknown")), predicted)


def test_rows_that_predict_say_what() -> None:
    assert RepeatsSinceCheckpoint() in OLDER.judged
    assert LosesPrepared() in OUTAGE.judged
    assert RepeatsBatch() in APPEND.judged


def test_no_verdict_is_not_a_verdict_that_does_not_hold() -> None:
    def ok(*found: dict[str, Any]) -> bool:
        return all(check.ok for check in none_holds({"verdicts": list(found)}))

    assert ok(one("flink", "unknown"), one("spark", "violated"))
    assert not ok(one("flink", "holds"), one("spark", "violated"))
    assert not ok(one("spark", "violated"))
    assert not ok()


def test_lines_of_a_batch_are_those_of_its_own_files(tmp_path: Path) -> None:
    log = tmp_path / SINK_LOG
    log.mkdir()

    def write(file: str, *names: str) -> None:
        entries = [json.dumps({"path": f"file://{tmp_path}/{name}".replace(" ", "%20"), "size": 1}) for name in names]
        (log / file).write_text("\n".join(["v1", *entries]), encoding="utf-8")

    for number, name in enumerate(("part a", "b", "c", "d"), 1):
        (tmp_path / name).write_text("{}\n" * number, encoding="utf-8")
    write("0", "part a", "b")
    write("1.compact", "part a", "b", "c")
    write("2", "d")
    assert [lines_of(tmp_path, batch) for batch in range(4)] == [3, 3, 4, 0]
