"""The project's scripts, called for their effect; what repairs a stack after any fault."""

from __future__ import annotations

import subprocess

from contract.settings import ROOT
from stack.backend import PAUSED, RUNNING
from stack.errors import StackError
from stack.stack import open_stack


def script(name: str, *words: str) -> None:
    """Run scripts/NAME. Raises StackError with its last messages when it fails."""
    done = subprocess.run([str(ROOT / "scripts" / name), *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StackError(f"scripts/{name} failed:\n" + "\n".join(done.stderr.splitlines()[-8:]))


def heal() -> None:
    """Resume what is frozen, start what does not run, restore the job."""
    stack = open_stack({})
    for row in stack.services:
        if stack.backend.state(row) == PAUSED:
            script("resume.sh", row.name)
    script("up.sh")
    if stack.backend.state(stack.service("generator")) != RUNNING:
        script("generator_start.sh")
