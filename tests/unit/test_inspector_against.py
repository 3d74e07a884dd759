"""The answer to "can this job restore this checkpoint?": how the findings lead to it, and its words."""

from __future__ import annotations

import json

import pytest

from faultline.formats.arguments import inspector_arguments
from faultline.inspector.against import (
    CANNOT_BE_SAID,
    DOES_NOT_MAP,
    EXIT_CODES,
    MAPS,
    Comparison,
    comparison_from,
    render,
    render_json,
)
from tests.called import refused


def test_one_reason_to_refuse_is_enough() -> None:
    found = Comparison("chk-5", "windows")
    assert (found.outcome, EXIT_CODES[found.outcome]) == (MAPS, 0)
    found.unknown.append("windows: Flink could not try it")
    assert (found.outcome, EXIT_CODES[found.outcome]) == (CANNOT_BE_SAID, 2)
    found.refused.append("clock: its state has no operator in the job")
    assert (found.outcome, EXIT_CODES[found.outcome]) == (DOES_NOT_MAP, 1)


def test_the_words_name_everything() -> None:
    found = Comparison(
        "chk-5", "my_job.py", mapped=["source", "count"], refused=["a: gone"], unknown=["b: not tried"], dropped=["a"],
        empty=["c"], not_compared=["d: Python"],
    )  # fmt: skip
    assert render(found).splitlines() == [
        "my_job.py cannot restore chk-5",
        "  refused: a: gone",
        "  not known: b: not tried",
        "  takes the state of 2 operators: source, count",
        "  not compared: d: Python",
        "  begins without state: c",
        "  flink run --allowNonRestoredState would drop the state of: a",
    ]


def test_json_has_all_of_it_and_the_outcome() -> None:
    found = Comparison("chk-5", "windows", mapped=["source"])
    document = json.loads(render_json(found))
    assert document["outcome"] == MAPS
    assert comparison_from(document) == found


def test_words_after_two_dashes_are_the_programs() -> None:
    arguments = inspector_arguments(["chk-5", "--against", "job.py", "--json", "--", "--json", "input"])
    assert (arguments.against, arguments.program) == ("job.py", ["--json", "input"])
    assert [str(path) for path in arguments.path] == ["chk-5"]


@pytest.mark.parametrize(
    "words", [["chk-5", "--", "input"], ["a", "b", "--diff", "--against", "job.py"], ["--against", "job.py"]]
)
def test_wrong_usage(words: list[str]) -> None:
    assert "error: " in refused(inspector_arguments, *words)
