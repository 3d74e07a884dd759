"""The arguments of the verdict, the inspector and `transactions.sh`, which name files.

Both the script and the program behind it parse them; the script first replaces each file by its name in the stack.
`location` is the type of a path or URI: the script keeps the word, the program opens it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from faultline.command import seconds
from faultline.formats.verdict import NAMES

SHOWN = 5
"""Rows of each state in a report."""
NEEDS_FLINK = 3
"""Exit code of an inspector that needs Flink's classes, has none, and was told that another environment has them."""


def verdict_parser(location: Callable[[str], object] = str) -> argparse.ArgumentParser:
    """Build the parser."""
    found = argparse.ArgumentParser(
        prog="scripts/verdict.sh",
        description="""Judge a pipeline from its records: whether anything was lost, repeated, or never sent.

Exit code 0: holds, 1: violated, 2: unknown (nothing read, source still moving, pipeline behind, something unreadable).
""",
        allow_abbrev=False,
    )
    found.add_argument("pipeline", choices=NAMES, help="which pipeline to judge; the source is judged with each")
    found.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    found.add_argument("--verbose", action="store_true", help="also show pending records and how long it took")
    found.add_argument("--dump", type=Path, metavar="DIR", help="write every finding to this folder, as JSON lines")
    found.add_argument("--keep", type=Path, metavar="FILE", help="also write the verdict to this file, as JSON")
    found.add_argument("--bootstrap", metavar="HOST:PORT", help="the broker (default: the stack's)")
    found.add_argument("--sink", help="spark: which sink's output to judge (default: as the query ran)")
    found.add_argument("--output", type=location, metavar="FOLDER", help="spark: the sink's output folder")
    found.add_argument("--checkpoint", type=location, metavar="FOLDER", help="spark: the query's checkpoint folder")
    found.add_argument(
        "--as-is", action="store_true", help="judge a running pipeline: what is not due yet may be pending"
    )
    found.add_argument(
        "--wait",
        type=seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long the pipeline may take to commit everything; 0: not at all (default: %(default)g)",
    )
    return found


def inspector_arguments(words: Sequence[str], location: Callable[[str], object] = str) -> argparse.Namespace:
    """Parse the command line; `program`: the words after `--`, for the program of --against.

    `rows`: how many of each state a report shows.
    """
    end = words.index("--") if "--" in words else len(words)
    own, program = words[:end], list(words[end + 1 :])
    parser = argparse.ArgumentParser(
        prog="scripts/inspect.sh", description="What is in a checkpoint, and what a restart does."
    )
    parser.add_argument(
        "path",
        type=location,
        nargs="*",
        help="a Spark checkpoint location; a Flink job folder, chk-N or savepoint; also s3://BUCKET/PATH",
    )
    parser.add_argument("--diff", action="store_true", help="what changed from the first path to the second")
    parser.add_argument(
        "--against",
        metavar="JOB",
        help="whether this Flink job could restore it: windows, classic, or a program; its arguments follow --",
    )
    parser.add_argument(
        "--garbage", action="store_true", help="files that nothing needs, with the lines that remove them"
    )
    parser.add_argument(
        "--outside", metavar="FOLDER", help="with --garbage in a container: the project's folder on its host"
    )
    parser.add_argument("--json", action="store_true", help="JSON for programs (with --follow: one document a line)")
    parser.add_argument("--format", choices=("prose", "table"), help="default: table on a terminal, prose in a pipe")
    parser.add_argument("--follow", action="store_true", help="print each new batch or checkpoint until Ctrl-C")
    parser.add_argument(
        "--bootstrap", metavar="HOST:PORT", help="broker whose topic ends give the lag; default: the stack's"
    )
    parser.add_argument("--no-lag", action="store_true", help="do not ask a broker")
    parser.add_argument(
        "--state", action="store_true", help="read all state: keys, values, timers; with --diff what changed, by key"
    )
    parser.add_argument("--operator", metavar="NAME", help="with --state: of this operator alone (uid, name, hash)")
    parser.add_argument("--csv", action="store_true", help="with --state: only the rows, all of them, as CSV")
    parser.add_argument("--limit", type=int, metavar="N", help=f"rows of each state (default {SHOWN}; with --csv all)")
    parser.add_argument("--last", type=int, default=10, help="batches to show")
    parser.add_argument("--all", action="store_true", help="show every batch")
    parser.add_argument(
        "--sink", type=location, help="folder of Spark's file sink; default: the stack's for its queries"
    )
    parser.add_argument(
        "--without-flink",
        action="store_true",
        help=f"exit with {NEEDS_FLINK}, in silence, when Flink's classes are needed and missing here",
    )
    arguments = parser.parse_args(own)
    arguments.program = program
    if len(arguments.path) != (2 if arguments.diff else 1):
        parser.error("name one path, or two with --diff")
    if program and not arguments.against:
        parser.error("words after -- are for the program of --against JOB")
    if arguments.against and (arguments.diff or arguments.follow):
        parser.error("--against goes with neither --diff nor --follow")
    if arguments.garbage and (arguments.diff or arguments.follow or arguments.against):
        parser.error("--garbage goes with none of --diff, --follow and --against")
    if (arguments.csv or arguments.operator is not None) and not arguments.state:
        parser.error("--csv and --operator go with --state")
    if arguments.csv and (arguments.json or arguments.follow):
        parser.error("--csv goes with neither --json nor --follow")
    if arguments.last < 1 or (arguments.limit or 0) < 0:
        parser.error("--last must be at least 1 and --limit at least 0")
    arguments.rows = SHOWN if arguments.limit is None else arguments.limit
    return arguments


def transactions_parser(location: Callable[[str], object] = str) -> argparse.ArgumentParser:
    """Build the parser."""
    parser = argparse.ArgumentParser(
        prog="scripts/transactions.sh", description="Who holds readers of committed records back.", allow_abbrev=False
    )
    parser.add_argument("topic", help="the topic")
    act = parser.add_mutually_exclusive_group()
    act.add_argument("--commit", metavar="ID", help="commit this one, if a complete checkpoint promises it")
    act.add_argument("--abort", metavar="ID", help="abort this one, if no complete checkpoint promises to commit it")
    parser.add_argument("--apply", action="store_true", help="do it; without an ID, what is right for each")
    parser.add_argument("--checkpoints", type=location, help="a folder with the checkpoints of another Flink job")
    parser.add_argument(
        "--json", action="store_true", help="JSON for programs; fields as in faultline/inspector/transactions/model.py"
    )
    return parser
