"""The file sink's own log, `_spark_metadata` in the output folder, compared with the commits.

Readers of the output read all entries since the last compact file, and fail where one is missing
(CompactibleFileStreamLog.allFiles); the query reads them again only to write the next compact file.
"""

from __future__ import annotations

from faultline.inspector.model import Sink
from faultline.inspector.spark.log import LogError, list_log
from faultline.inspector.spark.sources import log_entries
from faultline.inspector.words import count
from faultline.storage.location import Location

SINK_LOG = "_spark_metadata"


def read_sink(output: Location, committed: set[int], problems: list[str]) -> Sink | None:
    """Read the log of a file sink; None when the folder has none. What cannot be read goes to `problems`."""
    log = list_log(output / SINK_LOG)
    if not log.numbers and not log.compact:
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
    ahead = [each for each in log.numbers if committed and each > max(committed)]
    if not committed:
        ahead = log.numbers
    words = f"the sink holds {count(files, 'file')}, its log goes up to batch {batches[-1]}"
    if ahead:
        words += f"; batch {ahead[-1]} is in the sink and not committed: a re-run skips it, nothing is written twice"
    return Sink(str(output), batches, files, words)
