"""Differences between two reports: figures by name, compared as text."""

from __future__ import annotations

from dataclasses import dataclass

from faultline.inspector.model import Operator, Report
from faultline.inspector.words import offset_words, time_words


@dataclass(frozen=True)
class Difference:
    """One figure; None where only one of the two has it."""

    what: str
    before: str | None
    after: str | None

    def sentence(self) -> str:
        """`partition visits-0: 4 -> 8 (+4)`; a figure that only one side has is called new or gone."""
        if self.before is None:
            return f"{self.what}: new, {self.after}"
        if self.after is None:
            return f"{self.what}: gone, was {self.before}"
        step = ""
        if self.before.isdigit() and self.after.isdigit():
            step = f" ({int(self.after) - int(self.before):+})"
        return f"{self.what}: {self.before} -> {self.after}{step}"


def facts(report: Report) -> dict[str, str]:
    """Flatten a report to the figures that make sense beside another's."""
    found = {"engine": report.engine, "id": report.id}
    if report.engine == "spark":
        found |= {name: str(value) for name, value in report.counts.items()}
    found |= {f"format of {name}": version for name, version in report.formats.items()}
    if report.releases:
        found["written by"] = " or ".join(report.releases)
    if report.restart:
        found["restart"] = (
            f"{report.restart.action} {'' if report.restart.step is None else report.restart.step}".strip()
        )
        for partition in report.restart.partitions:
            offset = partition.start if partition.end is None else partition.end
            found[f"partition {partition.topic}-{partition.partition}"] = offset_words(offset)
    if report.steps and report.steps[-1].watermark:
        found["watermark"] = time_words(report.steps[-1].watermark)
    for operator in report.operators:
        name = f"operator {operator.label}"
        for what in ("parallelism", "max_parallelism", "state_bytes"):
            value = getattr(operator, what)
            if value is not None:
                found[f"{name} {what.replace('_', ' ')}"] = str(value)
        if operator.watermark is not None:
            found[f"{name} watermark"] = time_words(operator.watermark)
        found |= _state_facts(name, operator)
    found["prepared transactions"] = str(len(report.transactions))
    found |= {f"configuration {name}": value for name, value in report.configuration.items()}
    if report.sink:
        found["sink files"] = str(report.sink.files)
    found["problems"] = str(len(report.problems))
    return found


def _state_facts(name: str, operator: Operator) -> dict[str, str]:
    found = {}
    for store in operator.state:
        if store.keys is not None:
            found[f"{name} state {store.name} entries"] = str(store.keys)
        if store.windows:
            found[f"{name} state {store.name} open windows"] = str(len(store.windows))
        if any(window.visits for window in store.windows):
            visits = sum(window.visits or 0 for window in store.windows)
            found[f"{name} state {store.name} visits in open windows"] = str(visits)
    return found


def compare(before: Report, after: Report) -> list[Difference]:
    """List the figures that differ, in the order in which a report has them."""
    left, right = facts(before), facts(after)
    names = [*left, *(name for name in right if name not in left)]
    return [Difference(name, left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)]
