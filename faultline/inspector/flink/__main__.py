"""Flink checkpoints on the command line; runs in the Flink environment.

Usage:
    python -m faultline.inspector.flink list [--json]      chk-N and savepoints of this stack, newest last
    python -m faultline.inspector.flink resolve WHICH      the folder of latest, chk-N or a path, if it can be restored
    python -m faultline.inspector.flink offsets PATH       {"0": 900, "1": 900}: where a restore reads on, if it may
    python -m faultline.inspector.flink describe PATH... [--follow] [--rows N] [--state]   a JSON report a line
    python -m faultline.inspector.flink rows PATH [--operator NAME] [--limit N]   the state, a line of JSON a row
    python -m faultline.inspector.flink follow [--until FILE] [--words FOLDER]   retained checkpoints, at each change
    python -m faultline.inspector.flink against PATH JOB [ARGUMENT...]   whether the job can restore it, as JSON

Exit codes: 0 done, 1 refused or unreadable, 2 wrong usage, 3 `latest` and no checkpoint at all.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.formats.checkpoint import Checkpoint
from faultline.formats.jobs import JOBS, MAIN, PROGRAMS, settings_of
from faultline.inspector.errors import InspectorError, reading
from faultline.inspector.flink.folder import (
    LATEST,
    METADATA,
    CheckpointFolder,
    is_checkpoint_folder,
    list_folders,
    resolve,
)
from faultline.inspector.model import as_dict
from faultline.settings import Settings
from faultline.storage.data import flink_checkpoints
from faultline.storage.location import Location
from faultline.storage.words import location_argument

FOLLOW_SECONDS = 1.0
"""Seconds between two looks at a folder that is followed; listing a folder costs a millisecond."""


def print_list(folders: list[CheckpointFolder], as_json: bool) -> None:
    """Print one line per checkpoint, or a JSON array of objects."""
    if as_json:
        print(json.dumps([Checkpoint(**asdict(folder) | {"path": str(folder.path)}).as_json() for folder in folders]))
        return
    if not folders:
        print("no checkpoint yet; scripts/flink_status.sh shows whether the job runs", file=sys.stderr)
    for folder in folders:
        age = time.time() - (folder.completed_at or folder.changed_at)
        state = "complete" if folder.complete else f"incomplete ({folder.reason})"
        print(f"{folder.job_id or '-':32}  {folder.name:24}  {age:8.0f} s old  {folder.size:10} bytes  {state}")


def print_reports(paths: list[Location], rows: int, follow: bool, everything: bool) -> None:
    """Print one JSON report per path; with `follow`, again whenever the newest restorable checkpoint changes."""
    from faultline.inspector.flink.jvm import flink_jvm  # noqa: PLC0415
    from faultline.inspector.flink.report import describe, folder_report  # noqa: PLC0415

    if follow:
        # It waits for the end of a report: an exception in the middle of a call of py4j can be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    with ExitStack() as stack:
        jvm: Any = None
        for path in paths:
            described: list[tuple[str, bool]] = []
            while True:
                report, folders = folder_report(path)
                states = [(step.path, step.state == "complete") for step in report.steps]
                if states != described:
                    if folders:
                        jvm = jvm or stack.enter_context(flink_jvm(paths))
                        describe(jvm, report, folders, rows, everything)
                    print(json.dumps(as_dict(report)), flush=True)
                described = states
                if not follow:
                    break
                if signal.sigtimedwait({signal.SIGINT}, FOLLOW_SECONDS):
                    raise KeyboardInterrupt


def print_rows(path: Location, operator: str | None, limit: int | None) -> None:
    """Print the state of the checkpoint, or of the newest below the path, a line of JSON a row."""
    from faultline.inspector.flink.jvm import flink_jvm  # noqa: PLC0415
    from faultline.inspector.flink.report import folder_report  # noqa: PLC0415
    from faultline.inspector.flink.rows import rows  # noqa: PLC0415

    report, folders = folder_report(path)
    if not folders:
        raise InspectorError("; ".join(report.problems))
    with flink_jvm([path]) as jvm:
        for lines in rows(jvm, folders[0], operator, limit):
            sys.stdout.write(lines)


def print_retained(root: Location, until: Path | None, words: Path | None) -> None:
    """Print the retained checkpoints whenever they change, until the file `until` appears; keep words on each."""
    from faultline.inspector.flink.follow import follow  # noqa: PLC0415

    follow(root, FOLLOW_SECONDS, lambda: until is not None and until.exists(), words)


def print_comparison(path: Location, job: str, arguments: list[str]) -> None:
    """Print one line of JSON: the checkpoint, or the newest below the path, set against the job."""
    from faultline.inspector.against import as_document  # noqa: PLC0415
    from faultline.inspector.flink.against import compare  # noqa: PLC0415

    folder = path.parent if path.name == METADATA else path
    which = folder if is_checkpoint_folder(folder) else resolve(LATEST, folder)
    program = PROGRAMS.get(job, Path(job))
    if not program.is_file():
        raise InspectorError(f"{job} is neither a job of this project ({', '.join(JOBS)}) nor a file")
    print(json.dumps(as_document(compare(which, job, program, arguments))))


def main() -> int:
    """Run the command line; returns the exit code. Raises InspectorError and SettingsError."""
    parser = argparse.ArgumentParser(prog="faultline.inspector.flink", description="Flink checkpoints of this stack.")
    parser.add_argument("--job", choices=JOBS, default=MAIN, help="whose checkpoints (default: %(default)s)")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list").add_argument("--json", action="store_true")
    commands.add_parser("resolve").add_argument("which")
    commands.add_parser("offsets").add_argument("path")
    describe_parser = commands.add_parser("describe")
    describe_parser.add_argument("paths", type=location_argument, nargs="+")
    describe_parser.add_argument("--rows", type=int, default=5)
    describe_parser.add_argument("--follow", action="store_true")
    describe_parser.add_argument("--state", action="store_true")
    rows_parser = commands.add_parser("rows")
    rows_parser.add_argument("path", type=location_argument)
    rows_parser.add_argument("--operator")
    rows_parser.add_argument("--limit", type=int)
    follow_parser = commands.add_parser("follow")
    follow_parser.add_argument("--until", type=Path, metavar="FILE")
    follow_parser.add_argument("--words", type=Path, metavar="FOLDER")
    against_parser = commands.add_parser("against")
    against_parser.add_argument("path", type=location_argument)
    against_parser.add_argument("planned", metavar="JOB")
    against_parser.add_argument("words", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    with reading("a checkpoint"):
        root = flink_checkpoints(settings_of(arguments.job, Settings()))
        if arguments.command == "list":
            print_list(list_folders(root) if root.is_dir() else [], arguments.json)
        elif arguments.command == "resolve":
            print(resolve(arguments.which, root))
        elif arguments.command == "describe":
            print_reports(arguments.paths, arguments.rows, arguments.follow, arguments.state)
        elif arguments.command == "rows":
            print_rows(arguments.path, arguments.operator, arguments.limit)
        elif arguments.command == "follow":
            print_retained(root, arguments.until, arguments.words)
        elif arguments.command == "against":
            print_comparison(arguments.path, arguments.planned, arguments.words)
        else:
            # Only the Flink environment has the JVM's client library; list and resolve do not need it.
            from faultline.inspector.flink.restore_point import restore_offsets  # noqa: PLC0415

            print(json.dumps(restore_offsets(resolve(arguments.path, root))))
    return 0


if __name__ == "__main__":
    run("inspect", main)
