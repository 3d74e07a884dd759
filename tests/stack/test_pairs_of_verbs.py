"""Any two verbs at once leave the stack as one after the other would, in one of the two orders."""

from __future__ import annotations

import itertools
import random
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from faultline.settings import ROOT
from faultline.stack.home import Home
from faultline.stack.processes import KEEPER, of_stack
from flink_job.rest import TERMINAL_STATES, jobs_named
from tests.stack.running_stack import RunningStack
from tests.tiers import SEED, examples

pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]

PAIRS = 20
_LIMIT_SECONDS = 600


@dataclass(frozen=True)
class State:
    """The state of each service that the verbs change, and whether the job is active."""

    generator: str = "running"
    spark: str = "running"
    job: bool = True


def _to(service: str, before: tuple[str, ...], after: str) -> Callable[[State], State]:
    """A verb that takes a service from one of these states to another, and is refused in any other state."""

    def act(state: State) -> State:
        changes: dict[str, Any] = {service: after}
        return replace(state, **changes) if getattr(state, service) in before else state

    return act


def _up(state: str) -> str:
    """Return the state after a start: a paused service stays paused."""
    return "paused" if state == "paused" else "running"


ALIVE = ("running", "paused")
VERBS: dict[tuple[str, ...], Callable[[State], State]] = {
    ("flink_cancel.sh",): lambda state: replace(state, job=False),
    ("flink_restore.sh", "latest"): lambda state: replace(state, job=True),
    ("flink_restore.sh", "latest", "--mode", "exactly-once"): lambda state: replace(state, job=True),
    ("flink_submit.sh",): lambda state: replace(state, job=True),
    ("up.sh",): lambda state: State(_up(state.generator), _up(state.spark)),
    **{
        (name, service): act
        for service in ("generator", "spark")
        for name, act in (
            ("start.sh", _to(service, ("exited",), "running")),
            ("stop.sh", _to(service, ALIVE, "exited")),
            ("kill.sh", _to(service, ALIVE, "exited")),
            ("pause.sh", _to(service, ("running",), "paused")),
            ("resume.sh", _to(service, ("paused",), "running")),
        )
    },
}
STARTS_AND_RESTORES = [
    each for each in VERBS if each[0] in ("up.sh", "start.sh", "flink_restore.sh", "flink_submit.sh")
]


def test_two_verbs_at_once_are_two_verbs_in_some_order(stack: RunningStack) -> None:
    """The pair, the state before it and the exit codes are in the message of a failure."""
    chance = random.Random(SEED)
    state = State()
    for number in range(examples(PAIRS)):
        # The same verb twice is the pair that does most harm.
        first = chance.choice(STARTS_AND_RESTORES if number % 2 else list(VERBS))
        pair = (first, first if number % 4 == 1 else chance.choice(list(VERBS)))
        begun = [_begin(stack, *verb) for verb in pair]
        said = [process.communicate(timeout=_LIMIT_SECONDS)[1] for process in begun]
        codes = [process.returncode for process in begun]
        allowed = {VERBS[second](VERBS[one](state)) for one, second in itertools.permutations(pair)}
        found = _state(stack)
        assert found in allowed, (number, pair, state, codes, said)
        assert set(codes) <= {0, 1, 2}, (number, pair, state, codes, said)
        assert not any("Traceback" in each for each in said), said
        state = found


def _begin(stack: RunningStack, name: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(ROOT / "scripts" / name), *words],
        env=stack.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _state(stack: RunningStack) -> State:
    """The state by status; fails when a service runs twice, or two jobs of one name are active."""
    marker = Home(stack.home).marker()
    assert marker is not None
    keepers = Counter(each.service for each in of_stack(marker.stack) if each.service.startswith(KEEPER))
    assert set(keepers.values()) == {1}, keepers
    states = stack.states()
    base = f"http://127.0.0.1:{stack.environment['STACK_FLINK_UI_PORT']}"
    active = [job for job in jobs_named(base, "visit_windows") if job["state"] not in TERMINAL_STATES]
    assert len(active) <= 1, active
    return State(states["generator"], states["spark"], bool(active))
