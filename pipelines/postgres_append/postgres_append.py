"""PySpark's foreachBatch into Postgres, as tutorials write it: each batch is appended by JDBC."""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, get_json_object

bootstrap, topic, checkpoint, url = sys.argv[1:]
spark = SparkSession.builder.appName("page_views").master("local[2]").getOrCreate()
visits = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", bootstrap)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .load()
    .select(col("value").cast("string").alias("value"))
)
page_views = visits.select(
    get_json_object("value", "$.visit_id").alias("visit_id"),
    get_json_object("value", "$.event_time").alias("event_time"),
    get_json_object("value", "$.page").alias("page"),
)


def append(batch: DataFrame, batch_id: int) -> None:  # noqa: ARG001 - not looked at, which is the mistake
    """Append the rows of a batch."""
    (
        batch.write.format("jdbc")
        .option("url", f"jdbc:{url}")
        .option("driver", "org.postgresql.Driver")
        .option("dbtable", "page_views")
        .mode("append")
        .save()
    )


query = (
    page_views.writeStream.foreachBatch(append)
    .option("checkpointLocation", checkpoint)
    .trigger(processingTime="2 seconds")
    .start()
)
query.awaitTermination()
