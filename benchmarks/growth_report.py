"""The figures of benchmarks/state_growth.sh: as a table, and as JSON from which the plot is drawn."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.table import median_and_spread, said
from faultline.settings import ROOT

DATA = ROOT / "docs" / "pictures" / "state_growth.json"
PLOT = DATA.with_suffix(".svg")
_WIDTHS = "{:<9} {:>9} {:>9} {:>9} {:>11} {:>11} {:>9} {:>9} {:>11} {:>8} {:>9}  {}"
_HEADING = (
    "backend", "windows", "ckpt s", "spread", "full KiB", "written KiB", "B/window", "restore s", "spread", "close s",
    "out", "verdict",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """Measurements with one backend and one number of open windows.

    `first_bytes`: bytes that the first checkpoint wrote; `full_bytes`, `written_bytes`: those of the later checkpoints,
    each after a hundredth of the windows has changed. `close_seconds`: from the visits that close all windows to the
    end of the checkpoint that commits them. `written`: windows that came out in the end.
    """

    backend: str
    windows: int
    visits: int
    first_bytes: int
    seconds: tuple[float, ...]
    full_bytes: tuple[int, ...]
    written_bytes: tuple[int, ...]
    restore_seconds: tuple[float, ...]
    close_seconds: float
    written: int
    outcome: str
    disturbed: bool

    @property
    def bytes_per_window(self) -> float:
        """Bytes of a whole checkpoint for a window."""
        return statistics.median(self.full_bytes) / self.windows


def lines(rows: Sequence[Row]) -> list[str]:
    """The table: medians, and the spread between least and most."""
    found = [_WIDTHS.format(*_HEADING)]
    for row in rows:
        found.append(
            _WIDTHS.format(
                row.backend, f"{row.windows:,}", *median_and_spread(row.seconds, ".2f"),
                _kibibytes(row.full_bytes), _kibibytes(row.written_bytes), f"{row.bytes_per_window:.0f}",
                *median_and_spread(row.restore_seconds, ".2f"), f"{row.close_seconds:.1f}", f"{row.written:,}",
                said(row.outcome, disturbed=row.disturbed),
            )
        )  # fmt: skip
    return found


def _kibibytes(figures: Sequence[int]) -> str:
    return f"{statistics.median(figures) / 1024:,.1f}"


def save(rows: Sequence[Row], file: Path = DATA) -> None:
    """Write the figures."""
    file.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")


def load(file: Path = DATA) -> list[Row]:
    """Read the figures."""
    rows = []
    for entry in json.loads(file.read_text(encoding="utf-8")):
        values: dict[str, Any] = {name: tuple(each) if isinstance(each, list) else each for name, each in entry.items()}
        rows.append(Row(**values))
    return rows
