"""`python -m verdict`: see verdict/program.py."""

from __future__ import annotations

from contract.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from contract.stop import end_at_once
from verdict.loading import kill_readers
from verdict.program import main

if __name__ == "__main__":
    end_at_once("verdict", kill_readers)
    run("verdict", main)
