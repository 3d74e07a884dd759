"""Users, pages and devices to choose from: made once, by Faker, from the seed only."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from faker import Faker

_NETWORKS = ("4G", "5G", "Wi-Fi", "LAN", "DSL", "satellite")
_BROWSERS = ("Chrome", "Firefox", "Safari", "Edge", "Opera")
_DEVICES = ("iPhone", "Android phone", "iPad", "Galaxy Tab", "PC", "MacBook", "smart TV")
_LINKS_PER_PAGE = 5
_ADS = 20
_SITES = 25
_TECHNICAL_SETS = 80


@dataclass(frozen=True)
class User:
    """A visitor; `connected_for_ms` is the age of the login when a visit begins, None for a guest."""

    user_id: str
    login: str | None
    ip: str
    keep_private: bool
    connected_for_ms: int | None


@dataclass(frozen=True)
class Page:
    """A page: its path as JSON, its address as JSON (the referral of the next page), the pages it links to."""

    path_json: str
    address_json: str
    links: tuple[int, ...]


@dataclass(frozen=True)
class Pools:
    """The parts of visits. `technical_json`, `referral_json` and `ad_json` are ready JSON fragments.

    `campaigns`: how many there are; with 0, visits have no such field.
    """

    users: tuple[User, ...]
    pages: tuple[Page, ...]
    technical_json: tuple[str, ...]
    referral_json: tuple[str, ...]
    ad_json: tuple[str, ...]
    campaigns: int


def compact_json(document: dict[str, object]) -> str:
    """JSON without spaces: it saves space over many visits."""
    return json.dumps(document, separators=(",", ":"))


def make_pools(seed: int, users: int, pages: int, campaigns: int = 0) -> Pools:
    """Make the pools of a seed; the same on each machine for the same version of Faker."""
    fake = Faker("en_US")
    fake.seed_instance(seed)
    rng = random.Random(f"pools/{seed}")
    site = "https://" + fake.domain_name()
    return Pools(
        users=tuple(_user(fake, rng, number) for number in range(users)),
        pages=_pages(fake, rng, pages, site),
        technical_json=tuple(_technical(rng) for _ in range(_TECHNICAL_SETS)),
        # null: the address was typed or came from a bookmark.
        referral_json=("null", *(json.dumps(fake.url()) for _ in range(_SITES))),
        ad_json=("null", *(json.dumps(f"ad_{number}_{fake.word()}") for number in range(_ADS))),
        campaigns=campaigns,
    )


def _user(fake: Faker, rng: random.Random, number: int) -> User:
    guest = rng.random() < 0.2
    return User(
        user_id=f"user_{number:05d}",
        login=None if guest else f"{fake.user_name()}{number}",
        ip=fake.ipv4_public() if rng.random() < 0.8 else fake.ipv6(),
        keep_private=rng.random() < 0.25,
        connected_for_ms=None if guest else rng.randrange(1_000, 30 * 86_400_000),
    )


def _pages(fake: Faker, rng: random.Random, count: int, site: str) -> tuple[Page, ...]:
    paths = ["/"] + [f"/{fake.uri_page()}/{fake.word()}-{number}" for number in range(1, count)]
    made = []
    for number, path in enumerate(paths):
        others = [other for other in range(count) if other != number]
        links = tuple(rng.sample(others, min(_LINKS_PER_PAGE, len(others))))
        made.append(Page(json.dumps(path), json.dumps(site + path), links))
    return tuple(made)


def _technical(rng: random.Random) -> str:
    return compact_json(
        {
            "browser": rng.choice(_BROWSERS),
            "browser_version": f"{rng.randrange(90, 140)}.{rng.randrange(10)}.{rng.randrange(5000)}",
            "network_type": rng.choice(_NETWORKS),
            "device_type": rng.choice(_DEVICES),
            "device_version": f"{rng.randrange(1, 18)}.{rng.randrange(10)}",
        }
    )
