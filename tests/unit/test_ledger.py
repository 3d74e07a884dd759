"""The generator's ledger: a file of its own for each run, and where containers see it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import yaml

from faultline.formats.ledger import SUFFIX, ledger_files
from faultline.settings import ROOT
from generator.ledger import Ledger, stamp


def test_each_run_has_a_file_of_its_own_and_names_sort_by_time(tmp_path: Path) -> None:
    first = Ledger(tmp_path, "visits", "x").path
    time.sleep(0.002)
    second = Ledger(tmp_path, "visits", "x").path
    assert ledger_files(tmp_path, "visits") == [first, second]
    assert first.name.endswith(f"Z-{os.getpid()}{SUFFIX}")
    assert stamp(1_767_225_600_007) == "20260101T000000.007Z"


def test_in_containers_the_generator_writes_the_ledger_and_the_tools_read_it() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yaml").read_text(encoding="utf-8"))["services"]
    mount = "${STACK_HOME:-.}/ledger:/faultline/ledger"
    assert f"{mount}:z" in services["permissions"]["volumes"]
    assert f"{mount}:z" in services["generator"]["volumes"]
    assert f"{mount}:ro,z" in services["tools"]["volumes"]
