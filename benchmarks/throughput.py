"""Both pipelines against Kafka's own consumer perf test, in one run, records counted in and out.

Usage: python -m benchmarks.throughput [RECORDS]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.own_stack import OwnStack, exit_code_of, own_stack, row
from contract.settings import ROOT
from stack.arguments import count
from stack.errors import StackError
from stack.messages import say
from stack.services import service

_LIMIT_SECONDS = "300"
_WIDTHS = "{:<34} {:>12} {:>12} {:>12} {:>8}  {}"
_SETTINGS = {
    # Offsets are committed with each checkpoint: a short interval is a fine clock.
    "FLINK_CHECKPOINT_INTERVAL_MS": "1000",
    # The window of the published design that this job is compared with elsewhere.
    "FLINK_WINDOW_SECONDS": "45",
}
_BATCH = re.compile(r" batch \d+.*, (\d+) rows, ([0-9.]+) s$", re.MULTILINE)
_WARMING_BATCHES = 2
_PERF_FIELDS = 9


class Rate(NamedTuple):
    """Records read, records per second, and a further figure of the tool."""

    records: int
    per_second: int
    fetching: int = 0


def consumer(stack: OwnStack, records: int, group: str) -> Rate:
    """Run Kafka's own consumer test. Its columns: nMsg, nMsg.sec and fetch.nMsg.sec."""
    topic = stack.settings.values["VISITS_TOPIC"]
    output = stack.ask(
        service("kafka"), "kafka-consumer-perf-test.sh", "--bootstrap-server", stack.backend.broker_inside,
        "--topic", topic, "--group", f"perf-{group}", "--num-records", str(records), "--timeout", "60000",
        "--hide-header",
    )  # fmt: skip
    lines = [line.split(",") for line in output.splitlines() if line.count(",") + 1 >= _PERF_FIELDS]
    fields = lines[-1]
    return Rate(int(fields[4]), int(float(fields[5])), int(float(fields[9])))


def windows(stack: OwnStack, records: int) -> tuple[Rate, list[str]]:
    """Let the Flink job read the topic; the second half of the records is measured, all of them are judged."""
    stack.start("jobmanager", "taskmanager")
    environ = stack.backend.environment("tools")
    command = ["python", "-m", "benchmarks.windows_rate", str(records), _LIMIT_SECONDS]
    with subprocess.Popen(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True) as measuring:
        stack.ask(service("jobmanager"), "python", "-m", "flink_job.submit")
        output, _ = measuring.communicate()
    # With --as-is: the last windows stay open, since closing visits would change the number of records.
    judged = stack.tool("benchmarks.judge", "flink", "--as-is").split()
    stack.ask(service("jobmanager"), "python", "-m", "flink_job.cancel")
    ends = stack.ask(
        service("kafka"), "kafka-get-offsets.sh", "--bootstrap-server", stack.backend.broker_inside,
        "--topic", stack.settings.values["VISIT_WINDOWS_TOPIC"],
    )  # fmt: skip
    stack.stop("taskmanager", "jobmanager")
    written = sum(int(line.rpartition(":")[2]) for line in ends.splitlines())
    return Rate(written, int(json.loads(output)["records_per_second"])), judged


def synchronizer(stack: OwnStack, records: int) -> tuple[Rate, int, list[str]]:
    """Let the synchronizer read the topic in five batches; the first two warm the JVM."""
    environ = stack.backend.environment("tools")
    command = ["python", "-m", "spark_job.visits_json_synchronizer", "--trigger", "available-now"]
    command += ["--max-offsets-per-trigger", str(records // 5)]
    done = subprocess.run(command, cwd=ROOT, env=environ, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise StackError(f"the synchronizer failed: {done.stderr.strip().splitlines()[-1]}", 1)
    batches = [(int(rows), float(seconds)) for rows, seconds in _BATCH.findall(done.stderr)]
    measured = batches[_WARMING_BATCHES:]
    per_second = int(sum(rows for rows, _ in measured) / sum(seconds for _, seconds in measured))
    lines = sum(_count_lines(path) for path in (stack.home.root / "output").rglob("part-*"))
    return Rate(sum(rows for rows, _ in batches), per_second), lines, stack.tool("benchmarks.judge", "spark").split()


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def run(records: int) -> None:
    """Measure all, and print the tables. Raises StackError when the records counted differ."""
    with own_stack(_SETTINGS) as stack:
        stack.start("kafka")
        stack.topics()
        say(f"filling the topic with {records} visits ...")
        acknowledged = stack.tool("benchmarks.fill", str(records)).strip()
        say("Kafka's own consumer, twice; the second run counts ...")
        consumer(stack, records, "cold")
        baseline = consumer(stack, records, "warm")
        say("Flink: the second half of the records is measured, all of them are judged ...")
        flink, flink_judged = windows(stack, records)
        say("Spark: five batches in one run; the first two warm the JVM ...")
        spark, lines, spark_judged = synchronizer(stack, records)

    def ratio(per_second: int) -> str:
        return f"{per_second / baseline.per_second:.2f}"

    row(_WIDTHS, f"{records} visits, {acknowledged} in topic", "records in", "out", "records/s", "ratio", "verdict")
    row(_WIDTHS, "Kafka consumer perf test", baseline.records, "-", baseline.per_second, "1.00", "-")
    fetching = baseline.fetching
    row(_WIDTHS, "  the same, fetching alone", baseline.records, "-", fetching, ratio(fetching), "-")
    row(
        _WIDTHS, "Flink windows, exactly-once", records, flink.records, flink.per_second, ratio(flink.per_second),
        flink_judged[0],
    )  # fmt: skip
    row(
        _WIDTHS, "Spark synchronizer, file sink", spark.records, lines, spark.per_second, ratio(spark.per_second),
        spark_judged[0],
    )  # fmt: skip
    print()
    row(_WIDTHS, f"judging these {records} visits", "expected", "observed", "seconds", "MiB", "verdict")
    for name, judged in (("flink", flink_judged), ("spark", spark_judged)):
        row(_WIDTHS, f"verdict {name}", judged[1], judged[2], judged[3], judged[6], judged[0])
    if {baseline.records, spark.records, lines} != {records}:
        raise StackError(f"the records counted differ from {records}: this is not a valid measurement", 1)


def main() -> int:
    """Run the command line; returns the exit code."""
    return exit_code_of("throughput.sh", lambda: run(count((sys.argv[1:] or ["1000000"])[0], "RECORDS")))


if __name__ == "__main__":
    sys.exit(main())
