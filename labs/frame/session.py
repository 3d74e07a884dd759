"""The labs' Spark: the synchronizer's settings, without a UI, and with Delta Lake on request."""

from __future__ import annotations

import logging
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from faultline.settings import Settings
from spark_job.delta import DELTA_CONFIGURATION
from spark_job.options import alone
from spark_job.session import check_java, configuration, launch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_END_SECONDS = 30


def lab_configuration(settings: Settings, scratch: Path, name: str) -> dict[str, str]:
    """Return the synchronizer's configuration, changed for a lab; Spark's temporary files go to `scratch`."""
    return configuration(alone(settings, name, scratch), settings, scratch) | {
        # A lab may run while the stack runs, whose UI has the port.
        "spark.ui.enabled": "false",
        # Keep the progress of every batch until the end.
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        # Small data on two cores: the default 200 would be 200 tasks per batch. Pinned in a checkpoint's first batch.
        "spark.sql.shuffle.partitions": "2",
        # Plans of Delta are wide: no warning about truncated plans in a log.
        "spark.sql.debug.maxToStringFields": "1000",
    }


@contextmanager
def spark_session(
    settings: Settings,
    scratch: Path,
    *,
    delta: bool = False,
    more: Mapping[str, str | None] | None = None,
) -> Iterator[SparkSession]:
    """Start a JVM and a session in it; both end with the block. `more` holds further settings, None takes one away.

    What the JVM prints on its standard output, the console sink's batches, goes to `scratch/console.txt`.
    Raises CommandError: Java is missing, or Spark does not start.
    """
    check_java()
    scratch.mkdir(parents=True, exist_ok=True)
    wanted: dict[str, str | None] = {
        **lab_configuration(settings, scratch, scratch.parent.name),
        **(DELTA_CONFIGURATION if delta else {}),
        **(more or {}),
    }
    conf = {name: value for name, value in wanted.items() if value is not None}
    on_interrupt = signal.getsignal(signal.SIGINT)
    with console(scratch).open("ab") as output:
        spark = launch(conf, settings, {"stdout": output})
    # The SparkContext's handler of SIGINT cancels jobs; here SIGINT ends the lab.
    signal.signal(signal.SIGINT, on_interrupt)
    # py4j logs the stack trace of a call that Ctrl-C ended; errors that matter reach the lab as exceptions.
    logging.getLogger().addHandler(logging.NullHandler())
    process: subprocess.Popen[bytes] = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
    try:
        yield spark
    except (KeyboardInterrupt, SystemExit, Py4JError):
        # Interrupted during a call: the connection can no longer be used.
        raise
    except BaseException:
        _stop(spark)
        raise
    else:
        _stop(spark)
    finally:
        _end(process)


def _stop(spark: SparkSession) -> None:
    for query in spark.streams.active:
        query.stop()
    if spark._jvm is not None:
        # Its snapshot thread would warn that the session has ended.
        spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    spark.stop()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the JVM: otherwise pyspark keeps it, and its settings, for the next session of this process."""
    from pyspark import SparkContext  # noqa: PLC0415

    # A JVM that pyspark started ends with its standard input.
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = None
    SparkContext._jvm = None


def console(scratch: Path) -> Path:
    """Return the file with the output of the console sink."""
    return scratch / "console.txt"
