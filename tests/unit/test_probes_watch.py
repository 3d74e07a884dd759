"""The reader of the watcher goes on where an earlier one ended; a sampler outlives what it asks."""

from __future__ import annotations

import http.client
import random
import re
from pathlib import Path

import pytest

from faultline.probes.watch import read_up_to, sample_once
from faultline.settings import ROOT
from flink_job import position
from flink_job.position import Recent


def test_it_goes_on_after_the_last_whole_line(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    whole = '{"partition": 0, "offset": 4}\n{"partition": 1, "offset": 7}\n{"partition": 0, "offset": 6}\n'
    seen.write_text(whole + '{"partition": 1, "off', encoding="utf-8")
    assert read_up_to(seen) == {0: 7, 1: 8}
    assert seen.read_text(encoding="utf-8") == whole


def test_it_begins_at_the_end_where_nothing_was_read(tmp_path: Path) -> None:
    assert read_up_to(tmp_path / "seen.jsonl") == {}
    (tmp_path / "seen.jsonl").touch()
    assert read_up_to(tmp_path / "seen.jsonl") == {}


@pytest.mark.parametrize("error", [http.client.BadStatusLine("x"), ValueError("not JSON"), RuntimeError()])
def test_whatever_goes_wrong_is_unknown(error: Exception) -> None:
    def sample() -> dict[str, object]:
        raise error

    found = sample_once(sample)
    assert found["unknown"] == (str(error) or "RuntimeError")


FETCH_SECONDS = 1.0


def ages(times: list[float]) -> list[float | None]:
    """The age of each position that is taken for recent, when Flink answers as its MetricFetcherImpl does."""
    recent, fetched, found = Recent(), -100.0, []
    for now in times:
        age = now - fetched
        # It answers with what it has, and fetches again after that.
        if age > FETCH_SECONDS:
            fetched = now
        found.append(age if recent.is_recent("one", now) else None)
    return found


def test_the_fetch_interval_is_that_of_flinks_configuration() -> None:
    text = (ROOT / "flink_job" / "conf" / "config.yaml").read_text(encoding="utf-8")
    found = re.search(r"^metrics\.fetcher\.update-interval: (\d+)$", text, re.MULTILINE)
    assert found
    assert int(found[1]) / 1000 == position._FETCH_SECONDS == FETCH_SECONDS


def test_a_position_of_a_cache_is_not_the_present() -> None:
    found = ages([0.5 * number for number in range(20)])
    assert found[:3] == [None] * 3
    assert all(age is not None and age <= 1.5 for age in found[3:])
    after_a_pause = ages([0.0, 0.5, 1.0, 1.5, 61.5, 62.0, 62.5, 63.0])
    assert after_a_pause[3:] == [1.5, None, None, None, 1.5]


@pytest.mark.parametrize("seed", range(20))
def test_no_position_is_older_than_six_seconds_however_it_is_asked_for(seed: int) -> None:
    chance = random.Random(seed)
    times = [0.0]
    for _ in range(400):
        times.append(times[-1] + chance.choice([0.1, 0.5, 0.5, 1.0, 1.9, 2.1, 9.0]) * chance.uniform(0.9, 1.1))
    found = [age for age in ages(times) if age is not None]
    assert len(found) > 100
    assert max(found) <= 6.0


def test_the_metrics_of_tasks_that_ended_are_not_those_of_their_successors() -> None:
    recent = Recent()
    assert [recent.is_recent("one", now) for now in (0.0, 0.5, 1.1)] == [False, False, True]
    assert not recent.is_recent("two", 1.6)
    assert recent.is_recent("two", 2.7)
    assert not recent.is_recent(None, 3.2)
    assert not recent.is_recent("two", 3.7)
