"""The file sink's own log, `_spark_metadata` in the output folder, compared with the commits.

Readers of the output read all entries since the last compact file, and fail where one is missing
(CompactibleFileStreamLog.allFiles); the query reads them again only to write the next compact file. The sink skips each
batch up to the newest in its log (FileStreamSink.addBatch).
"""

from __future__ import annotations

from faultline.inspector.model import Sink
from faultline.inspector.spark.log import LogError, list_log
from faultline.inspector.spark.sources import log_entries
from faultline.inspector.words import count
from faultline.storage.batches import SINK_LOG
from faultline.storage.location import Location


def read_sink(output: Location, checkpoint: Location, committed: set[int], problems: list[str]) -> Sink | None:
    """Read the log of a file sink; None when the folder has none. What is wrong goes to `problems`."""
    log = list_log(output / SINK_LOG)
    if log.latest < 0:
        return None
    files = 0
    for number in log.valid():
        if not log.has(number):
            problems.append(
                f"{log.path / log.file(number)} doesn't exist: every reader of the output fails on it, and so does the"
                " query when it compacts the log the next time"
            )
            continue
        try:
            files += sum(1 for entry in log_entries(log, number) if entry.get("action") == "add")
        except LogError as error:
            problems.append(f"{error}; readers of the sink would fail on it")
    batches = sorted({*log.numbers, *log.compact})
    words = f"the sink holds {count(files, 'file')}, its log goes up to batch {log.latest}"
    # A running query plans a batch before the sink has it, so the offsets are listed after the sink's log.
    if log.latest > list_log(checkpoint / "offsets").latest:
        problems.append(
            f"{log.path} goes up to batch {log.latest}, which this query has not planned yet: the sink skips every"
            " batch up to it, and what they read is never written"
        )
    elif log.latest > max(committed, default=-1):
        words += f"; batch {log.latest} is in the sink and not committed: a re-run skips it, nothing is written twice"
    return Sink(str(output), batches, files, words)
