"""Synchronize the visits topic to JSON files: `python -m spark_job.visits_json_synchronizer`.

Exit codes: 0 stopped (SIGTERM, SIGINT) or, with available-now, all done; 1 the query failed, or its files
cannot be read or written; 2 a wrong flag or something missing, nothing was started.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from faultline.command import first_line, run
from faultline.settings import Settings
from faultline.stop import Stop
from faultline.storage.batches import SINK_LOG, newest_batch
from faultline.waiting import attempts
from spark_job.broker import wait_for_topic
from spark_job.checkpoint import Checkpoint, claim
from spark_job.hold import Hold
from spark_job.options import FILES, SINKS, Options, UserError, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.2


def say(text: str) -> None:
    """Print a message."""
    sys.stderr.write(f"synchronizer: {text}\n")
    sys.stderr.flush()


def synchronize(options: Options, settings: Settings, stop: Stop) -> int:
    """Run the query until it ends or `stop`; returns the exit code."""
    topic = settings.text("VISITS_TOPIC")
    with claim(options, settings, topic) as owner:
        checkpoint = Checkpoint(options.checkpoint)
        interrupted, planned = checkpoint.interrupted(), checkpoint.planned()
        in_output = options.sink == FILES and interrupted == newest_batch(options.output / SINK_LOG)
        hold = Hold.of(options, 0 if planned is None else planned + 1)
        wait_for_topic(settings.bootstrap, topic, options.wait_seconds, lambda: stop.requested)
        # Not at the top: these imports take half a second, and a wrong flag should be reported at once.
        from py4j.protocol import Py4JError  # noqa: PLC0415
        from pyspark.errors import PySparkException  # noqa: PLC0415

        from spark_job import query as queries  # noqa: PLC0415
        from spark_job.report import Report  # noqa: PLC0415
        from spark_job.session import (  # noqa: PLC0415
            check_file_system,
            check_guard,
            check_java,
            check_ui_port,
            start_session,
        )

        check_java()
        check_guard()
        check_file_system(options)
        check_ui_port(settings)
        spark = start_session(options, settings, owner.fileno())
        stop.listen()
        report = Report(checkpoint, topic, interrupted, rerun_in_output=in_output)
        spark.streams.addListener(report)
        stream = queries.visits(spark, options, settings.bootstrap, topic)
        say(f"{options.sink} from {topic} at {settings.bootstrap} to {options.output}, checkpoint {options.checkpoint}")
        if interrupted is not None:
            say(f"batch {interrupted} was planned and not committed: it runs again now, with the same offsets")
        try:
            _run(stream, options, hold, checkpoint, stop)
            code = 0
        except (PySparkException, Py4JError) as error:
            say(f"the query failed: {first_line(error)}{next_step(error)}")
            code = 1
        # Its last event follows all batches: after it, each of them is printed.
        report.terminated.wait(timeout=20)
        spark.stop()
        left = checkpoint.interrupted()
        say(_last_words(checkpoint.committed(), left))
        return code if left is None else 1


def _run(stream: DataFrame, options: Options, hold: Hold | None, checkpoint: Checkpoint, stop: Stop) -> None:
    """Run the query until it ends or `stop`, then until the running batch is committed.

    Raises StreamingQueryException when the query fails.
    """
    from spark_job import query as queries  # noqa: PLC0415

    query = queries.start(stream, options, hold)
    while not stop.requested and query.isActive:
        time.sleep(_POLL_SECONDS)
    if not query.isActive:
        query.awaitTermination()
        return
    in_time = _stop_after_batch(query, checkpoint, options.stop_seconds)
    if in_time and checkpoint.interrupted() is not None:
        # The next trigger was faster than the stop: finish the batch that it planned too.
        queries.start(stream, options, None, only_interrupted=True).awaitTermination(round(options.stop_seconds))


def _stop_after_batch(query: StreamingQuery, checkpoint: Checkpoint, stop_seconds: float) -> bool:
    """Stop the query once the running batch is committed, or after `stop_seconds`; returns whether it was in time."""
    running = checkpoint.interrupted()
    if running is not None:
        say(f"stopping after batch {running}")
    in_time = False
    for _ in attempts(stop_seconds, 0.01):
        if in_time := running is None or checkpoint.interrupted() != running or not query.isActive:
            break
    query.stop()
    return in_time


def _last_words(committed: int | None, interrupted: int | None) -> str:
    done = "no batch is committed" if committed is None else f"batch {committed} is the last one committed"
    left = "" if interrupted is None else f"; batch {interrupted} is not and will run again at the next start"
    return f"stopped: {done}{left}"


def next_step(error: Exception) -> str:
    """Return the next step for a known error of Spark: the check of `failOnDataLoss`."""
    if "Some data may have been lost" not in str(error):
        return ""
    return " The topic was recreated or its records were deleted; start clean (scripts/down.sh --wipe)."


def main(arguments: list[str] | None = None) -> int:
    """Run the synchronizer; returns the exit code."""
    stop = Stop()
    try:
        settings = Settings()
        options = parse(arguments, settings)
        if options.sink not in SINKS:
            raise UserError(f"SPARK_SINK={options.sink} is unknown; one of {', '.join(SINKS)}")
        return synchronize(options, settings, stop)
    except OSError as error:
        # Such as an object store that went away: the next start sees what is committed.
        say(f"{error.filename or 'a file'}: {error.strerror or error}")
        return 1


if __name__ == "__main__":
    run("synchronizer", main)
