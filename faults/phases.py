"""One row from load to verdict: load, break, heal, settle, judge."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

from stack.errors import StackError
from stack.messages import say

from faults.judged import Witness, of_verdict
from faults.model import Outcome, Repeats, Result, Row
from faults.report import write_report
from faults.scene import CommandFailed, Scene
from faults.timeline import Timeline, write_timeline
from faults.times import measure

EXACTLY_ONCE = "exactly-once"
_ATTEMPTS = 5
SERVICES = ("kafka", "jobmanager", "taskmanager", "spark")


def run_row(row: Row, folder: Path) -> Result:
    """Run a row on the stack that is up, and write its results to the folder."""
    folder.mkdir(parents=True)
    timeline = Timeline(folder)
    scene = Scene(folder, timeline, EXACTLY_ONCE)
    witness = Witness(scene, row)
    result = Result(row.name, Outcome.FAILED, folder=str(folder))
    say(f"== {row.name}: {row.promise}")
    if (why := _does_not_apply(scene)) is not None:
        result.outcome, result.reason = Outcome.DOES_NOT_APPLY, why
        return result
    try:
        _act(row, scene, witness, result)
        scene.stop_watching()
        for step in row.undo:
            scene.do(step)
    except (CommandFailed, StackError, OSError, ValueError, KeyError, TypeError) as error:
        # A row that cannot be judged has failed; the others go on.
        result.reason = str(error) if isinstance(error, (CommandFailed, StackError)) else repr(error)
    except KeyboardInterrupt:
        # Files that were moved away come back by the row's own lines.
        for step in row.heals:
            with contextlib.suppress(CommandFailed, StackError):
                scene.do(step)
        raise
    finally:
        scene.stop_watching()
    result.checks = [*witness.checks, *result.checks]
    if not result.reason and all(check.ok for check in result.checks):
        result.outcome = Outcome.PASSED
    result.times = measure(write_timeline(folder))
    (folder / "result.json").write_text(json.dumps(result.as_json(), indent=2) + "\n", encoding="utf-8")
    keep_logs(scene)
    write_report(folder, row, result)
    return result


def _does_not_apply(scene: Scene) -> str | None:
    """A stack with spares: the one that is killed may do nothing, and nobody has to restore the job."""
    values = scene.stack.settings.values
    for name in ("FLINK_TASKMANAGERS", "FLINK_JOBMANAGERS"):
        if values[name] != "1":
            return f"{name}={values[name]}: the rows are for a stack without spares"
    return None


def _act(row: Row, scene: Scene, witness: Witness, result: Result) -> None:
    scene.timeline.phase("load")
    # Other flags need another start.
    scene.ask("scripts/generator_stop.sh")
    scene.ask(f"scripts/generator_start.sh {row.load}".strip())
    scene.wait_for_checkpoints(2)
    scene.watch()
    # The watcher's reader has begun, and the job has committed beside it.
    scene.wait_for_checkpoints(1)
    witness.before()
    _keep_checkpoints(scene, "before")
    repeated = _break_and_heal(row, scene, witness)
    scene.settle()
    witness.settled()
    _keep_checkpoints(scene, "after")
    result.checks = of_verdict(row, scene.verdict(), repeated)


def _break_and_heal(row: Row, scene: Scene, witness: Witness) -> int:
    """Break and repair, once more when the moment was missed; returns how many records must be there twice."""
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
        scene.timeline.phase("heal")
        for step in row.heals:
            scene.do(step)
        scene.wait_for_checkpoints(2)
        witness.healed()
        repeated = witness.repeated()
        if hit and (repeated or row.repeats is Repeats.NONE):
            return repeated
        say("   the moment was missed: once more")
        scene.timeline.add("note", "the moment was missed")
    raise CommandFailed(f"the moment was missed {_ATTEMPTS} times")


def _keep_checkpoints(scene: Scene, when: str) -> None:
    """Keep what the inspector says about both checkpoints."""
    complete = scene.complete_checkpoints()
    paths = {"spark": scene.spark}
    if complete:
        paths["flink"] = complete[-1]
    for name, path in paths.items():
        # It exits with 1 when it finds problems, which a row may be about.
        text = scene.ask(f"scripts/inspect.sh {path} --last 3 --no-lag", codes=(0, 1, 2))
        (scene.folder / f"{name}_{when}.txt").write_text(text, encoding="utf-8")


def keep_logs(scene: Scene) -> None:
    """Keep the last lines of each service's log."""
    for name in SERVICES:
        text = scene.ask(f"scripts/logs.sh {name} 2000", codes=(0, 1, 2))
        (scene.folder / f"{name}.log").write_text(text, encoding="utf-8")
