"""A comparison of a checkpoint with a planned job: its outcome, and the sentences that give the reasons."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from faultline.inspector.words import count

MAPS, DOES_NOT_MAP, CANNOT_BE_SAID = "maps", "does not map", "cannot be said"
EXIT_CODES = {MAPS: 0, DOES_NOT_MAP: 1, CANNOT_BE_SAID: 2}


@dataclass
class Comparison:
    """A checkpoint's state set against the operators of a planned job.

    `mapped`: operators whose state the job takes. `refused`: a sentence for each reason why a restore fails. `unknown`:
    a sentence for each thing that would have to be known to say. `dropped`: operators whose state a restore loses that
    is allowed to leave state behind. `empty`: operators of the job that begin without state although they keep some.
    `not_compared`: what only the running job knows.
    """

    checkpoint: str
    job: str
    mapped: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """MAPS, DOES_NOT_MAP or CANNOT_BE_SAID; one reason to refuse is enough."""
        if self.refused:
            return DOES_NOT_MAP
        return CANNOT_BE_SAID if self.unknown else MAPS


def as_document(comparison: Comparison) -> dict[str, Any]:
    """Turn a comparison into JSON types, with its outcome."""
    return {"outcome": comparison.outcome} | asdict(comparison)


def comparison_from(document: dict[str, Any]) -> Comparison:
    """Turn the result of `as_document` back into a Comparison."""
    return Comparison(**{name: value for name, value in document.items() if name != "outcome"})


def render(comparison: Comparison) -> str:
    """Say it in lines: the answer, then its reasons."""
    words = {
        MAPS: f"{comparison.job} can restore {comparison.checkpoint}",
        DOES_NOT_MAP: f"{comparison.job} cannot restore {comparison.checkpoint}",
        CANNOT_BE_SAID: f"it cannot be said whether {comparison.job} can restore {comparison.checkpoint}",
    }
    lines = [words[comparison.outcome]]
    lines += [f"  refused: {sentence}" for sentence in comparison.refused]
    lines += [f"  not known: {sentence}" for sentence in comparison.unknown]
    if comparison.mapped:
        lines.append(f"  takes the state of {_named(comparison.mapped)}")
    lines += [f"  not compared: {sentence}" for sentence in comparison.not_compared]
    if comparison.empty:
        lines.append(f"  begins without state: {', '.join(comparison.empty)}")
    if comparison.dropped:
        lines.append(f"  flink run --allowNonRestoredState would drop the state of: {', '.join(comparison.dropped)}")
    return "\n".join(lines)


def render_json(comparison: Comparison) -> str:
    """One JSON document; the fields are those of Comparison, and `outcome`."""
    return json.dumps(as_document(comparison), indent=2)


def _named(labels: Sequence[str]) -> str:
    return f"{count(len(labels), 'operator')}: {', '.join(labels)}"
