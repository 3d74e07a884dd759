"""Requirements on the verdicts: of a row, of a row that nothing can settle, and of a negative control."""

from __future__ import annotations

from collections.abc import Mapping

from faultline.faults.judge import Check, Predicted
from faultline.faults.model import Row
from faultline.formats.jobs import EXACTLY_ONCE
from faultline.formats.verdict import SOURCE, Outcome, Verdict, Verdicts


def wrong(verdict: Verdict) -> int:
    """Return how many records a verdict finds lost, written twice or unexpected."""
    return verdict.lost + verdict.duplicated + verdict.unexpected


def none_holds(found: Verdicts) -> list[Check]:
    """Return whether both pipelines are judged, and no verdict claims that all is well."""
    outcomes = {name: verdict.outcome for name, verdict in found.by_pipeline.items()}
    return [
        Check(
            f"verdict on {name} is violated or unknown",
            str(outcomes.get(name) in (Outcome.VIOLATED, Outcome.UNKNOWN)),
            "True",
        )
        for name in ("flink", "spark")
    ]


def of_control(row: Row, found: Verdicts, before: int) -> list[Check]:
    """Return whether the verdict has found more that is wrong than `before`."""
    verdict = found.by_pipeline[row.caught]
    return [
        _outcome(verdict, Outcome.VIOLATED),
        Check(f"wrong records beyond the {before} before", str(wrong(verdict) > before), "True"),
    ]


def of_verdict(row: Row, found: Verdicts, predicted: Predicted) -> list[Check]:
    """Compare the verdicts with what the row promises."""
    verdicts = found.by_pipeline
    flink, spark = verdicts["flink"], verdicts["spark"]
    source = verdicts[SOURCE].outcome.value if SOURCE in verdicts else "not judged"
    checks = [Check("the source: every acknowledged visit is there", source, Outcome.HOLDS.value)]
    if row.mode == EXACTLY_ONCE and not (predicted.repeated or predicted.lost):
        checks.append(_outcome(flink, Outcome.HOLDS))
    else:
        counts = {"lost": predicted.lost, "unexpected": 0, "disordered": 0}
        if predicted.partial:
            counts.pop("unexpected")
        if row.mode == EXACTLY_ONCE:
            counts["duplicated"] = predicted.repeated
        checks += _counted(flink, "windows and visits set aside", counts)
    checks.append(Check("pending windows", str(flink.pending), "0"))
    if predicted.lines:
        counts = {"duplicated": predicted.lines, "lost": 0, "unexpected": 0, "disordered": 0, "pending": 0}
        checks += _counted(spark, "visits", counts)
    else:
        checks.append(_outcome(spark, Outcome.HOLDS))
    return checks


def _outcome(verdict: Verdict, expected: Outcome) -> Check:
    return Check(f"verdict on {verdict.pipeline}", verdict.outcome.value, expected.value)


def _counted(verdict: Verdict, noun: str, counts: Mapping[str, int]) -> list[Check]:
    """Checks of the counts of a verdict; one that is unknown has counted nothing."""
    known = Check(f"verdict on {verdict.pipeline} has counted", str(verdict.outcome is not Outcome.UNKNOWN), "True")
    return [known, *(Check(f"{noun} {name}", str(verdict.counts[name]), str(count)) for name, count in counts.items())]
