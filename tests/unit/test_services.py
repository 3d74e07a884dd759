"""The table of services: which are part of a stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.settings import ROOT, read_env_file
from faultline.stack.errors import StackError
from faultline.stack.own import own_environment
from faultline.stack.services import (
    COUNTS,
    LOCAL_PORTS,
    TABLE,
    copies,
    mebibytes,
    profiles,
    require_counts,
    service,
    services,
    table,
)

DEFAULTS = read_env_file(ROOT / ".env")


def names(**settings: str) -> list[str]:
    return [row.name for row in services(DEFAULTS | settings)]


def test_there_is_one_of_each_by_default() -> None:
    assert names() == ["kafka", "jobmanager", "taskmanager", "generator", "spark", "page"]
    assert [row.name for row in table(DEFAULTS) if row.one_shot] == ["topics", "submit"]


@pytest.mark.parametrize(
    ("setting", "value", "added"),
    [
        ("FLINK_TASKMANAGERS", "2", {"taskmanager-2"}),
        ("FLINK_TASKMANAGERS", "4", {"taskmanager-2", "taskmanager-3", "taskmanager-4"}),
        ("FLINK_JOBMANAGERS", "2", {"zookeeper", "jobmanager-2"}),
        ("KAFKA_BROKERS", "3", {"kafka-2", "kafka-3"}),
        ("SPARK_WORKERS", "2", {"spark-master", "spark-worker", "spark-worker-2"}),
        ("METRICS", "1", {"exporter", "prometheus"}),
    ],
)
def test_a_setting_adds_services(setting: str, value: str, added: set[str]) -> None:
    assert set(names(**{setting: value})) - set(names()) == added


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("taskmanager-2", {}, r"STACK_FLINK_TASKMANAGERS=2 scripts/up\.sh adds it"),
        ("spark-master", {}, r"STACK_SPARK_WORKERS=1 scripts/up\.sh adds it"),
        ("spark-worker-3", {"SPARK_WORKERS": "2"}, r"STACK_SPARK_WORKERS=3 scripts/up\.sh adds it"),
        ("prometheus", {}, r"STACK_METRICS=1 scripts/up\.sh adds it"),
        ("kafka-2", {}, r"down\.sh --wipe, then STACK_KAFKA_BROKERS=3 scripts/up\.sh"),
        ("store", {}, r"down\.sh --wipe, then STACK_DATA=s3://faultline scripts/up\.sh"),
        ("tasmanager", {}, "the services are: kafka, jobmanager, taskmanager, generator, spark"),
    ],
)
def test_a_service_of_another_setting_is_refused_with_the_setting(
    name: str, settings: dict[str, str], message: str
) -> None:
    with pytest.raises(StackError, match=message):
        service(name, DEFAULTS | settings)


@pytest.mark.parametrize(
    ("setting", "value", "choices"),
    [
        # Two brokers would be no safer than one: without either of them there is no majority.
        ("KAFKA_BROKERS", "2", "1 or 3"),
        ("FLINK_JOBMANAGERS", "3", "1 or 2"),
        ("METRICS", "yes", "0 or 1"),
        *(("FLINK_TASKMANAGERS", wrong, "1, 2, 3 or 4") for wrong in ("5", "0", "two", "")),
    ],
)
def test_other_numbers_are_refused(setting: str, value: str, choices: str) -> None:
    require_counts(DEFAULTS)
    with pytest.raises(StackError, match=f"{setting}={value}: choose {choices}"):
        require_counts(DEFAULTS | {setting: value})


def test_copies_go_by_number() -> None:
    four = copies("taskmanager", DEFAULTS | {"FLINK_TASKMANAGERS": "4"})
    assert [(row.name, row.copy) for row in four] == [
        ("taskmanager", 1), ("taskmanager-2", 2), ("taskmanager-3", 3), ("taskmanager-4", 4),
    ]  # fmt: skip
    assert {row.family for row in four} == {"taskmanager"}
    assert four[1].command == ["faultline/services/taskmanager.sh", "taskmanager-2"]


def test_compose_has_a_profile_for_each_number_that_adds_a_service() -> None:
    rows = {row.name: row for row in TABLE}
    assert rows["taskmanager"].profiles == rows["kafka"].profiles == []
    assert rows["taskmanager-3"].profiles == ["FLINK_TASKMANAGERS-3", "FLINK_TASKMANAGERS-4"]
    assert rows["zookeeper"].profiles == ["FLINK_JOBMANAGERS-2"]
    # One that people type.
    assert rows["prometheus"].profiles == ["metrics"]


@pytest.mark.parametrize("name", COUNTS)
def test_a_service_is_part_of_the_stack_when_its_profile_is_chosen(name: str) -> None:
    for number in COUNTS[name]:
        settings = DEFAULTS | {name: str(number)}
        chosen = [row for row in TABLE if not row.profiles or profiles(settings) & set(row.profiles)]
        assert chosen == list(table(settings))


def test_the_first_number_of_each_setting_is_the_usual_one() -> None:
    assert {name: str(numbers[0]) for name, numbers in COUNTS.items()}.items() <= DEFAULTS.items()


def test_each_broker_has_ports_of_its_own() -> None:
    third = service("kafka-3", DEFAULTS | {"KAFKA_BROKERS": "3"})
    assert third.command == ["faultline/services/kafka.sh", "kafka-3"]
    assert third.port == third.published == "KAFKA_3_PORT"
    assert third.listens == ("KAFKA_3_PORT", "KAFKA_3_CONTAINER_PORT", "KAFKA_3_CONTROLLER_PORT")


def test_data_in_an_object_store_adds_the_store_and_its_bucket() -> None:
    settings = DEFAULTS | {"DATA": "s3://faultline"}
    assert {row.name for row in table(settings)} - {row.name for row in table(DEFAULTS)} == {"store", "bucket"}
    chosen = [row for row in TABLE if not row.profiles or profiles(settings) & set(row.profiles)]
    assert chosen == list(table(settings))
    # Whoever names another store has one already.
    assert not copies("store", settings | {"STORE_ENDPOINT": "http://127.0.0.1:1"})


def test_whoever_reads_or_writes_data_needs_the_store() -> None:
    settings = DEFAULTS | {"DATA": "s3://faultline"} | {name: str(numbers[-1]) for name, numbers in COUNTS.items()}
    without = {row.family for row in table(settings) if "store" not in row.needs}
    # The page and the exporter tell what does not answer.
    watch = {"page", "exporter", "prometheus"}
    assert without == {"kafka", "zookeeper", "store", "spark-master", "topics", "generator"} | watch


def test_each_service_starts_after_those_that_it_needs() -> None:
    settings = DEFAULTS | {"DATA": "s3://faultline"} | {name: str(numbers[-1]) for name, numbers in COUNTS.items()}
    order = [row.name for row in table(settings)]
    for row in table(settings):
        assert all(
            order.index(need.name) < order.index(row.name) for each in row.needs for need in copies(each, settings)
        )


def test_more_services_need_more_memory() -> None:
    assert mebibytes(DEFAULTS) == 3072
    assert mebibytes(DEFAULTS | {"METRICS": "1"}) < 3072 + 300
    # Three brokers have smaller heaps than one.
    assert mebibytes(DEFAULTS | {"KAFKA_BROKERS": "3"}) == 3072 - 448 + 3 * 384
    assert mebibytes(DEFAULTS | {"SPARK_DRIVER_MEMORY": "1g"}) == 3072 - 640 + 1024
    assert mebibytes(DEFAULTS | {"SPARK_DRIVER_MEMORY": "655360k"}) == mebibytes(DEFAULTS)
    assert mebibytes(DEFAULTS | {"SPARK_DRIVER_MEMORY": "1T"}) == 3072 - 640 + (1 << 20)
    assert mebibytes(DEFAULTS | {"SPARK_WORKERS": "2"}) == 3072 + 224 + 2 * 832
    assert all(row.mebibytes for row in TABLE if not row.one_shot)
    with pytest.raises(StackError, match="SPARK_DRIVER_MEMORY=lots is not a size like 512m or 1g"):
        mebibytes(DEFAULTS | {"SPARK_DRIVER_MEMORY": "lots"})


NOT_OF_SERVICES = {"NOTEBOOK_PORT", "PAGE_BUTTONS_PORT"}


def test_every_port_that_a_service_listens_on_is_a_setting() -> None:
    assert set(LOCAL_PORTS) == {name for name in DEFAULTS if name.endswith("_PORT")} - NOT_OF_SERVICES


def test_stacks_beside_the_one_in_use_share_no_port_and_settings_win(tmp_path: Path) -> None:
    one, other = (
        own_environment(tmp_path / name, {"VISITS_TOPIC": name}, {"STACK_HOME": "/elsewhere"}) for name in ("a", "b")
    )
    ports = [[value for name, value in each.items() if name.endswith("_PORT")] for each in (one, other)]
    assert {f"STACK_{port}" for port in LOCAL_PORTS} <= one.keys()
    assert len(set(ports[0] + ports[1])) == 2 * len(ports[0])
    assert (other["STACK_HOME"], other["STACK_VISITS_TOPIC"]) == (str(tmp_path / "b"), "b")
