"""What a judgement says: outcome, counts, examples, and their JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

CATEGORIES = ("lost", "duplicated", "unexpected", "pending")
"""The categories that examples belong to, in the order in which they are shown."""

EXAMPLES_PER_CATEGORY = 3


class Unknown(Exception):
    """Nothing can be said: the reason is one line that names the thing, the cause and the next step."""


class Outcome(Enum):
    """How a judgement ends; the value is the word in the JSON."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"

    @property
    def exit_code(self) -> int:
        """Give the process exit code: 0 holds, 1 violated, 2 unknown."""
        return {"holds": 0, "violated": 1, "unknown": 2}[self.value]


@dataclass(frozen=True)
class Example:
    """One thing that a category counts.

    `text` is a sentence for people; `names` holds what it is about (visit_id, event_time, topic,
    partition, offset, window_start, window_end, file, line: as many as apply), JSON values only.
    """

    category: str
    text: str
    names: dict[str, object] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Flatten to one JSON object: category, text, and the names."""
        return {"category": self.category, "text": self.text, **self.names}


@dataclass(frozen=True)
class Verdict:
    """The judgement of one pipeline.

    Counts are output records (lines, or records on the output topics) and add up:
    expected = observed - duplicated - unexpected + lost + pending. `records` counts records of the
    source and adds up too: source = the sum of the others. `reason` is the sentence behind the outcome.
    """

    pipeline: str
    outcome: Outcome
    reason: str
    expected: int = 0
    observed: int = 0
    lost: int = 0
    duplicated: int = 0
    unexpected: int = 0
    pending: int = 0
    late: int = 0
    rejected: int = 0
    examples: tuple[Example, ...] = ()
    notes: tuple[str, ...] = ()
    records: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Give the object that `--json` prints."""
        counts = ("expected", "observed", "lost", "duplicated", "unexpected", "pending", "late", "rejected")
        return {
            "pipeline": self.pipeline,
            "outcome": self.outcome.value,
            **{name: getattr(self, name) for name in counts},
            "examples": [example.as_json() for example in self.examples],
            "reason": self.reason,
            "records": self.records,
            "notes": list(self.notes),
        }


def unknown(pipeline: str, reason: str) -> Verdict:
    """Build the verdict of a judgement that could not be made."""
    return Verdict(pipeline, Outcome.UNKNOWN, reason)


def plural(count: int, noun: str) -> str:
    """Write a count and its noun: `1 window`, `2,000 windows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
