"""Topics: followed with Kafka's own console consumer, or read to their end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from faultline.command import Flags
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack
from faultline.verbs.arguments import count


def consume(stack: Stack, words: Sequence[str]) -> int:
    """Read a topic: committed records only, or all of them with --uncommitted."""
    topics = [stack.settings.values[name] for name in stack.settings.values if name.endswith("_TOPIC")]
    if not words:
        raise StackError(f"which topic? one of: {' '.join(topics)}")
    topic = words[0]
    if topic not in topics:
        raise StackError(f"no topic of the stack is called '{topic}'; the topics are: {' '.join(topics)}")
    stack.running("kafka")
    parser = Flags("consume.sh")
    parser.add_argument("--last", type=partial(count, what="--last"))
    parser.add_argument("--uncommitted", action="store_true")
    parser.add_argument("--to-the-end", action="store_const", const=0, dest="last")
    asked, flags = parser.parse_known_args(words[1:])
    whole = ([] if asked.last is None else ["--last", str(asked.last)]) + (["--fates"] if asked.uncommitted else [])
    if not whole:
        return _consumer(stack, topic, "read_committed", flags)
    if flags:
        raise StackError(f"{flags[0]} is for a reader that follows the topic; leave it out, or the flags before it")
    # The console consumer ends after a time without records; this reader knows where the topic ends.
    isolation = "read_uncommitted" if asked.uncommitted else "read_committed"
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
