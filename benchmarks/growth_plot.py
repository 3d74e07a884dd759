"""Draws the figures of benchmarks/state_growth.sh as an SVG, in the environment `plots`.

Usage: python -m benchmarks.growth_plot DATA PLOT
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.growth_report import Row, load

# Blue and vermillion of Okabe and Ito's palette, which colour-blind people tell apart; the marks differ, too.
_STYLES = {"hashmap": ("#0072B2", "o", "-"), "rocksdb": ("#D55E00", "s", "--")}
_PANELS: tuple[tuple[str, Callable[[Row], float]], ...] = (
    ("seconds of a checkpoint", lambda row: statistics.median(row.seconds)),
    ("seconds of a restore", lambda row: statistics.median(row.restore_seconds)),
    ("MB of a whole checkpoint", lambda row: statistics.median(row.full_bytes) / 1e6),
    (
        "MB that a checkpoint writes,\n1 % of windows changed",
        lambda row: statistics.median(row.written_bytes) / 1e6,
    ),
)


def draw(rows: Sequence[Row]) -> Figure:
    """Draw four panels, each with a line for each backend, over the number of open windows."""
    figure = Figure(figsize=(9, 7), layout="constrained")
    for axes, (title, value) in zip(figure.subplots(2, 2).flat, _PANELS, strict=True):
        for backend, (colour, mark, line) in _STYLES.items():
            found = sorted((row for row in rows if row.backend == backend), key=lambda row: row.windows)
            axes.plot(
                [row.windows for row in found], [value(row) for row in found],
                color=colour, marker=mark, linestyle=line, label=backend,
            )  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="open windows", title=title)
        axes.grid(visible=True, which="major", alpha=0.4)
        # Some panels span less than a factor of ten.
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    figure.axes[0].legend()
    return figure


def main() -> int:
    """Run the command line; returns the exit code."""
    data, plot = map(Path, sys.argv[1:])
    # The same figures give the same file: no date, no random ids. Words stay text, so that they can be searched.
    mpl.rcParams.update({"svg.hashsalt": "faultline", "svg.fonttype": "none", "font.size": 12})
    draw(load(data)).savefig(plot, metadata={"Date": None})
    return 0


if __name__ == "__main__":
    sys.exit(main())
