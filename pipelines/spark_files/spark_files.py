"""PySpark's file sink, as Spark's own guide writes it: the sink's log makes it exactly-once."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, get_json_object

bootstrap, topic, work = sys.argv[1:]
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
    get_json_object("value", "$.page").alias("page"),
)
query = (
    page_views.writeStream.format("json")
    .option("path", f"{work}/page_views")
    .option("checkpointLocation", f"{work}/checkpoint")
    .trigger(processingTime="2 seconds")
    .start()
)
query.awaitTermination()
