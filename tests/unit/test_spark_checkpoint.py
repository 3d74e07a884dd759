"""Reading a checkpoint location, and refusing one that belongs to something else."""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from faultline.formats.run import SPARK_RUN_FILE
from faultline.settings import Settings
from faultline.storage.batches import newest_batch
from spark_job.checkpoint import Checkpoint, claim
from spark_job.options import Options, UserError, parse
from spark_job.visits_json_synchronizer import main

Make = Callable[..., Options]


def at(home: Path) -> Settings:
    return Settings(environ={"STACK_HOME": str(home)})


@pytest.fixture
def options(tmp_path: Path) -> Make:
    def make(*flags: str) -> Options:
        return parse(list(flags), at(tmp_path))

    return make


def log(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


@pytest.mark.parametrize(
    ("names", "newest"),
    [(["9", "10", ".10.crc", "9.compact", ".11.abc.tmp"], 10), (["8", "9.compact"], 9), ([], None)],
)
def test_newest_batch_is_by_number_and_skips_everything_else(
    tmp_path: Path, names: list[str], newest: int | None
) -> None:
    assert newest_batch(tmp_path / "offsets") is None
    log(tmp_path, *names)
    assert newest_batch(tmp_path) == newest


@pytest.mark.parametrize(
    ("offsets", "commits", "interrupted"),
    [((), (), None), (("0",), (), 0), (("0", "1"), ("0",), 1), (("0", "1"), ("0", "1"), None)],
)
def test_interrupted(tmp_path: Path, offsets: tuple[str], commits: tuple[str], interrupted: int | None) -> None:
    log(tmp_path / "offsets", *offsets)
    log(tmp_path / "commits", *commits)
    assert Checkpoint(tmp_path).interrupted() == interrupted


def test_initial_offsets_are_read_as_spark_writes_them(tmp_path: Path) -> None:
    log(tmp_path / "sources" / "0")
    # Spark starts the file with a zero byte.
    (tmp_path / "sources" / "0" / "0").write_bytes(b'\0v1\n{"visits":{"1":7,"0":3}}')
    assert Checkpoint(tmp_path).initial_offsets("visits") == {"0": 3, "1": 7}
    assert Checkpoint(tmp_path / "other").initial_offsets("visits") == {}


def test_claim_makes_the_folders_and_notes_its_settings(options: Make, tmp_path: Path) -> None:
    chosen = options()
    claim(chosen, at(tmp_path), "visits").close()
    assert json.loads((chosen.notes / SPARK_RUN_FILE).read_text()) == {
        "topic": "visits",
        "sink": "files",
        "output": "output/visits_json",
        "checkpoint": "checkpoints/spark/visits_json",
    }
    assert chosen.output.is_dir()


def test_only_a_claim_renews_the_time_of_the_settings(options: Make, tmp_path: Path) -> None:
    chosen = options()
    file = chosen.notes / SPARK_RUN_FILE
    with claim(chosen, at(tmp_path), "visits"):
        os.utime(file, (100, 100))
        with pytest.raises(UserError, match="is in use"):
            claim(chosen, at(tmp_path), "visits", wait_seconds=0)
        assert file.stat().st_mtime == 100
    log(chosen.notes, "metadata")
    text = file.read_bytes()
    claim(chosen, at(tmp_path), "visits").close()
    assert file.stat().st_mtime > 100
    assert file.read_bytes() == text


def test_a_checkpoint_is_for_one_run_at_a_time(options: Make, tmp_path: Path) -> None:
    with claim(options(), at(tmp_path), "visits"), pytest.raises(UserError, match="is in use"):
        claim(options(), at(tmp_path), "visits", wait_seconds=0.2)
    claim(options(), at(tmp_path), "visits", wait_seconds=0).close()


def test_claim_waits_for_the_jvm_of_a_killed_run(options: Make, tmp_path: Path) -> None:
    first = claim(options(), at(tmp_path), "visits")
    with subprocess.Popen(["sleep", "5"], pass_fds=(first.fileno(),)) as jvm:
        first.close()
        with pytest.raises(UserError, match="is in use"):
            claim(options(), at(tmp_path), "visits", wait_seconds=0)
        claim(options(), at(tmp_path), "visits", wait_seconds=60).close()
        # It has the lock because the JVM has ended, not before.
        assert jvm.wait(timeout=1) == 0


@pytest.mark.parametrize(
    ("flags", "topic", "message"),
    [
        (("--sink", "foreach-append"), "visits", "belongs to sink files and not foreach-append"),
        (("--output", "/tmp"), "visits", "belongs to output output/visits_json and not /tmp"),
        ((), "others", "belongs to topic visits and not others"),
    ],
)
def test_a_used_checkpoint_stays_with_its_output(
    options: Make, tmp_path: Path, flags: tuple[str, ...], topic: str, message: str
) -> None:
    first = options()
    claim(first, at(tmp_path), "visits").close()
    log(first.notes, "metadata")
    with pytest.raises(UserError) as caught:
        claim(options("--checkpoint", str(first.notes), *flags), at(tmp_path), topic)
    assert message in str(caught.value)


def test_a_used_checkpoint_stays_in_its_folder(options: Make, tmp_path: Path) -> None:
    first = options()
    claim(first, at(tmp_path), "visits").close()
    log(first.notes, "metadata")
    copied = first.notes.rename(tmp_path / "copy")
    with pytest.raises(UserError, match="belongs to checkpoint checkpoints/spark/visits_json and not copy;"):
        claim(options("--checkpoint", str(copied)), at(tmp_path), "visits")


@pytest.mark.parametrize(
    "text", [b"nonsense", b"[]", b"\xff", b'{"sink": "files", "output": "output/visits_json", "topic": "visits"}\n']
)
def test_settings_that_cannot_be_read_are_one_line(options: Make, tmp_path: Path, text: bytes) -> None:
    chosen = options()
    log(chosen.notes, "metadata")
    (chosen.notes / SPARK_RUN_FILE).write_bytes(text)
    with pytest.raises(
        UserError, match=r"does not hold the settings of a run; .*; choose another --checkpoint"
    ) as caught:
        claim(chosen, at(tmp_path), "visits")
    assert "\n" not in str(caught.value)
    assert (chosen.notes / SPARK_RUN_FILE).read_bytes() == text
    # The checkpoint is unused until Spark writes its `metadata`.
    (chosen.notes / "metadata").unlink()
    claim(chosen, at(tmp_path), "visits").close()


def test_an_unused_checkpoint_can_change_hands(options: Make, tmp_path: Path) -> None:
    first = options()
    claim(first, at(tmp_path), "visits").close()
    claim(options("--checkpoint", str(first.notes), "--sink", "foreach-append"), at(tmp_path), "visits").close()


def test_the_same_place_under_another_home_is_the_same(options: Make, tmp_path: Path) -> None:
    chosen = options()
    claim(chosen, at(tmp_path), "visits").close()
    log(chosen.notes, "metadata")
    moved = tmp_path.with_name(tmp_path.name + "_moved")
    tmp_path.rename(moved)
    claim(parse([], at(moved)), at(moved), "visits").close()
    moved.rename(tmp_path)


def test_file_sink_output_of_another_checkpoint_is_refused(options: Make, tmp_path: Path) -> None:
    chosen = options()
    log(tmp_path / "output" / chosen.query / "_spark_metadata", "0", "1", "2")
    with pytest.raises(UserError, match=r"has batches up to 2, checkpoint .* up to none"):
        claim(chosen, at(tmp_path), "visits")
    log(chosen.notes / "offsets", "0", "1", "2")
    claim(chosen, at(tmp_path), "visits").close()


def test_overwriting_another_runs_batches_is_refused(options: Make, tmp_path: Path) -> None:
    chosen = options("--sink", "foreach-overwrite")
    (tmp_path / "output" / chosen.query / "batch_id=4").mkdir(parents=True)
    log(chosen.notes / "offsets", "0", "1")
    with pytest.raises(UserError, match=r"has batches up to 4, checkpoint .* up to 1"):
        claim(chosen, at(tmp_path), "visits")


def test_appending_to_what_is_there_is_not_refused(options: Make, tmp_path: Path) -> None:
    chosen = options("--sink", "foreach-append")
    log(tmp_path / "output" / chosen.query, "part-00000.txt")
    claim(chosen, at(tmp_path), "visits").close()


def test_a_folder_that_cannot_be_made_is_one_line(options: Make, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError) as caught:
        claim(options("--output", str(tmp_path / "file" / "below")), at(tmp_path), "visits")
    assert "cannot be written" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_checkpoint_that_cannot_be_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STACK_HOME", str(tmp_path))
    offsets = tmp_path / "checkpoints" / "spark" / "visits_json" / "offsets"
    offsets.parent.mkdir(parents=True)
    offsets.touch()
    assert main([]) == 1
    assert capsys.readouterr().err == f"synchronizer: {offsets}: Not a directory\n"


def test_notes_that_cannot_be_made_are_one_line(options: Make, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    chosen = replace(options(), notes=tmp_path / "file" / "below")
    with pytest.raises(UserError, match="below cannot be made: Not a directory; the lock of checkpoint ") as caught:
        claim(chosen, at(tmp_path), "visits")
    assert "\n" not in str(caught.value)
