"""Three ways to write in foreachBatch a batch that may run again after a crash; one of them is naive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from spark_job.checkpoint import BATCH_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame


def append(output: Path, file_format: str) -> Callable[[DataFrame, int], None]:
    """Naive: a batch that runs again appends its rows again."""

    def write(batch: DataFrame, _batch_id: int) -> None:
        batch.write.mode("append").format(file_format).save(str(output))

    return write


def overwrite(output: Path, file_format: str) -> Callable[[DataFrame, int], None]:
    """Idempotent: a batch has the same offsets each time it runs, and overwrites its own folder."""

    def write(batch: DataFrame, batch_id: int) -> None:
        batch.write.mode("overwrite").format(file_format).save(str(output / f"{BATCH_FOLDER}{batch_id}"))

    return write


def delta_once(output: Path, checkpoint: Path) -> Callable[[DataFrame, int], None]:
    """Idempotent: Delta skips a write whose txnVersion is not above the last one of its txnAppId.

    Each checkpoint has its own txnAppId: with a new checkpoint, batch ids begin again at 0, and under the
    old txnAppId Delta would skip them all.
    """

    def write(batch: DataFrame, batch_id: int) -> None:
        query_id = json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"]
        writer = batch.write.format("delta").mode("append")
        writer.option("txnAppId", query_id).option("txnVersion", batch_id).save(str(output))

    return write
