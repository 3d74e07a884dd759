"""What the job writes out in SQL and configuration, without a JVM."""

from __future__ import annotations

import re

import pytest

from contract.settings import Settings
from contract.visit import parse_event_time
from flink_job import frontier, parsing
from flink_job.guarantees import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    job_configuration,
    sink_options,
    source_options,
    with_clause,
)

SETTINGS = Settings(environ={})
SINKS = ("VISIT_WINDOWS_TOPIC", "VISITS_LATE_TOPIC", "VISITS_REJECTED_TOPIC")


def test_exactly_once_is_written_out() -> None:
    configuration = job_configuration(SETTINGS, EXACTLY_ONCE)
    assert configuration["execution.checkpointing.mode"] == "EXACTLY_ONCE"
    assert configuration["execution.checkpointing.externalized-checkpoint-retention"] == "RETAIN_ON_CANCELLATION"
    options = [sink_options(SETTINGS, sink, EXACTLY_ONCE) for sink in SINKS]
    assert {o["sink.delivery-guarantee"] for o in options} == {"exactly-once"}
    assert len({o["sink.transactional-id-prefix"] for o in options}) == len(SINKS)
    limit = SETTINGS.number("KAFKA_TRANSACTION_MAX_TIMEOUT_MS")
    assert all(int(o["properties.transaction.timeout.ms"]) <= limit for o in options)


def test_no_transactional_id_is_the_beginning_of_another() -> None:
    # A sink that starts aborts every open transaction whose id begins with its own prefix.
    prefixes = [sink_options(SETTINGS, sink, EXACTLY_ONCE)["sink.transactional-id-prefix"] for sink in SINKS]
    assert not [(a, b) for a in prefixes for b in prefixes if a != b and b.startswith(a)]


def test_at_least_once_has_no_transaction() -> None:
    assert job_configuration(SETTINGS, AT_LEAST_ONCE)["execution.checkpointing.mode"] == "AT_LEAST_ONCE"
    for sink in SINKS:
        options = sink_options(SETTINGS, sink, AT_LEAST_ONCE)
        assert options["sink.delivery-guarantee"] == "at-least-once"
        assert not [name for name in options if "transaction" in name]


def test_the_source_starts_at_the_beginning_and_reads_committed_visits() -> None:
    options = source_options(SETTINGS)
    assert options["scan.startup.mode"] == "earliest-offset"
    assert options["properties.isolation.level"] == "read_committed"


def test_a_quote_in_an_option_stays_in_it() -> None:
    assert "'a' = 'it''s'" in with_clause({"a": "it's"})


def _projected(event_time: str, visit_id: str) -> str:
    return f'[{{"event_time":"{event_time}","visit_id":"{visit_id}"}},{{"visit_id":"end"}}]'


@pytest.mark.parametrize(
    "event_time",
    [
        "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.123456789+00:00",
        "9998-12-31T23:59:59Z",
        "1970-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:60Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00.1234567890Z",
        "",
    ],
)  # fmt: skip
def test_the_pattern_of_the_projection_agrees_with_the_rule(event_time: str) -> None:
    # \z is how Java writes Python's \Z; the rest of the pattern means the same to both.
    pattern = parsing.visit_pattern("end").replace(r"\z", r"\Z")
    assert bool(re.search(pattern, _projected(event_time, "v"))) == (parse_event_time(event_time) is not None)


@pytest.mark.parametrize("end_mark", ["other", "en", "endd"])
def test_a_projection_with_another_end_mark_is_no_visit(end_mark: str) -> None:
    pattern = parsing.visit_pattern(end_mark).replace(r"\z", r"\Z")
    assert not re.search(pattern, _projected("2026-01-01T00:00:00Z", "v"))


def test_the_tail_is_what_follows_the_visit_id() -> None:
    assert _projected("2026-01-01T00:00:00Z", "v").endswith("v" + parsing.tail("end"))


def test_each_step_of_the_clock_reads_the_one_before_it() -> None:
    steps = frontier.steps(SETTINGS, "visit_id, event_time, source_partition")
    assert len(steps) == 4
    assert all(step.count("{rows}") == 1 for step in steps)
    produced: set[str] = {"visit_id", "event_time", "source_partition", "read_at"}
    for step in steps:
        made = set(re.findall(r"\bAS (\w+)", step))
        wanted = set(re.findall(r"\b((?:newest|read)_\w+|previous_second)\b", step)) - made
        assert wanted <= produced | {"read_at"}, step
        produced |= made


def test_every_partition_has_a_clock_of_its_own() -> None:
    steps = frontier.steps(Settings(environ={"STACK_TOPIC_PARTITIONS": "3"}), "source_partition")
    assert [f"newest_{p}" in steps[1] for p in range(4)] == [True, True, True, False]
