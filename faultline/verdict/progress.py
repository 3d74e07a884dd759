"""Progress of a long read."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from faultline.progress import ProgressLine


class ReadProgress:
    """Counts towards a total and shows it on stderr; use it as a context manager."""

    def __init__(self, label: str, total: int, unit: str = "records") -> None:
        self._label, self._total, self._unit = label, total, unit
        self._done = 0
        self._line = ProgressLine()

    def advance(self, count: int) -> None:
        """Add to the count."""
        self._done += count
        if self._line.due():
            self._line.show(f"{self._label}: {self._done:,} of {self._total:,} {self._unit}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.clear()
