"""One row, its results, and the repair when it does not come to its end."""

from __future__ import annotations

import contextlib
from pathlib import Path

from faultline.command import CommandError
from faultline.faults.judges.moments import InTransaction
from faultline.faults.model import Result, Row, RowOutcome
from faultline.faults.needs import missing
from faultline.faults.plan import Planned
from faultline.faults.scene import Scene
from faultline.faults.timeline import Timeline, write_timeline
from faultline.faults.times import measure
from faultline.faults.trial import Trial
from faultline.formats.jobs import EXACTLY_ONCE
from faultline.messages import say
from faultline.player.replay import write
from faultline.settings import store_of_data
from faultline.stack.services import COUNTS, WATCHING
from faultline.stack.settings import load
from faultline.stack.stack import Stack

_LOG_LINES = 2000
SERVICES = ("kafka", "jobmanager", "taskmanager", "spark", "spark-master", "spark-worker", "store")


def run_row(planned: Planned, folder: Path, stack: Stack, *, installs: bool) -> Result:
    """Run a row on a stack that is up, and write its results to the folder.

    `installs`: the stack is new, and what the row's control breaks is not broken yet. Raises KeyboardInterrupt after
    the repair of what the row has broken.
    """
    row = planned.row
    folder.mkdir(parents=True)
    timeline = Timeline(folder)
    scene = Scene(folder, timeline, stack)
    trial = Trial(row, scene)
    result = Result(
        row.name, RowOutcome.FAILED, folder=str(folder), promise=row.promise, why=row.why, seed=planned.seed
    )
    say(f"== {row.name}: {row.promise}")
    if (why := _does_not_apply(row, scene)) is not None:
        return not_applying(planned, folder, why)
    try:
        for step in row.installs if installs or not row.control else ():
            scene.do(step)
        trial.run(planned.moment)
        scene.stop_watching()
        for step in row.undo:
            scene.do(step)
    except _CANNOT_JUDGE as error:
        # A row that cannot be judged has failed; the others go on.
        result.reason = _words(error)
        _repair(scene, row)
    except KeyboardInterrupt:
        say("repairing what is broken ...")
        _repair(scene, row)
        raise
    finally:
        scene.stop_watching()
    result.attempts = scene.attempts
    result.checks = trial.checks
    if not result.reason and result.checks and all(check.ok for check in result.checks):
        result.outcome = RowOutcome.PASSED
    try:
        result.times = measure(write_timeline(folder))
        keep_logs(scene)
        result.write()
        write(folder)
    except _CANNOT_JUDGE as error:
        result.outcome, result.reason = RowOutcome.FAILED, f"its results could not be kept: {_words(error)}"
        result.write()
    return result


def not_applying(planned: Planned, folder: Path, why: str) -> Result:
    """The result of a row that cannot run here, which is written to the folder."""
    row = planned.row
    result = Result(
        row.name, RowOutcome.DOES_NOT_APPLY, reason=why, folder=str(folder), promise=row.promise, why=row.why,
        seed=planned.seed,
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    result.write()
    return result


_CANNOT_JUDGE = (CommandError, OSError, ValueError, KeyError, TypeError)


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, CommandError) else repr(error)


def _repair(scene: Scene, row: Row) -> None:
    """Do the steps that repair and those that follow the verdict, as far as the row has come.

    A step whose fault did not happen fails; that is no matter here. The first Ctrl-C lets all of them be done again
    before it is raised, so that nothing stays broken; further ones are ignored.
    """
    steps = (*(row.heals if scene.attempts else ()), *(row.undo if scene.prepared else ()))
    try:
        for step in steps:
            with contextlib.suppress(CommandError):
                scene.do(step)
    except KeyboardInterrupt:
        _repair(scene, row)
        raise


def _does_not_apply(row: Row, scene: Scene) -> str | None:
    """Return what the machine, the mode or the stack lacks for a row; None when the row applies.

    A stack with spare services does not fit a row for one without: the service that is killed may be idle.
    """
    for need in row.needs:
        if why := missing(need, scene.stack):
            return why
    values, own = scene.stack.settings.values, load({}, dict(row.settings), {}).values
    if row.mode != EXACTLY_ONCE and InTransaction() in row.judged:
        return f"{row.mode} has no transactions, and the row is about one"
    for name in COUNTS:
        if name not in WATCHING and values[name] != own[name]:
            return f"{name}={values[name]}: the row is for a stack with {own[name]}"
    if store_of_data(own) and not store_of_data(values):
        return f"the data is on the disk: the row is for a stack with DATA={own['DATA']}"
    return None


def keep_logs(scene: Scene) -> None:
    """Keep the last lines of each service's log."""
    for row in scene.stack.services:
        if row.family in SERVICES:
            text = "\n".join(scene.log(row.name, _LOG_LINES))
            (scene.folder / f"{row.name}.log").write_text(text + "\n", encoding="utf-8")
