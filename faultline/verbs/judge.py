"""Verdict, settling, probes, and the inspector."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from faultline.command import Flags, words_of
from faultline.formats.arguments import NEEDS_FLINK, inspector_arguments, transactions_parser, verdict_parser
from faultline.settings import own_store
from faultline.stack.acts.judging import SETTLE_SECONDS, keeping
from faultline.stack.backend import LOCAL
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack
from faultline.storage.words import is_uri
from faultline.verbs.arguments import count


def verdict(stack: Stack, words: Sequence[str]) -> int:
    """Judge a pipeline from its records. Paths mean the same on both backends."""
    asked = verdict_parser().parse_args(words)
    kept = _kept(stack, asked)
    asked.dump = asked.dump and asked.dump.resolve()
    asked.output = asked.output and _inside(stack, asked.output)
    asked.checkpoint = asked.checkpoint and _inside(stack, asked.checkpoint)
    command = ["python", "-m", "faultline.verdict", asked.pipeline, *words_of(asked, "pipeline"), *kept]
    return stack.backend.tool(command, writable=[asked.dump] if asked.dump else []).returncode


def _kept(stack: Stack, asked: Namespace) -> list[str]:
    """Return the words with which the verdict is kept; none for one on something else than the stack that is up."""
    elsewhere = any(each is not None for each in (asked.bootstrap, asked.sink, asked.output, asked.checkpoint))
    return keeping(stack) if stack.home.up() and not elsewhere else []


def _inside(stack: Stack, word: str) -> str:
    """Return what a program of the stack calls a path or `s3://BUCKET/PATH` of this machine. Raises StackError."""
    if not is_uri(word):
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
    parser = Flags("settle.sh")
    parser.add_argument("--wait", type=partial(count, what="--wait"), default=SETTLE_SECONDS)
    sys.stdout.write(stack.settle(parser.parse_args(words).wait))
    return 0


def open_transactions(stack: Stack, words: Sequence[str]) -> int:
    """Count the records of open transactions."""
    stack.running("kafka")
    return stack.backend.tool(["python", "-m", "faultline.probes.open_transactions", *words]).returncode


def transactions(stack: Stack, words: Sequence[str]) -> int:
    """Show open transactions, and end them; the checkpoints that promise them need Flink's classes."""
    stack.running("kafka")
    asked = transactions_parser().parse_args(words)
    folder = asked.checkpoints
    readable = [Path(folder)] if folder and not is_uri(folder) else []
    asked.checkpoints = folder and _inside(stack, folder)
    command = ["python", "-m", "faultline.inspector.transactions", asked.topic, *words_of(asked, "topic")]
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
    asked = inspector_arguments(words)
    readable: list[Path] = []

    def inside(word: str) -> str:
        """Return what the program calls a path, and let it read that; a path that does not exist stays as it is."""
        path = _outside(stack, word)
        if is_uri(path):
            return _inside(stack, path)
        if not Path(path).exists():
            return word
        # A program imports the modules beside it.
        readable.append(Path(path).parent if word == asked.against else Path(path))
        return _inside(stack, path)

    paths = [inside(word) for word in asked.path]
    asked.sink = asked.sink and inside(asked.sink)
    asked.against = asked.against and inside(asked.against)
    if asked.garbage and stack.backend.name != LOCAL:
        # The lines that it prints are for a shell on this machine.
        asked.outside = str(stack.home.root)
    rest = ["--", *asked.program] if asked.program else []
    command = [
        "python",
        "-m",
        "faultline.inspector",
        *paths,
        *words_of(asked, "path", "program", "rows", "without_flink"),
    ]
    of_flink = stack.settings.typed.flink_notes
    code = NEEDS_FLINK
    if not readable or not all(path.resolve().is_relative_to(of_flink) for path in readable):
        # What a path is, and all of Spark, is known without Flink.
        code = stack.backend.tool([*command, "--without-flink", *rest], readable=readable).returncode
    if code == NEEDS_FLINK:
        code = stack.backend.tool([*command, *rest], environment="flink", readable=readable).returncode
    return code
