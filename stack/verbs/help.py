"""All scripts by theme, each with the summary of its own help."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from contract.settings import ROOT

from stack.header import header

THEMES = {
    "The stack": ("up", "down", "status", "logs", "reset", "fetch", "demo"),
    "Services": (
        "start", "stop", "kill", "pause", "resume", "exec",
        "generator_start", "generator_stop", "spark_start", "spark_stop",
    ),
    "The Flink job": ("flink_submit", "flink_cancel", "flink_restore", "flink_status", "flink_checkpoints"),
    "Look and judge": ("consume", "inspect", "settle", "verdict"),
    "Labs": ("walkthroughs/*", "notebook", "devices_file_stream"),
    "For contributors": ("check", "test", "sbom"),
}  # fmt: skip


def scripts_of(theme: str) -> list[str]:
    """Paths of the scripts of a theme, in order."""
    found = []
    for name in THEMES[theme]:
        found += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "scripts").glob(f"{name}.sh"))
    return found


def show(words: Sequence[str]) -> int:
    """Print the list; returns the exit code."""
    if words:
        sys.stderr.write(f"help.sh: unknown argument '{words[0]}'\n")
        return 2
    for theme in THEMES:
        sys.stdout.write(f"{theme}\n")
        for script in scripts_of(theme):
            summary = header(script)[0].replace("Summary: ", "", 1)
            sys.stdout.write(f"  {script:<52} {summary}\n")
    return 0
