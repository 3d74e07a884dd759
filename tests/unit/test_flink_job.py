"""SQL and configuration that the job writes out, without a JVM."""

from __future__ import annotations

import pytest

from faultline.formats.jobs import AT_LEAST_ONCE, EXACTLY_ONCE
from faultline.settings import Settings, SettingsError
from faultline.stack.settings import load
from flink_job.guarantees import (
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
    sinks = (*SINKS, "VISIT_PAGES_TOPIC")
    prefixes = [sink_options(SETTINGS, sink, EXACTLY_ONCE)["sink.transactional-id-prefix"] for sink in sinks]
    assert not [(a, b) for a in prefixes for b in prefixes if a != b and b.startswith(a)]


def test_at_least_once_has_no_transaction() -> None:
    assert job_configuration(SETTINGS, AT_LEAST_ONCE)["execution.checkpointing.mode"] == "AT_LEAST_ONCE"
    for sink in SINKS:
        options = sink_options(SETTINGS, sink, AT_LEAST_ONCE)
        assert options["sink.delivery-guarantee"] == "at-least-once"
        assert not [name for name in options if "transaction" in name]


def test_state_on_the_heap_is_written_whole() -> None:
    configuration = job_configuration(SETTINGS, EXACTLY_ONCE)
    assert configuration["state.backend.type"] == "hashmap"
    assert configuration["execution.checkpointing.incremental"] == "false"
    assert not [name for name in configuration if "rocksdb" in name]


def test_state_in_rocksdb_is_written_as_far_as_it_is_new() -> None:
    changed = SETTINGS.changed({"FLINK_STATE_BACKEND": "rocksdb"})
    configuration = job_configuration(changed, EXACTLY_ONCE)
    assert configuration["state.backend.type"] == "rocksdb"
    assert configuration["execution.checkpointing.incremental"] == "true"
    assert configuration["state.backend.rocksdb.memory.partitioned-index-filters"] == "true"
    # It takes half of the slot's managed memory, and the buffers of windows keep what they had.
    assert changed.flink_managed_megabytes >= 2 * SETTINGS.flink_managed_megabytes


@pytest.mark.parametrize(
    ("unaligned", "mode", "expected"),
    [
        ("false", EXACTLY_ONCE, "false"),
        ("true", EXACTLY_ONCE, "true"),
        # Nothing is aligned then.
        ("true", AT_LEAST_ONCE, "false"),
    ],
)
def test_barriers_overtake_records_if_asked_to(unaligned: str, mode: str, expected: str) -> None:
    configuration = job_configuration(SETTINGS.changed({"FLINK_UNALIGNED": unaligned}), mode)
    assert configuration["execution.checkpointing.unaligned.enabled"] == expected
    assert ("execution.checkpointing.aligned-checkpoint-timeout" in configuration) == (expected == "true")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("FLINK_STATE_BACKEND", "rocks", "is not one of hashmap, rocksdb"),
        ("FLINK_UNALIGNED", "yes", "is not one of false, true"),
        ("FLINK_MANAGED_MEMORY", "128", "is not a size like 320m"),
    ],
)
def test_a_value_that_no_setting_has_is_refused_before_anything_starts(name: str, value: str, words: str) -> None:
    with pytest.raises(SettingsError, match=f"setting {name}='{value}' {words}; correct it in .env"):
        load({f"STACK_{name}": value}, {}, {})


def test_the_source_starts_at_the_beginning_and_reads_committed_visits() -> None:
    options = source_options(SETTINGS)
    assert options["scan.startup.mode"] == "earliest-offset"
    assert options["properties.isolation.level"] == "read_committed"


def test_a_quote_in_an_option_stays_in_it() -> None:
    assert "'a' = 'it''s'" in with_clause({"a": "it's"})
