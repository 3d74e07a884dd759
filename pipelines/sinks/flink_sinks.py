"""The same query of Flink into a sink of your choice.

Usage: python flink_sinks.py SINK BOOTSTRAP TOPIC WORK [TARGET [JARS [TASKS]]]

TARGET: the topic or the database that the sink writes to, or `files` for a sink that writes below WORK. TASKS: 2 unless
given. The job goes on from the newest checkpoint below WORK. docs/which_sink.md says what each sink loses or repeats
when the job dies.
"""

import os
import sys
from pathlib import Path

from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

sink, bootstrap, topic, work, target, jars, tasks, *_ = [*sys.argv[1:], "", "", ""]
checkpoints = Path(work, "checkpoint")
settings = {
    "execution.checkpointing.interval": "1 s",
    "execution.checkpointing.dir": checkpoints.as_uri(),
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    # A task that fails is not started again inside the job: whoever runs this program does that.
    "restart-strategy.type": "none",
    "parallelism.default": tasks or "2",
}
retained = sorted(checkpoints.glob("*/chk-*/_metadata"), key=lambda file: file.stat().st_mtime)
if retained:
    settings["execution.state-recovery.path"] = retained[-1].parent.as_uri()
if jars:
    settings["pipeline.jars"] = jars
    # Flink looks for classes of Hadoop outside the job's jars only.
    os.environ["HADOOP_CLASSPATH"] = ":".join(jar.removeprefix("file://") for jar in jars.split(";") if "hadoop" in jar)
if sink == "iceberg_fixed_job":
    # The newer one of Iceberg's two sinks, and a job that keeps its id, as a job on Kubernetes does.
    settings["table.exec.iceberg.use-v2-sink"] = "true"
    settings["$internal.pipeline.job-id"] = "0123456789abcdef" * 2
table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
for key, value in settings.items():
    table.get_config().set(key, value)

KAFKA = f"'connector' = 'kafka', 'properties.bootstrap.servers' = '{bootstrap}', 'format' = 'json'"
JDBC = f"'connector' = 'jdbc', 'url' = 'jdbc:{target}', 'table-name' = 'page_views'"
ICEBERG = (
    "'connector' = 'iceberg', 'catalog-type' = 'hadoop', 'catalog-name' = 'tables', "
    f"'warehouse' = '{work}', 'catalog-database' = 'db'"
)
SINKS = {
    "kafka_exactly_once": f"{KAFKA}, 'topic' = '{target}', 'sink.delivery-guarantee' = 'exactly-once', "
    "'sink.transactional-id-prefix' = 'page_views', 'properties.transaction.timeout.ms' = '900000'",
    "kafka_at_least_once": f"{KAFKA}, 'topic' = '{target}', 'sink.delivery-guarantee' = 'at-least-once'",
    "files": f"'connector' = 'filesystem', 'path' = '{work}/page_views', 'format' = 'json', "
    "'sink.rolling-policy.rollover-interval' = '1 s', 'sink.rolling-policy.check-interval' = '1 s'",
    "iceberg": ICEBERG,
    "iceberg_fixed_job": ICEBERG,
    "postgres_append": JDBC,
    "postgres_upsert": JDBC,
}
key = ", PRIMARY KEY (part, pos) NOT ENFORCED" if sink == "postgres_upsert" else ""
if sink.startswith("postgres"):
    # The driver is among the jobs' jars, which only this class loader has.
    java = get_gateway().jvm
    loader = java.Thread.currentThread().getContextClassLoader()
    driver = loader.loadClass("org.postgresql.Driver").newInstance()
    connection = driver.connect(f"jdbc:{target}", java.java.util.Properties())
    connection.createStatement().execute(
        "CREATE TABLE IF NOT EXISTS page_views (part int, pos bigint, visit_id text, event_time text, page text"
        + key.replace(" NOT ENFORCED", "")
        + ")"
    )
    connection.close()
table.execute_sql(
    "CREATE TABLE visits (visit_id STRING, event_time STRING, page STRING, part INT METADATA FROM 'partition' VIRTUAL, "
    f"pos BIGINT METADATA FROM 'offset' VIRTUAL) WITH ({KAFKA}, 'topic' = '{topic}', "
    "'scan.startup.mode' = 'earliest-offset', 'json.ignore-parse-errors' = 'true')"
)
table.execute_sql(
    "CREATE TABLE page_views (part INT, pos BIGINT, visit_id STRING, event_time STRING, "
    f"page STRING{key}) WITH ({SINKS[sink]})"
)
table.execute_sql("INSERT INTO page_views SELECT part, pos, visit_id, event_time, page FROM visits").wait()
