"""Random faults on a real stack: two minutes with a new seed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.stack.running_stack import RunningStack

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]


def test_a_soak_with_a_new_seed_holds(tmp_path: Path) -> None:
    with RunningStack(tmp_path, "local") as running:
        done = running.script("soak.sh", "--minutes", "2", check=False)
    print(done.stderr, done.stdout)
    assert done.returncode == 0
    assert re.fullmatch(r"seed \d+\nHOLDS after \d+ faults\n", done.stdout)
