"""A synchronizer as one would write it first: parse the JSON, write JSON. A baseline for benchmarks.

Usage: python -m benchmarks.naive_synchronizer OUTPUT CHECKPOINT      in the tools environment
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from faultline.settings import Settings, artifacts

SCHEMA = "visit_id STRING, event_time STRING, user_id STRING, page STRING, context STRING"


def main() -> int:
    """Read the topic once and end."""
    output, checkpoint = sys.argv[1:]
    settings = Settings()
    jars = sorted(map(str, (artifacts() / "jars" / "spark").glob("*.jar")))
    spark = (
        SparkSession.builder.appName("naive")
        .master(settings.text("SPARK_MASTER"))
        .config("spark.jars", ",".join(jars))
        # The same JVM as the synchronizer's: only the work is compared.
        .config("spark.driver.memory", settings.text("SPARK_DRIVER_MEMORY"))
        .config("spark.driver.extraJavaOptions", settings.text("JVM_FLAGS"))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    visits = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.bootstrap)
        .option("subscribe", settings.text("VISITS_TOPIC"))
        .option("startingOffsets", "earliest")
        .load()
        .select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("visit"))
        .select("visit.*")
    )
    query = (
        visits.writeStream.format("json")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(output)
    )
    query.awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
