"""Results of the cluster's judges for samples that keep the promise, and for samples that break it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from faultline.faults.judge import Judge, Look, Predicted
from faultline.faults.judges.cluster import GoesOn, NoCheckpoint, StaleLeader, StandsStill
from faultline.faults.judges.moments import WRITTEN, InCommit, InTransaction, SlowBatch
from faultline.faults.judges.readers import BlocksReaders
from faultline.faults.matrix import _too_small
from faultline.faults.model import Row
from faultline.faults.phases import _does_not_apply
from faultline.faults.plan import USUAL, plan
from faultline.faults.rows import ROWS
from faultline.faults.rows.cluster import ROWS as CLUSTER
from faultline.faults.scene import Scene, StepFailed
from faultline.faults.steps import Line, Step
from faultline.faults.timeline import EVENTS, SPARK, Timeline
from faultline.faults.trial import Trial
from faultline.formats.jobs import EXACTLY_ONCE
from faultline.formats.ledger import SUFFIX, acked_line, sent_line
from faultline.settings import ROOT, as_environment
from faultline.stack.backend import EXITED, RUNNING
from faultline.stack.backends.local import LocalBackend
from faultline.stack.home import Home
from faultline.stack.settings import load
from faultline.stack.stack import Stack, open_stack

BROKEN = 100.0
TOPIC = "visits"


class Sampled(Scene):
    """A scene whose stack is not there: it knows its settings, and what a measurement would print."""

    def __init__(self, folder: Path, state: str = RUNNING, profile: str = "cluster", **variables: str) -> None:
        super().__init__(folder, Timeline(folder), open_stack({"BACKEND": "local"}, {"STACK_HOME": str(folder)}))
        self.answers: dict[str, Any] = {}
        self._state = state
        environ = as_environment({"HOME": str(folder), **variables})
        self._settings = load(environ, {"PROFILE": profile} if profile else {}, {})
        (folder / EVENTS).write_text(json.dumps({"at": BROKEN, "kind": "broken", "text": ""}) + "\n", encoding="utf-8")

    @property
    def stack(self) -> Stack:
        home = Home(self.folder)
        backend = LocalBackend(self._settings, home)
        backend.state = lambda service: self._state  # type: ignore[method-assign]
        return Stack(self._settings, home, backend, "")

    def probe(self, module: str, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        return json.dumps(self.answers[" ".join((module, *words))])

    def sampled(self, name: str, lines: Sequence[dict[str, Any]]) -> None:
        """Write the samples of a file."""
        (self.folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def look_of(scene: Sampled) -> Look:
    return Look(scene, ROWS["one-broker-of-three-gone"])


def ok(judge: Judge, scene: Sampled) -> list[bool]:
    return [check.ok for check in judge.before_repair(look_of(scene))]


def checkpoint(began: float, ended: float) -> dict[str, Any]:
    return {"at": ended, "checkpoints": [{"id": 1, "at": ended * 1000, "milliseconds": (ended - began) * 1000}]}


NONE: dict[str, Any] = {"at": 106.0, "unknown": "no answer"}


@pytest.mark.parametrize(
    ("checkpoints", "windows", "right"),
    [
        ([checkpoint(103, 104)], [90, 104.5], True),
        # The windows of a checkpoint that began before the fault.
        ([checkpoint(99, 101)], [90, 102], False),
        # The windows came before the new checkpoint was complete: they are those of an older one.
        ([checkpoint(103, 106)], [90, 104], False),
        ([checkpoint(103, 104)], [90], False),
        ([], [90, 120], False),
    ],
)
def test_flink_goes_on_when_windows_of_a_new_checkpoint_come(
    tmp_path: Path, checkpoints: list[dict[str, Any]], windows: list[float], right: bool
) -> None:
    scene = Sampled(tmp_path)
    scene.sampled("flink.jsonl", [NONE, *checkpoints])
    # One more was committed before the fault, and is read late.
    scene.sampled("kafka.jsonl", [{"at": 99, "stable": {"0": 7}, "windows": {"0": 9}}])
    scene.sampled("seen.jsonl", [{"at": at, "partition": 0, "offset": 7} for at in windows] + [LATE])
    assert ok(GoesOn(seconds=0), scene)[0] == right


LATE = {"at": 110, "partition": 0, "offset": 6}


def batch(at: float, committed: int, planned: int | None = None) -> dict[str, Any]:
    return {"at": at, "batch": committed, "planned": planned and {"batch": planned}}


@pytest.mark.parametrize(
    ("samples", "right"),
    [
        ([batch(99, 7), batch(112, 8)], True),
        # It was planned before the fault.
        ([batch(99, 7, 8), batch(112, 8)], False),
        ([batch(99, 7, 8), batch(112, 9)], True),
        # It was planned so soon after the fault that it may be one of before.
        ([batch(99, 7), batch(100.4, 7, 8), batch(112, 8)], False),
        ([batch(99, 7), NONE, batch(112, 7)], False),
        # Nothing is known of before.
        ([NONE, batch(112, 8)], False),
        ([], False),
    ],
)
def test_spark_goes_on_when_a_new_batch_is_committed(
    tmp_path: Path, samples: list[dict[str, Any]], right: bool
) -> None:
    scene = Sampled(tmp_path)
    scene.sampled("spark.jsonl", samples)
    assert ok(GoesOn(seconds=0), scene)[1] == right


def ledger(folder: Path, *acked: float) -> None:
    file = folder / "ledger" / TOPIC / f"one{SUFFIX}"
    file.parent.mkdir(parents=True)
    sent = sent_line(0, 0, timestamp=1, clock=120_000, digest=b"12345678", key=b"k")
    lines = [acked_line(number, 0, number, int(at * 1000)) for number, at in enumerate(acked)]
    # The last line is torn.
    file.write_text("".join([sent, *lines, "acked,9,0,9,,99"]), encoding="utf-8")


def stands_still(scene: Sampled, before: dict[str, int | None], now: dict[str, int | None]) -> list[bool]:
    look = look_of(scene)
    scene.answers["ends"] = before
    StandsStill().at_fault(look)
    scene.answers["ends"] = now
    return [check.ok for check in StandsStill().before_repair(look)]


ENDS: dict[str, int | None] = {"0": 70, "1": None}


def committed(*stable: int, begin: float = 100.5) -> list[dict[str, Any]]:
    """Samples, a second apart, of the last stable offset of a partition that ends at 9."""
    return [{"at": begin + at, "stable": {"0": end}, "windows": {"0": 9}} for at, end in enumerate(stable)]


@pytest.mark.parametrize(
    ("samples", "right"),
    [
        (committed(*[5] * 10), True),
        # A commit of the job moves it once, up to the transaction that is in the way.
        (committed(5, 5, *[7] * 9), True),
        (committed(*range(10)), False),
        (committed(*[9] * 10), False),
        ([], False),
    ],
)
def test_readers_wait_when_the_last_stable_offset_stands_still(
    tmp_path: Path, samples: list[dict[str, Any]], right: bool
) -> None:
    scene = Sampled(tmp_path)
    scene.sampled("kafka.jsonl", samples)
    assert ok(BlocksReaders(), scene) == [right]


@pytest.mark.parametrize(("offset", "right"), [(6, True), (7, False)])
def test_a_transaction_that_was_committed_before_the_broker_was_hit_is_missed(
    tmp_path: Path, offset: int, right: bool
) -> None:
    scene = Sampled(tmp_path)
    scene.sampled("kafka.jsonl", committed(5, 7, begin=97))
    # What comes after the fault was committed after it.
    seen: list[dict[str, Any]] = [
        {"at": 98.8, "partition": 0, "offset": offset},
        {"at": 110, "partition": 0, "offset": 8},
    ]
    scene.sampled("seen.jsonl", seen)
    events = [(99, "phase", "break"), (BROKEN, "broken", "")]
    scene.sampled(EVENTS, [{"at": at, "kind": kind, "text": text} for at, kind, text in events])
    look = Look(scene, ROWS["broker-freeze-in-transaction"])
    InTransaction().at_fault(look)
    assert InTransaction().in_time(look) == right


def test_nothing_is_written_when_no_visit_is_acknowledged_and_no_window_comes(tmp_path: Path) -> None:
    scene = Sampled(tmp_path)
    # What was on its way may come for some seconds.
    ledger(tmp_path, 99, 104.9)
    scene.sampled("seen.jsonl", [{"at": 99}, {"at": 104}])
    assert stands_still(scene, ENDS, ENDS) == [True] * 5
    scene.sampled("seen.jsonl", [{"at": 99}, {"at": 106}])
    assert stands_still(scene, ENDS, ENDS) == [True, True, True, True, False]
    assert stands_still(Sampled(tmp_path, EXITED), ENDS, ENDS) == [False, True, True, True, False]
    # Without any leader nothing could have been written.
    nobody = dict.fromkeys(ENDS)
    assert stands_still(scene, nobody, nobody) == [True, False, True, True, False]


def test_a_visit_that_is_acknowledged_or_added_is_written(tmp_path: Path) -> None:
    scene = Sampled(tmp_path)
    ledger(tmp_path, 99, 106)
    assert stands_still(scene, ENDS, ENDS) == [True, True, True, False, True]
    assert stands_still(scene, ENDS, {**ENDS, "0": 71}) == [True, True, False, False, True]
    # A leader was elected: somebody can write.
    assert stands_still(scene, ENDS, {**ENDS, "1": 30}) == [True, True, False, False, True]


@pytest.mark.parametrize(
    ("times", "right"),
    [
        ((95.0, 99.0, 112.0, 113.0), True),
        # It was completed just before the fault, in whole seconds of an object store.
        ((95.0, 100.5, 112.0), True),
        ((95.0, 99.0, 105.0, 112.0), False),
        # The follower has ended, or has seen none before.
        ((95.0, 99.0), False),
        ((112.0, 113.0), False),
        ((), False),
    ],
)
def test_no_checkpoint_is_completed_while_a_store_is_gone(
    tmp_path: Path, times: tuple[float, ...], right: bool
) -> None:
    scene = Sampled(tmp_path)
    with (tmp_path / EVENTS).open("a", encoding="utf-8") as events:
        events.write(json.dumps({"at": 110.0, "kind": "phase", "text": "heal"}) + "\n")
    scene.sampled("checkpoints.jsonl", [{"checkpoints": [{"at": round(at * 1000)}]} for at in times])
    assert [check.ok for check in NoCheckpoint(seconds=0).settled(look_of(scene))] == [right]


BEFORE = {"visits-0": 2, "visits-1": 2}
MOVED = {"visits-0": 1, "visits-1": 3}


def stale(tmp_path: Path, struck: dict[str, Any], broken: dict[str, Any]) -> list[bool]:
    scene = Sampled(tmp_path)
    look = look_of(scene)
    scene.answers["leaders --controller"] = 2
    scene.answers["leaders"] = struck
    StaleLeader().at_fault(look)
    scene.answers["leaders"] = broken
    return [check.ok for check in StaleLeader().before_repair(look)]


def test_a_leader_that_is_cut_off_does_not_know_that_it_was_replaced(tmp_path: Path) -> None:
    all_same = dict.fromkeys("123", BEFORE)
    assert stale(tmp_path, all_same, {"1": MOVED, "2": BEFORE, "3": MOVED}) == [True, True, True]
    # It reaches the others, and nobody was elected.
    assert stale(tmp_path, all_same, all_same) == [True, True, False]
    # It has learnt it.
    assert stale(tmp_path, all_same, dict.fromkeys("123", MOVED)) == [True, False, True]
    # It does not answer: clients do not reach it either.
    assert stale(tmp_path, all_same, {"1": MOVED, "2": None, "3": MOVED}) == [True, False, True]
    assert stale(tmp_path, all_same, {"1": None, "2": BEFORE, "3": None}) == [True, True, False]
    # One of the others has none.
    assert stale(tmp_path, all_same, {"1": MOVED, "2": BEFORE, "3": {**MOVED, "visits-0": -1}})[2] is False
    # It led nothing.
    others = dict.fromkeys("123", MOVED)
    assert stale(tmp_path, others, others)[0] is False


@pytest.mark.parametrize(("committed", "met"), [(None, True), (BROKEN + 9, True), (BROKEN - 1, False)])
def test_a_batch_is_met_in_its_commit_when_it_is_committed_after_the_fault(
    tmp_path: Path, committed: float | None, met: bool
) -> None:
    scene = Sampled(tmp_path)
    (tmp_path / WRITTEN).write_text('{"batch": 4}\n', encoding="utf-8")
    scene.answers["planned 4"] = {"4": {"committed_at": committed}}
    assert InCommit().was_in_time(look_of(scene)) == met


@pytest.mark.parametrize(
    ("later", "met"), [((12, 17), True), ((4.5, 10, 15.2), False), ((), False)], ids=["slow", "as before", "none"]
)
def test_a_slow_store_is_met_by_a_batch_that_is_committed_later_than_those_before(
    tmp_path: Path, later: tuple[float, ...], met: bool
) -> None:
    scene = Sampled(tmp_path)
    phases = [{"at": at, "kind": "phase", "text": text} for at, text in ((BROKEN, "break"), (BROKEN + 15, "heal"))]
    scene.sampled(EVENTS, phases)
    # One that began after the repair says nothing.
    at = [-11, -6, -1, *later, *([40] if later else [])]
    samples = [{"at": BROKEN + seconds, "batch": number} for number, seconds in enumerate(at)]
    scene.sampled(SPARK, [*samples, {"at": BROKEN + 41, "unknown": "no answer"}, samples[-1] | {"at": BROKEN + 99}])
    assert SlowBatch().was_in_time(look_of(scene)) == met


JOB = {"job_id": "a", "restored_from": None, "restarts": 0}


class Typed(Sampled):
    """A scene that keeps the lines that would be typed; the job goes on by itself."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.lines: list[str] = []

    def do(self, step: Step) -> None:
        self.lines.append(step.line)

    def wait_for_checkpoints(self, count: int) -> dict[str, Any]:
        return JOB


def test_a_moment_that_only_the_repaired_stack_tells_is_tried_again(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Third(Judge):
        def was_in_time(self, look: Look) -> bool:
            return look.scene.attempts == 3

    scene = Typed(tmp_path)
    row = Row("a-row", (Line("break"),), (Line("heal"),), "promised", "because", seconds=0, judged=(Third(),))
    trial = Trial(row, scene)
    trial._look.job_before = JOB
    assert trial._break_and_heal() == Predicted()
    assert scene.lines == ["break", "heal"] * 3
    scene.attempts = 3
    with pytest.raises(StepFailed, match="the moment was missed 5 times"):
        trial._break_and_heal()


def test_the_ports_of_the_controlling_broker_and_of_the_others_are_known(tmp_path: Path) -> None:
    scene = Sampled(tmp_path)
    scene.answers["leaders --controller"] = 2
    values = scene.stack.settings.values
    own = f"{values['KAFKA_2_CONTAINER_PORT']},{values['KAFKA_2_CONTROLLER_PORT']}"
    line = scene.filled("cut {controlling} {inner_ports}")
    assert line.startswith(f"cut kafka-2 {own} {values['KAFKA_CONTAINER_PORT']},")
    assert line.count(",") == 4
    # The one that was broken is the one to repair.
    scene.answers["leaders --controller"] = 3
    assert scene.filled("cut {controlling} {inner_ports}") == line
    scene.forget()
    assert scene.filled("{controlling}") == "kafka-3"


def test_rows_apply_to_the_stack_that_they_are_for(tmp_path: Path) -> None:
    def why_not(row: str, profile: str, **variables: str) -> str | None:
        return _does_not_apply(ROWS[row], Sampled(tmp_path, profile=profile, **variables))

    kill, broker = "taskmanager-kill", "one-broker-of-three-gone"
    assert why_not(kill, "") is None
    # Prometheus only watches.
    assert why_not(kill, "", METRICS="1") is None
    assert why_not(broker, "cluster") is None
    assert why_not(kill, "cluster") == "KAFKA_BROKERS=3: the row is for a stack with 1"
    assert why_not(broker, "") == "KAFKA_BROKERS=1: the row is for a stack with 3"
    on_disk = why_not(broker, "cluster", DATA="disk")
    assert on_disk == "the data is on the disk: the row is for a stack with DATA=s3://faultline"


def test_a_stack_that_has_the_settings_of_a_row_needs_no_reset(tmp_path: Path) -> None:
    [planned] = plan(["one-broker-of-three-gone"], 1, EXACTLY_ONCE)
    [usual] = plan(["taskmanager-kill"], 1, EXACTLY_ONCE)
    machine, cluster = (Sampled(tmp_path, profile=name).stack.settings.values for name in ("", "cluster"))
    assert (planned.resets(machine), planned.resets(cluster), planned.resets({})) == (True, False, True)
    assert (usual.resets(machine), usual.resets(cluster)) == (False, False)
    assert planned.own_beside(cluster) == USUAL != planned.own_beside(machine)


def test_a_machine_that_is_too_small_for_a_cluster_is_found_before_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = open_stack({"BACKEND": "local", "PROFILE": "cluster"}, {"STACK_HOME": str(tmp_path)})
    monkeypatch.setattr("faultline.faults.matrix.available_mebibytes", lambda: 4000)
    assert _too_small(stack) == "its stack needs 7072 MiB of memory, and 4000 MiB are available"
    monkeypatch.setattr("faultline.faults.matrix.available_mebibytes", lambda: 8000)
    assert _too_small(stack) is None


def test_all_rows_of_the_cluster_share_a_stack_and_are_in_the_list_of_what_it_promises() -> None:
    planned = plan([row.name for row in CLUSTER], 1, EXACTLY_ONCE)
    assert {each.own for each in planned} == {((("PROFILE", "cluster"),), "")}
    section = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8").partition("## A small cluster")[2]
    assert [row.name for row in CLUSTER if f"`{row.name}`" not in section.partition("\n## ")[0]] == []
