"""`python -m generator.close`: send the visits after which no window of an earlier visit is open."""

from __future__ import annotations

import json
import random
import sys
from itertools import count

from faultline.command import Flags, run
from faultline.formats.run import flink_run_of, flink_runs
from faultline.formats.visit import CLOSING_PREFIX, iso_time
from faultline.settings import Settings, SettingsError
from faultline.stop import Stop
from generator.event_times import STEP_MS, Windows, clocks_of, closed_to, leader, still_open
from generator.ledger import Ledger, LedgerError, clock, stamp
from generator.pools import make_pools
from generator.sender import Sender, connect, partition_of
from generator.topic import BrokerError, look_at
from generator.visits import ON_TIME, ActiveVisit, Record

NAME = "close"
_DELIVERY_TIMEOUT_SECONDS = 30


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
            event_time = begin + number * STEP_MS
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
        clocks = clocks_of(topic, settings.ledger)
        newest = max((clock.newest for clock in clocks.values() if clock.newest is not None), default=None)
        if newest is None:
            raise BrokerError(
                f"topic {name} has no visit, so there is no window to close; scripts/generator_start.sh fills it"
            )
        open_windows = still_open(clocks)
        end = closed_to(clocks, windows)
        if end is not None:
            _say(
                f"nothing is open in {name}: no visit came after those that closed every window to {iso_time(end)}"
                + open_windows
            )
            return _report(end, sent=0, acknowledged=0)
        ledger = Ledger(settings.ledger, name, topic.id)
    end = windows.end_of(newest)
    begin = end + windows.bound
    sender = Sender(connection, ledger, delivery_timeout_seconds=_DELIVERY_TIMEOUT_SECONDS)
    problem = _send(sender, closing_visits(begin, connection.partitions, stamp(clock())))
    if problem is None:
        words = (
            f"{sender.acknowledged} visits of {iso_time(begin)} close every window of {name} to {iso_time(end)}"
            f"{leader(clocks, windows)}{open_windows}"
        )
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
    return close(Settings(), chosen.wait_seconds, stop)


if __name__ == "__main__":
    run(NAME, main)
