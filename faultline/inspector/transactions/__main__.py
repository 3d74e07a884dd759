"""Open transactions that hold back the readers of a topic: who promised them, and the right end of each.

Usage: python -m faultline.inspector.transactions TOPIC [--commit ID | --abort ID] [--apply] [--checkpoints DIR]
       [--json]

Runs in the Flink environment. Exit codes: 0 shown, or done; 1 refused: it would lose or repeat records; 2 it cannot be
known, or wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from faultline.command import quiet_imports
from faultline.command import run as run_program

if __name__ == "__main__":
    quiet_imports()

from faultline.formats.arguments import transactions_parser
from faultline.formats.jobs import JOBS, settings_of
from faultline.inspector.errors import InspectorError, reading
from faultline.inspector.flink.jvm import flink_jvm
from faultline.inspector.transactions.act import end
from faultline.inspector.transactions.advice import advise, allow
from faultline.inspector.transactions.broker import Broker
from faultline.inspector.transactions.errors import NotKnown
from faultline.inspector.transactions.jobs import job_of, job_runs
from faultline.inspector.transactions.model import ABORT, COMMIT, Found, OpenTransaction, as_document
from faultline.inspector.transactions.promises import read_promises
from faultline.inspector.transactions.render import render
from faultline.settings import Settings
from faultline.storage.data import flink_checkpoints
from faultline.storage.location import Location
from faultline.storage.words import location_argument


def arguments_of(words: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = transactions_parser(location_argument)
    arguments = parser.parse_args(words)
    # A checkpoint that is not found would promise nothing, and its transaction might be aborted.
    try:
        found = arguments.checkpoints is None or arguments.checkpoints.is_dir()
    except OSError as error:
        parser.error(f"--checkpoints {arguments.checkpoints} cannot be read: {error.strerror}")
    if not found:
        parser.error(f"--checkpoints {arguments.checkpoints} is not a folder; name the other job's folder")
    return arguments


def complete(jvm: Any, found: Found, settings: Settings, roots: list[Location]) -> None:
    """Add to each open transaction its job, the promises of checkpoints, and the advice."""
    for each in found.transactions:
        each.job = job_of(each.transactional_id, found.topic, settings)
    # First whether the jobs run, then the checkpoints: a job that does not run completes none in between.
    runs = {job: job_runs(job, settings) for job in {each.job for each in found.transactions if each.job}}
    promises, found.unreadable = read_promises(jvm, roots)
    for each in found.transactions:
        each.job_runs = runs.get(each.job)
        each.promises = promises.get((each.transactional_id, each.producer_id, each.epoch), [])
        advise(each, found.unreadable)


def chosen(found: Found, arguments: argparse.Namespace) -> list[tuple[str, OpenTransaction]]:
    """List what is asked for: an act and its transaction. Raises Refused, and NotKnown for an id that is not open."""
    name = arguments.commit or arguments.abort
    if not name:
        return [(each.right, each) for each in found.transactions if each.right in (COMMIT, ABORT)]
    named = [each for each in found.transactions if each.transactional_id == name]
    if not named:
        raise NotKnown(f"{found.topic} has no open transaction {name}; without --commit and --abort, all are shown")
    act = COMMIT if arguments.commit else ABORT
    allow(act, named[0])
    return [(act, named[0])]


def run(arguments: argparse.Namespace, settings: Settings) -> None:
    """Look, act if asked to, and print the result."""
    with ExitStack() as stack:
        broker = Broker(settings.bootstrap)
        stack.callback(broker.close)
        partitions = broker.partitions(arguments.topic)
        # In this order: a transaction that ends in between is shown, and not missed.
        opened, stops = broker.open_transactions(partitions), broker.stops(partitions)
        found = Found(arguments.topic, stops, opened)
        jvm: Any = None
        if found.transactions:
            roots: list[Location] = [flink_checkpoints(settings_of(job, settings)) for job in JOBS]
            roots += [arguments.checkpoints] if arguments.checkpoints else []
            jvm = stack.enter_context(flink_jvm(roots))
            complete(jvm, found, settings, roots)
        acts = chosen(found, arguments)
        print(json.dumps(as_document(found), indent=2) if arguments.json else render(found, time.time()))
        sys.stdout.flush()
        for act, transaction in acts if arguments.apply else []:
            end(jvm, broker, act, transaction, partitions)
            print(f"{transaction.label}: {act} is done", file=sys.stderr)
        if arguments.apply:
            left = sum(stop.end - stop.stable for stop in broker.stops(partitions))
            print(f"{arguments.topic}: {left} records are behind open transactions now", file=sys.stderr)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Raises Refused, NotKnown and SettingsError."""
    arguments = arguments_of(words)
    try:
        with reading("a file"):
            run(arguments, Settings())
    except InspectorError as error:
        # What promises it made is not known.
        raise NotKnown(str(error)) from None
    return 0


if __name__ == "__main__":
    run_program("transactions", main)
