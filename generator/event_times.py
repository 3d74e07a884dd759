"""Event time that each partition has reached, by the values of its visits: closing needs to know this time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from faultline.formats.ledger import ACKED, ledger_files
from faultline.formats.visit import CLOSING_PREFIX, iso_time, parse_visit
from faultline.progress import ProgressLine
from generator.ledger import LedgerError
from generator.topic import LAST_EVENT_TIME, Span, Topic

STEP_MS = 1
"""The second closing visit of a partition comes this long after the first."""
_LOOK = 1000
"""Records between two looks at the clock of the progress line."""


class Windows(NamedTuple):
    """Length of a window and out-of-orderness bound, in milliseconds: both decide when a window is over."""

    length: int
    bound: int

    def end_of(self, event_time: int) -> int:
        """Return the end, exclusive, of the window that holds an event time."""
        return (event_time // self.length + 1) * self.length


@dataclass
class PartitionClock:
    """The event times of a partition, and the visit that is the newest by it.

    Counted apart: `beyond`, visits after which no other can be sent, from `first_beyond` on. `closed`: the last record
    is a closing visit, and the newest.
    """

    newest: int | None = None
    offset: int = -1
    beyond: int = 0
    first_beyond: int = -1
    closed: bool = False

    def read(self, offset: int, value: bytes | None) -> None:
        """Take the next record."""
        visit = parse_visit(value)
        self.closed = False
        if visit is None:
            return
        if visit.event_time > LAST_EVENT_TIME:
            self.first_beyond = offset if not self.beyond else self.first_beyond
            self.beyond += 1
        elif self.newest is None or visit.event_time >= self.newest:
            self.newest, self.offset = visit.event_time, offset
            self.closed = visit.visit_id.startswith(CLOSING_PREFIX)


def closed_to(clocks: dict[int, PartitionClock], windows: Windows) -> int | None:
    """Return the end of the last window closed when nothing is open that can be closed, else None.

    Nothing is open when the last record of every partition is a closing visit, and the newest one, and all of them were
    sent for one window of this length and bound.
    """
    moments = {clock.newest for clock in clocks.values()}
    moment = moments.pop()
    if moment is None or moments or not all(clock.closed for clock in clocks.values()):
        return None
    end = moment - STEP_MS - windows.bound
    return end if end % windows.length == 0 else None


def last_closing(ledgers: Path, topic: Topic) -> dict[int, int]:
    """Return the offset of the last closing visit of each partition, by the newest ledger that has such visits.

    Raises LedgerError.
    """
    try:
        for file in reversed(ledger_files(ledgers, topic.name)):
            with file.open(encoding="utf-8") as lines:
                first, second = next(lines, "").split(","), next(lines, "").split(",")
                if topic.id in first and second[-1].startswith(CLOSING_PREFIX):
                    rows = [line.split(",") for line in lines if line.endswith("\n")]
                    return {int(partition): int(offset) for event, _, partition, offset, *_ in rows if event == ACKED}
    except OSError as error:
        raise LedgerError(f"the ledgers in {ledgers} cannot be read: {error.strerror}; nothing was sent") from None
    return {}


def clocks_of(topic: Topic, ledgers: Path) -> dict[int, PartitionClock]:
    """Read the event times of each partition, from the last closing visit on if there is one: all before it are older.

    Raises BrokerError and LedgerError.
    """
    spans = topic.spans()
    closing = {p: Span(offset, offset + 1) for p, offset in last_closing(ledgers, topic).items()}
    # A broker that has lost its newest records does not have these either.
    there = {p: span for p, span in closing.items() if p in spans and spans[p].begin <= span.begin < spans[p].end}
    for record in topic.read(there) if there else ():
        visit = parse_visit(record.value)
        if visit and visit.visit_id.startswith(CLOSING_PREFIX):
            spans[record.partition] = spans[record.partition]._replace(begin=record.offset)
    clocks = {partition: PartitionClock() for partition in spans}
    total, progress = sum(span.end - span.begin for span in spans.values()), ProgressLine()
    for number, record in enumerate(topic.read(spans)):
        clocks[record.partition].read(record.offset, record.value)
        if number % _LOOK == 0 and progress.due():
            progress.show(f"close: {topic.name}: {number:,} of {total:,} records")
    progress.clear()
    return clocks


def leader(clocks: dict[int, PartitionClock], windows: Windows) -> str:
    """Name the visit that moves the others when its partition is more than a window ahead of all others."""
    times = sorted((each.newest, each.offset, p) for p, each in clocks.items() if each.newest is not None)
    newest, offset, partition = times[-1]
    if len(times) < 2 or newest - times[-2][0] <= windows.length:
        return ""
    ahead = (newest - times[-2][0]) / 1000
    return f"; partition {partition} is {ahead:g} s ahead of the others: offset {offset} has {iso_time(newest)}"


def still_open(clocks: dict[int, PartitionClock]) -> str:
    """Name the windows that cannot be closed."""
    beyond = {partition: each for partition, each in clocks.items() if each.beyond}
    if not beyond:
        return ""
    where = ", ".join(
        f"{each.beyond} in partition {partition} from offset {each.first_beyond} on"
        for partition, each in beyond.items()
    )
    return (
        f"; still open are the windows of visits after {iso_time(LAST_EVENT_TIME)}, as no later visit exists: {where}"
    )
