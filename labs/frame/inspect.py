"""The inspector's report on a checkpoint, as `scripts/inspect.sh` prints it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from faultline.settings import ROOT
from labs.frame.story import Story, shown


def inspect(story: Story, checkpoint: Path, *flags: str) -> str:
    """Print the inspector's report on a checkpoint, and return it."""
    story.command(f"scripts/inspect.sh {shown(checkpoint)}{''.join(f' {flag}' for flag in flags)}")
    done = subprocess.run(
        [sys.executable, "-m", "faultline.inspector", str(checkpoint), "--no-lag", "--format", "prose", *flags],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    story.say(done.stdout + done.stderr)
    return done.stdout
