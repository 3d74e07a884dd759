"""Recorded runs as files that play: from two rows that were recorded on a real stack."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from faultline.player.document import SCRIPTS, STATIC, STYLES, saved
from faultline.player.items import Items, of_timeline
from faultline.player.replay import ReplayError, main, recording, rows_of, write
from faultline.settings import ROOT
from tests.called import call, script
from tests.golden.archives import golden

RUNS = golden("runs")
KILL, APPEND = RUNS / "taskmanager-kill", RUNS / "sink-foreach-append"
"""A TaskManager is killed; a naive sink appends a batch a second time."""


def timeline(run: Path) -> dict[str, list[dict[str, Any]]]:
    return dict(json.loads((run / "timeline.json").read_text(encoding="utf-8")))


def items(run: Path, kind: str) -> list[dict[str, Any]]:
    return [item for item in recording(run)["items"] if item["kind"] == kind]


def data_in(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_what_spark_read_again_is_the_number_of_the_verdict() -> None:
    [again] = items(APPEND, "again")
    verdict = json.loads((APPEND / "verdict.json").read_text(encoding="utf-8"))
    [spark] = [each for each in verdict["verdicts"] if each["pipeline"] == "spark"]
    assert spark["outcome"] == "violated"
    assert (again["engine"], again["visits"], again["at_least"]) == ("spark", spark["duplicated"], False)
    assert again["visits"] > 0


def test_a_batch_that_runs_again_twice_is_said_twice() -> None:
    taken = Items()
    batch = {"batch": 7, "begin": {"0": 1}, "end": {"0": 3}, "visits": 2}
    samples = [
        {"at": at, "batch": 6, "offsets": {"0": 1}, "again": {**batch, "restored_at": run}}
        for at, run in ((10, 9), (11, 9), (20, 19))
    ]
    said = [item["at"] for sample in samples for item in taken.take("spark", sample) if item["kind"] == "again"]
    assert said == [10, 20]


@pytest.mark.parametrize(("between", "recovered"), [((12, 20, 28), 1), ((), 0)])
def test_a_recovery_has_a_time_only_if_somebody_looked(between: tuple[int, ...], recovered: int) -> None:
    def sample(at: float, running: int) -> dict[str, Any]:
        return {
            "at": at, "job_id": "a", "state": "RUNNING", "running_tasks": running, "tasks": 3, "restarts": 0,
            "restored_from": None, "checkpoints": [],
        }  # fmt: skip

    taken = Items()
    samples = [sample(0, 3), sample(2, 0), *(sample(at, 0) for at in between), sample(40, 3)]
    events = [item for each in samples for item in taken.take("flink", each) if item.get("what") == "recovered"]
    assert len(events) == recovered


def test_what_flink_read_again_begins_where_the_restored_checkpoint_says() -> None:
    [again] = items(KILL, "again")
    held = {each["name"]: each["offsets"] for sample in timeline(KILL)["checkpoints"] for each in sample["checkpoints"]}
    fault = next(event["at"] for event in timeline(KILL)["events"] if event["text"] == "break")
    samples = timeline(KILL)["flink"]
    restored = samples[-1]["restored_at"]
    read = [each["position"] for each in samples if each.get("restored_at") != restored and each.get("position")]
    assert again["begin"] == held[again["name"]]
    assert again["end"] == read[-1]
    assert again["visits"] == sum(again["end"].values()) - sum(again["begin"].values()) > 0
    assert again["at_least"]
    assert again["at"] > fault


def test_what_does_not_answer_is_shown_with_its_reason() -> None:
    [item] = of_timeline({"kafka": [{"at": 1.0, "unknown": "the broker is down"}]})
    assert item == {"at": 1.0, "kind": "unknown", "source": "kafka", "text": "the broker is down"}


def test_the_file_holds_all_that_it_needs(tmp_path: Path) -> None:
    folder = tmp_path / "row"
    shutil.copytree(KILL, folder)
    page = write(folder).read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page
    assert not re.search(r"<(?:script|link|img|iframe)[^>]*\s(?:src|href)=(?!.data:)", page)
    assert all((STATIC / name).read_text(encoding="utf-8") in page for name in (*STYLES, *SCRIPTS))
    assert data_in(page) == recording(folder)
    assert len(page) < 500_000


def test_words_of_a_run_cannot_leave_their_place() -> None:
    nasty = "</script><script>alert(1)</script><!-- scripts -->"
    page = saved({"title": nasty, "items": [], "mode": "replay"})
    assert nasty not in page
    assert data_in(page)["title"] == nasty


def test_the_file_in_the_docs_is_the_recorded_run() -> None:
    page = (ROOT / "docs" / "a_recorded_crash.html").read_text(encoding="utf-8")
    assert page == saved(recording(KILL)), "scripts/pictures.sh writes it"


def test_the_picture_of_the_readme_leads_to_the_recorded_run() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    link = r"^\[!\[[^\]]+\]\(docs/pictures/page_read_again\.png\)\]\(docs/a_recorded_crash\.html\)$"
    assert re.search(link, text, re.MULTILINE)


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"events": ['])
def test_a_damaged_timeline_is_one_line(tmp_path: Path, damage: str) -> None:
    (tmp_path / "timeline.json").write_text(damage, encoding="utf-8")
    done = call(main, str(tmp_path))
    assert done.returncode == 2
    assert re.fullmatch(r".*timeline.*scripts/faults\.sh run NAME.*\n", done.stderr), done.stderr


def test_a_folder_without_a_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ReplayError):
        rows_of(tmp_path)
    done = script("page.sh", "--replay", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_the_script_prints_the_address_of_each_row(tmp_path: Path) -> None:
    for run in (KILL, APPEND):
        shutil.copytree(run, tmp_path / run.name)
    done = script("page.sh", "--replay", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [(tmp_path / name / "report.html").as_uri() for name in (APPEND.name, KILL.name)]
