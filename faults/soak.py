"""Random faults in random order, overlapping too, and one verdict at the end. A soak that fails is cut down.

Usage: python -m faults.soak --minutes N [--seed N] [--mode MODE]
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from contract.settings import ROOT, SettingsError
from stack.errors import StackError
from stack.messages import say
from stack.stack import open_stack

from faults.repair import heal, script
from faults.scene import CommandFailed, Scene
from faults.schedule import Strike, as_script, events, make, shortened
from faults.shrink import shrink
from faults.timeline import Timeline, write_timeline
from faults.times import GAP, measure

_TRIES = 3
_SHRINK_SECONDS = 1800.0


class Soak:
    """Schedules that run on the stack, each with a folder of results."""

    def __init__(self, folder: Path, mode: str) -> None:
        self._folder, self._mode = folder, mode
        self._runs = 0

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
        scene.wait_for_checkpoints(2)
        scene.watch()
        try:
            self._break(scene, strikes)
            return self._judge(scene)
        finally:
            scene.stop_watching()
            gap = measure(write_timeline(folder)).get(GAP)
            say(f"   longest gap without committed windows: {gap} s; {folder}")

    def _break(self, scene: Scene, strikes: Sequence[Strike]) -> None:
        scene.timeline.phase("break")
        begin = time.monotonic()
        for event in events(strikes):
            time.sleep(max(0.0, begin + event.at - time.monotonic()))
            for step in event.steps:
                try:
                    scene.do(step)
                except CommandFailed as error:
                    # Another fault has already ended what this one is about.
                    scene.timeline.add("note", str(error))
                    say(f"   did not apply: {str(error).splitlines()[-1]}")
        scene.timeline.phase("heal")
        heal()
        scene.wait_for_checkpoints(2)

    def _judge(self, scene: Scene) -> list[str]:
        scene.timeline.phase("settle")
        scene.ask("scripts/generator_stop.sh")
        try:
            scene.ask("scripts/settle.sh --wait 180")
        except CommandFailed as error:
            return [f"not settled: {str(error).splitlines()[-1]}"]
        scene.timeline.phase("judge")
        answer = json.loads(scene.ask("scripts/verdict.sh all --json", codes=(0, 1, 2)))
        (scene.folder / "verdict.json").write_text(json.dumps(answer, indent=2) + "\n", encoding="utf-8")
        wrong = [
            f"{each['pipeline']} is {each['outcome']}: lost {each['lost']}, repeated {each['duplicated']}, "
            f"unexpected {each['unexpected']}"
            for each in answer["verdicts"]
            if each["outcome"] != "holds"
        ]
        seen = json.loads(scene.measure("agreement", str(scene.folder)))
        if seen["different"] + seen["missing"] + seen["unseen"]:
            wrong.append(f"a reader meanwhile and a reader now disagree: {seen}")
        return wrong


def cut_down(soak: Soak, strikes: Sequence[Strike]) -> list[Strike]:
    """Find the fewest faults that still fail, within half an hour."""
    end = time.monotonic() + _SHRINK_SECONDS

    def fails(part: Sequence[Strike]) -> bool:
        candidate = shortened(part)
        say(f"== {len(candidate)} of {len(strikes)} faults: {', '.join(s.fault for s in candidate)}")
        return any(soak.run(candidate) for _ in range(_TRIES) if time.monotonic() < end)

    return shortened(shrink(strikes, fails, lambda: time.monotonic() < end))


def soak(minutes: float, seed: int, mode: str) -> int:
    """Run a soak; returns the exit code: 0 it holds, 1 it does not."""
    folder = open_stack({}).home.root / "results" / f"soak-{seed}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    print(f"seed {seed}", flush=True)
    strikes = make(seed, minutes * 60)
    say(f"{len(strikes)} faults in {minutes:g} minutes; again: scripts/soak.sh --minutes {minutes:g} --seed {seed}")
    for strike in strikes:
        say(f"   {strike.begins:6.1f} s to {strike.ends:6.1f} s  {strike.fault}")
    running = Soak(folder, mode)
    wrong = running.run(strikes)
    if not wrong:
        print(f"HOLDS after {len(strikes)} faults")
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
    parser.add_argument("--mode", choices=("exactly-once", "at-least-once"), default="exactly-once")
    chosen = parser.parse_args(arguments)
    stack = open_stack({})
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
        say("soak.sh: interrupted; repairing what is broken")
        code = 130
    if open_stack({}).home.up() is not None:
        script("down.sh", "--wipe")
    return code


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
