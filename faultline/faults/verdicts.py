"""Requirements on the verdicts: of a row, of a row that nothing can settle, and of a negative control."""

from __future__ import annotations

from typing import Any

from faultline.faults.judge import Check, Predicted
from faultline.faults.model import Row
from faultline.formats.jobs import EXACTLY_ONCE


def wrong(verdict: dict[str, Any], pipeline: str) -> int:
    """Return how many records the verdict on a pipeline finds lost, written twice or unexpected."""
    [found] = [each for each in verdict["verdicts"] if each["pipeline"] == pipeline]
    return int(found["lost"] + found["duplicated"] + found["unexpected"])


def none_holds(verdict: dict[str, Any]) -> list[Check]:
    """Return whether no verdict claims that all is well."""
    found = {each["pipeline"]: each["outcome"] for each in verdict["verdicts"]}
    return [
        Check(f"verdict on {name} is violated or unknown", str(found.get(name) in ("violated", "unknown")), "True")
        for name in ("flink", "spark")
    ]


def of_control(row: Row, verdict: dict[str, Any], before: int) -> list[Check]:
    """Return whether the verdict has found more that is wrong than `before`."""
    [found] = [each for each in verdict["verdicts"] if each["pipeline"] == row.caught]
    return [
        Check(f"verdict on {row.caught}", found["outcome"], "violated"),
        Check(f"wrong records beyond the {before} before", str(wrong(verdict, row.caught) > before), "True"),
    ]


def of_verdict(row: Row, verdict: dict[str, Any], predicted: Predicted) -> list[Check]:
    """Compare the verdicts with what the row promises."""
    found = {each["pipeline"]: each for each in verdict["verdicts"]}
    flink, spark, source = found["flink"], found["spark"], verdict["source"] or {"outcome": "not judged"}
    checks = [Check("the source: every acknowledged visit is there", source["outcome"], "holds")]
    if row.mode == EXACTLY_ONCE and not (predicted.repeated or predicted.lost):
        checks.append(Check("verdict on flink", flink["outcome"], "holds"))
    else:
        counts = {"lost": predicted.lost, "unexpected": 0, "disordered": 0}
        if predicted.partial:
            counts.pop("unexpected")
        if row.mode == EXACTLY_ONCE:
            counts["duplicated"] = predicted.repeated
        checks += _counted(flink, "windows and visits set aside", counts)
    checks.append(Check("pending windows", str(flink["pending"]), "0"))
    if predicted.lines:
        counts = {"duplicated": predicted.lines, "lost": 0, "unexpected": 0, "disordered": 0, "pending": 0}
        checks += _counted(spark, "visits", counts)
    else:
        checks.append(Check("verdict on spark", spark["outcome"], "holds"))
    return checks


def _counted(found: dict[str, Any], noun: str, counts: dict[str, int]) -> list[Check]:
    """Checks of the counts of a verdict; one that is unknown has counted nothing."""
    known = Check(f"verdict on {found['pipeline']} has counted", str(found["outcome"] != "unknown"), "True")
    return [known, *(Check(f"{noun} {name}", str(found[name]), str(count)) for name, count in counts.items())]
