"""Judge a pipeline from its records: whether anything was lost, repeated, or never sent.

Exit code 0: holds, 1: violated, 2: unknown (nothing read, source still moving, pipeline behind, something unreadable).
"""

from __future__ import annotations

import argparse
import faulthandler
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
from places.words import place_argument
from verdict.checker import Options, judge
from verdict.checkers import CHECKERS, PIPELINES
from verdict.cluster import Cluster
from verdict.dump import dump
from verdict.model import NotJudged, Outcome, Unknown, Verdict, unknown, worst
from verdict.report import print_report
from verdict.store import open_store


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m verdict", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "pipeline", choices=[*CHECKERS, "all"], help="which pipeline to judge; the source is judged with each"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--verbose", action="store_true", help="also show pending records and how long it took")
    parser.add_argument("--dump", type=Path, metavar="DIR", help="write every finding to this folder, as JSON lines")
    parser.add_argument("--bootstrap", metavar="HOST:PORT", help="the broker (default: the stack's)")
    parser.add_argument("--sink", help="spark: which sink's output to judge (default: as the query ran)")
    parser.add_argument("--output", type=place_argument, metavar="FOLDER", help="spark: the sink's output folder")
    parser.add_argument(
        "--checkpoint", type=place_argument, metavar="FOLDER", help="spark: the query's checkpoint folder"
    )
    parser.add_argument(
        "--as-is", action="store_true", help="judge a running pipeline: what is not due yet may be pending"
    )
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long the pipeline may take to commit everything; 0: not at all (default: %(default)g)",
    )
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def _judge(name: str, settings: Settings, bootstrap: str, options: Options, folder: Path | None) -> Verdict:
    """Judge one pipeline; an error in it does not stop the others. Raises NotJudged."""
    try:
        cluster = Cluster(bootstrap)
        checker = CHECKERS[name](settings, cluster, options)
        with open_store() as store:
            judgement = judge(checker, cluster, store, options)
            if folder is not None:
                dump(folder, judgement)
        return judgement.verdict
    except Unknown as reason:
        return unknown(name, str(reason))
    except (duckdb.Error, OSError, SettingsError) as error:
        return unknown(name, f"the verdict itself failed: {str(error).splitlines()[0]}")
    except NotJudged:
        raise
    except Exception as error:
        traceback.print_exc()
        return unknown(name, f"the verdict itself failed: {type(error).__name__}; please report the stack trace above")


def _judge_all(
    names: Sequence[str], settings: Settings, arguments: argparse.Namespace
) -> tuple[list[Verdict], list[str]]:
    options = Options(
        sink=arguments.sink,
        output=arguments.output,
        checkpoint=arguments.checkpoint,
        as_is=arguments.as_is,
        wait_seconds=arguments.wait,
    )
    verdicts, notes = [], []
    for name in names:
        try:
            verdicts.append(_judge(name, settings, arguments.bootstrap or settings.bootstrap, options, arguments.dump))
        except NotJudged as reason:
            notes.append(f"{name}: {reason}")
    return verdicts, notes


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, print, and return the exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        settings = Settings()
    except OSError as error:
        sys.stderr.write(f"verdict: .env cannot be read: {error.strerror}\n")
        return Outcome.UNKNOWN.exit_code
    asked = PIPELINES if chosen.pipeline == "all" else (chosen.pipeline,)
    names = tuple(dict.fromkeys(("source", *asked)))
    verdicts, notes = _judge_all(names, settings, chosen)
    outcome = worst(verdicts)
    if not chosen.json:
        print_report(verdicts, notes, verbose=chosen.verbose)
    else:
        print(json.dumps(_document(chosen.pipeline, outcome, verdicts, notes)))
    sys.stdout.flush()
    return outcome.exit_code


def _document(pipeline: str, outcome: Outcome, verdicts: Sequence[Verdict], notes: Sequence[str]) -> dict[str, object]:
    """Build the output of `--json`: for one pipeline its verdict and the source's, for `all` a list of verdicts.

    The outcome at the top is the worst one, like the exit code.
    """
    source = next((verdict.as_json() for verdict in verdicts if verdict.pipeline == "source"), None)
    if pipeline == "all":
        listed = [verdict.as_json() for verdict in verdicts if verdict.pipeline != "source"]
        return {
            "pipeline": "all", "outcome": outcome.value, "verdicts": listed, "source": source, "notes": list(notes)
        }  # fmt: skip
    own = next((verdict for verdict in verdicts if verdict.pipeline == pipeline), None)
    if own is None:
        return {"pipeline": pipeline, "outcome": outcome.value, "reason": "; ".join(notes), "examples": []}
    document = own.as_json()
    document["notes"] = [*own.notes, *notes]
    if pipeline == "source":
        return document
    if outcome is not own.outcome and source is not None:
        document["reason"] = f"{own.reason}; the source: {source['reason']}"
    return document | {"outcome": outcome.value, "source": source}


def _stop(number: int, _: FrameType | None) -> None:
    """Exit through the `finally` clauses, which remove the temporary database."""
    sys.exit(128 + number)


if __name__ == "__main__":
    # Kafka's client, DuckDB and Arrow are native code: after a crash of theirs Python says nothing without this.
    faulthandler.enable()
    signal.signal(signal.SIGTERM, _stop)
    try:
        code = main()
    except KeyboardInterrupt:
        print("verdict: interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`): nothing more can be printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = Outcome.UNKNOWN.exit_code
    except Exception:
        # Python's own exit code for this is 1, which here means "violated".
        traceback.print_exc()
        code = Outcome.UNKNOWN.exit_code
    sys.exit(code)
