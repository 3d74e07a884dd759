"""The notebook runs from top to bottom, and nothing that it printed is in the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from faultline.settings import ROOT

NOTEBOOK = ROOT / "labs" / "spark_checkpoint_deep_dive.ipynb"


def cells(path: Path) -> list[nbformat.NotebookNode]:
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def execute(notebook: Path, home: Path) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {
        "STACK_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
    }
    # nbclient's own command, in a separate process: as a person's Jupyter does, with this environment's Python.
    command = [sys.executable, "-c", "import sys; from nbclient.cli import main; sys.exit(main())"]
    return subprocess.run(
        [*command, "--timeout=300", f"--output={home / 'executed'}", str(notebook)],
        env=environ,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


def test_no_output_is_committed() -> None:
    assert cells(NOTEBOOK)
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells(NOTEBOOK))


@pytest.mark.timeout(600)
@pytest.mark.full
def test_it_runs_from_top_to_bottom(tmp_path: Path) -> None:
    done = execute(NOTEBOOK, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    executed = cells(tmp_path / "executed.ipynb")
    assert [cell.execution_count for cell in executed] == list(range(1, len(executed) + 1))
    printed = "".join(output.get("text", "") for cell in executed for output in cell.outputs)
    assert "A restart re-runs batch 4" in printed
    assert str(tmp_path) not in printed
