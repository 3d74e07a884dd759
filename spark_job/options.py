"""Flags of the synchronizer; defaults come from the stack's settings."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path

from faultline.command import CommandError, Flags, seconds
from faultline.formats import run
from faultline.settings import Settings
from faultline.storage.data import notes_of, spark_checkpoints, spark_outputs
from faultline.storage.location import Location
from faultline.storage.words import location_argument

SINKS = run.SINKS
FILES, FOREACH_APPEND, FOREACH_OVERWRITE = SINKS
AVAILABLE_NOW = "available-now"
HOLD_NEXT = "next"
_INTERVAL = re.compile(r"^\s*(\d+)\s+(milliseconds?|seconds?|minutes?|hours?)\s*$")
_MASTER = re.compile(r"^(local(\[(\d+|\*)(,\s*\d+)?\])?|spark://\S+|k8s://\S+|yarn)$")


class UserError(CommandError):
    """A user's mistake or something missing; the message is one line: the thing, the cause, the next step."""


@dataclass(frozen=True)
class Options:
    """One run. `hold_batch`: a batch id, `next`, or None; times in seconds; `executors` None: one on each worker.

    `notes`: the folder of its settings and its lock, on a disk; that of the checkpoint where this is on one.
    """

    sink: str
    query: str
    master: str
    executors: int | None
    trigger: str
    max_offsets_per_trigger: int | None
    checkpoint: Location
    output: Location
    notes: Path
    hold_batch: str | None
    wait_seconds: float
    stop_seconds: float


def parse(arguments: list[str] | None, settings: Settings) -> Options:
    """Read the flags. Ends the process: with code 2 and one line when they are invalid, 0 with --check-flags."""
    parser = Flags(
        "synchronizer",
        prog="scripts/spark_start.sh",
        description="Write every record of the visits topic as one line of a JSON file, in micro-batches.",
    )
    parser.add_argument(
        "--sink",
        choices=SINKS,
        default=settings.text("SPARK_SINK"),
        help="files: exactly once; foreach-append: naive, repeats a batch after a crash; "
        "foreach-overwrite: one folder per batch, replaced when the batch runs again (default: %(default)s)",
    )
    parser.add_argument(
        "--trigger",
        type=_trigger,
        default=settings.text("SPARK_TRIGGER"),
        metavar="INTERVAL",
        help=f"'5 seconds', or {AVAILABLE_NOW}: read all existing records, then end (default: %(default)s)",
    )
    parser.add_argument(
        "--max-offsets-per-trigger",
        type=_positive,
        default=settings.text("SPARK_MAX_OFFSETS_PER_TRIGGER") or None,
        metavar="N",
        help="most records of one batch (default: no limit)",
    )
    parser.add_argument("--master", type=_master, default=settings.spark_master, help="any Spark master (%(default)s)")
    parser.add_argument(
        "--executors",
        type=_positive,
        metavar="N",
        help="how many executors to ask for, of the stack's workers (default: one on each)",
    )
    parser.add_argument(
        "--checkpoint", type=location_argument, metavar="PATH", help="default: checkpoints/spark/<query>"
    )
    parser.add_argument("--output", type=location_argument, metavar="PATH", help="default: output/<query>")
    parser.add_argument(
        "--hold-batch",
        type=_batch,
        metavar="N|next",
        help="stop inside batch N, between offsets/N and commits/N, until checkpoints/spark/<query>.release exists "
        "in the home",
    )
    parser.add_argument(
        "--wait-seconds", type=seconds, default=60.0, metavar="S", help="for broker and topic (default: %(default)g)"
    )
    parser.add_argument(
        "--stop-seconds",
        type=seconds,
        default=120.0,
        metavar="S",
        help="after SIGTERM, for the running batch (default: %(default)g)",
    )
    parser.add_argument("--check-flags", action="store_true", help="check these flags, and exit")
    chosen = parser.parse_args(arguments)
    if chosen.executors is not None and (why := _no_executors(chosen.executors, chosen.master, settings)):
        parser.error(f"--executors {chosen.executors}: {why}")
    if chosen.check_flags:
        parser.exit()
    query = settings.query(chosen.sink)
    checkpoint = (chosen.checkpoint or spark_checkpoints(settings) / query).absolute()
    output = (chosen.output or spark_outputs(settings) / query).absolute()
    notes = notes_of(checkpoint, settings)
    if notes is None:
        parser.error(f"--checkpoint {checkpoint} is in an object store and not below {settings.data}; nothing locks it")
    if chosen.sink != FILES and not isinstance(output, Path):
        parser.error(f"--sink {chosen.sink} needs folders, and {output} is in an object store; choose --sink {FILES}")
    return Options(
        sink=chosen.sink,
        query=query,
        master=chosen.master,
        executors=chosen.executors,
        trigger=chosen.trigger,
        max_offsets_per_trigger=chosen.max_offsets_per_trigger,
        checkpoint=checkpoint,
        output=output,
        notes=notes,
        hold_batch=chosen.hold_batch,
        wait_seconds=chosen.wait_seconds,
        stop_seconds=chosen.stop_seconds,
    )


def alone(settings: Settings, query: str, checkpoint: Path) -> Options:
    """Return the defaults for a session of another program, which needs no workers of the stack and no object store."""
    folder = str(checkpoint)
    defaults = parse(["--checkpoint", folder, "--output", folder], settings)
    return replace(defaults, query=query, master=settings.text("SPARK_MASTER"))


def _master(text: str) -> str:
    if not _MASTER.match(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a Spark master: local[N], spark://host:port, yarn or k8s://…"
        )
    return text


def _no_executors(wanted: int, master: str, settings: Settings) -> str:
    """Return why the stack's workers cannot give so many executors; empty when they can."""
    workers = settings.number("SPARK_WORKERS")
    if not workers or master != settings.spark_master:
        return f"tasks run on {master}, which is not the stack's own cluster (STACK_SPARK_WORKERS=2 scripts/up.sh)"
    return f"there are {workers} workers, with one executor each" if wanted > workers else ""


def _trigger(text: str) -> str:
    if text == AVAILABLE_NOW:
        return text
    if not _INTERVAL.match(text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither an interval like '5 seconds' nor {AVAILABLE_NOW}")
    return text.strip()


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _batch(text: str) -> str:
    if text != HOLD_NEXT and not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a batch id nor {HOLD_NEXT}")
    return text
