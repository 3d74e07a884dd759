"""Sends the lines of a file to a topic: python -m faultline.pipelines.feed BOOTSTRAP TOPIC FILE PER_SECOND."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from faultline.command import CommandError, run

_DELIVERY_MS = 300_000
_FLUSH_SECONDS = 330.0


class FeedError(CommandError):
    """Records could not be sent; the message is one line."""


def send(bootstrap: str, topic: str, file: Path, per_second: int) -> int:
    """Send each line as the value of a record, in order and each once; returns the number. Raises FeedError."""
    refused: list[str] = []

    def told(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            refused.append(error.str())

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "delivery.timeout.ms": _DELIVERY_MS,
            "log_level": 0,
        }
    )
    begin, number = time.monotonic(), 0
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            producer.produce(topic, line.rstrip(b"\r\n"), on_delivery=told)
            producer.poll(max(0.0, begin + number / per_second - time.monotonic()))
    left = producer.flush(_FLUSH_SECONDS)
    if refused or left:
        raise FeedError(f"{len(refused) + left} of {number} records of {file} were not acknowledged: {refused[:1]}")
    return number


def main() -> int:
    """Run the command line; returns the exit code."""
    bootstrap, topic, file, per_second = sys.argv[1:]
    print(f"{send(bootstrap, topic, Path(file), int(per_second))} records sent")
    return 0


if __name__ == "__main__":
    run("feed", main)
