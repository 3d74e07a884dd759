"""The stream of visits: what is promised of its bytes, its order and its trouble on purpose."""

import dataclasses
import hashlib
import json
import subprocess
import sys
from collections import Counter
from itertools import islice

import pytest
from kafka.partitioner.default import DefaultPartitioner

from faultline.formats.visit import iso_time, parse_visit
from faultline.settings import ROOT, Settings
from generator.config import Config, config_of
from generator.sender import partition_of
from generator.visits import DUPLICATED, LATE, ON_TIME, UNPARSABLE, Record, event_time_text, stream

START = "2026-01-01T00:00:00Z"
START_MS = 1767225600000


def config(*flags: str) -> Config:
    return config_of(["--start", START, *flags], Settings(environ={}))


def records(*flags: str) -> list[Record]:
    return list(stream(config(*flags)))


MIXED = ("--total", "20000", "--late-percent", "5", "--duplicated-percent", "4", "--unparsable-percent", "6")


DEFAULT_DIGEST = "42a6d658b8f747a4ba043ae9975bb5d5733532c277a40dec0962e9ab317a17c8"
"""Of the stream below; another release of Faker may make other pages and users, and so another digest."""


@pytest.fixture(scope="module")
def mixed() -> list[Record]:
    return records(*MIXED)


def test_same_seed_and_start_are_the_same_bytes_in_another_process() -> None:
    flags = ["--start", START, "--total", "500", "--unparsable-percent", "10", "--duplicated-percent", "10"]
    command = [sys.executable, "-m", "generator", "--to-stdout", *flags]
    runs = [
        subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True, env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.count(b"\n") == 500


def test_another_seed_is_another_stream() -> None:
    assert records("--total", "50") != records("--total", "50", "--seed", "43")


def test_a_later_start_makes_new_visits_of_the_same_users() -> None:
    first = records("--total", "2000")
    second = list(stream(dataclasses.replace(config("--total", "2000"), start="2026-01-01T00:00:01.000Z")))
    assert not {record.key for record in first} & {record.key for record in second}
    users = [{json.loads(record.value)["user_id"] for record in run} for run in (first, second)]
    assert users[0] & users[1]


def test_a_visit_has_every_field() -> None:
    for record in records("--total", "300"):
        document = json.loads(record.value)
        assert list(document) == ["visit_id", "event_time", "user_id", "keep_private", "page", "context"]
        context = document["context"]
        assert list(context) == ["referral", "ad_id", "user", "technical"]
        assert list(context["user"]) == ["ip", "login", "connected_since"]
        technical = ["browser", "browser_version", "network_type", "device_type", "device_version"]
        assert list(context["technical"]) == technical
        assert isinstance(document["keep_private"], bool)
        assert document["page"].startswith("/")
        assert record.key.decode() == document["visit_id"]


def test_a_campaign_is_a_field_more_and_changes_nothing_else() -> None:
    without, with_campaign = records("--total", "2000"), records("--total", "2000", "--campaigns", "3")
    seen = set()
    for before, after in zip(without, with_campaign, strict=True):
        document = json.loads(after.value)
        campaign = document.pop("campaign")
        seen.add(campaign)
        assert document == json.loads(before.value)
        assert after.value == before.value.replace(b'"page":', f'"campaign":"{campaign}","page":'.encode(), 1)
        assert (after.key, after.timestamp, after.kind) == (before.key, before.timestamp, before.kind)
    assert seen == {"campaign_0", "campaign_1", "campaign_2"}


def test_a_visit_keeps_its_campaign() -> None:
    campaigns: dict[bytes, str] = {}
    for record in records("--total", "2000", "--campaigns", "50"):
        campaign = json.loads(record.value)["campaign"]
        assert campaigns.setdefault(record.key, campaign) == campaign


def test_the_bytes_of_the_default_stream_do_not_change() -> None:
    # A digest of what a seed gave before there were campaigns and retyped visits.
    found = hashlib.sha256()
    for record in records(*MIXED, "--large-percent", "1", "--large-bytes", "2000"):
        found.update(b"%b|%b|%d|%b\n" % (record.key, record.value, record.timestamp, record.kind.encode()))
    assert found.hexdigest() == DEFAULT_DIGEST


def test_a_retyped_visit_has_a_number_for_its_time_and_is_refused() -> None:
    plain, mixed = records("--total", "2000"), records("--total", "2000", "--retyped-percent", "10")
    changed = 0
    for before, after in zip(plain, mixed, strict=True):
        if after == before:
            continue
        assert after.kind == UNPARSABLE
        assert parse_visit(after.value) is None
        assert json.loads(after.value) == json.loads(before.value) | {"event_time": after.timestamp}
        changed += 1
    assert changed / 2000 == pytest.approx(0.1, abs=0.03)


def test_timestamp_is_the_event_time() -> None:
    for record in records("--total", "300"):
        visit = parse_visit(record.value)
        assert visit is not None
        assert visit.event_time == record.timestamp
        assert json.loads(record.value)["event_time"] == iso_time(record.timestamp)


def test_the_rate_is_the_step_of_event_time() -> None:
    times = [record.timestamp for record in records("--total", "101", "--jitter-seconds", "0", "--rate", "50")]
    assert times == [START_MS + 20 * number for number in range(101)]
    fast = ("--rate", "0", "--event-rate", "200", "--jitter-seconds", "0", "--total", "3")
    assert [record.timestamp - START_MS for record in records(*fast)] == [0, 5, 10]


def test_disorder_is_there_and_bounded() -> None:
    newest, behind = 0, []
    for record in records("--total", "5000"):
        newest = max(newest, record.timestamp)
        behind.append(newest - record.timestamp)
    assert 2500 < max(behind) <= 3000


def test_only_unparsable_records_are_unparsable(mixed: list[Record]) -> None:
    previous = mixed[0]
    for record in mixed:
        if record.kind == DUPLICATED:
            assert record[:3] == previous[:3]
        else:
            assert (parse_visit(record.value) is None) == (record.kind == UNPARSABLE)
        previous = record


def test_late_records_are_behind_every_open_window(mixed: list[Record]) -> None:
    newest = 0
    for record in mixed:
        if record.kind == LATE:
            # Window end <= event time + 10 s; watermark = newest - 5 s.
            assert record.timestamp + 10_000 <= newest - 5_000
        newest = max(newest, record.timestamp)


def test_percentages_are_of_all_records(mixed: list[Record]) -> None:
    share = {kind: 100 * number / len(mixed) for kind, number in Counter(record.kind for record in mixed).items()}
    assert len(mixed) == 20000
    assert share[LATE] == pytest.approx(5, abs=0.6)
    assert share[DUPLICATED] == pytest.approx(4, abs=0.6)
    assert share[UNPARSABLE] == pytest.approx(6, abs=0.6)
    assert share[ON_TIME] == pytest.approx(85, abs=1.2)


def test_all_of_a_kind() -> None:
    assert {record.kind for record in records("--total", "50", "--unparsable-percent", "100")} == {UNPARSABLE}


def test_total_zero_goes_on() -> None:
    assert len(list(islice(stream(config("--total", "0")), 3000))) == 3000


@pytest.mark.parametrize("milliseconds", [0, 1, 999, 1000, START_MS, START_MS + 59_999, 253402300799999])
def test_event_time_text_is_the_contracts(milliseconds: int) -> None:
    assert event_time_text(milliseconds) == iso_time(milliseconds)


def test_partition_is_the_default_partitioners() -> None:
    class Cluster:
        """The client's metadata that `DefaultPartitioner` asks for, of a topic of three partitions."""

        def topics(self) -> set[str]:
            return {"visits"}

        def partitions_for_topic(self, topic: str) -> set[int]:
            return {0, 1, 2}

        available_partitions_for_topic = partitions_for_topic

    chosen = set()
    for record in records("--total", "200"):
        key = record.key
        expected = DefaultPartitioner().partition("visits", key, key, None, None, Cluster())
        assert partition_of(key, 3) == expected
        chosen.add(expected)
    assert chosen == {0, 1, 2}
