"""Random faults on a pipeline, one after the other while it is fed, and one verdict at the end."""

from __future__ import annotations

import random
import time

from faultline.formats.verdict import Verdict
from faultline.messages import say
from faultline.pipelines.rows import AWAY, FED, FEED, GROWTH, KILL, QUIET, ROWS, SETTLE, START, STOP, applies
from faultline.pipelines.spec import Pipeline, SpecError
from faultline.pipelines.trial import Step, Trial, try_steps
from faultline.stack.stack import Stack

_STRIKES: dict[str, tuple[Step, ...]] = {
    "kill": (KILL, START),
    "stop": (GROWTH, STOP, START),
    **{name: (GROWTH, *steps) for name, steps in AWAY.items()},
}
"""Steps of each fault, while the topic is fed. One that a row has, too, applies where that row does."""


def soak(stack: Stack, pipeline: Pipeline, minutes: float, seed: int) -> Verdict:
    """Break a pipeline for so long, in the order of the seed. Raises StackError, SpecError, Unknown."""
    refused = {row.name: applies(row, pipeline, stack) for row in ROWS}
    if refused["kill"]:
        raise SpecError(f"{pipeline.name} cannot be broken: {refused['kill']}")
    strikes = [name for name in _STRIKES if not refused.get(name)]
    say(f"seed {seed}; faults: {', '.join(strikes)}")
    chance = random.Random(seed)

    def strike(trial: Trial) -> None:
        ends = time.monotonic() + 60 * minutes
        while time.monotonic() < ends:
            name = chance.choice(strikes)
            say(f"   fault: {name}")
            trial.notes.append(f"fault: {name}")
            for step in (FEED, *_STRIKES[name]):
                step.act(trial)

    steps = (START, Step(f"random faults for {minutes:g} minutes", strike), FED, SETTLE, QUIET, STOP)
    return try_steps(stack, pipeline, f"soak_{seed}_{int(time.time())}", steps, forgiving=True)
