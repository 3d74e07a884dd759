"""Judge a pipeline from its records: whether anything was lost, repeated, or never sent.

Exit code 0: holds, 1: violated, 2: unknown (nothing read, source still moving, something unreadable).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import duckdb

from contract.settings import Settings, SettingsError
from verdict.cluster import Cluster
from verdict.flink import judge_flink
from verdict.model import Outcome, Unknown, Verdict, unknown
from verdict.report import print_report
from verdict.spark import SINKS, judge_spark, places

_PIPELINES = ("spark", "flink")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m verdict", description=__doc__)
    parser.add_argument("pipeline", choices=[*_PIPELINES, "all"], help="which pipeline to judge")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="the broker (default: the stack's)")
    parser.add_argument("--sink", choices=SINKS, help="spark: which sink's output to judge (default: SPARK_SINK)")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="spark: the sink's output folder")
    parser.add_argument("--checkpoint", type=Path, metavar="FOLDER", help="spark: the query's checkpoint folder")
    parser.add_argument(
        "--wait",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="flink: how long the job may take to commit what it has read; 0: not at all (default: %(default)s)",
    )
    return parser


def _judge(pipeline: str, settings: Settings, options: argparse.Namespace) -> Verdict:
    try:
        cluster = Cluster(options.bootstrap or settings.bootstrap)
        if pipeline == "flink":
            return judge_flink(settings, cluster, options.wait)
        return judge_spark(settings, cluster, places(settings, options.sink, options.output, options.checkpoint))
    except Unknown as reason:
        return unknown(pipeline, str(reason))
    except (duckdb.Error, OSError, SettingsError) as error:
        return unknown(pipeline, f"the judge itself failed: {str(error).splitlines()[0]}")


def _worst(verdicts: Sequence[Verdict]) -> Outcome:
    """Choose the outcome of several judgements: violated before unknown before holds."""
    found = {verdict.outcome for verdict in verdicts}
    return next(outcome for outcome in (Outcome.VIOLATED, Outcome.UNKNOWN, Outcome.HOLDS) if outcome in found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, print, and give the exit code."""
    options = _parser().parse_args(arguments)
    settings = Settings()
    pipelines = _PIPELINES if options.pipeline == "all" else (options.pipeline,)
    verdicts = [_judge(pipeline, settings, options) for pipeline in pipelines]
    worst = _worst(verdicts)
    if not options.json:
        print_report(verdicts)
    elif options.pipeline == "all":
        whole = {"pipeline": "all", "outcome": worst.value, "verdicts": [verdict.as_json() for verdict in verdicts]}
        print(json.dumps(whole))
    else:
        print(json.dumps(verdicts[0].as_json()))
    sys.stdout.flush()
    return worst.exit_code


def _stop(number: int, _: FrameType | None) -> None:
    """End by way of the `finally` clauses, which remove the temporary database."""
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    try:
        code = main()
    except KeyboardInterrupt:
        print("verdict: interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        # The reader of the table left (`| head`): nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = Outcome.UNKNOWN.exit_code
    except Exception:
        # Python's own exit code for this is 1, which here says "violated".
        traceback.print_exc()
        code = Outcome.UNKNOWN.exit_code
    sys.exit(code)
