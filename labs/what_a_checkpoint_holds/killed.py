"""A query that counts pages over windows and is killed inside a batch, in a separate process.

Usage: python -m labs.what_a_checkpoint_holds.killed INPUT CHECKPOINT SCRATCH BATCH

It ends itself and its JVM by SIGKILL in batch BATCH: the state of the batch is written then, its commit is not.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from faultline.settings import Settings
from labs.frame.session import spark_session
from labs.what_a_checkpoint_holds.stateful import page_counts, visits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def main(arguments: list[str]) -> int:
    """Run the query until it is killed; returns 1 when it ends by itself."""
    source, checkpoint, scratch = map(Path, arguments[:3])
    number = int(arguments[3])
    settings = Settings()
    scratch.mkdir()
    with spark_session(settings, scratch) as spark:
        jvm = spark.sparkContext._gateway.proc  # type: ignore[union-attr]

        def die(batch: DataFrame, batch_id: int) -> None:
            # The tasks write the state.
            batch.collect()
            if batch_id == number:
                jvm.kill()
                os.kill(os.getpid(), signal.SIGKILL)

        rows = page_counts(
            visits(spark, source, settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS")),
            settings.number("FLINK_WINDOW_SECONDS"),
        )
        writer = rows.writeStream.foreachBatch(die).trigger(availableNow=True).outputMode("append")
        writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
