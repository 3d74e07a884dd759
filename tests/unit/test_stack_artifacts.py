"""Environments and jars are made as a whole, and never under a program that runs on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faultline.stack.artifacts import Artifacts
from faultline.stack.errors import StackError


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    """Artifacts of another commit: a page environment whose stamp differs."""
    python = Path(sys.executable)
    found = Artifacts(tmp_path, lambda: python, lambda: python, os.environ, store=False, own_store=False)
    found.interpreter("page").parent.mkdir(parents=True)
    shutil.copy(shutil.which("sleep") or "", found.interpreter("page"))
    (tmp_path / "venv-page.made-from").write_text("of another commit\n")
    return found


def test_what_was_interrupted_does_not_count(artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(artifacts, "_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        artifacts.make_environment("page")
    assert not (artifacts.folder / "venv-page.made-from").exists()


def test_an_environment_that_a_program_runs_on_stays(artifacts: Artifacts) -> None:
    with subprocess.Popen([artifacts.interpreter("page"), "60"]) as program:
        try:
            with pytest.raises(StackError, match=rf"venv-page has to be made .* process {program.pid} runs"):
                artifacts.make_environment("page")
        finally:
            program.kill()
    assert artifacts.interpreter("page").exists()
