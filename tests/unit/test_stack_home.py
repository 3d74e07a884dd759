"""A stack marks what it owns; nothing else is changed or removed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from faultline.settings import ROOT
from faultline.stack.backends.compose import ComposeBackend
from faultline.stack.errors import StackError
from faultline.stack.home import LAYOUT, MARKER, Home, Topics, Up
from faultline.stack.settings import load


def write(file: Path, text: str = "x") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A claimed home with something in each folder."""
    home = Home(tmp_path / "home")
    home.claim(Topics("local"))
    for folder in home.folders():
        write(folder / "mine" / "file")
    return home


def test_wipe_removes_what_is_marked_and_names_it(home: Home) -> None:
    readme = write(home.root / "checkpoints" / "README.md")
    assert home.wipe() == home.folders()
    assert not any(folder.exists() for folder in home.folders())
    assert readme.exists()
    assert home.marker() is None


def test_wipe_spares_what_people_wrote_and_what_is_not_marked(home: Home, tmp_path: Path) -> None:
    notebook = write(home.root / "output" / "notebooks" / "mine.ipynb")
    other = write(tmp_path / "other" / "output" / "precious")
    (home.root / "ledger" / MARKER).unlink()
    home.wipe()
    assert notebook.exists()
    assert (home.root / "ledger" / "mine" / "file").exists()
    assert Home(tmp_path / "other").wipe() == []
    assert other.exists()


def test_a_link_in_a_folder_is_removed_and_not_followed(home: Home, tmp_path: Path) -> None:
    precious = write(tmp_path / "elsewhere" / "precious")
    (home.root / "output" / "link").symlink_to(precious.parent)
    home.wipe()
    assert precious.exists()


def test_files_that_no_stack_wrote_are_refused_and_nothing_is_marked(tmp_path: Path) -> None:
    write(tmp_path / "checkpoints" / "flink" / "job" / "chk-1")
    with pytest.raises(StackError, match=r"checkpoints/flink has files of an older version or of another program"):
        Home(tmp_path).claim(Topics("local"))
    assert not list(tmp_path.rglob(MARKER))


def test_a_fresh_clone_and_a_notebook_are_no_obstacle(tmp_path: Path) -> None:
    write(tmp_path / "checkpoints" / "README.md")
    write(tmp_path / "output" / "notebooks" / "mine.ipynb")
    marker = Home(tmp_path).claim(Topics("local"))
    assert marker.project == f"faultline-{marker.stack}"
    assert Home(tmp_path).claim(Topics("local")) == marker


def test_programs_that_need_no_stack_are_no_obstacle_and_their_files_go(tmp_path: Path) -> None:
    files = [write(tmp_path / name / "file") for name in ("output/labs", "output/pipelines", ".stack/jupyter")]
    Home(tmp_path).claim(Topics("local"))
    Home(tmp_path).wipe()
    assert not any(file.exists() for file in files)


def test_a_home_without_a_stack_owns_no_project(tmp_path: Path) -> None:
    """The project of `.env` is the plain stack of any clone on this machine."""
    settings = load({}, {}, {})
    backend = ComposeBackend(settings, Home(tmp_path))
    assert backend.docker.project.startswith("faultline-none-")
    assert ComposeBackend(settings, Home(tmp_path / "other")).docker.project != backend.docker.project
    marker = Home(tmp_path).claim(Topics("compose"))
    assert ComposeBackend(settings, Home(tmp_path)).docker.project == marker.project


def test_a_linked_folder_is_emptied_and_kept(home: Home, tmp_path: Path) -> None:
    folder = home.root / "checkpoints" / "flink"
    folder.rename(tmp_path / "big")
    folder.symlink_to(tmp_path / "big")
    home.wipe()
    assert folder.is_symlink()
    assert list((tmp_path / "big").iterdir()) == []
    assert not (home.root / "output").exists()


def test_a_moved_home_keeps_its_stack(home: Home, tmp_path: Path) -> None:
    before = home.marker()
    home.root.rename(tmp_path / "moved")
    after = Home(tmp_path / "moved").claim(Topics("local"))
    assert before is not None
    assert (after.stack, after.project) == (before.stack, before.project)
    assert after.home == str(tmp_path / "moved")


def test_a_copied_home_is_refused(home: Home, tmp_path: Path) -> None:
    shutil.copytree(home.root, tmp_path / "copy")
    with pytest.raises(StackError, match="is a copy of the stack in"):
        Home(tmp_path / "copy").claim(Topics("local"))


@pytest.mark.parametrize(
    ("other", "words", "back"),
    [
        (Topics("compose"), "are on backend local; use --backend local, or start clean", "are on backend compose"),
        (Topics("local", 3), "for KAFKA_BROKERS=1, not 3; use STACK_KAFKA_BROKERS=1, or", "for KAFKA_BROKERS=3, not 1"),
        (
            Topics("local", 1, "s3://faultline"),
            "are on the disk, not in s3://faultline; use the same setting DATA",
            "are in s3://faultline, not on the disk",
        ),
        (
            Topics("local", 1, "", "cluster"),
            "are of no profile, not of profile cluster; leave --profile and STACK_PROFILE out, or start",
            "are of profile cluster, not of no profile",
        ),
    ],
)
def test_topics_of_another_stack_are_refused(home: Home, other: Topics, words: str, back: str) -> None:
    home.require_topics_on(Topics("local"))
    before = (home.root / "output" / MARKER).read_text()
    with pytest.raises(StackError, match=words):
        home.claim(other)
    assert (home.root / "output" / MARKER).read_text() == before
    home.wipe()
    home.claim(other)
    home.require_topics_on(other)
    with pytest.raises(StackError, match=back):
        home.require_topics_on(Topics("local"))


def test_a_marker_without_a_number_of_brokers_is_of_one(home: Home) -> None:
    for folder in home.folders():
        document = json.loads((folder / MARKER).read_text())
        del document["brokers"], document["data"], document["profile"]
        (folder / MARKER).write_text(json.dumps(document))
    claimed = home.claim(Topics("local", 1))
    assert claimed.topics == Topics("local")


def test_containers_write_the_same_marker(home: Home) -> None:
    """docker/permissions.sh makes the folders of a stack that was started without the scripts."""
    script = (ROOT / "docker" / "permissions.sh").read_text(encoding="utf-8")
    [line] = [line for line in script.splitlines() if '\\"stack\\"' in line]
    text = json.loads(line.strip()).replace("${data}", "")
    written = json.loads(text.replace("${layout}", "1").replace("${brokers}", "1"))
    assert written.keys() == json.loads((home.root / "output" / MARKER).read_text()).keys()


def permissions(root: Path, project: str = "faultline") -> subprocess.CompletedProcess[str]:
    script = (ROOT / "docker" / "permissions.sh").read_text(encoding="utf-8").replace("cd /faultline", f"cd {root}")
    words = ["bash", "-c", script, "permissions.sh", str(os.getuid()), str(os.getgid()), project, "1", ""]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.skipif(os.getuid() != 0, reason="the service runs as root")
def test_containers_take_no_folder_with_files_of_a_person(tmp_path: Path) -> None:
    Path(tmp_path / "output").mkdir()
    assert permissions(tmp_path).returncode == 0
    assert (marker := Home(tmp_path).marker()) is not None
    assert marker.topics.backend == "compose"
    shutil.rmtree(tmp_path / "output")
    write(tmp_path / "output" / "results.csv")
    done = permissions(tmp_path)
    assert (done.returncode, "another program (results.csv)" in done.stderr) == (1, True)
    assert not (tmp_path / "output" / MARKER).exists()


@pytest.mark.skipif(os.getuid() != 0, reason="the service runs as root")
def test_containers_take_no_topics_of_the_other_backend(home: Home) -> None:
    marker = home.marker()
    assert marker is not None
    done = permissions(home.root, marker.project)
    assert (done.returncode, "whose topics are not in a container" in done.stderr) == (1, True)


def test_markers_of_two_stacks_are_refused(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    other.claim(Topics("local"))
    shutil.copy(other.root / "output" / MARKER, home.root / "output" / MARKER)
    with pytest.raises(StackError, match="topics, checkpoints and outputs go together"):
        home.marker()


def test_an_older_layout_is_refused_in_one_line(home: Home) -> None:
    for folder in home.folders():
        document = json.loads((folder / MARKER).read_text())
        (folder / MARKER).write_text(json.dumps(document | {"layout": LAYOUT - 1}))
    for refused in (lambda: home.claim(Topics("local")), home.require_marker):
        with pytest.raises(
            StackError, match=r"a stack of another version of Faultline; scripts/down\.sh --wipe ends it"
        ):
            refused()
    # By its id the processes are found, so that it can be stopped.
    assert (marker := home.marker()) is not None
    assert marker.layout == LAYOUT - 1


@pytest.mark.parametrize("text", ["", "{", "[]", '{"stack": "a"}'])
def test_a_damaged_marker_is_named(home: Home, text: str) -> None:
    (home.root / "output" / MARKER).write_text(text)
    with pytest.raises(StackError, match=r"output/\.faultline\.json"):
        home.marker()


def test_a_marker_that_a_container_wrote_is_taken(tmp_path: Path) -> None:
    written = {"stack": "faultline", "home": "", "project": "faultline", "layout": LAYOUT, "backend": "compose"}
    for folder in Home(tmp_path).folders()[1:]:
        write(folder / MARKER, json.dumps(written))
    assert Home(tmp_path).claim(Topics("compose")).project == "faultline"


def test_what_is_remembered_of_a_stack_that_is_up(home: Home) -> None:
    assert home.up() is None
    home.remember(Up("local", {"KAFKA_PORT": "9500"}))
    assert home.up() == Up("local", {"KAFKA_PORT": "9500"})
    write(home.state / "up.json", "{torn")
    assert home.up() is None
    home.forget()
    home.forget()
