"""The rows of the fault matrix that the tier quick runs, on one stack: two kills and real duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.running_stack import RunningStack, require_positions, require_what_a_row_saw
from tests.stack.test_faults import QUICK

pytestmark = [pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the results, after all rows have passed."""
    with RunningStack(tmp_path_factory.mktemp("rows"), "local") as stack:
        yield stack.faults(*QUICK, "--reset", rows=len(QUICK))


@pytest.mark.parametrize("name", QUICK)
def test_a_row_passes_and_leaves_what_it_saw(results: Path, name: str) -> None:
    require_what_a_row_saw(results / name)


def test_the_watchers_see_how_far_the_job_reads(results: Path) -> None:
    require_positions([results / name for name in QUICK])
