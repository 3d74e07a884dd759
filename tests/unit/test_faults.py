"""The fault matrix without a stack: its rows, schedules, shrinking, times."""

from __future__ import annotations

import itertools
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from faultline.faults import lanes
from faultline.faults.__main__ import main
from faultline.faults.catalogue import CATALOGUE, possible
from faultline.faults.changed_job import CHANGES, Edit
from faultline.faults.judge import Check
from faultline.faults.lane import CLAIMS, claimed
from faultline.faults.lanes import MOST_STACKS, that_fit
from faultline.faults.model import Fault, Need, Result, Row, RowOutcome
from faultline.faults.needs import missing
from faultline.faults.plan import USUAL, groups, plan, turns
from faultline.faults.rows import CONTROL_ROWS, ROWS
from faultline.faults.scene import Scene, StepFailed
from faultline.faults.schedule import Strike, as_script, events, make, shortened
from faultline.faults.shrink import shrink
from faultline.faults.soak import cut_down, in_a_line
from faultline.faults.steps import Start, Step, SubmitChanged, Wrapper, until
from faultline.faults.times import CAUGHT_UP, FLINK_OUTPUT, GAP, NOTICED, RUNNING, SPARK_OUTPUT, longest_gap, measure
from faultline.formats.jobs import AT_LEAST_ONCE, EXACTLY_ONCE
from faultline.settings import ROOT
from faultline.stack.backends.local import LocalBackend
from faultline.stack.errors import StackError
from faultline.stack.home import Home, Topics
from faultline.stack.services import services
from faultline.stack.settings import load
from faultline.stack.stack import Stack, open_stack
from faultline.waiting import wait_until
from tests.called import call, script
from tests.tree import require_none

SCRIPT = re.compile(r"(?:scripts|faultline/faults)/[\w/]+\.sh")
CAUGHT = [row for rows in CONTROL_ROWS.values() for row in rows]


def steps_of(row: Row | Fault) -> list[Step]:
    more = (*row.installs, *row.prepares, *row.undo) if isinstance(row, Row) else ()
    return [*row.breaks, *row.heals, *more]


def bare_steps_of(row: Row | Fault) -> list[Step]:
    """Its steps, without what says when they come or that they are refused."""
    return [step.step if isinstance(step, Wrapper) else step for step in steps_of(row)]


def test_each_line_names_scripts_that_exist() -> None:
    rows: list[Row | Fault] = [*ROWS.values(), *CAUGHT, *CATALOGUE.values()]
    require_none(f"{row.name}: no line" for row in rows if not steps_of(row))
    named = [(row.name, name) for row in rows for step in steps_of(row) for name in SCRIPT.findall(step.line)]
    assert len(named) > len(ROWS)
    require_none(f"{row}: {name} does not exist" for row, name in named if not (ROOT / name).is_file())


def test_rows_say_what_is_promised_and_why() -> None:
    require_none(name for name, row in ROWS.items() if not (row.promise and row.why))


def test_placeholders_of_a_line_are_known() -> None:
    found = [
        (name, placeholder)
        for name, row in ROWS.items()
        for step in steps_of(row)
        for placeholder in re.findall(r"(?<!\$)\{(\w+)\}", step.line)
    ]
    assert found
    require_none(f"{name}: {{{placeholder}}}" for name, placeholder in found if placeholder not in Scene.PLACEHOLDERS)


FILES = re.compile(
    r"\{(?:flink|spark|output|newest_commit)\}|\b(?:mv|cp|rm|find|truncate)\b[^|&;]*\{(?:newest|oldest)\}"
)


def test_rows_that_break_files_and_no_others_need_them_on_a_disk() -> None:
    rows = [*ROWS.values(), *CAUGHT]
    breaking = {row.name for row in rows if any(FILES.search(step.line) for step in steps_of(row))}
    assert breaking
    assert breaking == {row.name for row in rows if Need.DISK in row.needs}


def test_a_row_that_breaks_files_does_not_apply_to_a_store(tmp_path: Path) -> None:
    def why(**values: str) -> str | None:
        settings, home = load({}, {"HOME": str(tmp_path), **values}, {}), Home(tmp_path)
        return missing(Need.DISK, Stack(settings, home, LocalBackend(settings, home), ""))

    assert why() is None
    assert why(DATA="s3://bucket/x") == "it breaks files, and s3://bucket/x is an object store"


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_fits_the_job_and_what_it_makes_compiles(change: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "flink_job", tmp_path / "flink_job")
    for edit in CHANGES[change]:
        edit.apply(tmp_path)
        changed = (tmp_path / edit.file).read_text(encoding="utf-8")
        assert changed != (ROOT / edit.file).read_text(encoding="utf-8")
        compile(changed, edit.file, "exec")


def test_a_change_whose_text_is_gone_or_there_twice_is_refused(tmp_path: Path) -> None:
    for text in ("", "old old"):
        (tmp_path / "job.py").write_text(text)
        with pytest.raises(ValueError, match=r"job\.py has \d times, and not once: old"):
            Edit("job.py", "old", "new").apply(tmp_path)


def test_rows_submit_changes_that_exist() -> None:
    rows = [*ROWS.values(), *CAUGHT]
    changes = {step.change for row in rows for step in bare_steps_of(row) if isinstance(step, SubmitChanged)}
    assert changes == set(CHANGES)


def test_all_rows_are_planned_once_and_by_the_seed() -> None:
    rows = plan([], 7, EXACTLY_ONCE)
    assert sorted(each.row.name for each in rows) == sorted(row.name for row in [*ROWS.values(), *CAUGHT])
    assert rows == plan([], 7, EXACTLY_ONCE) != plan([], 8, EXACTLY_ONCE)
    alone = plan(["broker-kill", "broker-kill"], 7, EXACTLY_ONCE)
    # A row that fails among all others meets the same moment alone.
    assert alone == [each for each in rows if each.row.name == "broker-kill"]


def fresh(*names: str, mode: str = EXACTLY_ONCE, **values: str) -> list[bool]:
    return [turn.fresh for turn in turns(plan(names, 7, mode), values)]


def test_a_row_gets_a_new_stack_after_a_wrong_one_and_with_settings_of_its_own() -> None:
    one, other, third, own = "broker-kill", "broker-bounce", "broker-freeze", "leading-jobmanager-kill"
    assert fresh(one, "submit-without-checkpoint", other, third) == [False, False, True, False]
    assert fresh(one, own, other) == [False, True, True]
    assert fresh(own, FLINK_JOBMANAGERS="2") == [False]
    assert fresh(one, other, mode=AT_LEAST_ONCE) == [True, False]
    # Rows of one control share its stack.
    assert fresh("job-writes-twice") == [True, False, False]


def test_rows_that_share_a_stack_of_their_own_stay_together() -> None:
    rows = plan([], 7, EXACTLY_ONCE)
    split = groups(rows)
    assert sorted(each.row.name for group in split for each in group) == sorted(each.row.name for each in rows)
    assert [len(group) for group in split[-len(CONTROL_ROWS) :]] == [3] * len(CONTROL_ROWS)
    assert all(len({each.own for each in group}) == 1 for group in split)
    assert all(len(group) == 1 for group in split if group[0].own == USUAL)


def test_rows_after_which_the_stack_must_be_new_come_last() -> None:
    rows = [each.row for each in plan([], 7, EXACTLY_ONCE)]
    plain = [row.name for row in rows if not (row.settings or row.control or row.spoils)]
    assert [row.name for row in rows[: len(plain)]] == plain


def test_rows_that_fill_the_topic_come_after_those_that_do_not() -> None:
    rows = [each.row for each in plan([], 7, EXACTLY_ONCE)]
    shared = [row.fills for row in rows if not (row.settings or row.control or row.spoils)]
    assert shared == sorted(shared)
    assert any(shared)
    starts = {row.name: [row.load, *(step.flags for step in row.breaks if isinstance(step, Start))] for row in rows}
    many = {name for name, flags in starts.items() if any(re.search("--(rate|large-percent) ", each) for each in flags)}
    assert {row.name for row in rows if row.fills} == many - {row.name for row in rows if row.control}


def test_at_least_once_shares_stacks_as_exactly_once_does() -> None:
    def sizes(mode: str) -> list[int]:
        return [len(group) for group in groups(plan([], 7, mode))]

    assert sizes(AT_LEAST_ONCE) == sizes(EXACTLY_ONCE)


def test_stacks_share_the_rows_without_running_one_twice(tmp_path: Path) -> None:
    (tmp_path / CLAIMS).mkdir()
    rows = plan([], 7, EXACTLY_ONCE)
    one, other = claimed(rows, tmp_path), claimed(rows, tmp_path)
    taken = [each.row.name for pair in itertools.zip_longest(one, other) for each in pair if each is not None]
    assert sorted(taken) == sorted(each.row.name for each in rows)


@pytest.mark.parametrize(
    ("available", "cores", "expected"),
    [(None, 8, 1), (1_000, 8, 1), (30_000, 2, 2), (30_000, 64, 4), (10**6, 64, MOST_STACKS)],
    ids=["unknown", "little", "cores", "memory", "most"],
)
def test_all_rows_are_shared_by_as_many_stacks_as_fit(
    monkeypatch: pytest.MonkeyPatch, available: int | None, cores: int, expected: int
) -> None:
    monkeypatch.setattr(lanes, "available_mebibytes", lambda: available)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    assert that_fit(open_stack({}, {"STACK_BACKEND": "local"}), plan([], 7, EXACTLY_ONCE)) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "no-such-row"], "no-such-row is not a row; the rows are: cancel-restore"),
        (["run"], "which row?; the rows are: cancel-restore"),
        (["all", "--stacks", "0"], "--stacks 0: from 1 to 8"),
        (["all", "broker-kill"], "all takes no names"),
    ],
)
def test_bad_input_is_named(arguments: list[str], message: str) -> None:
    done = call(main, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    "arguments", [["run", "cancel-restore-older"], ["all"], ["run", "broker-kill", "--mode", AT_LEAST_ONCE]]
)
def test_a_stack_that_is_there_is_not_reset_without_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    Home(tmp_path).claim(Topics("local"))
    monkeypatch.setenv("STACK_HOME", str(tmp_path))
    monkeypatch.setenv("STACK_BACKEND", "local")
    done = call(main, *arguments, "--seed", "1")
    assert (done.returncode, done.stdout) == (2, "seed 1\n")
    assert f"the one in {tmp_path} has topics, checkpoints and outputs" in done.stderr
    assert "--reset" in done.stderr
    assert Home(tmp_path).marked()


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([RowOutcome.PASSED, RowOutcome.FAILED, RowOutcome.DOES_NOT_APPLY], 1),
        ([RowOutcome.DOES_NOT_APPLY, RowOutcome.PASSED], 2), ([RowOutcome.PASSED, RowOutcome.PASSED], 0),
    ],
)  # fmt: skip
def test_a_failed_row_fails_the_matrix(monkeypatch: pytest.MonkeyPatch, outcomes: list[RowOutcome], code: int) -> None:
    found = [Result(f"row-{number}", outcome) for number, outcome in enumerate(outcomes)]
    monkeypatch.setattr("faultline.faults.__main__.run_names", lambda *_, **__: found)
    assert call(main, "all").returncode == code


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    result = Result(
        "a-row", RowOutcome.FAILED, [Check("verdict", "violated", "holds")], {GAP: 3.5}, "why", str(tmp_path)
    )
    result.write()
    assert Result.read(tmp_path) == result
    assert Result.read(tmp_path / "nothing") is None


def test_a_command_in_a_row_gets_one_interrupt_and_ends_first(tmp_path: Path) -> None:
    """Also the loop inside `timeout`, which would otherwise go on to its limit."""
    line = f"trap 'echo cleaned > {tmp_path}/cleaned' EXIT; touch {tmp_path}/began; {until(60, 'false').line}"
    program = (
        "import os, signal; from faultline.faults.repair import run; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"run(['bash', '-c', {line!r}], os.environ, 90)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.DEVNULL)
    wait_until((tmp_path / "began").exists, "the command", seconds=20)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=40) != 0
    assert (tmp_path / "cleaned").exists()


STACKS = [[row.name for row in services(load({}, {"PROFILE": profile}, {}).values)] for profile in ("", "cluster")]


def test_the_same_seed_makes_the_same_schedule() -> None:
    assert make(7, 600, STACKS[0]) == make(7, 600, STACKS[0]) != make(8, 600, STACKS[0])


def test_a_schedule_has_faults_of_its_own_stack_only() -> None:
    machine, cluster = (set(possible(stack)) for stack in STACKS)
    assert machine | cluster == set(CATALOGUE)
    assert machine - cluster == {"jobmanager-kill"}
    assert {"store-kill", "broker-2-kill", "jobmanager-2-of-2-kill", "spark-worker-kill"} <= cluster - machine
    assert {strike.fault for seed in range(20) for strike in make(seed, 900, STACKS[1])} == cluster


@pytest.mark.parametrize("stack", STACKS, ids=["machine", "cluster"])
@pytest.mark.parametrize("seed", range(20))
def test_faults_that_need_the_same_service_do_not_overlap(seed: int, stack: list[str]) -> None:
    strikes, faults = make(seed, 900, stack), CATALOGUE
    assert strikes
    assert all(strike.ends <= 900 - 15 for strike in strikes)
    for number, one in enumerate(strikes):
        for other in strikes[:number]:
            if faults[one.fault].needs & faults[other.fault].needs:
                assert one.begins > other.ends or other.begins > one.ends


def test_one_broker_of_three_is_always_left() -> None:
    faults = CATALOGUE
    for seed in range(200):
        strikes = [each for each in make(seed, 600, STACKS[1]) if faults[each.fault].name.startswith("broker")]
        for one in strikes:
            assert sum(other.begins <= one.begins <= other.ends for other in strikes) <= 2


def test_some_faults_overlap() -> None:
    schedules = [make(seed, 900, STACKS[0]) for seed in range(10)]
    pairs = [pair for strikes in schedules for pair in itertools.product(strikes, repeat=2)]
    assert any(one.begins < other.begins < one.ends for one, other in pairs)


def test_each_fault_is_repaired_after_it_was_broken() -> None:
    strikes = make(3, 600, STACKS[1])
    found = events(strikes)
    assert [event.at for event in found] == sorted(event.at for event in found)
    for strike in strikes:
        assert [event.heals for event in found if event.strike == strike] == [False, True]


def strikes_named(names: str) -> list[Strike]:
    return [Strike(name, 10.0 * number, 10.0 * number + 3) for number, name in enumerate(names)]


@pytest.mark.parametrize("needed", ["d", "ag", "bcf", "abcdefgh"])
def test_shrinking_finds_the_fewest(needed: str) -> None:
    def fails(part: Sequence[Strike]) -> bool:
        return set(needed) <= {strike.fault for strike in part}

    assert "".join(strike.fault for strike in shrink(strikes_named("abcdefgh"), fails, lambda: True)) == needed


def test_shrinking_stops_when_the_time_is_over() -> None:
    left = iter([True] * 3 + [False] * 100)
    asked: list[Sequence[Strike]] = []

    def fails(part: Sequence[Strike]) -> bool:
        asked.append(part)
        return False

    assert len(shrink(strikes_named("abcdefgh"), fails, lambda: next(left))) == 8
    assert len(asked) <= 3


def test_a_part_of_a_schedule_takes_less_time_and_keeps_its_overlaps() -> None:
    long = [Strike("a", 5, 9), Strike("b", 300, 310), Strike("c", 305, 320), Strike("d", 900, 901)]
    short = shortened(long)
    assert [strike.fault for strike in short] == ["a", "b", "c", "d"]
    assert [round(s.ends - s.begins, 1) for s in short] == [4, 10, 15, 1]
    assert short[1].begins < short[2].begins < short[1].ends
    assert short[-1].ends < 80


def test_a_script_has_every_line_in_order_and_ends_in_the_verdict(tmp_path: Path) -> None:
    strikes = [Strike("taskmanager-kill", 3, 8), Strike("broker-freeze", 4, 6)]
    written = as_script(strikes, {"STACK_SPARK_TRIGGER": "1 second"}, ["two faults"])
    lines = [line for line in written.splitlines() if line.startswith(("scripts/", "sleep"))]
    assert lines[2:9] == [
        "sleep 3.0", "scripts/kill.sh taskmanager", "sleep 1.0", "scripts/pause.sh kafka", "sleep 2.0",
        "scripts/resume.sh kafka", "sleep 2.0",
    ]  # fmt: skip
    assert lines[-1] == "scripts/verdict.sh all"
    # Run where the scripts only say who calls them: settings, a home of its own, and the exit code of the verdict.
    for name in re.findall(r"scripts/\w+\.sh", written):
        stub = tmp_path / name
        stub.parent.mkdir(exist_ok=True)
        code = 1 if name == "scripts/verdict.sh" else 0
        stub.write_text(f'#!/bin/sh\necho {name} "$STACK_HOME" "$STACK_SPARK_TRIGGER"\nexit {code}\n', encoding="utf-8")
        stub.chmod(0o755)
    quick = re.sub(r"^sleep .*$", "", written, flags=re.MULTILINE)
    done = subprocess.run(["bash", "-c", quick], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    called = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert {(home, trigger) for _, home, trigger in called} == {(called[0][1], "1 second")}
    assert Path(called[0][1]).is_dir()
    assert f"STACK_HOME={called[0][1]} scripts/down.sh --wipe" in done.stderr
    Path(called[0][1]).rmdir()


def test_a_failure_shows_its_command_and_its_last_line() -> None:
    error = StepFailed("scripts/flink_restore.sh: exit code 137:\n{offsets}\nflink_restore.sh: it was killed")
    assert in_a_line(error) == "scripts/flink_restore.sh: exit code 137: flink_restore.sh: it was killed"
    assert in_a_line(StackError("one line")) == "one line"


def test_a_schedule_that_fails_without_any_fault_accuses_none() -> None:
    class Broken:
        def run(self, strikes: Sequence[Strike]) -> list[str]:
            return ["spark is violated"]

    assert cut_down(Broken(), strikes_named("abc")) == ([], [True])  # type: ignore[arg-type]


def test_a_schedule_that_does_not_fail_again_is_kept_whole() -> None:
    class Whole:
        def run(self, strikes: Sequence[Strike]) -> list[str]:
            return []

    smallest, failed = cut_down(Whole(), strikes_named("abc"))  # type: ignore[arg-type]
    assert ([strike.fault for strike in smallest], failed) == (["a", "b", "c"], [])


def test_a_part_that_fails_only_sometimes_is_found_with_how_often_it_did() -> None:
    class Sometimes:
        runs_of_c = 0

        def run(self, strikes: Sequence[Strike]) -> list[str]:
            if [strike.fault for strike in strikes] != ["c"]:
                return ["spark is violated"] if len(strikes) == 2 and strikes[-1].fault == "c" else []
            self.runs_of_c += 1
            return ["spark is violated"] if self.runs_of_c == 3 else []

    smallest, failed = cut_down(Sometimes(), strikes_named("abc"))  # type: ignore[arg-type]
    assert ([strike.fault for strike in smallest], failed) == (["c"], [False, False, True])


def timeline(state: Callable[[float], str]) -> dict[str, list[dict[str, object]]]:
    """Samples of 40 s: broken at 10, healed at 14; Flink commits every 4 s, except from 10 to 22."""
    kafka, flink, spark = [], [], []
    for tenth in range(0, 400, 5):
        at = tenth / 10
        seen = at if at < 10 or at >= 22 else 10.0
        kafka.append({"at": at, "visits": {"0": int(at * 10)}, "group": {"0": int(seen // 4 * 40)}})
        flink.append({"at": at, "state": state(at), "running_tasks": 3 if state(at) == "RUNNING" else 0, "tasks": 3})
        spark.append({"at": at, "batch": int(at // 5)})
    windows = [{"at": float(at)} for at in (0, 4, 8, 22, 24, 28)]
    phases = [(0.0, "load"), (10.0, "break"), (14.0, "heal"), (30.0, "settle")]
    made = [{"at": at, "kind": "phase", "text": text} for at, text in phases]
    made.append({"at": 11.0, "kind": "broken", "text": ""})
    return {"events": made, "kafka": kafka, "flink": flink, "spark": spark, "seen": windows}  # type: ignore[dict-item]


def test_times_are_those_of_the_samples() -> None:
    found = measure(timeline(lambda at: "RESTARTING" if 12 <= at < 17 else "RUNNING"))
    assert found[NOTICED] == 2.0
    assert found[RUNNING] == 7.0
    assert found[FLINK_OUTPUT] == 12.0
    assert found[SPARK_OUTPUT] == 5.0
    assert found[GAP] == 14.0
    assert 10 <= found[CAUGHT_UP] <= 12


@pytest.mark.parametrize(
    ("moments", "gap"),
    [
        ((0, 9, 12, 15), 3.0),
        # The first window after the fault comes while the stack settles.
        ((0, 9, 34), 25.0),
        # Before the fault nothing is to blame.
        ((0, 10, 12, 29), 17.0),
        ((12, 15), None),
        ((0, 9), None),
    ],
)
def test_the_gap_is_from_the_last_window_before_the_fault_to_the_first_after_it(
    moments: tuple[int, ...], gap: float | None
) -> None:
    samples = timeline(lambda at: "RUNNING")
    samples["seen"] = [{"at": float(at)} for at in moments]
    assert measure(samples).get(GAP) == gap


def test_the_gap_of_a_soak_counts_from_the_first_window_to_the_end_of_its_repairs() -> None:
    events = [{"kind": "phase", "text": "break", "at": 0.0}, {"kind": "phase", "text": "settle", "at": 50.0}]
    timeline = {"events": events, "seen": [{"at": at} for at in (5.0, 12.0, 40.0, 49.0, 90.0)]}
    assert longest_gap(timeline) == 28.0
    assert longest_gap({**timeline, "seen": [{"at": 5.0}, {"at": 90.0}]}) is None


def test_a_fault_that_flink_does_not_notice_has_no_such_time() -> None:
    assert NOTICED not in measure(timeline(lambda at: "RUNNING"))


def test_without_samples_there_are_no_times() -> None:
    assert measure({"events": [], "kafka": [], "flink": [], "spark": [], "seen": []}) == {}


def test_the_list_has_every_row() -> None:
    assert [line for line in script("faults.sh", "list").stdout.splitlines() if line in ROWS] == list(ROWS)
