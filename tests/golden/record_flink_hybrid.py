"""One Flink job whose source holds the splits of another one: HybridSource, files and then Kafka. Flink environment.

Usage: record_flink_hybrid.py BOOTSTRAP FOLDER      with a topic `visits`; leaves FOLDER/<job id>/chk-N
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyflink.common import Configuration, SimpleStringSchema, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.connectors.hybrid_source import HybridSource
from pyflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from faultline.waiting import wait_until
from tests.golden.record_flink import ARTIFACTS


def main() -> None:
    """Run the job until a checkpoint has a split of Kafka."""
    bootstrap, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    visits = folder.parent / "visits.txt"
    visits.write_text("v0\nv1\n")
    configuration = Configuration()
    for name, value in {
        "pipeline.jars": next((ARTIFACTS / "jars" / "flink").glob("*.jar")).as_uri(),
        "parallelism.default": "1",
        "restart-strategy.type": "none",
        "rest.bind-address": "127.0.0.1",
        "rest.bind-port": "0",
        "execution.checkpointing.interval": "500 ms",
        "execution.checkpointing.dir": folder.as_uri(),
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    }.items():
        configuration.set_string(name, value)
    job = StreamExecutionEnvironment.get_execution_environment(configuration)
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), visits.as_uri()).build()
    kafka = (
        KafkaSource.builder()
        .set_bootstrap_servers(bootstrap)
        .set_topics("visits")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    source = HybridSource.builder(files).add_source(kafka).build()
    lines = job.from_source(source, WatermarkStrategy.no_watermarks(), "hybrid", Types.STRING()).uid("hybrid")
    lines.print().uid("print")
    client = job.execute_async("hybrid")

    def reads_kafka() -> bool:
        # The split of Kafka, in the class that wraps it, names its topic.
        newest = max(folder.glob("*/chk-*/_metadata"), key=lambda file: file.stat().st_mtime, default=None)
        return newest is not None and b"visits" in newest.read_bytes().replace(b"visits.txt", b"")

    wait_until(reads_kafka, "a checkpoint of Kafka's splits", seconds=60)
    client.cancel().result()


if __name__ == "__main__":
    main()
