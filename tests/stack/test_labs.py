"""The labs' walkthroughs as a person runs them: exit 0 with their sentences, and one line for what is wrong."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from faultline.settings import ROOT
from faultline.waiting import wait_until
from tests.called import process, script
from tests.stack.shown import shown_of, was_printed

pytestmark = [pytest.mark.ci, pytest.mark.split, pytest.mark.timeout(1800)]

WALKTHROUGHS = ROOT / "scripts" / "walkthroughs"
# What each lab proves, in part, and what the sentence rests on.
PROVES = {
    "11_micro_batch_restart": [
        "After SIGKILL between offsets/N and commits/N the restart re-runs batch N with the very same range.",
        "offsets/2 as before the kill, byte for byte",
        "After SIGTERM the restart continues with batch N+1, from where batch N ended.",
        "output: 9000 rows of 9000, 0 lost, 0 duplicated",
    ],
    "12_devices_from_files": [
        "The same file dropped again is ignored",
        "New content under an old name is silently ignored too",
        "A renamed file is a new file",
        "With the checkpoint deleted every file is read again",
        "output: 72 rows of 72, 0 lost, 0 duplicated",
    ],
    "13_failure_before_the_commit": [
        "the console shows: ['Batch: 3']",
        "Plain append in foreachBatch duplicates exactly that batch's 10 rows",
        "after: 38 rows of 28, 0 lost, 10 duplicated",
        "A folder for each batch id has no row twice",
        "The file sink has no row twice",
        "Delta with txnAppId and txnVersion has no row twice",
        "current_timestamp() of a query is the time in offsets/N: a batch that runs again has the same",
    ],
    "14_what_a_checkpoint_holds": [
        "Page counts over windows, HDFS-backed",
        "Deduplication, RocksDB",
        "commits/N holds the watermark for batch N+1",
        "State that a killed batch has written does not count",
        "after each batch: [(0, 1, True), (1, -1, False), (1, 1, False), (3, -1, False), (4, -1, False)]",
        "has nothing to do with Delta Lake",
    ],
}


def walk(name: str, home: Path, *flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return process([str(WALKTHROUGHS / f"{name}.sh"), *flags], {"STACK_HOME": str(home), **environ}, seconds=1500)


def processes_in(folder: Path) -> list[str]:
    """Command lines of the processes that work in the folder, by their arguments or their environment."""
    found = []
    for each in psutil.process_iter():
        try:
            command = " ".join(each.cmdline())
            if each.pid != os.getpid() and str(folder) in command + " ".join(each.environ().values()):
                found.append(command)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            # It ended meanwhile, or is another user's.
            continue
    return found


@pytest.mark.full
@pytest.mark.parametrize("name", list(PROVES))
def test_a_walkthrough_proves_its_sentences(name: str, tmp_path: Path) -> None:
    done = walk(name, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for text in PROVES[name]:
        assert text in done.stdout
    assert [line for line in shown_of(name) if not was_printed(line, done.stdout)] == []
    heads = [line for line in done.stdout.splitlines() if not line.startswith("  ")]
    assert heads
    assert all(line.startswith("PROVEN  ") for line in heads)
    assert "Traceback" not in done.stderr
    # All of its files are in its own folder, and all of its processes have ended.
    assert [path.name for path in tmp_path.iterdir()] == ["output"]
    assert {path.name for path in (tmp_path / "output" / "labs").iterdir()} == {name, f"{name}.lock"}
    assert processes_in(tmp_path) == []

    again = walk(name, tmp_path)
    assert again.returncode == 2
    assert again.stdout == ""
    assert re.fullmatch(rf"{name}: .* has files of an earlier run; start clean: .*{name}\.sh --clean\n", again.stderr)


@pytest.mark.parametrize(
    ("flag", "line"),
    [("--pause", "--pause waits for Enter, and there is no terminal"), ("--nonsense", "--nonsense")],
)
def test_bad_input_is_one_line(tmp_path: Path, flag: str, line: str) -> None:
    done = walk("12_devices_from_files", tmp_path, flag)
    assert done.returncode == 2
    assert done.stdout == ""
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "output").exists()


def begin(name: str, home: Path, output: int) -> subprocess.Popen[str]:
    """Start a lab in its own process group; `output`: the file for its messages."""
    return subprocess.Popen(
        [str(WALKTHROUGHS / f"{name}.sh")],
        env=os.environ | {"STACK_HOME": str(home)},
        stdout=output,
        stderr=output,
        text=True,
        start_new_session=True,
    )


def test_no_broker_survives_a_killed_lab(tmp_path: Path) -> None:
    # SIGKILL: the lab itself can do nothing any more.
    lab = begin("11_micro_batch_restart", tmp_path, subprocess.DEVNULL)
    wait_until(lambda: any("kafka.Kafka" in line for line in processes_in(tmp_path)), "the lab's broker", seconds=180)
    lab.send_signal(signal.SIGKILL)
    assert lab.wait(timeout=30) == -signal.SIGKILL
    wait_until(lambda: processes_in(tmp_path) == [], "the end of all processes", seconds=120)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_says_so_and_nothing_runs_on(tmp_path: Path, number: int, code: int) -> None:
    lab = begin("13_failure_before_the_commit", tmp_path, subprocess.PIPE)
    folder = tmp_path / "output" / "labs" / "13_failure_before_the_commit"
    wait_until((folder / "checkpoint_console" / "offsets" / "0").exists, "the first batch", seconds=180)
    # As a terminal does: to all processes of the group.
    os.killpg(lab.pid, number)
    out, err = lab.communicate(timeout=60)
    assert lab.returncode == code, err
    assert out == ""
    assert "Traceback" not in err
    wait_until(lambda: processes_in(tmp_path) == [], "the end of all processes", seconds=120)


def test_devices_file_stream_is_a_program_of_its_own(tmp_path: Path) -> None:
    event = (
        '{"eventId":"e1","data":{"devices":[{"deviceId":"d1","temperature":21.5},{"deviceId":"d2","temperature":3}]}}'
    )
    flags = ["--input", str(tmp_path / "input"), "--checkpoint", str(tmp_path / "checkpoint"), "--sink", "console"]
    missing = script("devices_file_stream.sh", *flags)
    assert missing.returncode == 2
    assert re.fullmatch(r"devices: --input .* is not a folder; .*\n", missing.stderr)
    no_output = script("devices_file_stream.sh", *flags[:4], "--sink", "delta")
    assert no_output.returncode == 2
    assert "needs --output" in no_output.stderr

    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "one.json").write_text(event + "\n")
    done = script("devices_file_stream.sh", *flags)
    assert done.returncode == 0, done.stderr
    assert "Batch: 0" in done.stdout
    assert re.search(r"\|e1 +\|d2 +\|3.0 +\|", done.stdout)

    (tmp_path / "input" / "two.json").write_text("no event\n")
    broken = script("devices_file_stream.sh", *flags)
    assert broken.returncode == 1
    assert "Traceback" not in broken.stderr
    assert "the query failed" in broken.stderr
    # The batch is planned and not committed: once the file is put right, it is read.
    shutil.copy(tmp_path / "input" / "one.json", tmp_path / "input" / "two.json")
    mended = script("devices_file_stream.sh", *flags)
    assert mended.returncode == 0, mended.stderr
    assert "Batch: 1" in mended.stdout
