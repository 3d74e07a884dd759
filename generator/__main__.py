"""`python -m generator`: send visits to Kafka, or print them."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter

from faultline.command import Flags, run
from faultline.formats.visit import iso_time
from faultline.progress import ProgressLine
from faultline.settings import Settings
from faultline.stop import Stop
from generator.config import Config, add_flags, load
from generator.ledger import Ledger, LedgerError, clock
from generator.sender import Sender, connect, partition_of
from generator.topic import LAST_EVENT_TIME, BrokerError, look_at
from generator.visits import DUPLICATED, LATE, UNPARSABLE, Record, stream

NAME = "generator"
# Interval between checks of the clock and of the stop signal, in seconds and in records.
_NAP_SECONDS = 0.1
_BURST = 200


class Tally:
    """Counts of the records handed over, and the event times of the first and the last one."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.first: int | None = None
        self.last: int | None = None

    def add(self, record: Record) -> None:
        """Count a record."""
        self.kinds[record.kind] += 1
        self.last = record.timestamp
        if self.first is None:
            self.first = record.timestamp

    def result(self, sent: int, acknowledged: int) -> dict[str, object]:
        """Return the line for stdout."""
        return {
            "sent": sent,
            "acknowledged": acknowledged,
            "late": self.kinds[LATE],
            "duplicated": self.kinds[DUPLICATED],
            "unparsable": self.kinds[UNPARSABLE],
            "first_event_time": None if self.first is None else iso_time(self.first),
            "last_event_time": None if self.last is None else iso_time(self.last),
        }


def send(config: Config, settings: Settings, stop: Stop) -> int:
    """Send the stream at its rate until it ends or `stop`; returns the exit code: 0 only if all is acknowledged."""
    progress = ProgressLine()
    topic = settings.text("VISITS_TOPIC")
    connection = connect(
        settings.bootstrap,
        topic,
        wait_seconds=config.wait_seconds,
        delivery_timeout_seconds=config.delivery_timeout_seconds,
        stopped=lambda: stop.requested,
    )
    # Only after the wait for the broker: event times of a stream that starts now must not lag by it.
    config, ledger, note = _begin(config, settings, topic)
    sender = Sender(connection, ledger, delivery_timeout_seconds=config.delivery_timeout_seconds)
    rate = f"{config.rate:g} per second" if config.rate else "as fast as possible"
    progress.say(f"generator: sending to {topic} at {settings.bootstrap}, {rate}, from {config.start}{note}")
    tally, begin, problem = Tally(), time.monotonic(), None
    try:
        for number, record in enumerate(stream(config)):
            if config.rate:
                _wait_for_turn(begin + number / config.rate, sender, stop, progress, begin)
            elif number % _BURST == 0 and progress.due():
                progress.show(_line(sender, begin))
            if stop.requested:
                break
            sender.send(record)
            tally.add(record)
    except (BrokerError, LedgerError) as error:
        problem = str(error)
    sender.finish()
    try:
        sender.check()
    except (BrokerError, LedgerError) as error:
        problem = problem or str(error)
    progress.say(
        f"generator: {sender.sent} sent, {sender.acknowledged} acknowledged" + (f"; {problem}" if problem else "")
    )
    print(json.dumps(tally.result(sender.sent, sender.acknowledged)), flush=True)
    return 0 if problem is None and sender.sent == sender.acknowledged else 1


def _begin(config: Config, settings: Settings, topic: str) -> tuple[Config, Ledger, str]:
    """Resolve the start and make the ledger; the third value is a message about a start that is not now."""
    with look_at(settings.bootstrap, topic) as seen:
        # A later one is no event time: somebody else wrote it.
        known = seen.newest().values() if config.starts_now else ()
        newest = max((each.timestamp for each in known if each.timestamp <= LAST_EVENT_TIME), default=None)
        now = clock()
        started = config.started(now, newest)
        ledger = Ledger(settings.ledger, topic, seen.id)
    if newest is None or started == config.started(now):
        return started, ledger, ""
    return started, ledger, f": later than now, to be beyond the newest event time in the topic, {iso_time(newest)}"


def _wait_for_turn(turn: float, sender: Sender, stop: Stop, progress: ProgressLine, begin: float) -> None:
    """Sleep until the record is due; behind schedule (a pause, a slow broker) return at once to catch up."""
    while True:
        if progress.due():
            progress.show(_line(sender, begin))
        remaining = turn - time.monotonic()
        if remaining <= 0 or stop.requested:
            return
        sender.check()
        time.sleep(min(remaining, _NAP_SECONDS))


def _line(sender: Sender, begin: float) -> str:
    seconds = max(time.monotonic() - begin, 0.001)
    return (
        f"generator: {sender.sent} sent, {sender.acknowledged} acknowledged, "
        f"{sender.acknowledged / seconds:.1f} per second"
    )


def print_records(config: Config, settings: Settings, stop: Stop) -> int:
    """Print each record as a JSON line, without Kafka and without pacing; bytes outside UTF-8 as lone surrogates."""
    partitions = settings.number("TOPIC_PARTITIONS")
    write = sys.stdout.write
    for record in stream(config.started(clock())):
        if stop.requested:
            break
        line = {
            "partition": partition_of(record.key, partitions),
            "key": record.key.decode(),
            "value": record.value.decode("utf-8", "surrogateescape"),
            "timestamp": record.timestamp,
            "kind": record.kind,
        }
        write(json.dumps(line) + "\n")
    sys.stdout.flush()
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run the generator; exit codes: 0 all acknowledged, 1 some were not, 2 a mistake, no broker or no ledger."""
    parser = Flags(NAME, prog="scripts/generator_start.sh", description=__doc__)
    add_flags(parser)
    parser.add_argument(
        "--to-stdout", action="store_true", help="print the records as JSON lines, without Kafka or pacing"
    )
    parser.add_argument("--check-flags", action="store_true", help="check these flags, and exit")
    chosen = parser.parse_args(arguments)
    stop = Stop()
    try:
        settings = Settings()
        config = load(chosen, settings)
        if chosen.check_flags:
            return 0
        return print_records(config, settings, stop) if chosen.to_stdout else send(config, settings, stop)
    except BrokenPipeError:
        # The reader has closed the pipe (head); the interpreter must not try to flush at exit.
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    run(NAME, main)
