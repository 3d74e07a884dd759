"""Restore the job of record_flink.py from one checkpoint after the other. Flink environment.

Usage: python -m tests.golden.restore_flink BOOTSTRAP CHECKPOINTS REST_PORT DELIVERY PATH...

Prints a line of JSON for each path: Flink's reason why the job did not come to run, empty when every task of it ran.
"""

from __future__ import annotations

import json
import sys
from urllib.request import urlopen

from py4j.protocol import Py4JError
from pyflink.util.exceptions import JavaException

from faultline.inspector.flink.jvm import java_cause
from faultline.waiting import wait_until
from tests.golden.record_flink import started

_LIMIT_SECONDS = 120


def refused(*words: str) -> str:
    """Start the job and cancel it as soon as every task runs; returns the reason when it ends before."""
    try:
        client = started(*words)
    except (Py4JError, JavaException) as error:
        return _reason(error)
    result = client.get_job_execution_result()
    job = f"http://127.0.0.1:{words[2]}/jobs/{client.get_job_id()}"
    wait_until(lambda: result.done() or _all_run(job), "the job to run or to end", seconds=_LIMIT_SECONDS)
    if result.done():
        try:
            result.result()
        except Py4JError as error:
            return _reason(error)
    client.cancel().result()
    wait_until(result.done, "the end of the job", seconds=_LIMIT_SECONDS)
    return ""


def _all_run(job: str) -> bool:
    try:
        with urlopen(job, timeout=5) as answer:
            states = {vertex["status"] for vertex in json.loads(answer.read())["vertices"]}
    except OSError:
        return False
    return states == {"RUNNING"}


def _reason(error: Py4JError | JavaException) -> str:
    return java_cause(error) if isinstance(error, Py4JError) else str(error).strip().splitlines()[-1]


if __name__ == "__main__":
    given, paths = sys.argv[1:5], sys.argv[5:]
    for path in paths:
        print(json.dumps(refused(*given, path)), flush=True)
