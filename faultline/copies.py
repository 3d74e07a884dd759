"""Services of which a stack has several: the name of each copy, and the settings of its ports.

Runs on Python 3.9 too, since the process layer on the host imports it.
"""

from __future__ import annotations


def name_of(service: str, copy: int) -> str:
    """Name of a copy: `taskmanager`, `taskmanager-2`, `taskmanager-3`."""
    return service if copy == 1 else f"{service}-{copy}"


def setting_of(prefix: str, setting: str, copy: int) -> str:
    """Name of a copy's setting: KAFKA_PORT, KAFKA_2_PORT, KAFKA_3_PORT for the prefix KAFKA and the setting PORT."""
    return f"{prefix}_{setting}" if copy == 1 else f"{prefix}_{copy}_{setting}"


def taskmanager_service(resource_id: str) -> str:
    """The service of a TaskManager, whose id is its name and the time of its start (flink_job/conf/config.yaml)."""
    return resource_id.rpartition("_")[0]
