"""The table of services: which are part of a stack."""

from __future__ import annotations

import pytest

from contract.settings import ROOT, read_env_file
from stack.errors import StackError
from stack.services import LOCAL_PORTS, require_counts, service, services, table

DEFAULTS = read_env_file(ROOT / ".env")


def names(**settings: str) -> list[str]:
    return [row.name for row in services(DEFAULTS | settings)]


def test_there_is_one_of_each_by_default() -> None:
    assert names() == ["kafka", "jobmanager", "taskmanager", "generator", "spark", "page"]
    assert [row.name for row in table(DEFAULTS) if row.one_shot] == ["topics", "submit"]


def test_a_setting_adds_a_spare_taskmanager() -> None:
    assert set(names(FLINK_TASKMANAGERS="2")) - set(names()) == {"taskmanager-2"}
    row = service("taskmanager-2", DEFAULTS | {"FLINK_TASKMANAGERS": "2"})
    assert row.command == ["services/taskmanager.sh", "taskmanager-2"]


def test_a_setting_adds_a_standby_jobmanager_and_zookeeper() -> None:
    assert set(names(FLINK_JOBMANAGERS="2")) - set(names()) == {"zookeeper", "jobmanager-2"}


def test_a_service_of_another_setting_is_refused_with_the_setting() -> None:
    with pytest.raises(StackError, match=r"STACK_FLINK_TASKMANAGERS=2 scripts/up\.sh adds it"):
        service("taskmanager-2", DEFAULTS)
    with pytest.raises(StackError, match="the services are: kafka, jobmanager, taskmanager, generator, spark"):
        service("tasmanager", DEFAULTS)


def test_other_numbers_are_refused() -> None:
    require_counts(DEFAULTS)
    with pytest.raises(StackError, match="FLINK_JOBMANAGERS=3: choose 1 or 2"):
        require_counts(DEFAULTS | {"FLINK_JOBMANAGERS": "3"})


NOT_OF_SERVICES = {"NOTEBOOK_PORT", "PAGE_BUTTONS_PORT"}


def test_every_port_that_a_service_listens_on_is_a_setting() -> None:
    assert set(LOCAL_PORTS) == {name for name in DEFAULTS if name.endswith("_PORT")} - NOT_OF_SERVICES
