"""Actions of the buttons: steps of the fault matrix, shown as the lines that a person types. Nothing else can be done.

A request names an action of this list and, for a restore, one of the retained checkpoints. No word of a request ever
becomes a part of a command.
"""

from __future__ import annotations

import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from faultline.command import CommandError
from faultline.faults.catalogue import possible
from faultline.faults.model import Fault, Row
from faultline.faults.needs import missing
from faultline.faults.repair import pinned, unheard
from faultline.faults.rows import ROWS
from faultline.faults.scene import Scene
from faultline.faults.steps import OnService, Reset, Restore, Settle, Start, Step, Stop, Up
from faultline.faults.timeline import Timeline
from faultline.player.items import Item
from faultline.settings import ROOT
from faultline.stack.stack import Stack, open_stack

RESTORE = "restore"
JUDGE = "judge"
_ROWS = ("commit-deleted",)
"""Rows of the matrix that are no fault of the catalogue, and a lesson all the same."""
_JOB, _VERDICT_GROUP, _CLEAN = "Flink job", "verdict", "begin again"
"""Headings of what is no service."""
_CHOSEN = "{flink}/{checkpoint}"
"""The checkpoint of a restore; the page fills in the one that is chosen."""
_LOOK_SECONDS = 0.2
_SAID_LINES = 3


@dataclass(frozen=True)
class Action:
    """A button: its name, what it says, the heading that it stands under, and its steps."""

    name: str
    label: str
    group: str
    steps: tuple[Step, ...]
    kind: str = ""
    """`break` or `repair`; empty: neither."""
    chooses: bool = False
    """It needs one of the retained checkpoints, which stands for _CHOSEN in its steps."""


@dataclass(frozen=True)
class Judge(Step):
    """Judge the source and both pipelines. `as_is`: what is not due yet may be pending."""

    as_is: bool = False

    @property
    def line(self) -> str:
        """The script."""
        return f"scripts/verdict.sh all --json{' --as-is' if self.as_is else ''}"


class Refused(Exception):
    """An action cannot be run now; the message says why. `status`: of the answer."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def actions() -> dict[str, Action]:
    """The actions that the present stack can have, by name, in the order of the page: by service, as these start."""
    stack = open_stack()
    rows = [ROWS[name] for name in _ROWS]
    subjects: list[Fault | Row] = [
        *possible([service.name for service in stack.services]).values(),
        *(row for row in rows if not any(missing(need, stack) for need in row.needs)),
    ]
    found = [
        *(action for subject in subjects for action in _pair(subject, stack)),
        Action(RESTORE, "restore from", _JOB, (Restore(_CHOSEN),), "repair", chooses=True),
        Action("generator-start", "start the generator", "generator", (Start("generator"),)),
        Action("judge-now", "judge as it is now", _VERDICT_GROUP, (Judge(as_is=True),)),
        Action("judge-open", "stop, and judge with open windows", _VERDICT_GROUP, (Stop("generator"), Judge())),
        Action(JUDGE, "settle, and judge", _VERDICT_GROUP, (Stop("generator"), Settle(), Judge())),
        Action("reset", "remove topics, checkpoints and outputs; start again", _CLEAN, (Reset(), Up())),
    ]
    groups = [*dict.fromkeys(service.family for service in stack.services), _JOB, _VERDICT_GROUP, _CLEAN]
    return {action.name: action for action in sorted(found, key=lambda action: groups.index(action.group))}


def _pair(subject: Fault | Row, stack: Stack) -> Iterator[Action]:
    """The button that breaks something, and the one that repairs it."""
    broken = [step.service for step in subject.breaks if isinstance(step, OnService)]
    group = stack.service(broken[0]).family if broken else _JOB
    label = subject.name.replace("-", " ")
    yield Action(subject.name, label, group, subject.breaks, "break")
    if subject.heals:
        yield Action(f"{subject.name}-repair", f"repair: {label}", group, subject.heals, "repair")


class Runner:
    """Runs one action at a time. `tell` gets the items; `outside` names a path of the services as the host does."""

    def __init__(self, tell: Callable[[list[Item]], None], outside: Callable[[str], str]) -> None:
        self._tell, self._outside = tell, outside
        self._busy = threading.Lock()
        self._running: tuple[Action, threading.Thread] | None = None

    def as_json(self) -> list[dict[str, Any]]:
        """For the page; lines as they are typed in the project's folder."""
        scene = _scene()
        return [
            {
                "name": action.name, "label": action.label, "group": action.group, "kind": action.kind,
                "chooses": action.chooses,
                "lines": [scene.filled(step.line).replace(f"{ROOT}/", "") for step in action.steps],
            }
            for action in actions().values()
        ]  # fmt: skip

    def start(self, name: object, checkpoint: str | None) -> None:
        """Start an action in a thread of its own; `checkpoint`: a retained one, by its path or URI. Raises Refused."""
        action = actions().get(name) if isinstance(name, str) else None
        if action is None:
            raise Refused(404, "this stack has no such action")
        if action.chooses and checkpoint is None:
            raise Refused(409, "this checkpoint is not retained any more; choose another")
        if not self._busy.acquire(blocking=False):
            raise Refused(409, "another action runs; wait for its end")
        thread = threading.Thread(target=self._run, args=(action, checkpoint), daemon=True)
        self._running = (action, thread)
        thread.start()

    def end(self, given_up: Callable[[], bool]) -> None:
        """Wait for the action that runs, if one does: half an action is a fault that nobody chose."""
        if self._running is None or not self._running[1].is_alive():
            return
        action, thread = self._running
        sys.stderr.write(f"page.sh: '{action.label}' still runs; waiting for its end (Ctrl-C: do not wait)\n")
        while thread.is_alive() and not given_up():
            thread.join(timeout=_LOOK_SECONDS)

    def _run(self, action: Action, checkpoint: str | None) -> None:
        failed = ""
        try:
            scene = _scene()
            # It comes from the list of retained checkpoints, not from the request.
            path = self._outside(checkpoint) if checkpoint else ""
            for step in action.steps:
                failed = self._do(step, scene, path)
                if failed and not isinstance(step, Settle):
                    break
                # What cannot settle is judged all the same: the verdict says what is unknown.
        except Exception as error:  # the page shows it
            failed = str(error) or type(error).__name__
            self._event("note", failed)
        finally:
            self._busy.release()
            self._event("done", f"{'failed' if failed else 'done'}: {action.label}")

    def _do(self, step: Step, scene: Scene, checkpoint: str) -> str:
        """Do one step; returns why it failed, or nothing."""
        self._event("command", scene.filled(step.line.replace(_CHOSEN, shlex.quote(checkpoint))))
        if isinstance(step, Judge):
            self._tell([{"kind": "verdict", "at": time.time(), "as_is": step.as_is, "verdict": _verdict(step, scene)}])
            return ""
        try:
            unheard(lambda: step.act(scene.stack, lambda text: scene.filled(text.replace(_CHOSEN, checkpoint))))
        except CommandError as error:
            failed = f"exit code {error.code}: {_end_of(str(error))}"
            self._event("note", failed)
            return failed
        return ""

    def _event(self, what: str, text: str) -> None:
        self._tell([{"kind": "event", "at": time.time(), "what": what, "text": text}])


def _scene() -> Scene:
    """The stack as the fault matrix sees it: its settings stay after a reset, when nothing else says them."""
    return Scene(ROOT, Timeline(ROOT), pinned(open_stack()))


def _verdict(step: Judge, scene: Scene) -> dict[str, object]:
    try:
        return unheard(lambda: scene.stack.verdict(as_is=step.as_is)).as_json()
    except CommandError as error:
        return {"pipeline": "all", "outcome": "unknown", "reason": _end_of(str(error)) or "it printed nothing"}


def _end_of(text: str) -> str:
    return " ".join(text.strip().splitlines()[-_SAID_LINES:])
