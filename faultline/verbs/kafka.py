"""Topics: followed with Kafka's own console consumer, or read to their end."""

from __future__ import annotations

from collections.abc import Sequence

from faultline.stack.errors import StackError
from faultline.stack.stack import Stack
from faultline.verbs.arguments import count


def consume(stack: Stack, words: Sequence[str]) -> int:
    """Read a topic: committed records only, or all of them with --uncommitted."""
    topics = [stack.settings.values[name] for name in stack.settings.values if name.endswith("_TOPIC")]
    if not words:
        raise StackError(f"which topic? one of: {' '.join(topics)}")
    topic, waiting = words[0], list(words[1:])
    if topic not in topics:
        raise StackError(f"no topic of the stack is called '{topic}'; the topics are: {' '.join(topics)}")
    stack.running("kafka")
    whole, flags = [], []
    while waiting:
        word = waiting.pop(0)
        if word == "--last":
            whole += ["--last", str(count(waiting.pop(0) if waiting else "", "--last"))]
        elif word == "--uncommitted":
            whole.append("--fates")
        elif word == "--to-the-end":
            whole += ["--last", "0"]
        else:
            flags.append(word)
    if not whole:
        return _consumer(stack, topic, "read_committed", flags)
    if flags:
        raise StackError(f"{flags[0]} is for a reader that follows the topic; leave it out, or the flags before it")
    # The console consumer ends after a time without records; this reader knows where the topic ends.
    isolation = "read_uncommitted" if "--fates" in whole else "read_committed"
    typed = _command(stack, topic, isolation, ["--from-beginning", "--timeout-ms", "10000"])
    stack.show(lambda: stack.backend.typed(stack.running("kafka"), typed))
    return stack.backend.tool(["python", "-m", "faultline.probes.read_topic", topic, *whole]).returncode


def _command(stack: Stack, topic: str, isolation: str, flags: Sequence[str]) -> list[str]:
    command = ["kafka-console-consumer.sh", "--bootstrap-server", stack.backend.bootstrap_inside, "--topic", topic]
    return [*command, "--isolation-level", isolation, *flags]


def _consumer(stack: Stack, topic: str, isolation: str, flags: Sequence[str]) -> int:
    """Follow a topic with the console consumer; returns its exit code."""
    command, kafka = _command(stack, topic, isolation, flags), stack.running("kafka")
    stack.show(lambda: stack.backend.typed(kafka, command))
    return stack.backend.execute(kafka, command, check=False).returncode
