"""All scripts by theme, each with the summary of its own help."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from faultline.settings import ROOT
from faultline.verbs.header import header

THEMES = {
    "The stack": ("up", "down", "status", "logs", "reset", "fetch", "demo"),
    "Services": (
        "start", "stop", "kill", "pause", "resume", "exec",
        "generator_start", "generator_stop", "spark_start", "spark_stop",
    ),
    "The Flink job": ("flink_submit", "flink_cancel", "flink_restore", "flink_status", "flink_checkpoints"),
    "Look and judge": (
        "consume", "open_transactions", "transactions", "window_latency",
        "inspect", "files", "settle", "verdict", "page",
    ),
    "Walkthroughs": ("walkthroughs", "walkthroughs/*", "notebook", "devices_file_stream"),
    "Break it": ("faults", "soak", "pipeline"),
    "Beyond this machine": ("deploy",),
    "For contributors": ("check", "test", "pictures", "sbom"),
}  # fmt: skip

_DEMO = "scripts/demo.sh"
"""The first of the walkthroughs, under the name that everybody knows."""


def scripts_of(theme: str) -> list[str]:
    """Paths of the scripts of a theme, in order."""
    found = []
    for name in THEMES[theme]:
        found += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "scripts").glob(f"{name}.sh"))
    return found


def walkthroughs(words: Sequence[str]) -> int:
    """List the walkthroughs in teaching order, with what each needs and takes; returns the exit code."""
    if words:
        sys.stderr.write(f"walkthroughs.sh: unknown argument '{words[0]}'\n")
        return 2
    numbered = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "scripts" / "walkthroughs").glob("*.sh"))
    for script in [_DEMO, *numbered]:
        lines = header(script)
        number = script.rpartition("/")[2].partition("_")[0] if script != _DEMO else "01"
        sys.stdout.write(f"{number}  {script}\n    {_summary(lines)}\n")
        for line in lines:
            if line.startswith(("Needs: ", "Takes: ")):
                sys.stdout.write(f"    {line[0].lower()}{line[1:]}\n")
    return 0


def _summary(lines: Sequence[str]) -> str:
    return lines[0].replace("Summary: ", "", 1)


def show(words: Sequence[str]) -> int:
    """Print the list; returns the exit code."""
    if words:
        sys.stderr.write(f"help.sh: unknown argument '{words[0]}'\n")
        return 2
    for theme in THEMES:
        sys.stdout.write(f"{theme}\n")
        for script in scripts_of(theme):
            sys.stdout.write(f"  {script:<52} {_summary(header(script))}\n")
    return 0
