"""The fault matrix on a real stack: rows pass, and a failed promise is noticed."""

from __future__ import annotations

import pytest

from faults.rows import CONTROL_ROWS, ROWS, cluster
from tests.stack.running_stack import RunningStack, require_what_a_row_saw

pytestmark = [pytest.mark.full, pytest.mark.split, pytest.mark.timeout(1800)]


QUICK = ("taskmanager-kill", "broker-kill", "synchronizer-kill", "at-least-once-kill")
"""Run by the tier quick, on one stack: test_core_rows.py."""
OTHERS = [name for name, row in ROWS.items() if name not in QUICK and row not in cluster.ROWS]
"""Those of a cluster are in test_cluster_proof.py, where one is up."""


@pytest.mark.parametrize("name", OTHERS)
def test_a_row_passes(stack: RunningStack, name: str) -> None:
    require_what_a_row_saw(stack.faults(name, "--reset") / name)


@pytest.mark.parametrize("name", CONTROL_ROWS)
def test_a_broken_job_is_caught(stack: RunningStack, name: str) -> None:
    stack.faults(name, "--reset", rows=3)
