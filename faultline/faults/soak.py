"""Random faults in random order, overlapping too, and one verdict at the end. A soak that fails is cut down.

Usage: python -m faultline.faults.soak --minutes N [--seed N] [--mode MODE]
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import secrets
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from faultline.command import CommandError, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.faults.judges.readers import reads_compared
from faultline.faults.phases import keep_logs
from faultline.faults.repair import heal, pinned, quietly
from faultline.faults.scene import Scene, StepFailed
from faultline.faults.schedule import Strike, as_script, events, make, shortened
from faultline.faults.shrink import shrink
from faultline.faults.timeline import Timeline, write_timeline
from faultline.faults.times import longest_gap
from faultline.formats.jobs import EXACTLY_ONCE, MODES
from faultline.formats.verdict import SOURCE, Outcome, Verdict
from faultline.messages import say
from faultline.settings import PREFIX, ROOT
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack, open_stack
from faultline.stop import interrupt_once

SUMMARY = "soak.json"
_TRIES = (1, 3)
_OWN = (f"{PREFIX}HOME", f"{PREFIX}ARTIFACTS", f"{PREFIX}PORT_OFFSET")
"""Variables that say where this stack is, as each one's port does, and not how it behaves."""
_LEAST_MINUTES, _MOST_MINUTES = 1.0, 600.0
_SHRINK_SECONDS = 1800.0


class Soak:
    """Schedules that run on the stack, each with a folder of results."""

    def __init__(self, folder: Path, mode: str, stack: Stack) -> None:
        self._folder, self._mode = folder, mode
        self.stack = stack.having({"FLINK_MODE": mode})
        self._runs = 0
        self.applied = 0
        """Number of faults of the last schedule that applied: what each of them breaks was still there."""
        self.gap: float | None = None
        """The longest gap without committed windows in the last schedule, in seconds."""

    def run(self, strikes: Sequence[Strike]) -> list[str]:
        """Run a schedule on a clean stack and judge it. Returns what is wrong: nothing, when it holds."""
        self._runs += 1
        folder = self._folder / f"{self._runs:02}"
        folder.mkdir(parents=True)
        timeline = Timeline(folder)
        scene = Scene(folder, timeline, self.stack)
        quietly("reset", functools.partial(self.stack.down, wipe=True))
        quietly("up", self.stack.up)
        timeline.phase("load")
        scene.watch(seconds=3600 + max((strike.ends for strike in strikes), default=0))
        try:
            scene.wait_for_checkpoints(2)
            try:
                wrong = self._break(scene, strikes)
            except CommandError as error:
                return [f"not repaired: {in_a_line(error)}"]
            return [*wrong, *self._judge(scene)]
        finally:
            scene.stop_watching()
            keep_logs(scene)
            self.gap = longest_gap(write_timeline(folder))
            say(f"   longest gap without committed windows: {self.gap} s; {folder}")

    def _break(self, scene: Scene, strikes: Sequence[Strike]) -> list[str]:
        """Run the schedule; returns which repairs failed.

        A fault that fails has met another one, which has already ended what this one is about; its repair then has
        nothing to do.
        """
        scene.timeline.phase("break")
        begin = time.monotonic()
        missed: set[Strike] = set()
        wrong: list[str] = []
        for event in events(strikes):
            time.sleep(max(0.0, begin + event.at - time.monotonic()))
            for step in event.steps:
                try:
                    scene.do(step)
                except StepFailed as error:
                    scene.timeline.add("note", str(error))
                    if not event.heals:
                        missed.add(event.strike)
                        say(f"   did not apply: {in_a_line(error)}")
                    elif event.strike not in missed:
                        wrong.append(f"the repair of {event.strike.fault} failed: {in_a_line(error)}")
                        say(f"   {wrong[-1]}")
            # The time that typing takes is not part of the schedule.
            begin += max(0.0, time.monotonic() - begin - event.at)
        scene.timeline.phase("heal")
        heal(scene.stack)
        scene.wait_for_checkpoints(2)
        self.applied = len(strikes) - len(missed)
        return wrong

    def _allowed(self, verdict: Verdict) -> bool:
        """At-least-once allows duplicates, and nothing else."""
        return (
            self._mode != EXACTLY_ONCE
            and verdict.pipeline == "flink"
            and verdict.outcome is Outcome.VIOLATED
            and not verdict.lost + verdict.unexpected
        )

    def _judge(self, scene: Scene) -> list[str]:
        try:
            scene.settle()
        except StepFailed as error:
            return [f"not settled: {in_a_line(error)}"]
        found = scene.verdict()
        wrong = [
            f"{each.pipeline} is {each.outcome.value}: lost {each.lost}, repeated {each.duplicated}, "
            f"unexpected {each.unexpected}"
            for each in found.verdicts
            if each.outcome is not Outcome.HOLDS and not self._allowed(each)
        ]
        if SOURCE not in found.by_pipeline:
            wrong.append(f"{SOURCE} is not judged")
        wrong += [f"{check.what}: {check.seen}" for check in reads_compared(scene) if not check.ok]
        return wrong


def in_a_line(error: Exception) -> str:
    """Return the line that was typed with its exit code, and the last line that it printed."""
    lines = str(error).splitlines()
    return " ".join([lines[0], *lines[1:][-1:]])


def cut_down(soak: Soak, strikes: Sequence[Strike]) -> tuple[list[Strike], list[bool]]:
    """Find the fewest faults that still fail, within half an hour, and in which of their runs they failed.

    First each candidate has one try, and then those of the last step three: what fails only sometimes may have passed.
    No run on record: no part has failed, and all faults are kept.
    """
    end = time.monotonic() + _SHRINK_SECONDS
    runs: dict[tuple[Strike, ...], list[bool]] = defaultdict(list)

    def fails(part: Sequence[Strike], tries: int) -> bool:
        candidate = shortened(part)
        failed = runs[tuple(candidate)]
        say(f"== {len(candidate)} of {len(strikes)} faults: {', '.join(s.fault for s in candidate) or 'none'}")
        for _ in range(tries):
            if time.monotonic() >= end:
                break
            try:
                failed.append(bool(soak.run(candidate)))
                if failed[-1]:
                    return True
            except CommandError as error:
                say(f"   could not run: {in_a_line(error)}")
        return False

    if fails([], 1):
        return [], runs[()]
    smallest = list(strikes)
    for tries in _TRIES:
        smallest = shrink(smallest, functools.partial(fails, tries=tries), lambda: time.monotonic() < end)
    shortest = shortened(smallest)
    return shortest, runs[tuple(shortest)]


def soak(stack: Stack, minutes: float, seed: int, mode: str) -> int:
    """Run a soak; returns the exit code: 0 it holds, 1 it does not."""
    folder = stack.home.root / "results" / f"soak-{seed}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    print(f"seed {seed}", flush=True)
    strikes = make(seed, minutes * 60, [row.name for row in stack.services])
    say(f"{len(strikes)} faults in {minutes:g} minutes")
    profile = f" --profile {stack.profile}" if stack.profile else ""
    command = f"scripts/soak.sh --minutes {minutes:g} --seed {seed} --mode {mode}{profile}"
    say(f"again: {command}")
    for strike in strikes:
        say(f"   {strike.begins:6.1f} s to {strike.ends:6.1f} s  {strike.fault}")
    running = Soak(folder, mode, stack)
    wrong = running.run(strikes)
    found = {
        "seed": seed, "stack": ", ".join(filter(None, (stack.backend.name, stack.profile))), "minutes": minutes,
        "mode": mode, "faults": len(strikes), "applied": running.applied, "gap": running.gap, "wrong": wrong,
    }  # fmt: skip
    (folder / SUMMARY).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if not wrong and not running.applied:
        raise StackError("no fault of this schedule applied; choose more minutes or another seed")
    if not wrong:
        missed = len(strikes) - running.applied
        print(f"HOLDS after {running.applied} faults{f', {missed} more did not apply' if missed else ''}")
        return 0
    for line in wrong:
        print(f"VIOLATED {line}", flush=True)
    say(f"looking for the fewest faults that still fail, for up to {_SHRINK_SECONDS / 60:g} minutes")
    head = [f"From {command}:", *(f"VIOLATED {w}" for w in wrong)]
    print(_shrunk(running, strikes, folder / "fewest_faults.sh", head))
    return 1


def _shrunk(running: Soak, strikes: Sequence[Strike], file: Path, title: Sequence[str]) -> str:
    """Cut the schedule down, write it as a script, and return the sentence about it."""
    smallest, failed = cut_down(running, strikes)
    if not smallest:
        return "it fails without any fault: the stack is wrong before the first one"
    found = [f"no part failed again; all {len(strikes)} faults are kept"]
    if failed:
        found = [
            f"{len(smallest)} of {len(strikes)} faults are enough: {', '.join(strike.fault for strike in smallest)}",
            f"This part failed in {sum(failed)} of {len(failed)} runs. If it holds, run it again: the moment decides.",
        ]
    settings = {
        name: value
        for name, value in running.stack.variables.items()
        if name.startswith(PREFIX) and name not in _OWN and not name.endswith("_PORT")
    }
    file.write_text(as_script(smallest, settings, [*title, *found]), encoding="utf-8")
    file.chmod(0o755)
    return f"{found[0]}; {file}"


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="scripts/soak.sh", description="Random faults, one verdict.", allow_abbrev=False
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="how long things break (default: %(default)g)")
    parser.add_argument("--seed", type=int, help="of the schedule (default: a random one, printed first)")
    parser.add_argument("--mode", choices=MODES, default=EXACTLY_ONCE)
    chosen = parser.parse_args(arguments)
    if not _LEAST_MINUTES <= chosen.minutes <= _MOST_MINUTES:
        parser.error(f"--minutes takes a number from {_LEAST_MINUTES:g} to {_MOST_MINUTES:g}")
    interrupt_once()
    stack = pinned(open_stack())
    if stack.home.marked():
        say(
            f"soak.sh: the stack in {stack.home.root} has topics and checkpoints, and a soak begins without; "
            "scripts/down.sh --wipe removes them"
        )
        return 2
    try:
        seed = secrets.randbelow(10**6) if chosen.seed is None else chosen.seed
        return soak(stack, chosen.minutes, seed, chosen.mode)
    except CommandError as error:
        say(f"soak.sh: {error}")
        return 2
    except KeyboardInterrupt:
        say("soak.sh: interrupted; removing its stack")
        return 130
    finally:
        if stack.home.marked():
            quietly("down", functools.partial(stack.down, wipe=True))


if __name__ == "__main__":
    os.chdir(ROOT)
    run("soak.sh", lambda: main(sys.argv[1:]))
