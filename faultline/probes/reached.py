"""States of the services, asked over the network: for a program in a container, which cannot see processes.

A service `answers`, is `silent`, or is `not known` where it cannot be asked. The JobManager is asked about
TaskManagers, the log about the generator.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import time
from collections.abc import Container, Iterable
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from faultline.copies import name_of, setting_of, taskmanager_service
from faultline.direct import open_direct
from faultline.probes.watch import Sample
from faultline.settings import Settings

ANSWERS, SILENT, NOT_KNOWN, NOT_REGISTERED = "answers", "silent", "not known", "not registered"
COME_IN = "visits come in"
"""The words for a generator that sends."""
_ANSWER_SECONDS = 2.0
_HEARTBEAT_SECONDS = 2.0
_VISIT_SECONDS = 5.0
_NO_ANSWER = (OSError, ValueError, http.client.HTTPException)


def reached_sample(settings: Settings) -> Sample:
    """Sample which services answer."""
    log = _Log(settings)
    spark = spark_pages(settings)

    def sample() -> dict[str, Any]:
        brokers, generator = log.words()
        jobmanagers = settings.flink_rest.split(",")
        names = [name_of("jobmanager", copy) for copy in range(1, len(jobmanagers) + 1)]
        states = brokers | {
            name: ANSWERS if _answer(f"{base}/overview") is not None else SILENT
            for name, base in zip(names, jobmanagers, strict=True)
        }
        found = next(filter(None, (_answer(f"{base}/taskmanagers") for base in jobmanagers)), None)
        states |= taskmanager_words(found, settings.number("FLINK_TASKMANAGERS"), time.time())
        states |= {"generator": generator}
        states |= {name: ANSWERS if answers_http(*place) else SILENT for name, place in spark.items()}
        return {"states": states, "processes": False}

    return sample


def spark_pages(settings: Settings) -> dict[str, tuple[str, int]]:
    """Host and port of the page of each of Spark's services."""
    ports = {"spark": "SPARK_UI_PORT"}
    if settings.has_spark_workers:
        workers = range(1, settings.number("SPARK_WORKERS") + 1)
        ports |= {"spark-master": "SPARK_MASTER_UI_PORT"}
        ports |= {name_of("spark-worker", copy): setting_of("SPARK_WORKER", "UI_PORT", copy) for copy in workers}
    return {name: (settings.service_host(name), settings.number(port)) for name, port in ports.items()}


def taskmanager_words(found: Any, wanted: int, now: float) -> dict[str, str]:
    """The words for each TaskManager, from the JobManager's list of them; None: it does not answer."""
    names = [name_of("taskmanager", copy) for copy in range(1, wanted + 1)]
    if found is None:
        return dict.fromkeys(names, NOT_KNOWN)
    silences: dict[str, float] = {}
    for each in found["taskmanagers"]:
        name = taskmanager_service(each["id"])
        # Despite its name it is a time, in milliseconds. One that was killed is listed for a while beside the new one.
        silence = now - each["timeSinceLastHeartbeat"] / 1000
        silences[name] = min(silence, silences.get(name, silence))
    return {name: _silence_words(silences.get(name)) for name in names}


def _silence_words(seconds: float | None) -> str:
    if seconds is None:
        return NOT_REGISTERED
    return ANSWERS if seconds <= _HEARTBEAT_SECONDS else f"{SILENT} for {seconds:.0f} s"


def broker_words(wanted: Iterable[int], alive: Container[int]) -> dict[str, str]:
    """The words for each broker, from the ids of those that the cluster counts."""
    return {name_of("kafka", broker): ANSWERS if broker in alive else SILENT for broker in wanted}


class _Log:
    """The brokers, and the end of the log."""

    def __init__(self, settings: Settings) -> None:
        self._topic, self._brokers = settings.text("VISITS_TOPIC"), settings.brokers
        self._admin = AdminClient({"bootstrap.servers": settings.bootstrap, "log_level": 0})
        self._end: int | None = None
        self._since = 0.0
        self._has_moved = False

    def words(self) -> tuple[dict[str, str], str]:
        """The words for each broker and for the generator."""
        try:
            metadata = self._admin.list_topics(timeout=_ANSWER_SECONDS)
        except KafkaException:
            return broker_words(self._brokers, ()), NOT_KNOWN
        brokers = broker_words(self._brokers, metadata.brokers)
        try:
            return brokers, self.generator_words(self._end_of_log(metadata), time.monotonic())
        except KafkaException:
            # A partition has no leader just now.
            return brokers, NOT_KNOWN

    def generator_words(self, end: int, now: float) -> str:
        if end != self._end:
            self._has_moved = self._end is not None
            self._end, self._since = end, now
        silence = now - self._since
        if silence >= _VISIT_SECONDS:
            return f"no visit for {silence:.0f} s"
        return COME_IN if self._has_moved else NOT_KNOWN

    def _end_of_log(self, metadata: Any) -> int:
        topics = metadata.topics
        partitions = topics[self._topic].partitions if self._topic in topics else {}
        asked = {TopicPartition(self._topic, number): OffsetSpec.latest() for number in partitions}  # type: ignore[no-untyped-call]
        if not asked:
            return 0
        futures = self._admin.list_offsets(asked, request_timeout=_ANSWER_SECONDS)
        return sum(int(future.result().offset) for future in futures.values())


def _answer(address: str) -> Any:
    """The JSON at an address; None when there is none in time."""
    with contextlib.suppress(*_NO_ANSWER), open_direct(address, _ANSWER_SECONDS) as answer:
        return json.loads(answer.read())
    return None


def answers_http(host: str, port: int) -> bool:
    """Return whether an HTTP server answers, with any status; where it leads to may take long."""
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=_ANSWER_SECONDS)) as connection:
        try:
            connection.request("GET", "/")
            connection.getresponse()
        except _NO_ANSWER:
            return False
    return True
