"""The table of benchmarks/cluster.sh: shares of each service, and CPU per million visits on both sides."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from benchmarks.cluster_runs import Run
from benchmarks.spread import shares
from benchmarks.table import median_and_spread, row
from faultline.stack.errors import StackError

SHARE_AIM, RATIO_AIM = 1.30, 1.15
_LEAST_SECONDS = 0.2
_SHARES = "{:<34} {:>10} {:>6} {:>10} {:>6} {:>8} {:>6}"
_COSTS = "{:<34} {:>10} {:>12} {:>10} {:>12} {:>6}"


def show_threads(single: Sequence[Run], cluster: Sequence[Run]) -> None:
    """Print the threads that cost most on the cluster, beside the same on the single machine: means of the rounds."""
    sides = []
    for runs in (single, cluster):
        total: dict[str, float] = defaultdict(float)
        for run in runs:
            for name in run.threads:
                total[name] += run.thread_per_million(name) / len(runs)
        sides.append(total)
    for name, seconds in sorted(sides[1].items(), key=lambda found: -found[1]):
        if max(seconds, sides[0][name]) >= _LEAST_SECONDS:
            row(_COSTS, f"  {name}", f"{sides[0][name]:.1f}", "", f"{seconds:.1f}", "", "")


def greatest_shares(runs: Sequence[Run], figures: Callable[[Run], Mapping[str, float]]) -> dict[str, float]:
    """By service: its greatest share in any run."""
    found: dict[str, float] = {}
    for run in runs:
        for name, share in shares(figures(run)).items():
            found[name] = max(found.get(name, 0.0), share)
    return found


def show_shares(title: str, runs: Sequence[Run], services: Sequence[str]) -> float:
    """Print what each service did in the last run, and its greatest share in any; returns the greatest of all."""

    def cpu(run: Run) -> Mapping[str, float]:
        return {name: run.cpu.get(name, 0.0) for name in services}

    def filled(figures: Mapping[str, int]) -> Mapping[str, float]:
        return {name: float(figures.get(name, 0)) for name in services}

    counts = any(run.counted for run in runs)
    read = greatest_shares(runs, lambda run: filled(run.read))
    counted = greatest_shares(runs, lambda run: filled(run.counted)) if counts else {}
    busy = greatest_shares(runs, cpu)
    row(_SHARES, title, "read", "share", "windows" if counts else "", "share" if counts else "", "CPU s", "share")
    last = runs[-1]
    for name in services:
        row(
            _SHARES, f"  {name}", last.read.get(name, 0), f"{read[name]:.2f}",
            last.counted.get(name, 0) if counts else "", f"{counted[name]:.2f}" if counts else "",
            f"{statistics.median(cpu(run)[name] for run in runs):.1f}", f"{busy[name]:.2f}",
        )  # fmt: skip
    return max([*read.values(), *counted.values(), *busy.values()])


def show_costs_heading(title: str) -> None:
    """Print the heading of the rows of `show_costs`."""
    row(_COSTS, title, "single", "spread", "cluster", "spread", "ratio")


def show_costs(title: str, single: Sequence[float], cluster: Sequence[float]) -> float:
    """Print CPU seconds per million visits on both sides, medians; returns the median of the rounds' ratios.

    The ratio is 0 without figures of a single machine, and where a figure is not above 0.
    """
    cells = [median_and_spread(figures) if figures else ("-", "") for figures in (single, cluster)]
    comparable = bool(single) and min(*single, *cluster) > 0
    ratio = statistics.median(c / s for s, c in zip(single, cluster, strict=True)) if comparable else 0.0
    row(_COSTS, title, *cells[0], *cells[1], f"{ratio:.2f}" if comparable else "")
    return ratio


def missed(share: float, ratios: Mapping[str, float]) -> list[str]:
    """A line for each aim that is missed, with its number. Raises StackError when a ratio could not be measured."""
    for name, ratio in ratios.items():
        if ratio <= 0:
            raise StackError(f"{name}: no CPU seconds were counted; not a valid measurement", 1)
    lines = [] if share <= SHARE_AIM else [f"MISSED: the greatest share is {share:.2f}, the aim {SHARE_AIM:.2f}"]
    return lines + [
        f"MISSED: {name} need {ratio:.2f} times the CPU of a single machine for a visit, the aim {RATIO_AIM:.2f}"
        for name, ratio in ratios.items()
        if ratio > RATIO_AIM
    ]
