"""Read a topic from its first record to its end, and print each record as Kafka's console consumer does.

Usage: python -m faultline.probes.read_topic TOPIC [--last N] [--fates]

A line is `Partition:0<tab>Offset:17<tab>VALUE`. Only committed records are read; with --fates all are, and each line
begins with `committed` or `uncommitted`. With --last only the last N records of each partition are printed. The console
consumer ends after a time without records, and a slow start looks the same; this reader knows where the topic ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, groupby

from faultline.command import Flags, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from confluent_kafka import Message

from faultline.settings import Settings
from faultline.topic_reader import read


def lines(bootstrap: str, topic: str, *, fates: bool) -> list[tuple[int, str]]:
    """Return partition and line of each record, by partition and offset. Raises ReadError."""
    messages = _records(bootstrap, topic, committed=not fates)
    # The committed ones afterwards: what is committed meanwhile counts as committed.
    known = {position_of(each) for each in _records(bootstrap, topic, committed=True)} if fates else set()
    found = []
    for each in sorted(messages, key=position_of):
        partition, offset = position_of(each)
        line = f"Partition:{partition}\tOffset:{offset}\t{(each.value() or b'').decode(errors='replace')}"
        fate = "committed" if position_of(each) in known else "uncommitted"
        found.append((partition, f"{fate:<11}\t{line}" if fates else line))
    return found


def _records(bootstrap: str, topic: str, *, committed: bool) -> list[Message]:
    return list(chain.from_iterable(read(bootstrap, topic, committed=committed)))


def position_of(message: Message) -> tuple[int, int]:
    """Return its partition and offset."""
    return message.partition() or 0, message.offset() or 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the records; returns the exit code: 0 printed, 2 the topic cannot be read."""
    parser = Flags("consume.sh", prog="scripts/consume.sh", description=__doc__)
    parser.add_argument("topic")
    parser.add_argument("--last", type=int, default=0, metavar="N", help="only the last N records of each partition")
    parser.add_argument("--fates", action="store_true", help="uncommitted records too, marked")
    chosen = parser.parse_args(arguments)
    found = lines(Settings().bootstrap, chosen.topic, fates=chosen.fates)
    for _, group in groupby(found, key=lambda each: each[0]):
        for _, line in list(group)[-chosen.last :]:
            print(line)
    return 0


if __name__ == "__main__":
    run("consume.sh", main)
