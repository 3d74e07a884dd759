"""The stack as a whole: up, down, reset, fetch."""

from __future__ import annotations

from collections.abc import Sequence

from faultline.messages import say
from faultline.stack.stack import Stack
from faultline.verbs.arguments import flags_in, parse_none


def up(stack: Stack, words: Sequence[str]) -> int:
    """Start the whole stack."""
    parse_none("up", words)
    stack.up()
    return 0


def down(stack: Stack, words: Sequence[str]) -> int:
    """Stop the whole stack; with --wipe also remove what it owns."""
    stack.down(wipe=flags_in("down", words, "--wipe"))
    return 0


def reset(stack: Stack, words: Sequence[str]) -> int:
    """Start again between two classes: stop, remove topics, checkpoints and outputs; environments and images stay."""
    parse_none("reset", words)
    stack.down(wipe=True)
    say("next: scripts/up.sh starts clean; environments and images are kept")
    return 0


def fetch(stack: Stack, words: Sequence[str]) -> int:
    """Fetch or build all that the stack needs; afterwards no network is needed."""
    parse_none("fetch", words)
    stack.backend.fetch()
    say(f"everything is ready for backend {stack.backend.name}")
    return 0
