"""Which services answer, asked over the network: for a page in a container, which cannot see processes.

The words: `answers`, `silent`, and for what cannot be asked `not known`. The JobManager is asked about TaskManagers,
the log about the generator.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import time
import urllib.request
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from contract.settings import Settings
from measure.watch import Sample

ANSWERS, SILENT, NOT_KNOWN, NOT_REGISTERED = "answers", "silent", "not known", "not registered"
_ANSWER_SECONDS = 2.0
_HEARTBEAT_SECONDS = 2.0
_VISIT_SECONDS = 5.0
_NO_ANSWER = (OSError, ValueError, http.client.HTTPException)


def reached_sample(settings: Settings) -> Sample:
    """Sample which services answer."""
    log = _Log(settings)
    spark = (settings.service_host("spark"), settings.number("SPARK_UI_PORT"))

    def sample() -> dict[str, Any]:
        kafka, generator = log.words()
        jobmanagers = settings.flink_rest.split(",")
        names = ["jobmanager", "jobmanager-2"][: len(jobmanagers)]
        states = {"kafka": kafka}
        states |= {
            name: ANSWERS if _answer(f"{base}/overview") is not None else SILENT
            for name, base in zip(names, jobmanagers, strict=True)
        }
        found = next(filter(None, (_answer(f"{base}/taskmanagers") for base in jobmanagers)), None)
        states |= taskmanager_words(found, settings.number("FLINK_TASKMANAGERS"), time.time())
        states |= {"generator": generator, "spark": ANSWERS if answers_http(*spark) else SILENT}
        return {"states": states, "processes": False}

    return sample


def taskmanager_words(found: Any, wanted: int, now: float) -> dict[str, str]:
    """The words for each TaskManager, from the JobManager's list of them; None: it does not answer."""
    names = ["taskmanager", *(f"taskmanager-{number}" for number in range(2, wanted + 1))]
    if found is None:
        return dict.fromkeys(names, NOT_KNOWN)
    silences: dict[str, float] = {}
    for each in found["taskmanagers"]:
        # It registers under the name of its service, and the time of its start.
        name = str(each["id"]).rpartition("_")[0]
        # Despite its name it is a time, in milliseconds. One that was killed is listed for a while beside the new one.
        silence = now - each["timeSinceLastHeartbeat"] / 1000
        silences[name] = min(silence, silences.get(name, silence))
    return {name: _silence_words(silences.get(name)) for name in names}


def _silence_words(seconds: float | None) -> str:
    if seconds is None:
        return NOT_REGISTERED
    return ANSWERS if seconds <= _HEARTBEAT_SECONDS else f"{SILENT} for {seconds:.0f} s"


class _Log:
    """The broker, and the end of the log."""

    def __init__(self, settings: Settings) -> None:
        self._topic = settings.text("VISITS_TOPIC")
        self._admin = AdminClient({"bootstrap.servers": settings.bootstrap, "log_level": 0})
        self._end: int | None = None
        self._moved_at: float | None = None

    def words(self) -> tuple[str, str]:
        """The words for the broker and for the generator."""
        try:
            end = self._ask()
        except KafkaException:
            return SILENT, NOT_KNOWN
        return ANSWERS, self.generator_words(end, time.monotonic())

    def generator_words(self, end: int, now: float) -> str:
        if self._end is None:
            self._end = end
            self._moved_at = now
            return NOT_KNOWN
        if end != self._end:
            self._end, self._moved_at = end, now
        silence = now - (self._moved_at or now)
        return "visits come in" if silence < _VISIT_SECONDS else f"no visit for {silence:.0f} s"

    def _ask(self) -> int:
        topics = self._admin.list_topics(timeout=_ANSWER_SECONDS).topics
        partitions = topics[self._topic].partitions if self._topic in topics else {}
        asked = {TopicPartition(self._topic, number): OffsetSpec.latest() for number in partitions}  # type: ignore[no-untyped-call]
        if not asked:
            return 0
        futures = self._admin.list_offsets(asked, request_timeout=_ANSWER_SECONDS)
        return sum(int(future.result().offset) for future in futures.values())


def _answer(address: str) -> Any:
    """The JSON at an address; None when there is none in time."""
    with contextlib.suppress(*_NO_ANSWER), urllib.request.urlopen(address, timeout=_ANSWER_SECONDS) as answer:
        return json.loads(answer.read())
    return None


def answers_http(host: str, port: int) -> bool:
    """Whether an HTTP server answers, with any status; where it leads to may take long."""
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=_ANSWER_SECONDS)) as connection:
        try:
            connection.request("GET", "/")
            connection.getresponse()
        except _NO_ANSWER:
            return False
    return True
