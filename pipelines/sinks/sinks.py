"""The same query into a sink of your choice: python sinks.py SINK BOOTSTRAP TOPIC WORK [TARGET].

TARGET: the topic or the database that the sink writes to; else it writes files below WORK. docs/which_sink.md says what
each sink loses or repeats when the query dies.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, get_json_object, struct, to_json

sink, bootstrap, topic, work, *targets = sys.argv[1:]
output, checkpoint, target = f"{work}/page_views", f"{work}/checkpoint", "".join(targets)
jdbc = {"url": f"jdbc:{target}", "driver": "org.postgresql.Driver"}
if sink.startswith("delta"):
    tables = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
elif sink.startswith("iceberg"):
    tables = {
        "spark.sql.catalog.tables": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.tables.type": "hadoop",
        "spark.sql.catalog.tables.warehouse": work,
        "spark.sql.defaultCatalog": "tables",
    }
else:
    tables = {}
spark = (
    SparkSession.builder.appName("page_views")
    .master("local[2]")
    .config(map={"spark.sql.shuffle.partitions": 2, **tables})
    .getOrCreate()
)
page_views = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", bootstrap)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .load()
    .withColumn("value", col("value").cast("string"))
    .select(
        "partition",
        "offset",
        get_json_object("value", "$.visit_id").alias("visit_id"),
        get_json_object("value", "$.event_time").alias("event_time"),
        get_json_object("value", "$.page").alias("page"),
    )
)


def files_append(batch: DataFrame, _batch_id: int) -> None:
    """Add files to a folder."""
    batch.write.mode("append").json(output)


def files_overwrite(batch: DataFrame, batch_id: int) -> None:
    """Write the folder of the batch, in place of an existing one."""
    batch.write.mode("overwrite").json(f"{output}/batch={batch_id}")


def delta_append(batch: DataFrame, _batch_id: int) -> None:
    """Append to a Delta table."""
    batch.write.format("delta").mode("append").save(output)


def delta_transaction(batch: DataFrame, batch_id: int) -> None:
    """Append to a Delta table, which skips a batch that it has of this query."""
    query_id = json.loads(Path(checkpoint, "metadata").read_text())["id"]
    writer = batch.write.format("delta").mode("append")
    writer.option("txnAppId", query_id).option("txnVersion", batch_id).save(output)


def iceberg_append(batch: DataFrame, _batch_id: int) -> None:
    """Append to an Iceberg table."""
    batch.writeTo("db.page_views").append()


def postgres_upsert(batch: DataFrame, _batch_id: int) -> None:
    """Insert what is not there yet by its key, the position in the topic."""
    batch.write.format("jdbc").options(**jdbc, dbtable="staged").mode("overwrite").save()
    execute(
        "CREATE TABLE IF NOT EXISTS page_views (partition int, position bigint, visit_id text, event_time text, "
        "page text, PRIMARY KEY (partition, position))",
        'INSERT INTO page_views SELECT partition, "offset", visit_id, event_time, page FROM staged '
        "ON CONFLICT DO NOTHING",
    )


def postgres_batch_id(batch: DataFrame, batch_id: int) -> None:
    """Insert the rows and the id of the batch in one transaction, which does nothing for a batch whose id is known."""
    batch.write.format("jdbc").options(**jdbc, dbtable="staged").mode("overwrite").save()
    execute(
        "CREATE TABLE IF NOT EXISTS page_views (visit_id text, event_time text, page text)",
        "CREATE TABLE IF NOT EXISTS batches (batch_id bigint PRIMARY KEY)",
        f"WITH new AS (INSERT INTO batches VALUES ({batch_id}) ON CONFLICT DO NOTHING RETURNING batch_id) "
        "INSERT INTO page_views SELECT visit_id, event_time, page FROM staged WHERE EXISTS (SELECT FROM new)",
    )


def execute(*statements: str) -> None:
    """Carry out statements in one transaction, by the driver that Spark has loaded for its own write."""
    connection = spark._jvm.java.sql.DriverManager.getConnection(jdbc["url"])
    try:
        connection.setAutoCommit(False)
        for statement in statements:
            connection.createStatement().execute(statement)
        connection.commit()
    finally:
        connection.close()


if sink.startswith("iceberg"):
    spark.sql(
        "CREATE TABLE IF NOT EXISTS db.page_views (partition int, offset bigint, visit_id string, event_time string, "
        "page string)"
    )
if sink == "file_sink":
    writer = page_views.writeStream.format("json").option("path", output)
elif sink == "delta":
    writer = page_views.writeStream.format("delta").option("path", output)
elif sink == "kafka":
    writer = (
        page_views.select(to_json(struct("visit_id", "event_time", "page")).alias("value"))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", target)
    )
elif sink == "iceberg":
    writer = page_views.writeStream.format("iceberg").option("path", "db.page_views").option("fanout-enabled", "true")
else:
    writer = page_views.writeStream.foreachBatch(globals()[sink])
writer.option("checkpointLocation", checkpoint).trigger(processingTime="1 second").start().awaitTermination()
