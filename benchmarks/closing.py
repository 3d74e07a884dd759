"""Closes the windows of a benchmark's topic, so that all of them come out."""

from __future__ import annotations

import json
import shutil

from benchmarks.own_stack import OwnStack


def close_windows(stack: OwnStack) -> int:
    """Send the closing visits; returns how many there were."""
    closed = stack.ask(stack.service("generator"), "python", "-m", "generator.close")
    # Benchmarks fill a topic without a ledger: one of the closing visits alone would make all others unexpected.
    shutil.rmtree(stack.settings.typed.ledger)
    return int(json.loads(closed)["sent"])
