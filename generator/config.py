"""The generator's configuration: a YAML file, overridden by flags; each key is defined once, in `Config`."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from faultline.command import CommandError, Flags
from faultline.formats.visit import iso_time, parse_event_time
from faultline.settings import Settings

DEFAULT_FILE = Path(__file__).with_name("config.yaml")
NOW = "now"


class ConfigError(CommandError):
    """A key or a value that the generator cannot use; the message is one line for the user."""


@dataclass(frozen=True)
class Config:
    """One run, as `config.yaml` describes it; rates in records per second, `start` as ISO 8601 or `now`."""

    seed: int
    start: str
    rate: float
    event_rate: float
    total: int
    users: int
    pages: int
    active_visits: int
    pages_per_visit: float
    campaigns: int
    jitter_seconds: float
    late_percent: float
    late_by_seconds: float
    duplicated_percent: float
    unparsable_percent: float
    retyped_percent: float
    large_percent: float
    large_bytes: int
    wait_seconds: float
    delivery_timeout_seconds: float

    @property
    def start_ms(self) -> int:
        """`start` in milliseconds since the epoch. Raises ConfigError while it is still `now`."""
        parsed = parse_event_time(self.start)
        if parsed is None:
            raise ConfigError(f"start: {self.start!r} is not a time like 2026-01-01T00:00:00Z (UTC)")
        return parsed

    @property
    def starts_now(self) -> bool:
        """True when `start` is still `now`."""
        return self.start == NOW

    def started(self, now: int, newest: int | None = None) -> Config:
        """Return the configuration with `now` replaced by a whole second; a given start stays.

        Both are in milliseconds since the epoch. A stream that follows records up to `newest` starts far enough
        after it that none of its event times is older, even with jitter.
        """
        if not self.starts_now:
            return self
        earliest = now if newest is None else max(now, newest + self.jitter_seconds * 1000 + 1000)
        return dataclasses.replace(self, start=iso_time(math.ceil(earliest / 1000) * 1000))

    @property
    def step_ms(self) -> float:
        """Event time between two records, in milliseconds."""
        return 1000.0 / (self.rate or self.event_rate)


# Smallest value allowed for each number; None: any.
_LEAST: dict[str, float | None] = {
    "seed": None,
    "rate": 0,
    "event_rate": 0.001,
    "total": 0,
    "users": 1,
    "pages": 2,
    "active_visits": 1,
    "pages_per_visit": 1,
    "campaigns": 0,
    "jitter_seconds": 0,
    "late_percent": 0,
    "late_by_seconds": 0,
    "duplicated_percent": 0,
    "unparsable_percent": 0,
    "retyped_percent": 0,
    "large_percent": 0,
    "large_bytes": 1,
    "wait_seconds": 0,
    "delivery_timeout_seconds": 1,
}
_WHOLE = {"seed", "total", "users", "pages", "active_visits", "campaigns", "large_bytes"}
_MOST_BYTES = 1_000_000
"""Brokers take batches of up to 1,048,588 bytes, unless message.max.bytes says otherwise."""
FIELDS = tuple(field.name for field in dataclasses.fields(Config))


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for each key; a flag that is not given leaves the file's value."""
    parser.add_argument("--config", type=Path, default=DEFAULT_FILE, metavar="PATH", help="YAML file of these keys")
    for name in FIELDS:
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, metavar="VALUE", help=f"overrides key {name}")


def config_of(words: Sequence[str], settings: Settings) -> Config:
    """Read the file with these flags over it. Raises ConfigError; other flags end the process with code 2."""
    parser = Flags("generator")
    add_flags(parser)
    return load(parser.parse_args(words), settings)


def load(arguments: argparse.Namespace, settings: Settings) -> Config:
    """Read the file, apply the flags over it and check every value; `start` may stay `now`.

    Raises ConfigError: no such file, unknown or missing key, a value of the wrong kind or out of range.
    """
    chosen = _read(arguments.config)
    for name in FIELDS:
        if getattr(arguments, name) is not None:
            chosen[name] = getattr(arguments, name)
    missing = [name for name in FIELDS if name not in chosen]
    if missing:
        raise ConfigError(f"{arguments.config}: missing {', '.join(missing)}; {DEFAULT_FILE} has them all")
    values = {name: _number(name, chosen[name]) for name in FIELDS if name != "start"}
    config = Config(start=_start(chosen["start"]), **values)
    _check_together(config, settings)
    return config


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not YAML: {' '.join(str(error).split())}") from None
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: must be a list of `key: value` lines")
    unknown = [str(key) for key in document if key not in FIELDS]
    if unknown:
        raise ConfigError(f"{path}: unknown key {', '.join(unknown)}; known: {', '.join(FIELDS)}")
    return document


def _number(name: str, value: object) -> Any:
    kind = "a whole number" if name in _WHOLE else "a number"
    problem = ConfigError(f"{name}: {value!r} is not {kind}")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise problem
    try:
        number = int(value) if name in _WHOLE and not isinstance(value, float) else float(value)
    except ValueError:
        raise problem from None
    if name in _WHOLE and not isinstance(number, int):
        raise problem
    if not math.isfinite(number):
        raise problem
    least = _LEAST[name]
    if least is not None and number < least:
        raise ConfigError(f"{name}: {value} is too small; the least is {least:g}")
    return number


def _start(value: object) -> str:
    if value == NOW:
        return NOW
    # YAML reads an unquoted time as a datetime, a flag gives text.
    if isinstance(value, datetime):
        value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return iso_time(int(value.timestamp() * 1000))
    milliseconds = parse_event_time(value) if isinstance(value, str) else None
    if milliseconds is None:
        raise ConfigError(f"start: {value!r} is neither `now` nor a time like 2026-01-01T00:00:00Z (UTC)")
    return iso_time(milliseconds)


def _check_together(config: Config, settings: Settings) -> None:
    percents = [getattr(config, name) for name in FIELDS if name.endswith("_percent")]
    trouble = sum(percents)
    if config.large_bytes > _MOST_BYTES:
        raise ConfigError(f"large_bytes: {config.large_bytes} is more than {_MOST_BYTES}, which brokers take")
    if trouble > 100:
        raise ConfigError(
            f"late, duplicated, unparsable, retyped and large percent add up to {trouble:g}; the maximum is 100"
        )
    earliest_ms = 1000 * max(config.late_by_seconds, config.jitter_seconds)
    if config.start != NOW and config.start_ms < earliest_ms:
        raise ConfigError(f"start: {config.start} is too early; Kafka has no timestamps before 1970")
    if not config.late_percent:
        return
    window, bound = settings.number("FLINK_WINDOW_SECONDS"), settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS")
    least = window + bound + config.jitter_seconds
    if config.late_by_seconds <= least:
        raise ConfigError(
            f"late_by_seconds: {config.late_by_seconds:g} is not always late; it must be more than {least:g} "
            f"(window {window} + out-of-orderness bound {bound} + jitter {config.jitter_seconds:g})"
        )
