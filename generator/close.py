"""`python -m generator.close`: send the visits after which no window of an earlier visit is open."""

from __future__ import annotations

import json
import random
import sys
from itertools import count
from typing import NamedTuple

from contract.command import Flags, fail
from contract.run import RunError, flink_run_of, flink_runs
from contract.settings import Settings, SettingsError
from contract.stop import Stop
from contract.visit import CLOSING_PREFIX, iso_time
from generator.ledger import Ledger, LedgerError, clock, stamp
from generator.pools import make_pools
from generator.sender import Sender, connect, partition_of
from generator.topic import BrokerError, Newest, Topic, look_at
from generator.visits import ON_TIME, ActiveVisit, Record

NAME = "close"
_DELIVERY_TIMEOUT_SECONDS = 30
# The second visit of a partition comes this long after the first.
_STEP_MS = 1


class Windows(NamedTuple):
    """What decides when a window is over, in milliseconds: its length, and the out-of-orderness bound."""

    length: int
    bound: int

    def end_of(self, event_time: int) -> int:
        """Return the end, exclusive, of the window that holds an event time."""
        return (event_time // self.length + 1) * self.length


def closed_to(newest: dict[int, Newest], ends: dict[int, int], closing: set[int], windows: Windows) -> int | None:
    """Return the end of the last window closed when nothing is open, else None.

    Nothing is open when the last record of every partition is a closing visit, and so is the newest one, and all of
    them were sent for one window of this length and bound. `ends` has each partition; `closing` the partitions whose
    newest record is a closing visit.
    """
    last = {partition for partition, record in newest.items() if record.offset == ends[partition] - 1}
    moments = {record.timestamp for record in newest.values()}
    if not ends.keys() == last == closing or len(moments) != 1:
        return None
    end = moments.pop() - _STEP_MS - windows.bound
    return end if end % windows.length == 0 else None


def closing_visits(begin: int, partitions: int, run: str) -> list[list[Record]]:
    """Make two visits for each partition, at `begin` and 1 ms later; `run` makes their ids unique.

    The first visits of all partitions come before the second ones.
    """
    pools = make_pools(seed=0, users=1, pages=2)
    rounds: list[list[Record]] = [[], []]
    for partition in range(partitions):
        visit_id = closing_id(partition, partitions, run)
        rng = random.Random(visit_id)
        visit = ActiveVisit(rng, pools, pages_per_visit=1, begin=begin, visit_id=visit_id)
        for number, records in enumerate(rounds):
            event_time = begin + number * _STEP_MS
            records.append(Record(visit.key, visit.view(rng, pools, event_time).encode(), event_time, ON_TIME))
    return rounds


def closing_id(partition: int, partitions: int, run: str) -> str:
    """Make a visit_id whose key belongs to the partition."""
    names = (f"{CLOSING_PREFIX}{run}-{partition}-{number}" for number in count())
    return next(name for name in names if partition_of(name.encode(), partitions) == partition)


def _windows(settings: Settings) -> Windows:
    """Return the windows of the job that ran last, or those of the settings when none ran."""
    runs = flink_runs(settings.flink_notes, settings.text("VISIT_WINDOWS_TOPIC"))
    run = runs[-1][1] if runs else flink_run_of(settings)
    length, bound = run.window_seconds, run.out_of_orderness_seconds
    if length < 1 or bound < 0:
        raise SettingsError(
            f"FLINK_WINDOW_SECONDS={length} and FLINK_OUT_OF_ORDERNESS_SECONDS={bound}: "
            "the least are 1 and 0; correct them in .env"
        )
    return Windows(1000 * length, 1000 * bound)


def _already_closed_to(topic: Topic, newest: dict[int, Newest], windows: Windows) -> int | None:
    keys = topic.keys({partition: record.offset for partition, record in newest.items()})
    closing = {partition for partition, key in keys.items() if key and key.startswith(CLOSING_PREFIX.encode())}
    return closed_to(newest, topic.ends(), closing, windows)


def close(settings: Settings, wait_seconds: float, stop: Stop) -> int:
    """Send the closing visits, unless nothing is open; returns the exit code: 0 only if all is acknowledged."""
    name, bootstrap = settings.text("VISITS_TOPIC"), settings.bootstrap
    windows = _windows(settings)
    connection = connect(
        bootstrap,
        name,
        wait_seconds=wait_seconds,
        delivery_timeout_seconds=_DELIVERY_TIMEOUT_SECONDS,
        stopped=lambda: stop.requested,
    )
    with look_at(bootstrap, name) as topic:
        newest = topic.newest()
        if not newest:
            raise BrokerError(
                f"topic {name} is empty, so there is no window to close; scripts/generator_start.sh fills it"
            )
        end = _already_closed_to(topic, newest, windows)
        if end is not None:
            _say(f"nothing is open in {name}: no visit came after those that closed every window to {iso_time(end)}")
            return _report(end, sent=0, acknowledged=0)
        ledger = Ledger(settings.ledger, name, topic.id)
    end = windows.end_of(max(record.timestamp for record in newest.values()))
    begin = end + windows.bound
    sender = Sender(connection, ledger, delivery_timeout_seconds=_DELIVERY_TIMEOUT_SECONDS)
    problem = _send(sender, closing_visits(begin, connection.partitions, stamp(clock())))
    if problem is None:
        words = f"{sender.acknowledged} visits of {iso_time(begin)} close every window of {name} to {iso_time(end)}"
    else:
        words = f"{sender.sent} sent, {sender.acknowledged} acknowledged; {problem}"
    _say(words)
    return _report(end, sender.sent, sender.acknowledged) if problem is None else 1


def _send(sender: Sender, rounds: list[list[Record]]) -> str | None:
    """Send each round once the previous one is acknowledged; returns the error, or None."""
    try:
        for records in rounds:
            for record in records:
                sender.send(record)
            sender.flush()
            sender.check()
    except (BrokerError, LedgerError) as error:
        return str(error)
    finally:
        sender.finish()
    return None


def _say(words: str) -> None:
    sys.stderr.write(f"{NAME}: {words}\n")


def _report(end: int, sent: int, acknowledged: int) -> int:
    print(json.dumps({"closed_to": iso_time(end), "sent": sent, "acknowledged": acknowledged}), flush=True)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Close; exit codes: 0 nothing is open any more, 1 not all was acknowledged, 2 a mistake, no broker, no visits."""
    parser = Flags(NAME, prog="python -m generator.close", description=__doc__)
    parser.add_argument(
        "--wait-seconds", type=float, default=10, metavar="VALUE", help="for broker and topic, default 10"
    )
    chosen = parser.parse_args(arguments)
    stop = Stop()
    try:
        return close(Settings(), chosen.wait_seconds, stop)
    except (SettingsError, RunError, BrokerError, LedgerError) as error:
        fail(NAME, error)


if __name__ == "__main__":
    sys.exit(main())
