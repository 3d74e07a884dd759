"""The generator's configuration: every key is a flag, and mistakes are one line and exit code 2."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from faultline.settings import Settings
from generator.config import DEFAULT_FILE, FIELDS, Config, ConfigError, config_of
from generator.visits import stream
from tests.called import program

# 2026-01-01T00:00:01.001Z
CLOCK = 1_767_225_601_001


def config(*flags: str, environ: dict[str, str] | None = None) -> Config:
    return config_of(flags, Settings(environ=environ or {}))


def test_the_file_names_every_key_and_no_other() -> None:
    assert set(yaml.safe_load(DEFAULT_FILE.read_text())) == set(FIELDS)


def test_default_jitter_is_within_the_out_of_orderness_bound() -> None:
    assert config().jitter_seconds <= Settings(environ={}).number("FLINK_OUT_OF_ORDERNESS_SECONDS")


def test_default_lateness_is_beyond_window_and_bound() -> None:
    assert config("--late-percent", "5").late_by_seconds > 10 + 5 + config().jitter_seconds


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "start"])
def test_each_key_is_a_flag(name: str) -> None:
    given = "70" if name == "late_by_seconds" else "7"
    assert getattr(config(f"--{name.replace('_', '-')}", given), name) == float(given)


def test_a_flag_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(DEFAULT_FILE.read_text().replace("rate: 10\n", "rate: 20\n"))
    assert config("--config", str(file)).rate == 20
    assert config("--config", str(file), "--rate", "30").rate == 30


def test_start_is_the_same_moment_however_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(DEFAULT_FILE.read_text().replace("start: now", "start: 2026-01-02T03:04:05Z"))
    from_file, from_flag = config("--config", str(file)), config("--start", "2026-01-02T03:04:05.000+00:00")
    assert from_file.start == from_flag.start == "2026-01-02T03:04:05.000Z"
    assert from_flag.start_ms == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp() * 1000


@pytest.mark.parametrize(
    ("newest", "start"),
    [
        (None, "2026-01-01T00:00:02.000Z"),
        (CLOCK - 60_000, "2026-01-01T00:00:02.000Z"),
        (CLOCK - 3_001, "2026-01-01T00:00:02.000Z"),
        (CLOCK - 3_000, "2026-01-01T00:00:03.000Z"),
        (CLOCK + 15_000, "2026-01-01T00:00:21.000Z"),
    ],
)
def test_now_is_a_whole_second_beyond_the_newest_event_time(newest: int | None, start: str) -> None:
    # Jitter 3 s and one second beyond the newest, or the clock, whichever is later.
    assert config().started(CLOCK, newest).start == start


def test_no_event_time_after_now_is_older_than_the_newest() -> None:
    started = config("--total", "2000", "--jitter-seconds", "4.7").started(CLOCK, CLOCK + 7_777)
    assert min(record.timestamp for record in stream(started)) > CLOCK + 7_777


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--rate", "fast"], "rate: 'fast' is not a number"),
        (["--rate", "-1"], "rate: -1 is too small"),
        (["--rate", "nan"], "rate: 'nan' is not a number"),
        (["--rate", "inf"], "rate: 'inf' is not a number"),
        (["--total", "1.5"], "total: '1.5' is not a whole number"),
        (["--active-visits", "0"], "active_visits: 0 is too small"),
        (["--start", "yesterday"], "start: 'yesterday' is neither"),
        (["--start", "2026-02-30T00:00:00Z"], "is neither"),
        (["--start", "1970-01-01T00:00:00Z"], "too early"),
        (["--late-percent", "60", "--unparsable-percent", "60"], "add up to 120"),
        (["--retyped-percent", "60", "--unparsable-percent", "50"], "add up to 110"),
        (["--campaigns", "-1"], "campaigns: -1 is too small"),
        (["--campaigns", "1.5"], "campaigns: '1.5' is not a whole number"),
        (["--late-percent", "1", "--late-by-seconds", "18"], "more than 18"),
        (["--config", "/nowhere/at/all.yaml"], "/nowhere/at/all.yaml: cannot be read"),
    ],
)
def test_a_mistake_is_named(flags: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(*flags)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_lateness_follows_the_window_of_the_stack() -> None:
    with pytest.raises(ConfigError, match="window 60"):
        config("--late-percent", "1", environ={"STACK_FLINK_WINDOW_SECONDS": "60"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("rte: 5\n", "unknown key rte"),
        ("- 5\n", "must be a list of `key: value` lines"),
        ("rate: [\n", "is not YAML"),
        ("rate: 5\n", "missing seed"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        config("--config", str(file))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("flags", [["--bogus", "1"], ["--rate", "x"], ["--tot", "5"]])
def test_a_mistake_ends_with_code_2_and_one_line(flags: list[str]) -> None:
    done = program("generator", *flags)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("generator: ")
    assert done.stderr.count("\n") == 1


def test_no_broker_is_one_line_after_the_wait() -> None:
    # Port 9 (discard) has no listener.
    done = program("generator", "--wait-seconds", "0.5", "--total", "1", STACK_KAFKA_BOOTSTRAP="127.0.0.1:9")
    assert done.returncode == 2
    assert "Kafka at 127.0.0.1:9 does not answer" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("flags", "code"), [(["--rate", "7"], 0), (["--rate", "-1"], 2)])
def test_flags_can_be_checked_without_a_broker(flags: list[str], code: int) -> None:
    done = program("generator", "--check-flags", *flags, STACK_KAFKA_BOOTSTRAP="127.0.0.1:9")
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == (code == 2)
