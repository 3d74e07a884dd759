"""One row from load to verdict: load, break, heal, settle, judge."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from stack.errors import StackError
from stack.messages import say

from faults.judged import Predicted, Witness, none_holds, of_control, of_verdict, wrong
from faults.model import Outcome, Repeats, Result, Row, Step
from faults.needs import missing
from faults.scene import CommandFailed, Scene
from faults.timeline import Timeline, write_timeline
from faults.times import measure

_ATTEMPTS = 5
SERVICES = ("kafka", "jobmanager", "taskmanager", "spark")


def run_row(row: Row, folder: Path, moment: float, *, installs: bool) -> Result:
    """Run a row on the stack that is up, and write its results to the folder.

    `moment`: the part of a checkpoint's interval to wait before the fault, from 0 to 1. `installs`: the stack is new,
    and what the row's control breaks is not broken yet.
    """
    folder.mkdir(parents=True)
    timeline = Timeline(folder)
    scene = Scene(folder, timeline, row.mode)
    witness = Witness(scene, row)
    result = Result(row.name, Outcome.FAILED, folder=str(folder), promise=row.promise, why=row.why)
    say(f"== {row.name}: {row.promise}")
    if (why := _does_not_apply(row, scene)) is not None:
        result.outcome, result.reason = Outcome.DOES_NOT_APPLY, why
        result.write()
        return result
    try:
        for step in row.installs if installs else ():
            scene.do(step)
        _act(row, scene, witness, result, moment)
        scene.stop_watching()
        for step in row.undo:
            scene.do(step)
    except (CommandFailed, StackError, OSError, ValueError, KeyError, TypeError) as error:
        # A row that cannot be judged has failed; the others go on.
        result.reason = str(error) if isinstance(error, (CommandFailed, StackError)) else repr(error)
        _repair(scene, row.undo)
    except KeyboardInterrupt:
        # Files that were moved away come back by the row's own lines.
        _repair(scene, (*row.heals, *row.undo))
        raise
    finally:
        scene.stop_watching()
    result.checks = [*([] if row.caught else witness.checks), *result.checks]
    if not result.reason and all(check.ok for check in result.checks):
        result.outcome = Outcome.PASSED
    result.times = measure(write_timeline(folder))
    result.write()
    keep_logs(scene)
    scene.ask(f"scripts/page.sh --replay {shlex.quote(str(folder))}")
    return result


def _repair(scene: Scene, steps: Sequence[Step]) -> None:
    """Type what repairs, whatever has been broken until now: a line about what is whole fails."""
    for step in steps:
        with contextlib.suppress(CommandFailed, StackError):
            scene.do(step)


def _does_not_apply(row: Row, scene: Scene) -> str | None:
    """What the machine lacks; or a stack with spares, where the one that is killed may do nothing."""
    for need in row.needs:
        if why := missing(need, scene.stack):
            return why
    values, own = scene.stack.settings.values, dict(row.settings)
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


def _break_and_heal(row: Row, scene: Scene, witness: Witness) -> Predicted:
    """Break and repair, once more when the moment was missed; returns what the checkpoints predict."""
    for _ in range(_ATTEMPTS):
        for step in row.prepares:
            scene.do(step)
        scene.timeline.phase("break")
        for step in row.breaks:
            scene.do(step)
        scene.timeline.add("broken", "the fault is there")
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
