"""The stream of records: page views of visits, some late, repeated or unparsable on purpose."""

from __future__ import annotations

import json
import random
import uuid
import zlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import count
from typing import NamedTuple

from faultline.formats.visit import iso_time
from generator.config import Config
from generator.pools import Pools, compact_json, make_pools

ON_TIME, LATE, DUPLICATED, UNPARSABLE = "on time", "late", "duplicated", "unparsable"


class Record(NamedTuple):
    """One record: `timestamp` is the event time in milliseconds; `kind` is not sent to Kafka."""

    key: bytes
    value: bytes
    timestamp: int
    kind: str


@lru_cache(maxsize=4096)
def _second(seconds: int) -> str:
    return iso_time(seconds * 1000)[:-4]


def event_time_text(milliseconds: int) -> str:
    """`iso_time`, with the text of each second cached: formatting is half the cost of a visit."""
    return f"{_second(milliseconds // 1000)}{milliseconds % 1000:03d}Z"


class ActiveVisit:
    """One user's session: the parts of its JSON that do not change, the page it is on, the views left."""

    __slots__ = ("after_referral", "before_page", "before_time", "entry_referral", "key", "left", "page")

    def __init__(
        self, rng: random.Random, pools: Pools, pages_per_visit: float, begin: int, visit_id: str | None = None
    ) -> None:
        user = rng.choice(pools.users)
        if visit_id is None:
            visit_id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        connected = None if user.connected_for_ms is None else iso_time(begin - user.connected_for_ms)
        user_json = compact_json({"ip": user.ip, "login": user.login, "connected_since": connected})
        ad = rng.choice(pools.ad_json) if rng.random() < 0.3 else "null"
        self.key = visit_id.encode()
        self.before_time = f'{{"visit_id":"{visit_id}","event_time":"'
        # By the visit_id and not by `rng`: the rest of the stream is the same with and without this field.
        campaign = f'"campaign":"campaign_{zlib.crc32(self.key) % pools.campaigns}",' if pools.campaigns else ""
        private = json.dumps(user.keep_private)
        self.before_page = f'","user_id":"{user.user_id}","keep_private":{private},{campaign}"page":'
        self.after_referral = f',"ad_id":{ad},"user":{user_json},"technical":{rng.choice(pools.technical_json)}}}}}'
        self.entry_referral: str | None = rng.choice(pools.referral_json)
        self.page = rng.randrange(len(pools.pages))
        # At least one view; geometric with the configured mean.
        self.left = 1 + int(rng.expovariate(1 / (pages_per_visit - 0.5)) if pages_per_visit > 1 else 0)

    def view(self, rng: random.Random, pools: Pools, event_time: int) -> str:
        """Return the next page view as JSON; the visit then follows one of the page's links."""
        if self.entry_referral is not None:
            referral, self.entry_referral = self.entry_referral, None
        else:
            came_from = pools.pages[self.page]
            referral = came_from.address_json
            self.page = came_from.links[int(rng.random() * len(came_from.links))]
        self.left -= 1
        return (
            f"{self.before_time}{event_time_text(event_time)}{self.before_page}{pools.pages[self.page].path_json}"
            f',"context":{{"referral":{referral}{self.after_referral}'
        )


def _large(value: str, size: int) -> str:
    """Add a recording of the page, so that the visit has this many bytes."""
    begin, field = '"context":{', '"recording":"",'
    recording = "." * (size - len(value.encode()) - len(field))
    return value.replace(begin, f'{begin}"recording":"{recording}",', 1)


def _retyped(value: str, event_time: int) -> str:
    """Write the event time as a number, as a producer's new release may do; `parse_visit` refuses it."""
    return value.replace(f'"event_time":"{event_time_text(event_time)}"', f'"event_time":{event_time}', 1)


def _unparsable(rng: random.Random, value: str, event_time: int) -> bytes:
    """Corrupt the page view in one of six ways; `faultline.formats.visit.parse_visit` refuses each of them."""
    text = event_time_text(event_time)
    choice = rng.randrange(6)
    if choice == 0:
        return value[: rng.randrange(1, len(value) - 1)].encode()
    if choice == 1:
        return value.replace(f'"event_time":"{text}",', "", 1).encode()
    if choice == 2:
        return value.replace(f'"event_time":"{text}"', f'"event_time":"{text[:4]}-02-30T25:61:00.000Z"', 1).encode()
    if choice == 3:
        start = value.index(':"') + 2
        return (value[:start] + value[value.index('"', start) :]).encode()
    if choice == 4:
        return f"GET /visit?at={event_time} 200".encode()
    return value.encode().replace(b'"context"', b'"\xc3\x28\xff"', 1)


def stream(config: Config) -> Iterator[Record]:
    """Yield the records of a run, endless when `total` is 0; the same for the same configuration.

    Record n is scheduled at start + n * step. Its event time is up to `jitter_seconds` before that,
    so only late visits are further behind the newest than the jitter.
    """
    pools = make_pools(config.seed, config.users, config.pages, config.campaigns)
    rng = random.Random(f"visits/{config.seed}/{config.start_ms}")
    jitter_ms, late_ms = config.jitter_seconds * 1000, round(config.late_by_seconds * 1000)
    duplicated = config.duplicated_percent / 100
    unparsable = duplicated + config.unparsable_percent / 100
    late = unparsable + config.late_percent / 100
    large = late + config.large_percent / 100
    retyped = large + config.retyped_percent / 100
    active = [ActiveVisit(rng, pools, config.pages_per_visit, config.start_ms) for _ in range(config.active_visits)]
    previous: Record | None = None
    for number in range(config.total) if config.total else count():
        turn = config.start_ms + int(number * config.step_ms)
        roll = rng.random()
        if roll < duplicated and previous is not None:
            yield previous._replace(kind=DUPLICATED)
            continue
        event_time = turn - int(rng.random() * jitter_ms)
        kind = ON_TIME
        if unparsable <= roll < late and turn - config.start_ms >= 1000:
            event_time, kind = turn - late_ms, LATE
        chosen = int(rng.random() * len(active))
        visit = active[chosen]
        value = visit.view(rng, pools, event_time)
        if late <= roll < large:
            value = _large(value, config.large_bytes)
        if large <= roll < retyped:
            value, kind = _retyped(value, event_time), UNPARSABLE
        if duplicated <= roll < unparsable:
            previous = Record(visit.key, _unparsable(rng, value, event_time), event_time, UNPARSABLE)
        else:
            previous = Record(visit.key, value.encode(), event_time, kind)
        yield previous
        if visit.left <= 0:
            active[chosen] = ActiveVisit(rng, pools, config.pages_per_visit, turn)
