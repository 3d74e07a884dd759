"""The fault matrix on a real stack: rows pass, and a failed promise is noticed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from faultline.faults.plan import late
from faultline.faults.rows import CONTROL_ROWS, GROUPS, cluster
from tests.stack.running_stack import RunningStack, require_positions, require_what_a_row_saw

pytestmark = [pytest.mark.full, pytest.mark.split, pytest.mark.timeout(2400)]

QUICK = ("taskmanager-kill", "broker-kill", "at-least-once-kill")
"""Run by the tier quick, on one stack: test_core_rows.py."""
AT_ONCE = 8
"""Number of rows that run on one stack, which takes about ten minutes."""


def parts() -> Iterator[Any]:
    """The other rows of each group; those of a cluster are in test_cluster_proof.py, where one is up."""
    for title, rows in GROUPS.items():
        names = [row.name for row in sorted(rows, key=late) if row.name not in QUICK and row not in cluster.ROWS]
        for begin in range(0, len(names), AT_ONCE):
            yield pytest.param(names[begin : begin + AT_ONCE], id=f"{title} {begin // AT_ONCE + 1}")


@pytest.mark.parametrize("names", list(parts()))
def test_rows_pass(tmp_path: Path, names: Sequence[str]) -> None:
    with RunningStack(tmp_path, "local") as stack:
        results = stack.faults(*names, "--reset", rows=len(names))
        for name in names:
            require_what_a_row_saw(results / name)
        require_positions([results / name for name in names])


@pytest.mark.parametrize("name", CONTROL_ROWS)
def test_a_broken_job_is_caught(tmp_path: Path, name: str) -> None:
    with RunningStack(tmp_path, "local") as stack:
        stack.faults(name, "--reset", rows=3)
