"""A PyFlink job as tutorials write it: a map function appends to a file, and Flink does not know that it is a sink.

python flink_own_sink.py BOOTSTRAP TOPIC WORK
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, SimpleStringSchema, WatermarkStrategy
from pyflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource

bootstrap, topic, work = sys.argv[1:]
checkpoints = Path(work, "checkpoint")
settings = {
    "execution.checkpointing.interval": "5 s",
    "execution.checkpointing.dir": checkpoints.as_uri(),
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "restart-strategy.type": "none",
    "parallelism.default": "1",
}
retained = sorted(checkpoints.glob("*/chk-*/_metadata"), key=lambda file: file.stat().st_mtime)
if retained:
    settings["execution.state-recovery.path"] = retained[-1].parent.as_uri()
configuration = Configuration()
for key, value in settings.items():
    configuration.set_string(key, value)


class AppendToFile(MapFunction):
    """Appends the page view of each visit to a file. A restore does not take back what was written."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: ARG002 - the name is Flink's
        """Open the file of this task."""
        self.file: Any = Path(work, "page_views.jsonl").open("a", buffering=1)  # noqa: SIM115 - until close

    def map(self, value: str) -> str:
        """Write one visit; returns its id."""
        visit = json.loads(value)
        self.file.write(json.dumps({name: visit[name] for name in ("visit_id", "event_time", "page")}) + "\n")
        return str(visit["visit_id"])

    def close(self) -> None:
        """Close the file."""
        self.file.close()


environment = StreamExecutionEnvironment.get_execution_environment(configuration)
source = (
    KafkaSource.builder()
    .set_bootstrap_servers(bootstrap)
    .set_topics(topic)
    .set_group_id("flink_own_sink")
    .set_starting_offsets(KafkaOffsetsInitializer.earliest())
    .set_value_only_deserializer(SimpleStringSchema())
    .build()
)
visits = environment.from_source(source, WatermarkStrategy.no_watermarks(), "visits").uid("visits")
visits.map(AppendToFile()).uid("append-to-file")
environment.execute("flink_own_sink")
