"""The measured figures of deploy/measured.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from faultline.command import CommandError

FILE = Path(__file__).with_name("measured.yaml")


class MeasuredError(CommandError):
    """The file of measured figures is not as it must be; the message names the entry."""


@dataclass(frozen=True)
class Figure:
    """One figure, which `by` has measured; `quote`: the words of docs/benchmarks.md with it."""

    name: str
    value: float
    what: str
    by: str
    quote: str | None = None


def measured(file: Path = FILE) -> dict[str, Figure]:
    """All figures by name. Raises MeasuredError when the file cannot be understood."""
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
        figures = {
            name: Figure(**entry | {"name": name, "value": float(entry["value"])}) for name, entry in entries.items()
        }
    except (OSError, yaml.YAMLError, TypeError, AttributeError, KeyError, ValueError) as error:
        raise MeasuredError(f"{file} is not a list of figures: {error}; restore it with git") from None
    for figure in figures.values():
        if not 0 < figure.value < float("inf"):
            raise MeasuredError(f"{file}: {figure.name} is {figure.value:g}, not a number above 0; correct it")
    return figures
