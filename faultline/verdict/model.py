"""A judgement: its verdict with every finding, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from faultline.command import CommandError
from faultline.formats.verdict import Finding, Outcome, Verdict

EXAMPLES_PER_CATEGORY = 3


class Unknown(CommandError):
    """It cannot be judged: the reason is one line that names the thing, the cause and the next step."""


class NotJudged(Exception):
    """There is nothing to compare with: one sentence, printed as a note, without effect on the exit code."""


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


def unknown(pipeline: str, reason: str) -> Verdict:
    """Build the verdict of a judgement that could not be made."""
    return Verdict(pipeline, Outcome.UNKNOWN, reason)


def plural(count: int, noun: str) -> str:
    """Format a count and its noun: `1 window`, `2,000 windows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
