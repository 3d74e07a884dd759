"""The measured figures of deploy/measured.yaml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from faultline.command import CommandError

FILE = Path(__file__).with_name("measured.yaml")


class MeasuredError(CommandError):
    """The file of measured figures is not as it must be; the message names the entry."""


@dataclass(frozen=True)
class Figure:
    """One figure. `value` is None until `by` has measured it; `quote`: the words of docs/benchmarks.md with it."""

    name: str
    value: float | None
    what: str
    by: str
    quote: str | None = None


def measured(file: Path = FILE) -> dict[str, Figure]:
    """All figures by name. Raises MeasuredError when the file cannot be understood."""
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
        return {name: Figure(name=name, **entry) for name, entry in entries.items()}
    except (OSError, yaml.YAMLError, TypeError, AttributeError) as error:
        raise MeasuredError(f"{file} is not a list of figures: {error}; restore it with git") from None


def record(name: str, value: float, file: Path = FILE) -> None:
    """Put a figure into the file; comments and all other figures stay. Raises MeasuredError when it has no such one."""
    text = file.read_text(encoding="utf-8")
    changed, times = re.subn(rf"(?m)^({re.escape(name)}:\n  value:).*$", rf"\g<1> {value:.12g}", text)
    if times != 1:
        raise MeasuredError(f"{file} has no figure {name}")
    file.write_text(changed, encoding="utf-8")
