"""The catalogue, its page, and where a moved query begins; no JVM."""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from faultline.command import CommandError
from faultline.inspector.spark.releases import TRIED
from faultline.settings import Settings
from labs.delete_x_then_start import __main__ as delete_x
from labs.delete_x_then_start.case import Case, Measured
from labs.delete_x_then_start.damage import nothing
from labs.delete_x_then_start.document import PAGE, page
from labs.delete_x_then_start.measured import Column, column_of, read_columns
from labs.frame.failure import Failure, _first_line
from labs.frame.feeds import FileFeed
from labs.frame.folder import LabFolder
from labs.frame.pipeline import APPEND, RunResult
from labs.frame.progress import Batch
from labs.frame.run import Lab
from labs.frame.story import Story
from labs.good_practice.moves import starting_offsets
from tests.golden.archives import golden

GOLDEN = golden("spark-4.0")
CASE = Case("one", "nothing: `commits/3`", "Nothing.", nothing)


def batch(number: int, rows: int) -> Batch:
    return Batch(number, rows, [None], [None], 0)


def measured(sink: str, outcome: RunResult, counts: tuple[int, int, int], reader: Failure | None = None) -> Measured:
    lost, waiting, duplicated = counts
    return Measured(CASE, sink, outcome, lost, waiting, duplicated, reader)


def test_the_page_is_made_of_what_is_on_record() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(delete_x.CATALOGUE, read_columns())


def test_every_release_that_the_inspector_knows_has_a_column() -> None:
    assert [column.release for column in read_columns()] == list(TRIED)


def test_names_of_cases_are_their_own() -> None:
    names = [case.name for group in delete_x.CATALOGUE for case in group.cases]
    assert Counter(names).most_common(1)[0][1] == 1


def column(release: str, *rows: Measured) -> Column:
    return Column(release, f"{release}.0", "4.0.1", column_of(list(rows)).cells)


def test_what_was_measured_survives_its_file(tmp_path: Path) -> None:
    one = column("4.2", measured(APPEND, RunResult([batch(4, 10)]), (1, 2, 3)))
    one.write(tmp_path)
    assert read_columns(tmp_path) == [one]


@pytest.mark.parametrize(("tampered", "code"), [("", 0), ("one line more\n", 1)], ids=["as measured", "changed since"])
def test_a_page_that_is_not_what_was_measured_is_not_proven(
    tampered: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(delete_x, "PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text("# Page\n" + tampered)
    settings = Settings({"STACK_HOME": str(tmp_path)})
    lab = Lab(delete_x.NAME, settings, LabFolder.of(settings, delete_x.NAME), Story(delete_x.NAME))
    delete_x._hold_page(lab, "# Page\n", write=False)
    assert lab.story.finish() == code
    assert (tmp_path / "page.md").read_text() == "# Page\n" + tampered


def test_messages_name_no_folder_of_this_machine() -> None:
    assert (
        _first_line("Failed to read log file file:/a/b-c/checkpoint/offsets/3. Incomplete\nmore")
        == "Failed to read log file checkpoint/offsets/3. Incomplete"
    )
    assert _first_line("/a/b/output/_spark_metadata/0 doesn't exist") == "output/_spark_metadata/0 doesn't exist"


def test_a_feed_knows_what_it_sent_and_what_is_left(tmp_path: Path) -> None:
    feed = FileFeed(tmp_path / "input")
    feed.send(2)
    feed.send(1)
    assert feed.sent.total() == len(feed.sent) == 3
    assert feed.held() == feed.sent
    (tmp_path / "input" / "visits-00.txt").unlink()
    assert feed.held().total() == 1
    assert not feed.held() - feed.sent


def golden_ends(recipe: str) -> Any:
    newest = max((GOLDEN / recipe / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return json.loads(newest.read_text().splitlines()[2])


def test_a_moved_query_begins_where_the_old_one_ended() -> None:
    assert json.loads(starting_offsets(GOLDEN / "kafka_files" / "checkpoint")) == golden_ends("kafka_files")


def test_a_batch_that_is_not_committed_is_no_place_to_begin() -> None:
    with pytest.raises(CommandError, match="planned and not committed"):
        starting_offsets(GOLDEN / "kafka_killed" / "checkpoint")
