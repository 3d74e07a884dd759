"""A row from load to verdict: load, break, heal, settle, judge."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from faultline.faults.judge import Check, Judge, Look, Predicted
from faultline.faults.judges import EVERY
from faultline.faults.model import Row
from faultline.faults.scene import Scene, StepFailed
from faultline.faults.steps import Refused, Settle
from faultline.faults.verdicts import none_holds, of_control, of_verdict, wrong
from faultline.messages import say

_ATTEMPTS = 5


class Trial:
    """A row from load to verdict, with the checks of its judges."""

    def __init__(self, row: Row, scene: Scene) -> None:
        self._row, self._scene = row, scene
        self._look = Look(scene, row)
        # A negative control is judged by nothing but the verdict.
        self._judges: tuple[Judge, ...] = row.judged if row.caught else (*EVERY, *row.judged)
        self.checks: list[Check] = []

    def run(self, moment: float) -> None:
        """Run it. `moment`: the part of a checkpoint's interval to wait before the fault, from 0 to 1."""
        row, scene = self._row, self._scene
        scene.timeline.phase("load")
        scene.generate(row.load)
        scene.watch()
        with _inspecting(scene, "before"):
            # The job has committed beside the watcher's reader.
            self._look.job_before = scene.wait_for_checkpoints(2)
        time.sleep(moment * scene.checkpoint_seconds)
        before = wrong(scene.verdict(as_is=True).by_pipeline[row.caught]) if row.caught else 0
        predicted = self._break_and_heal()
        if row.unsettled:
            scene.timeline.phase("settle")
            scene.stop_generator()
            scene.do(Refused(Settle(), row.unsettled))
            self.checks += none_holds(scene.verdict())
            return
        with _inspecting(scene, "after"):
            scene.settle()
        for judge in self._judges:
            self.checks += judge.settled(self._look)
        found = scene.verdict()
        self.checks += of_control(row, found, before) if row.caught else of_verdict(row, found, predicted)
        for judge in self._judges:
            self.checks += judge.verdict(self._look, found)

    def _break_and_heal(self) -> Predicted:
        """Break and repair, once more when the moment was missed; returns what the checkpoints predict."""
        row, scene, look = self._row, self._scene, self._look
        for _ in range(_ATTEMPTS):
            scene.forget()
            self.checks.clear()
            scene.prepared = True
            for step in row.prepares:
                scene.do(step)
            scene.timeline.phase("break")
            scene.attempts += 1
            for step in row.breaks:
                scene.do(step)
            scene.timeline.add("broken", "the fault is there")
            for judge in self._judges:
                judge.at_fault(look)
            time.sleep(row.seconds)
            in_time = all(judge.in_time(look) for judge in self._judges)
            for judge in self._judges:
                self.checks += judge.before_repair(look)
            scene.timeline.phase("heal")
            for step in row.heals:
                scene.do(step)
            if row.takes_down:
                scene.watch_on()
            look.job = scene.wait_for_checkpoints(2)
            for judge in self._judges:
                self.checks += judge.after_repair(look)
            if in_time and all(judge.was_in_time(look) for judge in self._judges):
                predicted = sum((judge.predicted(look) for judge in self._judges), start=Predicted())
                if predicted.repeated + predicted.lines or not any(judge.repeats for judge in self._judges):
                    return predicted
            say("   the moment was missed: once more")
            scene.timeline.add("note", "the moment was missed")
            for step in row.undo:
                scene.do(step)
            scene.prepared = False
        raise StepFailed(f"the moment was missed {_ATTEMPTS} times")


@contextlib.contextmanager
def _inspecting(scene: Scene, when: str) -> Iterator[None]:
    """Keep what the inspector says of Spark's checkpoint now, while the block waits; Flink's are followed anyway."""

    def keep() -> None:
        text = scene.inspect(str(scene.spark), "--last", "3")
        (scene.folder / f"spark_{when}.txt").write_text(text, encoding="utf-8")

    with ThreadPoolExecutor() as pool:
        inspection = pool.submit(keep)
        yield
    inspection.result()
