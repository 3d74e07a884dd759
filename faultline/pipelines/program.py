"""The command line behind scripts/pipeline.sh: check, run, verdict, faults, soak."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
from collections.abc import Sequence
from dataclasses import replace

from faultline.command import CommandError, Flags
from faultline.formats.verdict import Verdict, Verdicts
from faultline.pipelines.judge import CATEGORIES, Judge, columns_of
from faultline.pipelines.prepare import Prepared, find, is_on, prepare
from faultline.pipelines.readers import reader_of
from faultline.pipelines.rows import ROWS, Row, applies, try_row
from faultline.pipelines.soak import soak
from faultline.pipelines.spec import Pipeline, SpecError, read
from faultline.pipelines.trial import broker_running, feed_file, words_of
from faultline.stack.stack import Stack, open_stack
from faultline.stop import interrupt_once
from faultline.verdict.cluster import Cluster
from faultline.verdict.model import Unknown, unknown
from faultline.verdict.report import print_report
from faultline.verdict.store import open_store

NAME = "pipeline"
_MINUTES, _MOST_MINUTES = 5.0, 600


def check(stack: Stack, pipeline: Pipeline) -> int:
    """Print what is missing, one line each; returns the exit code: 0 when nothing is."""
    with open_store(in_memory=True) as store:
        columns = columns_of(store, pipeline)
    print(f"{pipeline.file}: the query yields {', '.join(f'{name} {kind}' for name, kind in columns.items())}")
    missing = []
    with prepare(stack, pipeline) as prepared:
        source, output = prepared.pipeline.source, prepared.pipeline.output
        try:
            topics = Cluster(source.bootstrap).topics()
            found = "is there" if source.topic in topics else "is not there yet; run makes it"
            print(f"topic {source.topic} at {source.bootstrap}: {found}")
        except Unknown as reason:
            if not is_on(stack, pipeline):
                missing.append(str(reason))
            elif pipeline.start:
                print(f"topic {source.topic}: the broker of this stack does not run; run starts it")
            else:
                missing.append(str(reason))
        if not (output.reader == "kafka" and output.bootstrap == source.bootstrap):
            try:
                reader_of(output).reach(output)
                print(f"output: the reader {output.reader} can reach it")
            except Unknown as reason:
                missing.append(str(reason))
        if prepared.pipeline.start:
            _check_commands(prepared)
    for row in ROWS:
        if lacks := applies(row, pipeline, stack):
            print(f"row {row.name} does not apply: {lacks}")
    for line in missing:
        print(f"{NAME}: {line}", file=sys.stderr)
    return 2 if missing else 0


def _check_commands(prepared: Prepared) -> None:
    """Print that the programs and the file of a run are there. Raises SpecError when one is not."""
    start, feed = prepared.pipeline.start, prepared.pipeline.feed
    commands = {"feed.command": feed.command}
    if start:
        commands = {"start": start.command, "start.stop": start.stop, "start.kill": start.kill, **commands}
    for key, command in commands.items():
        if command:
            print(f"{key}: {words_of(prepared, key, command)[0]} is there")
    if feed.file:
        print(f"feed.file: {feed_file(prepared.pipeline)} is there")


def judge(stack: Stack, pipeline: Pipeline, *, as_json: bool) -> int:
    """Judge what is there now; returns the exit code of the outcome."""
    with contextlib.ExitStack() as held:
        # A stack that was never started has no topic to judge.
        if stack.home.marker():
            held.enter_context(broker_running(stack, pipeline))
        prepared, store = held.enter_context(prepare(stack, pipeline, starts=False)), held.enter_context(open_store())
        verdict = Judge(store, prepared.pipeline).verdict()
    return _show(verdict, as_json=as_json)


def _show(verdict: Verdict, *, as_json: bool = False) -> int:
    found = Verdicts((verdict,))
    if as_json:
        print(json.dumps(found.as_json(verdict.pipeline)))
    else:
        print_report(found, categories=CATEGORIES)
    sys.stdout.flush()
    return verdict.outcome.exit_code


def run(stack: Stack, pipeline: Pipeline) -> int:
    """Start, feed and stop the pipeline once, and judge it; returns the exit code of the outcome."""
    return _show(try_row(stack, pipeline, None))


def faults(stack: Stack, pipeline: Pipeline, names: Sequence[str]) -> int:
    """Try rows, each on a topic and in a folder of its own; returns 1 when one is violated, 2 when one is unknown."""
    chosen = _chosen(stack, pipeline, names)
    verdicts = []
    for row in chosen:
        try:
            verdict = replace(try_row(stack, pipeline, row), pipeline=row.name)
        except (CommandError, OSError) as error:
            # The other rows are tried all the same.
            verdict = unknown(row.name, str(error))
        _show(verdict)
        verdicts.append(verdict)
    print(f"{'row':<24} {'verdict':<9} {'lost':>9} {'repeated':>9} {'unexpected':>10}")
    for verdict in verdicts:
        counts = f"{verdict.lost:>9,} {verdict.duplicated:>9,} {verdict.unexpected:>10,}"
        print(f"{verdict.pipeline:<24} {verdict.outcome.value.upper():<9} {counts}")
    return Verdicts(tuple(verdicts)).outcome.exit_code


def _chosen(stack: Stack, pipeline: Pipeline, names: Sequence[str]) -> list[Row]:
    known = {row.name: row for row in ROWS}
    for name in names:
        if name not in known:
            raise SpecError(f"there is no row {name!r}; rows are {', '.join(known)}")
        if lacks := applies(known[name], pipeline, stack):
            raise SpecError(f"row {name} does not apply to {pipeline.name}: {lacks}")
    rows = [known[name] for name in names] or [row for row in ROWS if not applies(row, pipeline, stack)]
    if not rows:
        raise SpecError(f"no row applies to {pipeline.name}: {applies(ROWS[0], pipeline, stack)}")
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = Flags(NAME, prog="scripts/pipeline.sh", description="Judge, run and break a pipeline of your own.")
    parser.add_argument("verb", choices=("check", "run", "verdict", "faults", "soak"))
    parser.add_argument("file", metavar="FILE", help="a TOML file, or the name of one in pipelines/")
    parser.add_argument("rows", nargs="*", metavar="ROW", help="; ".join(f"{row.name}: {row.title}" for row in ROWS))
    parser.add_argument("--json", action="store_true", help="verdict: print one JSON object")
    parser.add_argument("--minutes", type=float, help="soak: how long faults come (default: 5)")
    parser.add_argument("--seed", type=int, help="soak: the order of the faults (default: a new one, printed)")
    chosen = parser.parse_args(arguments)
    given = {
        "ROW": ("faults", chosen.rows), "--json": ("verdict", chosen.json),
        "--minutes": ("soak", chosen.minutes is not None), "--seed": ("soak", chosen.seed is not None),
    }  # fmt: skip
    for word, (verb, is_given) in given.items():
        if is_given and chosen.verb != verb:
            parser.error(f"{chosen.verb} takes no {word}")
    minutes = _MINUTES if chosen.minutes is None else chosen.minutes
    if not 0 < minutes <= _MOST_MINUTES:
        parser.error(f"--minutes is {minutes:g}; give a number above 0, {_MOST_MINUTES} at most")
    interrupt_once()
    pipeline = read(find(chosen.file))
    stack = open_stack()
    if chosen.verb == "check":
        return check(stack, pipeline)
    if chosen.verb == "verdict":
        return judge(stack, pipeline, as_json=chosen.json)
    with open_store(in_memory=True) as store:
        columns_of(store, pipeline)
    if chosen.verb == "soak":
        return _show(soak(stack, pipeline, minutes, secrets.randbelow(10_000) if chosen.seed is None else chosen.seed))
    return run(stack, pipeline) if chosen.verb == "run" else faults(stack, pipeline, chosen.rows)
