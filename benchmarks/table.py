"""Lines and cells of the tables that benchmarks print."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def row(widths: str, *cells: object) -> None:
    """Print a line of a table; `widths` is a format such as `{:<30} {:>10}`."""
    print(widths.format(*map(str, cells)), flush=True)


def median_and_spread(figures: Sequence[float], form: str = ".1f") -> tuple[str, str]:
    """The median of the rounds, and the least and the most of them."""
    return f"{statistics.median(figures):{form}}", f"{min(figures):{form}}-{max(figures):{form}}"


def said(words: str, *, disturbed: bool) -> str:
    """Words of a line, with a mark when another program used the machine meanwhile."""
    return f"{words} (disturbed)" if disturbed else words
