"""Verdict, settling, probes, and the inspector."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from faultline.settings import own_store
from faultline.stack.acts.judging import SETTLE_SECONDS, keeping
from faultline.stack.backend import LOCAL
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack
from faultline.verbs.arguments import count

_PATH_FLAGS = ("--output", "--checkpoint")
_OF_FILES = tuple(f"{flag}=" for flag in ("--dump", *_PATH_FLAGS))
_ELSEWHERE = (*_PATH_FLAGS, "--bootstrap", "--sink")
"""Flags of a verdict on something else than the stack as it runs."""


def verdict(stack: Stack, words: Sequence[str]) -> int:
    """Judge a pipeline from its records. Paths mean the same on both backends."""
    arguments: list[str] = []
    dumps: list[Path] = []
    previous = ""
    parts = [part for word in words for part in (word.split("=", 1) if word.startswith(_OF_FILES) else [word])]
    for word in parts:
        argument = word
        if previous == "--dump":
            dumps.append(Path(word).resolve())
            argument = str(dumps[-1])
        elif previous in _PATH_FLAGS:
            argument = _inside(stack, word)
        arguments.append(argument)
        previous = word
    command = ["python", "-m", "faultline.verdict", *arguments, *_kept(stack, words)]
    return stack.backend.tool(command, writable=dumps).returncode


def _kept(stack: Stack, words: Sequence[str]) -> list[str]:
    """Return the words with which the verdict is kept; none for one on something else than the stack that is up."""
    elsewhere = any(word.partition("=")[0] in _ELSEWHERE for word in words)
    return keeping(stack) if stack.home.up() and not elsewhere else []


def _inside(stack: Stack, word: str) -> str:
    """Return what a program of the stack calls a path or `s3://BUCKET/PATH` of this machine. Raises StackError."""
    if "://" not in word:
        return stack.backend.path_inside(Path(word))
    if stack.backend.name != LOCAL and not own_store(stack.settings.values):
        raise StackError(f"{word} is in an object store, which containers do not reach; add --backend local")
    return word


def _outside(stack: Stack, word: str) -> str:
    """Return the path on this machine of a word that names a file as services see it; any other word as it is."""
    outside = stack.backend.path_outside(word)
    return outside if outside != word and not Path(word).exists() and Path(outside).exists() else word


def settle(stack: Stack, words: Sequence[str]) -> int:
    """Close the windows that are open, and wait until both pipelines have committed everything."""
    seconds, left = SETTLE_SECONDS, list(words)
    if left and left[0] == "--wait":
        seconds, left = count(left[1] if len(left) > 1 else "", "--wait"), left[2:]
    if left:
        raise StackError(f"unknown argument '{left[0]}'; see scripts/settle.sh --help")
    sys.stdout.write(stack.settle(seconds))
    return 0


def open_transactions(stack: Stack, words: Sequence[str]) -> int:
    """Count the records of open transactions."""
    stack.running("kafka")
    return stack.backend.tool(["python", "-m", "faultline.probes.open_transactions", *words]).returncode


def transactions(stack: Stack, words: Sequence[str]) -> int:
    """Show open transactions, and end them; the checkpoints that promise them need Flink's classes."""
    stack.running("kafka")
    named = [word for flag, word in zip(words, words[1:]) if flag == "--checkpoints"]
    inside = {word: _inside(stack, word) for word in named}
    command = ["python", "-m", "faultline.inspector.transactions", *(inside.get(word, word) for word in words)]
    readable = [Path(word) for word in named if "://" not in word]
    return stack.backend.tool(command, environment="flink", readable=readable).returncode


def window_latency(stack: Stack, words: Sequence[str]) -> int:
    """Measure when readers get a window."""
    stack.running("kafka")
    return stack.backend.tool(["python", "-m", "faultline.probes.window_latency", *words]).returncode


def files(stack: Stack, words: Sequence[str]) -> int:
    """List the files of a folder of an engine, or print one."""
    if len(words) != 1:
        raise StackError("which one? e.g. scripts/files.sh checkpoints/spark/visits_json/offsets")
    readable = [Path(word) for word in words if Path(word).exists()]
    return stack.backend.tool(
        ["python", "-m", "faultline.storage", _inside(stack, words[0])], readable=readable
    ).returncode


def inspect(stack: Stack, words: Sequence[str]) -> int:
    """Open a checkpoint: Spark's with the tools; Flink's needs Flink's classes."""
    if not words:
        # The notes of each are on the disk, wherever it is itself.
        names = (str(path.relative_to(stack.home.root)) for path in stack.home.root.glob("checkpoints/*/*/"))
        there = sorted(f"{stack.data}/{name}" if stack.data else name for name in names)
        flink = f"{stack.data}/checkpoints/flink" if stack.data else "checkpoints/flink"
        raise StackError(f"which checkpoint? e.g. scripts/inspect.sh {flink}; there are: {' '.join(there)}")
    end = words.index("--") if "--" in words else len(words)
    # What follows is for the program of --against.
    own, rest = [_outside(stack, word) for word in words[:end]], words[end:]
    job = next((word for flag, word in zip(own, own[1:]) if flag == "--against"), "")
    named = [word for word in own if "://" in word]
    paths = [word for word in own if not word.startswith("-") and word not in named and Path(word).exists()]
    inside = {word: _inside(stack, word) for word in [*paths, *named]}
    # A program imports the modules beside it.
    readable = [Path(word).parent if word == job else Path(word) for word in paths]
    environment = "tools"
    check = [
        "python",
        "-m",
        "faultline.inspector",
        "--can-read",
        *(where for word, where in inside.items() if word != job),
    ]
    if len(check) > 4 and stack.backend.tool(check, readable=readable).returncode:
        environment = "flink"
    if "--garbage" in own and stack.backend.name != LOCAL:
        # The lines that it prints are for a shell on this machine.
        rest = ["--outside", str(stack.home.root), *rest]
    command = ["python", "-m", "faultline.inspector", *(inside.get(word, word) for word in own), *rest]
    return stack.backend.tool(command, environment=environment, readable=readable).returncode
