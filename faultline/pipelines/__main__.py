"""`python -m faultline.pipelines`: see faultline/pipelines/program.py."""

from __future__ import annotations

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.pipelines.program import NAME, main

if __name__ == "__main__":
    run(NAME, main)
