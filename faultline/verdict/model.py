"""The result of a judgement: outcome, counts, findings, and their JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice

from faultline.command import CommandError

CATEGORIES = ("lost", "duplicated", "unexpected", "disordered", "pending")
"""The categories of findings, in the order in which they are shown."""
FAULTS = ("lost", "duplicated", "unexpected", "disordered")
"""The categories that violate."""

EXAMPLES_PER_CATEGORY = 3


class Unknown(CommandError):
    """It cannot be judged: the reason is one line that names the thing, the cause and the next step."""


class NotJudged(Exception):
    """There is nothing to compare with: one sentence, printed as a note, without effect on the exit code."""


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

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        counts = (
            "expected", "observed", "lost", "duplicated", "unexpected", "disordered", "pending", "late", "rejected",
            "closing",
        )  # fmt: skip
        return {
            "pipeline": self.pipeline,
            "outcome": self.outcome.value,
            **{name: getattr(self, name) for name in counts},
            "examples": [example.as_json() for example in self.examples],
            "reason": self.reason,
            "records": self.records,
            "notes": list(self.notes),
            "seconds": self.seconds,
        }


Findings = Callable[[str], Iterator[Finding]]
"""All findings of a category, one after the other."""


def first_findings(find: Findings, categories: Iterable[str]) -> tuple[Finding, ...]:
    """Return the first few findings of each category."""
    return tuple(finding for category in categories for finding in islice(find(category), EXAMPLES_PER_CATEGORY))


@dataclass(frozen=True)
class Judgement:
    """A verdict, and every finding behind its counts, which can be read while the tables are open."""

    verdict: Verdict
    findings: Findings


def worst(verdicts: Sequence[Verdict]) -> Outcome:
    """Choose the outcome of several judgements: violated before unknown before holds; without any it is unknown."""
    found = {verdict.outcome for verdict in verdicts} or {Outcome.UNKNOWN}
    return next(outcome for outcome in (Outcome.VIOLATED, Outcome.UNKNOWN, Outcome.HOLDS) if outcome in found)


def unknown(pipeline: str, reason: str) -> Verdict:
    """Build the verdict of a judgement that could not be made."""
    return Verdict(pipeline, Outcome.UNKNOWN, reason)


def plural(count: int, noun: str) -> str:
    """Format a count and its noun: `1 window`, `2,000 windows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
