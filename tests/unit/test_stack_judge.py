"""Words of inspect and verdict that name an object store."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from faultline.command import words_of
from faultline.formats.arguments import inspector_arguments, verdict_parser
from faultline.formats.status import Backlog, CommittedBatch, FlinkJob, Progress
from faultline.settings import as_environment
from faultline.stack.backends.compose import INSIDE, ComposeBackend
from faultline.stack.errors import StackError
from faultline.stack.home import Home, Up
from faultline.stack.settings import load
from faultline.stack.stack import Stack
from faultline.verbs import judge


def in_containers(home: Path, **variables: str) -> Stack:
    settings = load(as_environment({"HOME": str(home), **variables}), {}, {})
    return Stack(settings, Home(home), ComposeBackend(settings, Home(home)), "")


@pytest.mark.parametrize("words", [["s3://bucket/x"], ["--diff", "s3://bucket/x", "s3://bucket/y"]])
def test_containers_do_not_reach_the_store(tmp_path: Path, words: list[str]) -> None:
    stack, said = in_containers(tmp_path), "s3://bucket/x is in an object store, which containers do not reach"
    with pytest.raises(StackError, match=said):
        judge.inspect(stack, words)
    with pytest.raises(StackError, match=said):
        judge.verdict(stack, ["spark", "--checkpoint", "s3://bucket/x"])
    with pytest.raises(StackError, match=said):
        judge.files(stack, ["s3://bucket/x"])


def test_containers_reach_the_stacks_own_store(tmp_path: Path) -> None:
    assert judge._inside(in_containers(tmp_path, DATA="s3://faultline"), "s3://faultline/x") == "s3://faultline/x"


def test_only_a_verdict_on_the_stack_that_is_up_is_kept(tmp_path: Path) -> None:
    stack, asked = in_containers(tmp_path), verdict_parser().parse_args(["all", "--json"])
    assert judge._kept(stack, asked) == []
    stack.home.remember(Up("compose", {}))
    assert judge._kept(stack, asked) == ["--keep", f"{INSIDE}/output/verdict.json"]
    for words in (["--output", "x"], ["--checkpoint=x"], ["--sink", "x"], ["--bootstrap", "x:1"]):
        assert judge._kept(stack, verdict_parser().parse_args(["spark", *words])) == []


@pytest.mark.parametrize(
    "words",
    [
        ["all", "--json", "--as-is", "--wait=0"], ["spark", "--output=", "--checkpoint=-x", "--dump=a b"],
        ["flink", "--bootstrap=h:1,i:2", "--keep=x=y", "--verbose"],
    ],
)  # fmt: skip
def test_words_of_a_verdict_reach_the_program_as_they_were(words: list[str]) -> None:
    asked = verdict_parser().parse_args(words)
    assert verdict_parser().parse_args([asked.pipeline, *words_of(asked, "pipeline")]) == asked


@pytest.mark.parametrize(
    "words",
    [
        ["chk-5", "--state", "--operator=-x", "--limit=0", "--csv"], ["--diff", "a", "b c", "--json", "--all"],
        ["a", "--against=job.py", "--", "--json", "-x", ""], ["a", "--garbage", "--sink=s3://b/x=y", "--last=3"],
    ],
)  # fmt: skip
def test_words_of_the_inspector_reach_the_program_as_they_were(words: list[str]) -> None:
    asked = inspector_arguments(words)
    again = [
        *asked.path,
        *words_of(asked, "path", "program", "rows"),
        *(["--", *asked.program] if asked.program else []),
    ]
    assert inspector_arguments(again) == asked


def test_the_state_of_both_pipelines_crosses_the_border_whole() -> None:
    behind = {"spark": None, "flink": Backlog(7, "", 1.5), "classic": Backlog(unknown="no broker")}
    for each in (Progress(), Progress(CommittedBatch("q", 3, 0.5), "full", behind)):
        assert Progress.from_json(json.loads(json.dumps(each.as_json()))) == each
    job = FlinkJob("id", "RUNNING", 3, 4, 5, 0, 1, 5, "/chk-5", 1000, None, 2, 900, 10_000, 1, "a cause")
    assert FlinkJob.from_json(json.loads(json.dumps(asdict(job)))) == job


def test_what_can_be_inspected_is_named_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "spark" / "visits_json").mkdir(parents=True)
    for data, named in (("", "checkpoints/spark/visits_json"), ("s3://b/x", "s3://b/x/checkpoints/spark/visits_json")):
        with pytest.raises(StackError, match=f"there are: {named}$"):
            judge.inspect(in_containers(tmp_path, DATA=data), [])


def test_a_path_that_a_service_prints_is_found_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "flink").mkdir(parents=True)
    stack = in_containers(tmp_path)
    assert judge._outside(stack, f"{INSIDE}/checkpoints/flink") == str(tmp_path / "checkpoints" / "flink")
    for word in ("--json", "checkpoints/flink", f"{INSIDE}/checkpoints/none", "s3://bucket/x"):
        assert judge._outside(stack, word) == word
