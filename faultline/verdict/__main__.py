"""`python -m faultline.verdict`: see faultline/verdict/program.py."""

from __future__ import annotations

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.stop import end_at_once
from faultline.verdict.loading import kill_readers
from faultline.verdict.program import main

if __name__ == "__main__":
    end_at_once("verdict", kill_readers)
    run("verdict", main)
