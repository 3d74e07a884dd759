"""One row from load to verdict: load, break, heal, settle, judge."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from flink_job.guarantees import EXACTLY_ONCE
from stack.errors import StackError
from stack.messages import say

from faults.judged import Predicted, Witness, none_holds, of_control, of_verdict, wrong
from faults.model import Outcome, Repeats, Result, Row, Step
from faults.needs import missing
from faults.plan import Planned
from faults.repair import ignore_interrupts
from faults.scene import CommandFailed, Scene
from faults.timeline import Timeline, write_timeline
from faults.times import measure

_ATTEMPTS = 5
SERVICES = ("kafka", "jobmanager", "taskmanager", "spark")


def run_row(planned: Planned, folder: Path, *, installs: bool) -> Result:
    """Run a row on the stack that is up, and write its results to the folder.

    `installs`: the stack is new, and what the row's control breaks is not broken yet. Raises KeyboardInterrupt after
    the repair of what the row has broken.
    """
    row = planned.row
    folder.mkdir(parents=True)
    timeline = Timeline(folder)
    scene = Scene(folder, timeline, row.mode)
    witness = Witness(scene, row)
    result = Result(row.name, Outcome.FAILED, folder=str(folder), promise=row.promise, why=row.why, seed=planned.seed)
    say(f"== {row.name}: {row.promise}")
    if (why := _does_not_apply(row, scene)) is not None:
        result.outcome, result.reason = Outcome.DOES_NOT_APPLY, why
        result.write()
        return result
    try:
        for step in row.installs if installs else ():
            scene.do(step)
        _act(row, scene, witness, result, planned.moment)
        scene.stop_watching()
        for step in row.undo:
            scene.do(step)
    except _CANNOT_JUDGE as error:
        # A row that cannot be judged has failed; the others go on.
        result.reason = _words(error)
        _repair(scene, row)
    except KeyboardInterrupt:
        # The second Ctrl-C must not end the repair.
        ignore_interrupts()
        say("repairing what is broken ...")
        _repair(scene, row)
        raise
    finally:
        scene.stop_watching()
    result.attempts = scene.attempts
    result.checks = [*([] if row.caught else witness.checks), *result.checks]
    if not result.reason and all(check.ok for check in result.checks):
        result.outcome = Outcome.PASSED
    try:
        result.times = measure(write_timeline(folder))
        keep_logs(scene)
        result.write()
        scene.ask(f"scripts/page.sh --replay {shlex.quote(str(folder))}")
    except _CANNOT_JUDGE as error:
        result.outcome, result.reason = Outcome.FAILED, f"its results could not be kept: {_words(error)}"
        result.write()
    return result


_CANNOT_JUDGE = (CommandFailed, StackError, OSError, ValueError, KeyError, TypeError)


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, (CommandFailed, StackError)) else repr(error)


def _repair(scene: Scene, row: Row) -> None:
    """Type the lines that repair and those that follow the verdict, as far as the row has come.

    A line whose fault did not happen fails; that is no matter here.
    """
    steps = (*(row.heals if scene.attempts else ()), *(row.undo if scene.prepared else ()))
    for step in steps:
        with contextlib.suppress(CommandFailed, StackError):
            scene.do(step)


def _does_not_apply(row: Row, scene: Scene) -> str | None:
    """What the machine or the mode lacks; or that the stack has spare services: the one that is killed may be idle."""
    for need in row.needs:
        if why := missing(need, scene.stack):
            return why
    values, own = scene.stack.settings.values, dict(row.settings)
    if row.mode != EXACTLY_ONCE and row.in_transaction:
        return f"{row.mode} has no transactions, and the row is about one"
    for name in ("FLINK_TASKMANAGERS", "FLINK_JOBMANAGERS"):
        if values[name] != own.get(name, "1"):
            return f"{name}={values[name]}: the row is for a stack with {own.get(name, '1')}"
    return None


def _act(row: Row, scene: Scene, witness: Witness, result: Result, moment: float) -> None:
    scene.timeline.phase("load")
    scene.generate(row.load)
    scene.watch()
    with _inspecting(scene, "before"):
        # The job has committed beside the watcher's reader.
        scene.wait_for_checkpoints(2)
        witness.before()
    time.sleep(moment * scene.checkpoint_seconds)
    before = wrong(scene.verdict("--as-is"), row.caught) if row.caught else 0
    predicted = _break_and_heal(row, scene, witness)
    if row.unsettled:
        scene.timeline.phase("settle")
        scene.stop_generator()
        scene.do(Step("scripts/settle.sh", refused=row.unsettled))
        result.checks = none_holds(scene.verdict())
        return
    with _inspecting(scene, "after"):
        scene.settle()
    witness.settled()
    verdict = scene.verdict()
    result.checks = of_control(row, verdict, before) if row.caught else of_verdict(row, verdict, predicted)
    for step in row.shows:
        scene.do(step)


def _break_and_heal(row: Row, scene: Scene, witness: Witness) -> Predicted:
    """Break and repair, once more when the moment was missed; returns what the checkpoints predict."""
    for _ in range(_ATTEMPTS):
        scene.forget()
        scene.prepared = True
        for step in row.prepares:
            scene.do(step)
        scene.timeline.phase("break")
        scene.attempts += 1
        for step in row.breaks:
            scene.do(step)
        scene.timeline.add("broken", "the fault is there")
        witness.struck()
        time.sleep(row.seconds)
        hit = witness.hit()
        witness.broken()
        predicted = Predicted(lines=witness.repeated_lines() if hit else 0)
        scene.timeline.phase("heal")
        for step in row.heals:
            scene.do(step)
        if row.takes_down:
            scene.watch_on()
        scene.wait_for_checkpoints(2)
        witness.healed()
        predicted = replace(predicted, repeated=witness.repeated(), lost=witness.lost())
        if hit and (predicted.repeated or row.repeats is Repeats.NONE):
            return predicted
        say("   the moment was missed: once more")
        scene.timeline.add("note", "the moment was missed")
        for step in row.undo:
            scene.do(step)
        scene.prepared = False
    raise CommandFailed(f"the moment was missed {_ATTEMPTS} times")


@contextlib.contextmanager
def _inspecting(scene: Scene, when: str) -> Iterator[None]:
    """Keep what the inspector says of Spark's checkpoint now, while the block waits; Flink's are followed anyway."""

    def keep() -> None:
        # It exits with 1 when it finds problems, which a row may be about.
        text = scene.ask(f"scripts/inspect.sh {scene.spark} --last 3 --no-lag", codes=(0, 1, 2))
        (scene.folder / f"spark_{when}.txt").write_text(text, encoding="utf-8")

    with ThreadPoolExecutor() as pool:
        inspection = pool.submit(keep)
        yield
    inspection.result()


def keep_logs(scene: Scene) -> None:
    """Keep the last lines of each service's log."""
    for name in SERVICES:
        text = scene.ask(f"scripts/logs.sh {name} 2000", codes=(0, 1, 2))
        (scene.folder / f"{name}.log").write_text(text, encoding="utf-8")
