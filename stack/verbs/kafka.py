"""Topics read with Kafka's own console consumer."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Sequence

from stack.arguments import count
from stack.errors import StackError
from stack.stack import Stack

_END_OF_TOPIC = ("--timeout-ms", "3000")
"""The consumer ends when no record has come for this long: it has read the topic to its end."""
_POSITIONS = ("--formatter-property", "print.partition=true", "--formatter-property", "print.offset=true")


def consume(stack: Stack, words: Sequence[str]) -> int:
    """Read a topic: committed records only, or all of them with --uncommitted."""
    topics = [stack.settings.values[name] for name in _topic_settings(stack)]
    if not words:
        raise StackError(f"which topic? one of: {' '.join(topics)}")
    topic, waiting = words[0], list(words[1:])
    if topic not in topics:
        raise StackError(f"no topic of the stack is called '{topic}'; the topics are: {' '.join(topics)}")
    stack.require_running("kafka")
    last, uncommitted, flags = 0, False, []
    while waiting:
        word = waiting.pop(0)
        if word == "--last":
            last = count(waiting.pop(0) if waiting else "", "--last")
        elif word == "--uncommitted":
            uncommitted = True
        else:
            flags.append(word)
    if uncommitted:
        return _with_fates(stack, topic, flags)
    if last:
        return _last(stack, topic, last, flags)
    return _consumer(stack, topic, "read_committed", flags, whole=False).returncode


def _topic_settings(stack: Stack) -> list[str]:
    return [name for name in stack.settings.values if name.endswith("_TOPIC")]


def _consumer(
    stack: Stack, topic: str, isolation: str, flags: Sequence[str], *, whole: bool
) -> subprocess.CompletedProcess[str]:
    command = ["kafka-console-consumer.sh", "--bootstrap-server", stack.backend.broker_inside, "--topic", topic]
    command += ["--isolation-level", isolation, *flags]
    kafka = stack.service("kafka")
    stack.show(lambda: stack.backend.typed(kafka, command))
    return stack.backend.execute(
        kafka,
        command,
        capture=whole,
        quiet=whole,
        check=False,
    )


def _whole(stack: Stack, topic: str, isolation: str, flags: Sequence[str]) -> list[str]:
    more = ("--from-beginning", *_END_OF_TOPIC, *_POSITIONS, *flags)
    return _consumer(stack, topic, isolation, more, whole=True).stdout.splitlines()


def _with_fates(stack: Stack, topic: str, flags: Sequence[str]) -> int:
    """Read a topic to its end; mark each record as committed by a transaction or not."""
    known = {tuple(line.split("\t")[:2]) for line in _whole(stack, topic, "read_committed", flags)}
    for line in _whole(stack, topic, "read_uncommitted", flags):
        fate = "committed" if tuple(line.split("\t")[:2]) in known else "uncommitted"
        sys.stdout.write(f"{fate:<11}\t{line}\n")
    return 0


def _last(stack: Stack, topic: str, number: int, flags: Sequence[str]) -> int:
    """Print the last records of each partition."""
    kept: dict[str, deque[str]] = {}
    for line in _whole(stack, topic, "read_committed", flags):
        kept.setdefault(line.split("\t")[0], deque(maxlen=number)).append(line)
    for _, lines in sorted(kept.items()):
        for line in lines:
            sys.stdout.write(line + "\n")
    return 0
