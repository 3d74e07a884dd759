"""The predicted restart, tested: a query is killed inside a batch, inspected, and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Producer

from faultline.inspector.spark.report import read_report
from faultline.settings import ROOT
from tests.stack.broker import Broker

RECORDER = ROOT / "tests" / "golden" / "record_spark.py"

# The query of the recipe kafka_killed, with another sink: it says which batch it got, and from which offsets.
AGAIN = """
import json, sys
from pathlib import Path
from tests.golden.record_spark import session, visits

def first(rows, batch):
    found = rows.groupBy("partition").agg({"offset": "min"}).collect()
    last = rows.groupBy("partition").agg({"offset": "max"}).collect()
    low = {row["partition"]: row["min(offset)"] for row in found}
    high = {row["partition"]: row["max(offset)"] + 1 for row in last}
    seen.append({"batch": batch, "ranges": sorted([p, low[p], high[p]] for p in low)})

seen = []
query = (visits(session(), sys.argv[2], 10).writeStream.foreachBatch(first)
    .option("checkpointLocation", sys.argv[3]).trigger(processingTime="0 seconds").start())
# Until it is committed: stopped before that, the batch would be run a third time.
commits = Path(sys.argv[3]) / "commits"
while query.isActive and not (seen and (commits / str(seen[0]["batch"])).exists()):
    query.awaitTermination(1)
query.stop()
Path(sys.argv[1]).write_text(json.dumps(seen[0]))
"""


def test_a_killed_batch_is_rerun_as_predicted(broker: Broker, tmp_path: Path) -> None:
    broker.create_topics("visits")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number in range(60):
        producer.produce("visits", value=f"visit {number}", partition=number % 2)
    producer.flush()
    recipe = [sys.executable, str(RECORDER), str(tmp_path), broker.bootstrap, "kafka_killed"]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    # To a file: the JVM outlives the killed process for a moment, and would hold a pipe open.
    log = tmp_path / "killed.log"
    with log.open("wb") as out:
        killed = subprocess.run(recipe, stdout=out, stderr=out, check=False, env=environ, timeout=180)
    assert killed.returncode == -signal.SIGKILL, log.read_text()[-2000:]

    checkpoint = tmp_path / "kafka_killed" / "checkpoint"
    predicted = read_report(checkpoint, None, None).restart
    assert predicted is not None
    assert predicted.action == "re-run"

    answer = tmp_path / "answer.json"
    command = [sys.executable, "-c", AGAIN, str(answer), broker.bootstrap, str(checkpoint)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True, env=environ, timeout=180)
    done = json.loads(answer.read_text())
    assert done["batch"] == predicted.step
    assert done["ranges"] == [[each.partition, each.start, each.end] for each in predicted.partitions]

    after = read_report(checkpoint, None, None)
    assert predicted.step in [step.number for step in after.steps if step.state == "committed"]
