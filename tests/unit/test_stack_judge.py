"""Words of inspect and verdict that name an object store."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.formats.requests import verdict_parser
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
