"""Judge pipelines from their records, and print the verdict."""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb

from faultline.command import CommandError, drop_output, fail, first_line
from faultline.formats.arguments import verdict_parser
from faultline.formats.verdict import ALL, SOURCE, NewestVerdict, Outcome, Verdict, Verdicts
from faultline.settings import Settings, SettingsError
from faultline.storage.words import location_argument
from faultline.verdict.checker import Checker, Options, judge
from faultline.verdict.checkers import CHECKERS, PIPELINES
from faultline.verdict.cluster import Cluster
from faultline.verdict.dump import clear, dump
from faultline.verdict.model import NotJudged, Unknown, unknown
from faultline.verdict.report import print_report
from faultline.verdict.sources import Sources
from faultline.verdict.store import open_store, temporary_folder

T = TypeVar("T")


def _judge(checker: Checker, sources: Sources, options: Options, dumped: Path | None) -> Verdict:
    """Judge one pipeline. Raises NotJudged and Unknown."""
    with open_store() as store:
        judgement = judge(checker, sources, store, options)
        if dumped is not None:
            try:
                dump(dumped, judgement)
            except (OSError, Unknown) as error:
                # Findings that are not written do not change what was found.
                why = error.strerror if isinstance(error, OSError) else error
                sys.stderr.write(f"verdict: not every finding is in --dump {dumped}: {why}\n")
    return judgement.verdict


def _or_unknown(name: str, act: Callable[[], T]) -> T | Verdict:
    """Return what an act returns, or the verdict that it is unknown: an error does not stop the other checkers.

    Raises NotJudged.
    """
    try:
        return act()
    except Unknown as reason:
        return unknown(name, str(reason))
    except (duckdb.Error, OSError, SettingsError) as error:
        return unknown(name, f"the verdict itself failed: {first_line(error)}")
    except NotJudged:
        raise
    except Exception as error:
        traceback.print_exc()
        return unknown(name, f"the verdict itself failed: {type(error).__name__}; please report the stack trace above")


def _judge_all(names: Sequence[str], settings: Settings, arguments: argparse.Namespace) -> Verdicts:
    options = Options(
        sink=arguments.sink,
        output=arguments.output,
        checkpoint=arguments.checkpoint,
        as_is=arguments.as_is,
        wait_seconds=arguments.wait,
    )
    try:
        with temporary_folder() as folder:
            cluster = Cluster(arguments.bootstrap or settings.bootstrap)
            return _judge_each(names, settings, options, Sources(cluster, folder), arguments.dump)
    except (CommandError, OSError) as error:
        return Verdicts(tuple(unknown(name, first_line(error)) for name in names), ())


def _judge_each(
    names: Sequence[str], settings: Settings, options: Options, sources: Sources, dumped: Path | None
) -> Verdicts:
    def build(name: str) -> Checker | Verdict:
        return _or_unknown(name, partial(CHECKERS[name], settings, sources.cluster, options))

    for name in names:
        checker = build(name)
        if not isinstance(checker, Verdict):
            sources.add(checker.source, checker.parse)
    topics: dict[str, str] = {}
    verdicts: list[Verdict] = []
    notes: list[str] = []
    for name in names:
        # Built again: while others were judged, another run may have begun, by whose settings this one is judged.
        checker = build(name)
        if isinstance(checker, Verdict):
            verdicts.append(checker)
            continue
        topics[name] = checker.source
        try:
            verdicts.append(_or_unknown(name, partial(_judge, checker, sources, options, dumped)))
        except NotJudged as reason:
            notes.append(f"{name}: {reason}")
    return Verdicts(tuple(of_one_source(verdict, topics) for verdict in verdicts), tuple(notes))


def of_one_source(verdict: Verdict, sources: Mapping[str, str]) -> Verdict:
    """Let the source hold only if it is the topic that the pipelines have read, which their own settings name."""
    judged = sources.get(SOURCE)
    others = {name: topic for name, topic in sources.items() if topic != judged}
    if verdict.pipeline != SOURCE or verdict.outcome is not Outcome.HOLDS or not others:
        return verdict
    name, topic = next(iter(others.items()))
    return unknown(SOURCE, f"topic {judged} holds, and {name} has read {topic}; judge with STACK_VISITS_TOPIC={topic}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge, print, and return the exit code: the outcome's, whether it could be printed or not."""
    # Kafka's client, DuckDB and Arrow are native code: after a crash of theirs Python says nothing without this.
    with contextlib.suppress(io.UnsupportedOperation):
        faulthandler.enable()
    chosen = verdict_parser(location_argument).parse_args(arguments)
    try:
        settings = Settings()
    except OSError as error:
        fail("verdict", f".env cannot be read: {error.strerror}")
    asked = PIPELINES if chosen.pipeline == ALL else (chosen.pipeline,)
    names = tuple(dict.fromkeys((SOURCE, *asked)))
    if chosen.dump is not None:
        try:
            clear(chosen.dump, names)
        except OSError as error:
            fail("verdict", f"--dump {chosen.dump} cannot be written: {error.strerror}; choose another folder")
    found = _judge_all(names, settings, chosen)
    if chosen.keep is not None:
        try:
            NewestVerdict(time.time(), found).write(chosen.keep)
        except OSError as error:
            sys.stderr.write(f"verdict: --keep {chosen.keep} cannot be written: {error.strerror}\n")
    try:
        if not chosen.json:
            print_report(found, verbose=chosen.verbose)
        else:
            print(json.dumps(found.as_json(chosen.pipeline)))
        sys.stdout.flush()
    except BrokenPipeError:
        # Its reader has seen enough (`| head`).
        drop_output()
    except OSError as error:
        drop_output()
        sys.stderr.write(f"verdict: the report cannot be printed: {error.strerror}\n")
    return found.outcome.exit_code
