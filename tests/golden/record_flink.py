"""One Flink job in a local cluster, for checkpoints that tests/golden/record.py copies. Flink environment.

Usage: record_flink.py BOOTSTRAP CHECKPOINTS REST_PORT DELIVERY [RESTORE_PATH]

Visits are counted in windows of 10 s of event time; DELIVERY is exactly-once or at-least-once, or rocksdb: exactly-once
with the state in RocksDB and incremental checkpoints. State goes to files (none inline), so that there are state files
to lose. Prints the job id, then waits until it is killed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyflink.common import Configuration, JobClient
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.table import StreamTableEnvironment

ARTIFACTS = Path(os.environ.get("STACK_ARTIFACTS") or Path(__file__).resolve().parents[2] / ".artifacts")


def started(bootstrap: str, checkpoints: str, rest_port: str, delivery: str, restore: str = "") -> JobClient:
    """Submit the job to a cluster inside this process; the cluster ends with the job."""
    connector = os.environ.get("GOLDEN_FLINK_CONNECTOR") or str(next((ARTIFACTS / "jars" / "flink").glob("*.jar")))
    options = {
        "pipeline.jars": f"file://{connector}",
        "pipeline.name": "golden",
        "parallelism.default": "2",
        "pipeline.max-parallelism": "8",
        # The first failure ends a restore, with its reason.
        "restart-strategy.type": "none",
        "rest.port": rest_port,
        "rest.bind-port": rest_port,
        "rest.bind-address": "127.0.0.1",
        "execution.checkpointing.interval": "2 s",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.dir": f"file://{checkpoints}",
        "execution.checkpointing.savepoint-dir": f"file://{checkpoints}",
        "execution.checkpointing.num-retained": "3",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        # Names before Flink 2.0 of what is above and below; each release ignores the other's.
        "state.checkpoints.dir": f"file://{checkpoints}",
        "state.savepoints.dir": f"file://{checkpoints}",
        "state.checkpoints.num-retained": "3",
        "execution.checkpointing.externalized-checkpoint-retention.legacy": "RETAIN_ON_CANCELLATION",
        "state.storage.fs.memory-threshold": "0",
        "execution.checkpointing.data-inline-threshold": "0",
        "table.local-time-zone": "UTC",
    }
    if delivery == "rocksdb":
        options |= {"state.backend.type": "rocksdb", "execution.checkpointing.incremental": "true"}
        # Its name before Flink 2.0.
        options["state.backend.incremental"] = "true"
    guarantee = "at-least-once" if delivery == "at-least-once" else "exactly-once"
    if restore:
        options["execution.state-recovery.path"] = restore
        options["execution.savepoint.path"] = restore
    configuration = Configuration()
    for name, value in options.items():
        configuration.set_string(name, value)
    tables = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment(configuration))
    tables.execute_sql(f"""CREATE TABLE visits (
        visit_id STRING, event_time TIMESTAMP_LTZ(3), WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND
    ) WITH ('connector' = 'kafka', 'topic' = 'visits', 'properties.bootstrap.servers' = '{bootstrap}',
        'properties.group.id' = 'golden', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json',
        'json.timestamp-format.standard' = 'ISO-8601')""")
    transactions = "'sink.transactional-id-prefix' = 'golden', 'properties.transaction.timeout.ms' = '600000',"
    tables.execute_sql(f"""CREATE TABLE visit_windows (
        visit_id STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), visits BIGINT
    ) WITH ('connector' = 'kafka', 'topic' = 'visit_windows', 'properties.bootstrap.servers' = '{bootstrap}',
        {transactions if guarantee == "exactly-once" else ""}
        'format' = 'json', 'sink.delivery-guarantee' = '{guarantee}')""")
    result = tables.execute_sql("""INSERT INTO visit_windows
        SELECT visit_id, window_start, window_end, COUNT(*)
        FROM TABLE(TUMBLE(TABLE visits, DESCRIPTOR(event_time), INTERVAL '10' SECOND))
        GROUP BY visit_id, window_start, window_end""")
    client = result.get_job_client()
    assert client is not None
    return client


def main() -> None:
    """Run the job until it ends."""
    client = started(*sys.argv[1:])
    print(client.get_job_id(), flush=True)
    client.get_job_execution_result().result()


if __name__ == "__main__":
    main()
