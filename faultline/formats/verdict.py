"""The verdict: outcome, counts and findings of each pipeline, and the JSON of `scripts/verdict.sh --json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from faultline.files import replace_text

CATEGORIES = ("lost", "duplicated", "unexpected", "disordered", "pending")
"""The categories of findings, in the order in which they are shown."""
FAULTS = ("lost", "duplicated", "unexpected", "disordered")
"""The categories that violate."""
COUNTS = ("expected", "observed", *CATEGORIES, "late", "rejected", "closing")
"""The counts of a verdict, in the order of its JSON."""
SOURCE, ALL = "source", "all"
NAMES = (SOURCE, "spark", "flink", "classic", ALL)
"""The names that a verdict can be asked for: the source is judged with each pipeline; `all` asks for both pipelines."""


class Outcome(Enum):
    """The outcome of a judgement; the value is the word in the JSON."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"

    @property
    def exit_code(self) -> int:
        """Return the process exit code: 0 holds, 1 violated, 2 unknown."""
        return {"holds": 0, "violated": 1, "unknown": 2}[self.value]


@dataclass(frozen=True)
class Finding:
    """One thing that a category counts.

    `text` is a sentence for people; `names` has what it is about (visit_id, event_time, topic,
    partition, offset, window_start, window_end, file, line: as many as apply), JSON values only.
    """

    category: str
    text: str
    names: dict[str, object] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Flatten to one JSON object: category, text, and the names."""
        return {"category": self.category, "text": self.text, **self.names}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Finding:
        """Read what `as_json` returns. Raises KeyError when a field is missing."""
        names = dict(document)
        return cls(names.pop("category"), names.pop("text"), names)


@dataclass(frozen=True)
class Verdict:
    """The judgement of one pipeline.

    Counts are output records (lines, or records on the output topics) and add up:
    expected = observed - duplicated - unexpected + lost + pending. `disordered` records are counted as observed and
    are at a wrong place. `closing` counts the expected records of closing visits, which no other count contains.
    `records` counts records of the source and adds up too: source = the sum of the others. `reason` is the sentence
    behind the outcome. `seconds` says how long reading and judging took.
    """

    pipeline: str
    outcome: Outcome
    reason: str
    expected: int = 0
    observed: int = 0
    lost: int = 0
    duplicated: int = 0
    unexpected: int = 0
    disordered: int = 0
    pending: int = 0
    late: int = 0
    rejected: int = 0
    closing: int = 0
    examples: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    records: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """The counts by their names."""
        return {name: getattr(self, name) for name in COUNTS}

    def as_json(self) -> dict[str, object]:
        """Return the verdict as one JSON object."""
        return {
            "pipeline": self.pipeline,
            "outcome": self.outcome.value,
            **self.counts,
            "examples": [example.as_json() for example in self.examples],
            "reason": self.reason,
            "records": self.records,
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Verdict:
        """Read what `as_json` returns; other fields are ignored. Raises KeyError when a field is missing."""
        return cls(
            document["pipeline"],
            Outcome(document["outcome"]),
            document["reason"],
            **{name: document[name] for name in COUNTS},
            examples=tuple(Finding.from_json(each) for each in document["examples"]),
            notes=tuple(document["notes"]),
            records=document["records"],
            seconds=document["seconds"],
        )


@dataclass(frozen=True)
class Verdicts:
    """The verdicts of one call: on the source, unless it is not judged, and on each pipeline.

    `notes` says why something was not judged.
    """

    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The worst outcome: violated before unknown before holds; without any verdict it is unknown."""
        found = {verdict.outcome for verdict in self.verdicts} or {Outcome.UNKNOWN}
        return next(outcome for outcome in (Outcome.VIOLATED, Outcome.UNKNOWN, Outcome.HOLDS) if outcome in found)

    @property
    def by_pipeline(self) -> dict[str, Verdict]:
        """The verdict on each pipeline that was judged, and on SOURCE."""
        return {verdict.pipeline: verdict for verdict in self.verdicts}

    def as_json(self, pipeline: str = ALL) -> dict[str, object]:
        """Return the object that `--json` prints: for one pipeline its verdict and the source's, for ALL a list.

        A pipeline's outcome is its own; the outcome of ALL is the worst one.
        """
        found = {name: verdict.as_json() for name, verdict in self.by_pipeline.items()}
        source = found.get(SOURCE)
        if pipeline == ALL:
            listed = [verdict for name, verdict in found.items() if name != SOURCE]
            return {
                "pipeline": ALL, "outcome": self.outcome.value, "verdicts": listed, "source": source,
                "notes": list(self.notes),
            }  # fmt: skip
        own = found.get(pipeline)
        if own is None:
            reason = "; ".join(self.notes)
            return {"pipeline": pipeline, "outcome": self.outcome.value, "reason": reason, "examples": []}
        document = {**own, "notes": [*self.by_pipeline[pipeline].notes, *self.notes]}
        return document if pipeline == SOURCE else {**document, "source": source}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Verdicts:
        """Read what `as_json` returns for ALL. Raises KeyError when a field is missing."""
        source = [document["source"]] if document["source"] else []
        return cls(
            tuple(Verdict.from_json(each) for each in (*source, *document["verdicts"])), tuple(document["notes"])
        )


@dataclass(frozen=True)
class NewestVerdict:
    """The newest verdict on a stack; `at`: when it was given, in seconds since the epoch."""

    at: float
    verdicts: Verdicts

    def write(self, file: Path) -> None:
        """Replace the file. Raises OSError."""
        replace_text(file, json.dumps({"at": self.at, "found": self.verdicts.as_json()}) + "\n")

    @classmethod
    def read(cls, file: Path) -> NewestVerdict:
        """Read what `write` has written. Raises FileNotFoundError before the first verdict."""
        document = json.loads(file.read_text(encoding="utf-8"))
        return cls(document["at"], Verdicts.from_json(document["found"]))
