"""What the buttons do: lines of the fault matrix, as a person types them. Nothing else can be run.

A request names an action of this list and, for a restore, one of the retained checkpoints. No word of a request ever
becomes a part of a command.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.settings import ROOT
from faults.catalogue import catalogue
from faults.model import Step
from faults.rows import ROWS
from faults.scene import Scene
from faults.timeline import Timeline
from flink_job.guarantees import EXACTLY_ONCE

from page.items import Item

RESTORE = "restore"
JUDGE = "judge"
_ROWS = ("commit-deleted",)
"""Rows of the matrix that are no fault of the catalogue, and a lesson all the same."""
_SETTLE, _VERDICT = "scripts/settle.sh", "scripts/verdict.sh all --json"
_LIMIT_SECONDS = 900
_SAID_LINES = 3


@dataclass(frozen=True)
class Action:
    """A button: its name, what it says, the heading that it stands under, and its lines."""

    name: str
    label: str
    group: str
    lines: tuple[str, ...]
    chooses: bool = False
    """It needs one of the retained checkpoints, which stands for {checkpoint} in its lines."""


class Refused(Exception):
    """An action cannot be run now; the message says why. `status`: of the answer."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def _lines(steps: Sequence[Step]) -> tuple[str, ...]:
    return tuple(step.command for step in steps)


def actions() -> dict[str, Action]:
    """All actions by name, in the order of the page."""
    found = []
    for fault in catalogue().values():
        subject = fault.name.replace("-", " ")
        found.append(Action(fault.name, subject, "break", _lines(fault.breaks)))
        if fault.heals:
            found.append(Action(f"{fault.name}-repair", f"repair: {subject}", "repair", _lines(fault.heals)))
    for name in _ROWS:
        row = ROWS[name]
        subject = name.replace("-", " ")
        found.append(Action(name, subject, "break", _lines(row.breaks)))
        found.append(Action(f"{name}-repair", f"repair: {subject}", "repair", _lines(row.heals)))
    found += [
        Action(RESTORE, "restore from", "repair", ("scripts/flink_restore.sh {checkpoint}",), chooses=True),
        Action("generator-start", "start the generator", "judge", ("scripts/generator_start.sh",)),
        Action("judge-now", "judge now", "judge", (_VERDICT,)),
        Action(JUDGE, "settle, and judge", "judge", ("scripts/generator_stop.sh", _SETTLE, _VERDICT)),
    ]  # fmt: skip
    return {action.name: action for action in found}


class Runner:
    """Runs one action at a time. `tell` gets the items; `retained` lists the checkpoints that can be chosen."""

    def __init__(self, tell: Callable[[list[Item]], None], retained: Callable[[], dict[str, str]]) -> None:
        self._tell, self._retained = tell, retained
        self._busy = threading.Lock()
        self._actions = actions()
        # The stack's places are filled in as in the fault matrix.
        fill = Scene(ROOT, Timeline(ROOT), EXACTLY_ONCE).filled
        self._lines = {action.name: [fill(line) for line in action.lines] for action in self._actions.values()}

    def as_json(self) -> list[dict[str, Any]]:
        """For the page; lines as they are typed in the project's folder."""
        return [
            {
                "name": action.name, "label": action.label, "group": action.group, "chooses": action.chooses,
                "lines": [line.replace(f"{ROOT}/", "") for line in self._lines[action.name]],
            }
            for action in self._actions.values()
        ]  # fmt: skip

    def start(self, name: object, checkpoint: object) -> None:
        """Start an action in a thread of its own. Raises Refused."""
        action = self._actions.get(name) if isinstance(name, str) else None
        if action is None:
            raise Refused(404, "there is no such action")
        path = self._retained().get(checkpoint) if isinstance(checkpoint, str) else None
        if action.chooses and path is None:
            raise Refused(409, "this checkpoint is not retained any more; choose another")
        if not self._busy.acquire(blocking=False):
            raise Refused(409, "another action runs; wait for its end")
        threading.Thread(target=self._run, args=(action, path), daemon=True).start()

    def _run(self, action: Action, path: str | None) -> None:
        try:
            for line in self._lines[action.name]:
                # The path comes from the list of checkpoints on disk, not from the request.
                if not self._type(line.replace("{checkpoint}", shlex.quote(path or ""))):
                    break
        except Exception as error:  # it is told on the page
            self._event("note", f"{action.label}: {error}")
        finally:
            self._event("note", f"done: {action.label}")
            self._busy.release()

    def _type(self, line: str) -> bool:
        """Run one line; returns whether the next one makes sense."""
        self._event("command", line)
        try:
            done = subprocess.run(
                ["bash", "-c", line], cwd=ROOT, env=os.environ, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, errors="replace", check=False, timeout=_LIMIT_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            self._event("note", f"{line}: no end after {_LIMIT_SECONDS} s")
            return False
        if line == _VERDICT:
            try:
                verdict = json.loads(done.stdout)
            except ValueError:
                verdict = {"pipeline": "all", "outcome": "unknown", "reason": _end_of(done.stderr)}
            self._tell([{"kind": "verdict", "at": time.time(), "verdict": verdict}])
            return True
        if done.returncode:
            self._event("note", f"exit code {done.returncode}: {_end_of(done.stderr or done.stdout)}")
        # What cannot settle is judged all the same: the verdict says what is unknown.
        return done.returncode == 0 or line == _SETTLE

    def _event(self, what: str, text: str) -> None:
        self._tell([{"kind": "event", "at": time.time(), "what": what, "text": text}])


def _end_of(text: str) -> str:
    return " ".join(text.strip().splitlines()[-_SAID_LINES:])


def retained(root: Path) -> dict[str, str]:
    """Path of each complete checkpoint by `<job id>/<name>`, the newest last."""
    from inspector.flink.folder import list_folders  # noqa: PLC0415  # not in the image of the page

    if not root.is_dir():
        return {}
    return {f"{each.job_id}/{each.name}": str(each.path) for each in list_folders(root) if each.complete}
