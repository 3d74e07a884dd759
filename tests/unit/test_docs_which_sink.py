"""The page on sinks is that of docs/which_sink.json, and no sink that promises exactly-once breaks it by a kill."""

from __future__ import annotations

import json

from faultline.pipelines.prepare import find
from faultline.pipelines.sinks import PAGE, RECORD, SINKS, TRIED, own_stack, page
from faultline.pipelines.spec import EXACTLY_ONCE, read

CELLS = json.loads(RECORD.read_text(encoding="utf-8"))


def test_the_page_is_that_of_the_record() -> None:
    with own_stack() as stack:
        assert page(stack, CELLS) == PAGE.read_text(encoding="utf-8")


def test_every_cell_is_of_a_pipeline_as_it_is() -> None:
    promises = {sink.pipeline: read(find(sink.pipeline)).promise for sink in SINKS}
    for cell in CELLS:
        assert cell["promise"] == promises[cell["pipeline"]]
        assert cell["row"] in TRIED


def test_a_promise_holds_under_a_kill_and_without_the_newest_commit() -> None:
    for cell in CELLS:
        if cell["row"] in ("kill", "newest-commit-deleted"):
            assert (cell["outcome"], cell["lost"]) == ("holds", 0), cell
            assert cell["promise"] != EXACTLY_ONCE or cell["repeated"] == 0, cell
