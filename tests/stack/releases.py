"""Environments of other releases of Spark, made when a test needs one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from faultline.packages.release import python_of
from faultline.settings import ROOT

_LIMIT_SECONDS = 900


def made_python(release: str) -> Path:
    """Return the interpreter of a release, after making its environment; both workers may ask at once."""
    python = python_of("spark", release)
    if python != Path(sys.executable):
        command = [sys.executable, "-m", "faultline.packages.release", "spark", release]
        subprocess.run(command, cwd=ROOT, check=True, timeout=_LIMIT_SECONDS)
    return python
