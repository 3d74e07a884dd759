"""The Spark half of the inspector on golden checkpoints, whole and damaged. No JVM."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.formats.checkpoint import Checkpoint, of_newest_job
from faultline.inspector import __main__ as inspector
from faultline.inspector.__main__ import main
from faultline.inspector.ends import set_against
from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.__main__ import print_list
from faultline.inspector.flink.folder import list_folders, resolve
from faultline.inspector.flink.report import folder_report
from faultline.inspector.model import Report, as_dict, report_from
from faultline.inspector.recognize import engine_of
from faultline.inspector.render.prose import render, restart_sentence
from faultline.inspector.spark import report as report_module
from faultline.inspector.spark.log import LogFolder, list_log
from faultline.inspector.spark.report import read_report
from faultline.inspector.spark.sources import file_entries
from faultline.settings import ROOT, Settings
from tests.called import call, program
from tests.golden.archives import golden, releases

SPARK = releases("spark")
NOBODY = 65534
RELEASES = [path.name for path in SPARK]
WITH_KAFKA = [path.name for path in SPARK if (path / "kafka_files").is_dir()]


@contextlib.contextmanager
def closed_to_all(path: Path) -> Iterator[None]:
    """A path that this process may not read either: root may read everything, so it is another user meanwhile."""
    mode, user = path.stat().st_mode, os.geteuid()
    path.chmod(0)
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        path.chmod(mode)


def opened(checkpoint: Path, last: int | None = None, output: Path | None = None) -> Report:
    return read_report(checkpoint, last, output)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A copy of the checkpoint whose query was killed inside batch 3."""
    return Path(
        shutil.copytree(
            golden("spark-4.0") / "kafka_killed" / "checkpoint",
            tmp_path / "query",
            ignore=shutil.ignore_patterns("*.crc"),
        )
    )


def test_a_planned_batch_is_rerun_from_the_end_of_the_batch_before(killed: Path) -> None:
    report = opened(killed)
    assert [step.state for step in report.steps] == ["committed", "committed", "committed", "planned"]
    assert report.counts == {"batches": 4, "committed": 3, "first": 0, "last": 3}
    before, last = (json.loads((killed / "offsets" / name).read_text().splitlines()[2])["visits"] for name in "23")
    ranges = ", ".join(f"partition {number} from {before[number]} to {last[number]}" for number in "01")
    assert restart_sentence(report) == (
        f"A restart re-runs batch 3: {ranges}; a plain append in foreachBatch repeats what it had written of batch 3; a"
        " write keyed by the batch id, as by Delta's txnVersion=3 with the txnAppId of before, is not repeated."
    )
    assert not report.problems


def test_the_file_sink_repeats_nothing_and_foreachbatch_is_no_word_of_another_restart(tmp_path: Path) -> None:
    checkpoint = (
        Path(
            shutil.copytree(
                golden("spark-4.2") / "files_windowed", tmp_path / "query", ignore=shutil.ignore_patterns("*.crc")
            )
        )
        / "checkpoint"
    )
    output = checkpoint.parent / "output"
    assert "foreachBatch" not in restart_sentence(opened(checkpoint))
    (checkpoint / "commits" / "12").unlink()
    assert "what it had written of batch 12" in restart_sentence(opened(checkpoint))
    assert "foreachBatch" not in restart_sentence(opened(checkpoint, output=output))
    assert "no line is written twice" in restart_sentence(opened(checkpoint, output=output))
    (output / "_spark_metadata" / "12").unlink()
    assert "twice" not in restart_sentence(opened(checkpoint, output=output))
    # Without a commit for a batch that is not the newest, nothing runs again.
    (checkpoint / "offsets" / "12").unlink()
    assert "foreachBatch" not in restart_sentence(opened(checkpoint))


@pytest.mark.parametrize("release", WITH_KAFKA)
def test_rows_of_all_batches_are_the_records_of_the_topic(release: str) -> None:
    report = opened(golden(release) / "kafka_files" / "checkpoint")
    rows = [partition.rows for step in report.steps for partition in step.sources[0].partitions]
    assert sum(row or 0 for row in rows) == 100
    assert all(step.state == "committed" for step in report.steps)
    assert not report.problems


@pytest.mark.parametrize("release", RELEASES)
def test_files_of_each_batch_are_named_also_from_a_compact_file(release: str) -> None:
    checkpoint = golden(release) / "files_windowed" / "checkpoint"
    assert (checkpoint / "sources" / "0" / "9.compact").is_file()
    files = [Path(name).name for step in opened(checkpoint).steps for name in step.sources[0].files]
    assert files == [f"visits-{number:02d}.json" for number in range(12)]
    assert [Path(name).name for name in file_entries(checkpoint, "0", 3, 4)] == ["visits-03.json", "visits-04.json"]


def test_files_are_named_from_the_compact_file_when_the_small_ones_are_gone(tmp_path: Path) -> None:
    """Spark deletes them after spark.sql.streaming.fileSource.log.cleanupDelay."""
    checkpoint = shutil.copytree(golden("spark-4.0") / "files_windowed" / "checkpoint", tmp_path / "query")
    for number in range(9):
        (checkpoint / "sources" / "0" / str(number)).unlink()
    files = [Path(name).name for step in opened(checkpoint).steps for name in step.sources[0].files]
    assert files == [f"visits-{number:02d}.json" for number in range(12)]


@pytest.mark.parametrize("release", RELEASES)
def test_the_watermark_of_each_batch_grows(release: str) -> None:
    marks = [step.watermark for step in opened(golden(release) / "files_windowed" / "checkpoint").steps]
    # The latest event of file n is n minutes and 40 s after midnight; two minutes of delay; one batch later.
    midnight = 1_767_225_600_000
    assert marks[0] is None
    assert marks[5] == midnight + (4 * 60 + 40 - 120) * 1000


@pytest.mark.parametrize("release", RELEASES)
def test_the_sink_log_is_set_against_the_commits(release: str) -> None:
    folder = golden(release) / "files_windowed"
    report = opened(folder / "checkpoint", output=folder / "output")
    assert report.sink is not None
    assert report.sink.files == sum(1 for _ in (folder / "output").glob("part-*"))
    assert report.sink.batches[-1] == report.counts["last"]


def test_a_batch_in_the_sink_that_is_not_committed_is_said_to_be_skipped(tmp_path: Path) -> None:
    folder = shutil.copytree(golden("spark-4.0") / "kafka_files", tmp_path / "query")
    last = opened(folder / "checkpoint").counts["last"]
    for name in (str(last), f".{last}.crc"):
        (folder / "checkpoint" / "commits" / name).unlink()
    report = opened(folder / "checkpoint", output=folder / "output")
    assert "skips it" in restart_sentence(report)


def test_several_sources_have_a_name_each() -> None:
    report = opened(golden("spark-4.0") / "several_sources" / "checkpoint")
    assert [source.kind for source in report.steps[-1].sources] == ["kafka", "delta", "rate"]
    delta = report.steps[-1].sources[1]
    assert delta.facts.keys() == {"reservoirId", "reservoirVersion", "index", "isStartingVersion"}
    # Two commits wrote the table: versions 0 and 1 were read.
    assert delta.words == "Delta table: all versions before 2, nothing of version 2 yet"
    assert "started at" in report.steps[-1].sources[2].facts
    shown = render(report)
    for name in delta.facts:
        assert f"    delta {name}: " in shown
    assert "(the id of the Delta table)" in shown


def test_a_job_folder_that_is_closed_does_not_hide_the_others() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for job in "ab":
            (Path(folder) / (job * 32) / "chk-1").mkdir(parents=True)
        closed = Path(folder) / ("a" * 32)
        with closed_to_all(closed):
            report, _ = folder_report(Path(folder))
            with pytest.raises(InspectorError, match=f"{closed} cannot be read: no permission"):
                engine_of(closed)
            with pytest.raises(InspectorError, match=f"{closed} cannot be read: no permission"):
                # The newest checkpoint may be in there: a restore must not take an older one instead.
                resolve("latest", Path(folder))
    assert f"{closed} cannot be read: no permission" in report.problems[0]
    assert [Path(step.path).parent.name for step in report.steps] == ["b" * 32]


@pytest.mark.parametrize("closed", ["chk-2", "chk-2/_metadata"])
def test_a_checkpoint_that_is_closed_is_not_passed_over_for_an_older_one(closed: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        job = Path(folder) / ("a" * 32)
        for name in ("chk-1", "chk-2"):
            (job / name).mkdir(parents=True)
            (job / name / "_metadata").write_bytes(b"for the listing, its content is nothing")
        with closed_to_all(job / closed):
            report, complete = folder_report(Path(folder))
            with pytest.raises(InspectorError, match="chk-2: no permission to read"):
                resolve("latest", Path(folder))
    assert {step.name: step.state for step in report.steps} == {"chk-1": "complete", "chk-2": "incomplete"}
    assert [path.name for path in complete] == ["chk-1"]
    assert any("chk-2: no permission to read" in problem for problem in report.problems)


def test_checkpoints_of_one_job_go_by_their_numbers_whatever_the_times_of_a_copy(tmp_path: Path) -> None:
    for number, job in enumerate("ba"):
        for back in range(9, 12):
            metadata = tmp_path / (job * 32) / f"chk-{back}" / "_metadata"
            metadata.parent.mkdir(parents=True)
            metadata.write_bytes(b"for the listing, its content is nothing")
            os.utime(metadata, (2_000_000_000 + 100 * number - back,) * 2)
    assert [str(folder.path.relative_to(tmp_path))[30:] for folder in list_folders(tmp_path)] == [
        f"{job * 2}/chk-{number}" for job in "ba" for number in range(9, 12)
    ]
    assert resolve("latest", tmp_path) == tmp_path / ("a" * 32) / "chk-11"


def test_the_client_reads_the_list_and_finds_the_complete_checkpoints_of_the_newest_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for age, path in enumerate(["b/chk-8", "a/chk-9", "a/chk-10", "a/savepoint-1", "b/chk-7"]):
        job, _, name = path.partition("/")
        metadata = tmp_path / (job * 32) / name / "_metadata"
        metadata.parent.mkdir(parents=True)
        metadata.write_bytes(b"for the listing, its content is nothing")
        os.utime(metadata, (2_000_000_000 - age,) * 2)
    (tmp_path / ("b" * 32) / "chk-9").mkdir()
    print_list(list_folders(tmp_path), as_json=True)
    listed = [Checkpoint.from_json(each) for each in json.loads(capsys.readouterr().out)]
    assert len(listed) == 6
    assert [Path(each.path).relative_to(tmp_path).as_posix()[31:] for each in of_newest_job(listed)] == [
        "b/chk-7", "b/chk-8",
    ]  # fmt: skip
    assert of_newest_job([each for each in listed if not each.complete]) == []


def test_configuration_pinned_in_the_log() -> None:
    configuration = opened(golden("spark-4.0") / "kafka_killed" / "checkpoint").configuration
    assert configuration["spark.sql.shuffle.partitions"] == "2"
    assert configuration["spark.sql.streaming.stateStore.providerClass"].endswith("HDFSBackedStateStoreProvider")


@pytest.mark.parametrize(("name", "word"), [("offsets/2", "gap"), ("commits/1", "never these"), ("metadata", "new id")])
def test_a_file_that_is_gone_is_named_and_the_rest_still_shown(killed: Path, name: str, word: str) -> None:
    (killed / name).unlink()
    report = opened(killed)
    assert any(str(killed / name) in problem and word in problem for problem in report.problems), report.problems
    assert "Kafka topic visits" in render(report)


def test_commits_without_any_offsets_make_a_restart_fail(killed: Path) -> None:
    """Spark: CONCURRENT_STREAM_LOG_UPDATE, as the stack test sees it of the newest batch."""
    shutil.rmtree(killed / "offsets")
    report = opened(killed)
    assert f"{killed}/commits/0 to 2 are there without offsets: commits of what was not planned" in report.problems
    assert report.restart is not None
    assert report.restart.action == "impossible"
    assert f"{killed}/commits/0 is there already" in report.restart.sentence


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("offsets/2", "no log at all", "does not start with a version line"),
        ("offsets/2", "", "it is empty"),
        ("offsets/2", 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1}\n{"visits":{"0":"x"}}', "of the wrong kind"),
        (
            "offsets/2",
            'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":[]}\n{"visits":{"0":1}}',
            "table of settings",
        ),
        ("offsets/2", 'v1\n{"batchWatermarkMs":"x"}\n{"visits":{"0":1}}', "not a number of milliseconds"),
        ("commits/2", "v1\n[]", "not a table with nextBatchWatermarkMs"),
        ("commits/2", "", "it is empty"),
        ("commits/9", 'v1\n{"nextBatchWatermarkMs":0}', "not planned"),
        ("offsets/3", 'v1\n{"batchWatermarkMs":0,"batchTimes', "cut short or not JSON"),
        ("metadata", '{"id":', "a restart fails on it"),
        ("sources/0/0", "v1\n{", "cut short or not JSON"),
    ],
)
def test_content_that_is_damaged_is_named(killed: Path, name: str, content: str, word: str) -> None:
    (killed / name).write_text(content)
    done = run(str(killed))
    assert done.returncode == 1
    assert not done.stderr
    [problem] = [line for line in done.stdout.splitlines() if line.startswith("PROBLEM: ")]
    assert str(killed / name) in problem
    assert word in problem
    # What can be read is still shown, and the restart is predicted.
    assert "batch 1, committed" in done.stdout
    assert "\nA restart " in done.stdout


def test_a_planned_range_that_runs_backwards_is_of_a_topic_that_was_created_again(killed: Path) -> None:
    newest = killed / "offsets" / "3"
    newest.write_text(newest.read_text().replace('{"visits":{"0":20,"1":20}}', '{"visits":{"0":20,"1":7}}'))
    report = opened(killed)
    [problem] = report.problems
    assert problem.startswith(f"{newest} takes visits partition 1 from 15 back to 7: the topic was created again")


def test_files_beside_and_inside_a_checkpoint_that_are_not_the_engines_change_nothing(killed: Path) -> None:
    """The synchronizer keeps its note in the checkpoint, and the lab's hold beside it."""
    before = as_dict(opened(killed))
    (killed / "synchronizer.json").write_text('{"sink": "files"}')
    (killed / "offsets" / ".3.1f0b.tmp").write_text("v1")
    (killed / "commits" / ".DS_Store").write_bytes(b"\0")
    killed.with_suffix(".held").write_text("3")
    killed.with_suffix(".release").write_text("")
    assert as_dict(opened(killed)) == before
    beside = run(str(killed.parent))
    assert beside.returncode == 1
    assert f"name one of: {killed.name}" in beside.stderr


def test_a_query_that_deletes_and_commits_meanwhile_has_no_problems(
    killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the listing of a log and the reading of its files, the oldest batch goes and the newest is committed."""
    real, listed = list_log, list[str]()

    def list_then_act(path: Path) -> LogFolder:
        found = real(path)
        listed.append(path.name)
        if listed[-2:] == ["commits", "offsets"]:
            shutil.copy(killed / "commits" / "2", killed / "commits" / "3")
            shutil.copy(killed / "commits" / "2", killed / "commits" / "4")
        if len(listed) == 3:
            (killed / "offsets" / "0").unlink()
            (killed / "commits" / "0").unlink()
        return found

    monkeypatch.setattr(report_module, "list_log", list_then_act)
    report = opened(killed)
    assert not report.problems
    assert report.counts == {"batches": 3, "committed": 3, "first": 1, "last": 3}


@pytest.mark.parametrize(
    ("path", "word"), [("empty", "is empty"), ("nothing", "does not exist"), ("other", "is not a checkpoint")]
)
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, path: str, word: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("hello")
    done = run(str(tmp_path / path))
    assert done.returncode == 1
    assert word in done.stderr
    assert str(tmp_path / path) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [".", "offsets", "commits", "metadata", "offsets/3", "commits/1", "sources/0/0"])
def test_what_cannot_be_read_for_lack_of_permission_is_named(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()
    monkeypatch.setattr(inspector, "Settings", lambda: settings)
    # Not below tmp_path, which pytest closes to other users.
    with tempfile.TemporaryDirectory() as folder:
        query = Path(shutil.copytree(golden("spark-4.0") / "kafka_killed" / "checkpoint", Path(folder) / "query"))
        Path(folder).chmod(0o755)
        # A first run imports everything: a clone and an installation may be closed to others.
        assert run(str(query)).returncode == 0
        with closed_to_all(query / closed):
            done = run(str(query))
        said = done.stdout + done.stderr
        assert done.returncode == 1
        assert "Traceback" not in said
        assert any(str(query / closed) in line and "no permission" in line for line in said.splitlines()), said
        if "/" in closed:
            assert "batch 2, committed" in done.stdout


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return call(main, "--no-lag", *arguments)


def test_nothing_is_changed_by_reading(killed: Path) -> None:
    def snapshot() -> dict[str, tuple[int, bytes]]:
        files = [path for path in killed.rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}

    before = snapshot()
    assert run(str(killed)).returncode == 0
    assert snapshot() == before


def test_a_report_survives_json() -> None:
    report = opened(golden("spark-4.0") / "several_sources" / "checkpoint")
    assert report_from(json.loads(json.dumps(as_dict(report)))) == report


def test_the_difference_on_the_command_line(killed: Path, tmp_path: Path) -> None:
    later = shutil.copytree(killed, tmp_path / "later")
    shutil.copy(killed / "commits" / "2", later / "commits" / "3")
    done = run("--diff", str(killed), str(later))
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"from {killed} to {later}:",
        "  committed: 3 -> 4 (+1)",
        "  restart: re-run 3 -> continue 4",
    ]
    assert json.loads(run("--diff", "--json", str(killed), str(later)).stdout)[0] == {
        "what": "committed", "before": "3", "after": "4",
    }  # fmt: skip
    assert run("--diff", str(killed)).returncode == 2


def test_following_a_query_says_each_batch_and_its_commit_once(killed: Path) -> None:
    command = [sys.executable, "-m", "faultline.inspector", "--no-lag", "--follow", "--json", str(killed)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            states = [json.loads(process.stdout.readline())["steps"][0]["state"] for _ in range(4)]
            shutil.copy(killed / "commits" / "2", killed / "commits" / "3")
            [step] = json.loads(process.stdout.readline())["steps"]
        finally:
            process.send_signal(signal.SIGINT)
        assert (process.stdout.read(), process.stderr.read()) == ("", "")
    assert states == ["committed", "committed", "committed", "planned"]
    assert (step["number"], step["state"]) == (3, "committed")
    assert process.returncode == 0


def test_lag_is_the_distance_to_the_topics_ends(killed: Path) -> None:
    report = opened(killed)
    # Batch 3 is re-run up to 20 of both partitions; what comes after it is the lag.
    set_against(report, {("visits", 0): (0, 140), ("visits", 1): (0, 160)})
    assert "partition 1 from 15 to 20; at most 260 visits arrived since; a plain append" in restart_sentence(report)
    assert not report.problems
    for lag in report.lag:
        lag.empty = 1
    assert "; 258 visits arrived since; a plain append" in restart_sentence(report)
    for ends, word in (((0, 7), "was created again"), ((30, 140), "retention deleted 10 records")):
        report = opened(killed)
        set_against(report, {("visits", 0): ends, ("visits", 1): (0, 160)})
        assert any(word in problem for problem in report.problems)


@pytest.mark.parametrize(("address", "word"), [("127.0.0.1:{free}", "Connection refused"), ("kafka", "HOST:PORT")])
def test_a_broker_that_does_not_answer_costs_only_the_lag(killed: Path, address: str, word: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        bootstrap = address.format(free=unused.getsockname()[1])
        asked = program("faultline.inspector", str(killed), "--bootstrap", bootstrap)
        default = program("faultline.inspector", str(killed), STACK_KAFKA_BOOTSTRAP=bootstrap)
    [problem] = [line for line in asked.stdout.splitlines() if line.startswith("PROBLEM: ")]
    assert word in problem
    assert bootstrap in problem
    assert asked.returncode == 1
    # A broker that nobody asked for by name may be down.
    assert default.returncode == 0
    assert any(line.startswith("note: ") and word in line for line in default.stdout.splitlines())
    for done in (asked, default):
        assert done.stdout.splitlines()[-1].startswith("A restart re-runs batch 3")


@pytest.mark.parametrize("query", ["kafka_killed", "several_sources", "files_windowed"])
def test_a_terminal_gets_tables_and_colour_a_pipe_plain_text(query: str) -> None:
    checkpoint = golden("spark-4.0") / query / "checkpoint"
    command = [sys.executable, "-m", "faultline.inspector", "--no-lag", "--all", str(checkpoint)]
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 300, 0, 0))
    environ = os.environ | {"TERM": "xterm-256color"}
    # These would win over the terminal.
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        environ.pop(name, None)
    with subprocess.Popen(command, cwd=ROOT, stdout=theirs, env=environ) as process:
        seen = b""
        while process.poll() is None:
            # Read while it prints: a terminal buffers only a few kilobytes.
            if select.select([ours], [], [], 0.1)[0]:
                seen += os.read(ours, 65536)
        while select.select([ours], [], [], 0)[0]:
            seen += os.read(ours, 65536)
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 0
    terminal, pipe = seen.decode(), run("--all", str(checkpoint)).stdout
    assert "\x1b[" in terminal
    assert "│" in terminal
    assert "\x1b" not in pipe
    assert "│" not in pipe
    # Both end in the same sentence.
    assert pipe.splitlines()[-1] in re.sub(r"\x1b\[[0-9;]*m|\s*\r\n", "", terminal).replace("  ", " ")


def test_ten_thousand_batches_are_all_checked(killed: Path, tmp_path: Path) -> None:
    big = tmp_path / "big"
    for folder in ("offsets", "commits"):
        (big / folder).mkdir(parents=True)
    shutil.copy(killed / "metadata", big / "metadata")
    for number in range(10_000):
        # Links are made in half the time of files.
        (big / "offsets" / str(number)).hardlink_to(killed / "offsets" / "1")
        (big / "commits" / str(number)).hardlink_to(killed / "commits" / "1")
    (big / "offsets" / "4321").unlink()
    (big / "offsets" / "4321").write_text("v1\n{")
    report = opened(big, last=10)
    assert report.counts["batches"] == 10_000
    assert len(report.steps) == 10
    assert any("4321" in problem for problem in report.problems)
