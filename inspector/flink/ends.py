"""Ends of topics, asked with the Kafka client that Flink's connector carries."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError

from inspector.ends import TIMEOUT_SECONDS, Ends, no_ends
from inspector.flink.jvm import flink_jvm, java_cause
from inspector.model import Partition


def ends(wanted: list[Partition], bootstrap: str) -> Ends:
    """First and last offset of each partition. Raises InspectorError when the broker does not answer."""
    milliseconds = int(TIMEOUT_SECONDS * 1000)
    with flink_jvm() as jvm:
        kafka = jvm.org.apache.flink.kafka.shaded.org.apache.kafka
        properties = jvm.java.util.Properties()
        for name, value in {
            "bootstrap.servers": bootstrap,
            "default.api.timeout.ms": str(milliseconds),
            "request.timeout.ms": str(milliseconds),
        }.items():
            properties.setProperty(name, value)
        admin = kafka.clients.admin.Admin.create(properties)
        try:
            found = []
            for specification in (kafka.clients.admin.OffsetSpec.earliest(), kafka.clients.admin.OffsetSpec.latest()):
                asked = jvm.java.util.HashMap()
                for each in wanted:
                    asked.put(kafka.common.TopicPartition(each.topic, each.partition), specification)
                answers = admin.listOffsets(asked).all().get()
                found.append({(key.topic(), key.partition()): answers[key].offset() for key in answers})
        except Py4JJavaError as error:
            raise no_ends(bootstrap, java_cause(error)) from None
        finally:
            admin.close(jvm.java.time.Duration.ofMillis(milliseconds))
    first, last = found
    return {partition: (first[partition], last[partition]) for partition in first}
