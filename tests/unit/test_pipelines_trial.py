"""Start, stop and kill a pipeline: real processes of this machine, without a broker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from faultline.pipelines.judge import Judge
from faultline.pipelines.prepare import Prepared, prepare
from faultline.pipelines.rows import BOTH, ROWS, applies
from faultline.pipelines.spec import SpecError, read
from faultline.pipelines.trial import Trial, words_of
from faultline.settings import ROOT, as_environment
from faultline.stack.errors import StackError
from faultline.stack.stack import Stack, open_stack
from faultline.verdict.store import Store, open_store
from faultline.waiting import wait_until

SPEC = """
promise = "none"
[source]
topic = "orders"
[start]
command = '{command}'
{more}
[output]
reader = "json"
path = "{{work}}/out"
[expected]
sql = "SELECT value FROM source"
"""


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with open_store(in_memory=True) as opened:
        yield opened


def stack_in(folder: Path) -> Stack:
    return open_stack({}, os.environ | as_environment({"HOME": str(folder), "BACKEND": "local"}))


def prepared(folder: Path, command: str, more: str = "") -> Prepared:
    file = folder / "orders.toml"
    file.write_text(SPEC.format(command=command, more=more), encoding="utf-8")
    work = folder / "work"
    pipeline = read(file).filled({"work": str(work)})
    names = {"work": str(work), "here": str(folder)}
    return Prepared(pipeline, work, stack_in(folder), {**os.environ, "PYTHONPATH": str(ROOT)}, names=names)


def trial(store: Store, where: Prepared, *, forgiving: bool = False) -> Trial:
    return Trial(where, Judge(store, where.pipeline), forgiving=forgiving)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("false", "orders: the start command ended at once (exit code 1): no output"),
        ('bash -c "echo no such topic; exit 3"', "ended at once (exit code 3): no such topic; see "),
        (
            r'printf "Error: no driver\n\tat java.base/Thread.run(Thread.java:840)\n\t... 4 more\n"',
            ": Error: no driver; see ",
        ),
        ('bash -c "sleep 99 & exit"', "the start command has forked: it ended and left 1 processes, which were ended"),
    ],
)
def test_a_command_that_does_not_stay_is_one_line_and_leaves_nothing(
    store: Store, tmp_path: Path, command: str, words: str
) -> None:
    with trial(store, prepared(tmp_path, command)) as running, pytest.raises(StackError) as refused:
        running.start()
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_second_command_that_does_not_stay_is_a_note(store: Store, tmp_path: Path) -> None:
    with trial(store, prepared(tmp_path, 'bash -c "echo taken; exit 1"')) as running:
        running.start(may_end=True)
        assert running.notes == ["orders: the start command ended at once (exit code 1): taken"]


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"no-such, the program of start\.command, is not on PATH of the user"):
        words_of(prepared(tmp_path, "sleep 99"), "start.command", "no-such {work}")


def test_a_placeholder_is_one_word(tmp_path: Path) -> None:
    folder = tmp_path / "it's my folder"
    folder.mkdir()
    where = prepared(folder, "sleep 99")
    assert words_of(where, "start.command", 'ls {here}/main.py "{work} x"') == [
        "ls", f"{folder}/main.py", f"{folder}/work x",
    ]  # fmt: skip


def test_two_files_of_one_name_do_not_share_their_runs(store: Store, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        (folder / "orders.toml").write_text(SPEC.format(command="sleep 99", more=""), encoding="utf-8")
    stack = stack_in(tmp_path)
    for _ in range(2):
        with prepare(stack, read(one / "orders.toml"), starts=False) as where, trial(store, where):
            pass
    with (
        pytest.raises(SpecError, match=r"has the runs of .*/one/orders\.toml, a file of the same name"),
        prepare(stack, read(other / "orders.toml"), starts=False),
    ):
        pass


@pytest.mark.parametrize("inside", ["{work}", "{work}/../shared", "{work}/aside", "/"])
def test_a_checkpoint_outside_the_run_is_not_moved(store: Store, tmp_path: Path, inside: str) -> None:
    (tmp_path / "shared").mkdir()
    where = prepared(tmp_path, "sleep 99", f'[checkpoint]\nfolder = "{inside}"')
    with trial(store, where) as running, pytest.raises(SpecError, match="which a row would move; name one below"):
        _ = running.checkpoint


def test_a_program_that_cannot_be_seen_ends_with_the_trial(store: Store, tmp_path: Path) -> None:
    where = prepared(tmp_path, 'env -i bash -c "echo $$ > main; exec sleep 99"')
    with pytest.raises(StackError, match=r"its processes cannot be seen"), trial(store, where) as running:
        running.start()
    assert not alive(where.work / "main")


def test_the_end_of_one_of_two_copies_is_a_note(store: Store, tmp_path: Path) -> None:
    where = prepared(tmp_path, 'bash -c "mkdir taken && sleep 99; echo locked; sleep 4"')
    with trial(store, where) as running:
        running.start()
        running.start(may_end=True)
        wait_until(lambda: not running.programs[1].running, "its end", seconds=60)
        BOTH.act(running)
        assert running.notes == ["one of the copies of orders ended by itself: locked"]


def alive(file: Path) -> bool:
    """Return whether the process still runs; one that nobody has waited for does not."""
    try:
        return psutil.Process(int(file.read_text())).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_end_of_a_trial_ends_everything_that_it_started(store: Store, tmp_path: Path) -> None:
    where = prepared(tmp_path, 'bash -c "echo $$ > main; setsid sleep 99 & echo $! > child; wait"')
    with trial(store, where) as running:
        running.start()
        pids = [where.work / "main", where.work / "child"]
        assert all(map(alive, pids))
    assert not any(map(alive, pids))


def test_stop_and_kill_may_be_commands(store: Store, tmp_path: Path) -> None:
    more = "stop = 'bash -c \"echo stop >> told\"'\nkill = 'bash -c \"echo kill >> told\"'\nstop_seconds = 1"
    where = prepared(tmp_path, "sleep 99", more)
    with trial(store, where) as running:
        running.start()
        running.stop()
        running.start()
        running.kill()
        running.start()
    assert (where.work / "told").read_text().split() == ["stop", "kill", "kill"]


def test_a_kill_leaves_no_time_to_end_well(store: Store, tmp_path: Path) -> None:
    well = "trap 'echo well > ended; exit' TERM; while :; do sleep 0.1; done"
    where = prepared(tmp_path, "bash {here}/main.sh")
    (tmp_path / "main.sh").write_text(well, encoding="utf-8")
    with trial(store, where) as running:
        running.start()
        running.kill()
        assert not (where.work / "ended").exists()
        running.start()
        running.stop()
    assert (where.work / "ended").exists()


def test_only_a_forgiving_trial_starts_a_pipeline_again(store: Store, tmp_path: Path) -> None:
    where = prepared(tmp_path, 'bash -c "echo went; sleep 4"')
    with trial(store, where) as strict:
        strict.start()
        wait_until(lambda: not any(program.running for program in strict.programs), "its end", seconds=60)
        with pytest.raises(StackError, match=r"orders ended by itself: went; see "):
            strict.require_running()
    with trial(store, where, forgiving=True) as forgiving:
        forgiving.start()
        wait_until(lambda: not any(program.running for program in forgiving.programs), "its end", seconds=60)
        forgiving.require_running()
        assert forgiving.notes == ["orders ended by itself: went; it was started again"]


def test_a_row_says_why_it_does_not_apply(tmp_path: Path) -> None:
    stack, examples = stack_in(tmp_path), ROOT / "pipelines"
    plain = read(examples / "plain_consumer" / "plain_consumer.toml")
    lacks = {row.name: applies(row, plain, stack) for row in ROWS}
    assert [name for name, reason in lacks.items() if not reason] == ["kill", "kill-broker", "two-drivers"]
    assert set(filter(None, lacks.values())) == {
        "the file has no key checkpoint.folder", "the file has no table [upgrade]",
        "the output is no Postgres at {postgres}",
    }  # fmt: skip
    fixed = prepared(tmp_path, "sleep 99").pipeline
    assert "start.command needs {topic}" in applies(ROWS[0], fixed, stack)


WHOLE = """
promise = "none"
[source]
topic = "visits"
[start]
command = "run {topic}"
[upgrade]
command = "run --new {topic}"
[checkpoint]
folder = "checkpoint"
[output]
reader = "postgres"
url = "{postgres}"
table = "visits"
[expected]
sql = "SELECT value FROM source"
"""
"""Each row applies to it."""
STARTS = '[start]\ncommand = "run {topic}"\n[upgrade]\ncommand = "run --new {topic}"\n'
KEEPS = '[checkpoint]\nfolder = "checkpoint"\n'
WRITES = 'reader = "postgres"\nurl = "{postgres}"\ntable = "visits"\n'


@pytest.mark.parametrize(
    ("row", "old", "new", "reason"),
    [
        ("kill", STARTS, "", "the file has no table [start]"),
        ("kill", '"run {topic}"', '"run"', "so start.command needs {topic}"),
        ("kill", '"{postgres}"', '"postgresql://db/shop"', "so the keys of output need one of {topic}, {work},"),
        ("kill", WRITES, 'reader = "json"\npath = "/data/out"\n', "so the keys of output need one of"),
        ("kill", WRITES, 'reader = "json"\npath = "../out"\n', "so the keys of output need one of"),
        ("kill", WRITES, 'reader = "json"\npath = "{here}/out"\n', "so the keys of output need one of"),
        ("kill", '"checkpoint"', '"/data/checkpoint"', "so checkpoint.folder is relative, or begins with {work}/"),
        ("kill", '"checkpoint"', '"{work}/../checkpoint"', "so checkpoint.folder is relative"),
        ("kill", '"checkpoint"', '"{here}/checkpoint"', "so checkpoint.folder is relative"),
        ("kill", '"checkpoint"', '"{work}"', "so checkpoint.folder is relative"),
        ("kill", "[output]", '[feed]\ncommand = "send"\n[output]', "so feed.command needs {topic}"),
        ("kill", '"visits"\n[start]', '"orders"\n[start]', "nothing feeds the topic; add feed.file or feed.command"),
        ("empty-checkpoint", KEEPS, "", "the file has no key checkpoint.folder"),
        ("newest-commit-deleted", "[start]", '[start]\nenvironment = "flink"', "it is for checkpoints of Spark"),
        ("newest-commit-deleted", "[start]", '[start]\nenvironment = "python"', "it is for checkpoints of Spark"),
        ("upgrade", '[upgrade]\ncommand = "run --new {topic}"\n', "", "the file has no table [upgrade]"),
        ("kill-broker", "[start]", 'bootstrap = "elsewhere:9092"\n[start]', "the broker is not one of this stack"),
        ("sink-away", WRITES, 'reader = "json"\npath = "out"\n', "the output is no Postgres at {postgres}"),
    ],
)
def test_each_reason_keeps_its_row_from_a_pipeline(tmp_path: Path, row: str, old: str, new: str, reason: str) -> None:
    rows, stack, file = {row.name: row for row in ROWS}, stack_in(tmp_path), tmp_path / "orders.toml"
    file.write_text(WHOLE, encoding="utf-8")
    whole = read(file)
    assert {name: applies(each, whole, stack) for name, each in rows.items()} == dict.fromkeys(rows, "")
    assert old in WHOLE
    file.write_text(WHOLE.replace(old, new, 1), encoding="utf-8")
    lacking = read(file)
    assert reason in applies(rows[row], lacking, stack)
    # It keeps away this row alone, or each of them.
    assert applies(rows["kill"], lacking, stack) == (applies(rows[row], lacking, stack) if row == "kill" else "")
