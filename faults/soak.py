"""Random faults in random order, overlapping too, and one verdict at the end. A soak that fails is cut down.

Usage: python -m faults.soak --minutes N [--seed N] [--mode MODE]
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract.settings import ROOT, SettingsError
from stack.errors import StackError
from stack.messages import say
from stack.stack import open_stack

from faults.model import EXACTLY_ONCE, MODES
from faults.phases import keep_logs
from faults.repair import heal, keep_settings, script
from faults.scene import CommandFailed, Scene
from faults.schedule import Strike, as_script, events, make, shortened
from faults.shrink import shrink
from faults.timeline import Timeline, write_timeline
from faults.times import GAP, measure

SUMMARY = "soak.json"
_TRIES = 3
_LEAST_MINUTES, _MOST_MINUTES = 1.0, 600.0
_SHRINK_SECONDS = 1800.0


class Soak:
    """Schedules that run on the stack, each with a folder of results."""

    def __init__(self, folder: Path, mode: str) -> None:
        self._folder, self._mode = folder, mode
        self._runs = 0
        self.applied = 0
        """How many faults of the last schedule applied."""
        self.gap: float | None = None
        """The longest gap without committed windows in the last schedule, in seconds."""

    def run(self, strikes: Sequence[Strike]) -> list[str]:
        """Run a schedule on a clean stack and judge it. Returns what is wrong: nothing, when it holds."""
        self._runs += 1
        folder = self._folder / f"{self._runs:02}"
        folder.mkdir(parents=True)
        timeline = Timeline(folder)
        scene = Scene(folder, timeline, self._mode)
        script("reset.sh")
        os.environ["STACK_FLINK_MODE"] = self._mode
        script("up.sh")
        timeline.phase("load")
        scene.watch(seconds=3600 + max((strike.ends for strike in strikes), default=0))
        try:
            scene.wait_for_checkpoints(2)
            try:
                self.applied = self._break(scene, strikes)
            except (CommandFailed, StackError) as error:
                return [f"not repaired: {str(error).splitlines()[-1]}"]
            return self._judge(scene)
        finally:
            scene.stop_watching()
            keep_logs(scene)
            self.gap = measure(write_timeline(folder)).get(GAP)
            say(f"   longest gap without committed windows: {self.gap} s; {folder}")

    def _break(self, scene: Scene, strikes: Sequence[Strike]) -> int:
        """Run the schedule; returns how many faults applied."""
        scene.timeline.phase("break")
        begin, missed = time.monotonic(), set()
        for event in events(strikes):
            time.sleep(max(0.0, begin + event.at - time.monotonic()))
            for step in event.steps:
                try:
                    scene.do(step)
                except CommandFailed as error:
                    # Another fault has already ended what this one is about.
                    missed.add(event.strike)
                    scene.timeline.add("note", str(error))
                    say(f"   did not apply: {str(error).splitlines()[-1]}")
            # The time that typing takes is not part of the schedule.
            begin += max(0.0, time.monotonic() - begin - event.at)
        scene.timeline.phase("heal")
        heal()
        scene.wait_for_checkpoints(2)
        return len(strikes) - len(missed)

    def _allowed(self, verdict: dict[str, Any]) -> bool:
        """At-least-once allows duplicates, and nothing else."""
        return (
            self._mode != EXACTLY_ONCE
            and verdict["pipeline"] == "flink"
            and verdict["outcome"] == "violated"
            and not verdict["lost"] + verdict["unexpected"]
        )

    def _judge(self, scene: Scene) -> list[str]:
        try:
            scene.settle()
        except CommandFailed as error:
            return [f"not settled: {str(error).splitlines()[-1]}"]
        answer = scene.verdict()
        wrong = [
            f"{each['pipeline']} is {each['outcome']}: lost {each['lost']}, repeated {each['duplicated']}, "
            f"unexpected {each['unexpected']}"
            for each in [*answer["verdicts"], *([answer["source"]] if answer["source"] else [])]
            if each["outcome"] != "holds" and not self._allowed(each)
        ]
        if not scene.watches():
            wrong.append("the watcher did not run to the end")
        seen = json.loads(scene.measure("aftermath", str(scene.folder)))
        if seen["different"] + seen["missing"] + seen["unseen"]:
            wrong.append(f"a reader meanwhile and a reader now disagree: {seen}")
        return wrong


def cut_down(soak: Soak, strikes: Sequence[Strike]) -> list[Strike]:
    """Find the fewest faults that still fail, within half an hour."""
    end = time.monotonic() + _SHRINK_SECONDS

    def fails(part: Sequence[Strike]) -> bool:
        candidate = shortened(part)
        say(f"== {len(candidate)} of {len(strikes)} faults: {', '.join(s.fault for s in candidate)}")
        for _ in range(_TRIES):
            try:
                if time.monotonic() < end and soak.run(candidate):
                    return True
            except (CommandFailed, StackError) as error:
                say(f"   could not run: {str(error).splitlines()[-1]}")
        return False

    return shortened(shrink(strikes, fails, lambda: time.monotonic() < end))


def soak(minutes: float, seed: int, mode: str) -> int:
    """Run a soak; returns the exit code: 0 it holds, 1 it does not."""
    folder = open_stack({}).home.root / "results" / f"soak-{seed}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    print(f"seed {seed}", flush=True)
    strikes = make(seed, minutes * 60)
    say(f"{len(strikes)} faults in {minutes:g} minutes")
    say(f"again: scripts/soak.sh --minutes {minutes:g} --seed {seed} --mode {mode}")
    for strike in strikes:
        say(f"   {strike.begins:6.1f} s to {strike.ends:6.1f} s  {strike.fault}")
    running = Soak(folder, mode)
    wrong = running.run(strikes)
    found = {
        "seed": seed, "minutes": minutes, "mode": mode, "faults": len(strikes), "applied": running.applied,
        "gap": running.gap, "wrong": wrong,
    }  # fmt: skip
    (folder / SUMMARY).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if not wrong and not running.applied:
        raise StackError("no fault of this schedule applied; choose more minutes or another seed")
    if not wrong:
        print(f"HOLDS after {running.applied} faults")
        return 0
    for line in wrong:
        print(f"VIOLATED {line}", flush=True)
    smallest = cut_down(running, strikes)
    file = folder / "fewest_faults.sh"
    title = f"{len(smallest)} of the {len(strikes)} faults of seed {seed} are enough."
    file.write_text(as_script(smallest, mode, title), encoding="utf-8")
    file.chmod(0o755)
    print(f"{len(smallest)} of {len(strikes)} faults are enough: {', '.join(s.fault for s in smallest)}; {file}")
    return 1


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="soak.sh", description="Random faults, one verdict.", allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long things break (default: %(default)g)")
    parser.add_argument("--seed", type=int, help="of the schedule (default: a random one, printed first)")
    parser.add_argument("--mode", choices=MODES, default=EXACTLY_ONCE)
    chosen = parser.parse_args(arguments)
    if not _LEAST_MINUTES <= chosen.minutes <= _MOST_MINUTES:
        parser.error(f"--minutes takes a number from {_LEAST_MINUTES:g} to {_MOST_MINUTES:g}")
    stack = open_stack({})
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    keep_settings()
    if stack.home.marked():
        say(
            f"soak.sh: the stack in {stack.home.root} has topics and checkpoints, and a soak begins without; "
            "scripts/reset.sh removes them"
        )
        return 2
    try:
        code = soak(chosen.minutes, secrets.randbelow(10**6) if chosen.seed is None else chosen.seed, chosen.mode)
    except (StackError, SettingsError, CommandFailed) as error:
        say(f"soak.sh: {error}")
        code = 2
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("soak.sh: interrupted; removing its stack")
        code = 130
    if open_stack({}).home.marked():
        script("down.sh", "--wipe")
    return code


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
