"""The labs' frame: nothing outside a lab's own folder is deleted; what is counted; what is proven."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from faultline.command import CommandError
from faultline.settings import Settings
from labs.frame.count import compare
from labs.frame.folder import LabFolder
from labs.frame.run import Lab, run
from labs.frame.story import Fact, Story, same

NAME = "13_failure_before_the_commit"
COMMAND = f"scripts/walkthroughs/{NAME}.sh"


@pytest.fixture
def folder(tmp_path: Path) -> LabFolder:
    own = LabFolder.of(Settings({"STACK_HOME": str(tmp_path)}), NAME)
    own.root.mkdir(parents=True)
    return own


def test_deletes_inside_its_own_folder(folder: LabFolder) -> None:
    commits = folder / "checkpoint" / "commits"
    commits.mkdir(parents=True)
    for name in ("1", "2", ".2.crc"):
        (commits / name).touch()
    folder.delete_logged(commits / "2")
    assert [path.name for path in commits.iterdir()] == ["1"]
    folder.delete(folder / "checkpoint")
    assert list(folder.root.iterdir()) == []


@pytest.mark.parametrize("outside", ["../04_other/file", "..", ".", "", "sub/../../04_other/file", "link/file"])
def test_refuses_to_delete_outside_its_own_folder(folder: LabFolder, outside: str) -> None:
    other = folder.root.parent / "04_other"
    other.mkdir()
    (other / "file").write_text("of another lab")
    (folder / "sub").mkdir()
    (folder / "link").symlink_to(other)
    with pytest.raises(CommandError, match="not inside the lab's own folder"):
        folder.delete(folder.root / outside)
    with pytest.raises(CommandError, match="not inside the lab's own folder"):
        folder.delete(other / "file")
    assert (other / "file").read_text() == "of another lab"
    assert (folder / "sub").is_dir()


def test_a_link_is_deleted_and_not_what_it_leads_to(folder: LabFolder, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (folder / "link").symlink_to(precious)
    with folder.claimed(clean=True, command=COMMAND):
        assert list(folder.root.iterdir()) == []
    assert (precious / "file").exists()


def test_refuses_a_folder_that_leads_elsewhere(folder: LabFolder, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    folder.root.rmdir()
    folder.root.symlink_to(precious)
    with pytest.raises(CommandError, match="is a link to"), folder.claimed(clean=True, command=COMMAND):
        pytest.fail("claimed")
    with pytest.raises(CommandError, match="is a link to"):
        folder.delete(folder / "file")
    assert (precious / "file").exists()


def test_says_that_files_were_left_and_how_to_start_clean(folder: LabFolder) -> None:
    (folder / "checkpoint").mkdir()
    said = pytest.raises(CommandError, match=f"has files of an earlier run; start clean: {COMMAND} --clean")
    with said, folder.claimed(clean=False, command=COMMAND):
        pytest.fail("claimed")
    assert (folder / "checkpoint").is_dir()
    with folder.claimed(clean=True, command=COMMAND):
        assert not (folder / "checkpoint").exists()


def test_two_runs_do_not_share_a_folder(folder: LabFolder) -> None:
    with folder.claimed(clean=True, command=COMMAND):
        (folder / "checkpoint").mkdir()
        other = LabFolder(folder.root).claimed(clean=True, command=COMMAND)
        with pytest.raises(CommandError, match="in use by another run"), other:
            pytest.fail("claimed")
        assert (folder / "checkpoint").is_dir()


def test_counts_each_row() -> None:
    difference = compare(["a", "a", "b", "c"], ["a", "a", "a", "c", "x"])
    assert difference.lost == Counter("b")
    assert difference.duplicated == Counter("a")
    assert difference.unexpected == Counter("x")
    assert not difference.clean
    assert str(difference) == "5 rows of 4, 1 lost, 1 duplicated, 1 unexpected"
    assert compare(["a", "a"], ["a", "a"]).clean


def test_an_empty_read_is_no_pass() -> None:
    assert not compare([], []).clean
    assert compare(["a"], []).lost == Counter("a")


def test_says_on_stdout_what_is_proven(capsys: pytest.CaptureFixture[str]) -> None:
    story = Story(NAME)
    story.step("first")
    assert story.prove("One is one.", same("one", 1, 1))
    assert story.finish() == 0
    said = capsys.readouterr()
    assert said.out == "PROVEN  One is one.\n  ok      one: 1\n"
    assert "== 1. first" in said.err


@pytest.mark.parametrize("facts", [(), (Fact("seen", True), same("one", 2, 1))])
def test_a_sentence_without_facts_or_against_one_is_not_proven(
    facts: tuple[Fact, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    story = Story(NAME)
    assert story.prove("True is true.", Fact("true", True))
    assert not story.prove("Two is one.", *facts)
    assert story.finish() == 1
    said = capsys.readouterr().out
    assert "NOT PROVEN  Two is one." in said
    if facts:
        assert "  FAILED  one: 2, expected 1" in said


def test_a_lab_that_proves_nothing_fails() -> None:
    assert Story(NAME).finish() == 1


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STACK_HOME", str(tmp_path))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    return tmp_path


def test_exit_codes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def proves(lab: Lab) -> None:
        (lab.folder / "file").touch()
        lab.story.prove("It is.", Fact("it", True))

    def disproves(lab: Lab) -> None:
        lab.story.prove("It is.", Fact("it", False))

    def breaks(lab: Lab) -> None:
        raise ValueError("a defect")

    def lacks(lab: Lab) -> None:
        raise CommandError("a part is missing; fetch it")

    assert run(NAME, proves, []) == 0
    with pytest.raises(SystemExit) as left:
        run(NAME, proves, [])
    assert left.value.code == 2
    assert run(NAME, proves, ["--clean"]) == 0
    assert run(NAME, disproves, ["--clean"]) == 1
    # A crash is not a result.
    assert run(NAME, breaks, ["--clean"]) == 2
    capsys.readouterr()
    with pytest.raises(SystemExit) as missing:
        run(NAME, lacks, ["--clean"])
    assert missing.value.code == 2
    assert capsys.readouterr().err == f"{NAME}: a part is missing; fetch it\n"
