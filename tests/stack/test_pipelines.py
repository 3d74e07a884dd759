"""Pipelines of others on a real broker: what each loses or repeats when it is broken, as counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from faultline.formats.verdict import Outcome
from faultline.pipelines.judge import Judge
from faultline.pipelines.prepare import find
from faultline.pipelines.sinks import SINKS
from faultline.pipelines.spec import AT_LEAST_ONCE, read
from faultline.settings import ROOT
from faultline.verdict.store import open_store
from tests.stack.broker import Broker
from tests.stack.running_stack import LONG_SECONDS, RunningStack
from tests.stack.shown import require_all_proven
from tests.tiers import SEED

LESSON = (ROOT / "scripts" / "walkthroughs" / "22_which_sink.sh").read_text(encoding="utf-8")
pytestmark = [pytest.mark.ci, pytest.mark.split, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """A stack that is not up: pipelines start its broker, and nothing else."""
    with RunningStack(tmp_path_factory.mktemp("stack"), "local") as running:
        yield running


def broken(stack: RunningStack, name: str, *rows: str) -> dict[str, tuple[str, int, int, int]]:
    """The table of scripts/pipeline.sh faults: outcome, lost, repeated and unexpected of each row."""
    done = stack.script("pipeline.sh", "faults", name, *rows, check=False)
    print(done.stdout, done.stderr)
    table = done.stdout[done.stdout.index("\nrow ") :].strip().splitlines()[1:]
    words = [line.replace(",", "").split() for line in table]
    assert [each[0] for each in words] == list(rows), done.stderr
    return {row: (outcome, *map(int, counts)) for row, outcome, *counts in words}  # type: ignore[misc]


def shortened(folder: Path, name: str, changes: dict[str, str]) -> Path:
    """A copy of an example's file, with other lines."""
    source = ROOT / "pipelines" / name / f"{name}.toml"
    text = source.read_text(encoding="utf-8").replace("{here}", str(source.parent))
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    # Runs go by the name of the file.
    file = folder / f"short_{name}.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_a_consumer_that_is_killed_repeats_and_loses_nothing(stack: RunningStack, tmp_path: Path) -> None:
    few = "\n[feed]\nrecords = 1500\nper_second = 300\n\n[start]"
    file = shortened(tmp_path, "plain_consumer", {"\n[start]": few})
    assert "the query yields visit_id VARCHAR" in stack.script("pipeline.sh", "check", str(file)).stdout
    found = broken(stack, str(file), "kill")
    outcome, lost, _repeated, unexpected = found["kill"]
    # A line that is torn by the kill is one that nothing calls for, and its row is written again.
    assert (lost, unexpected) == (0, 0)
    assert outcome == "HOLDS"
    assert "kafka" not in {name for name, state in stack.states().items() if state == "running"}


@pytest.mark.full
def test_a_run_without_a_fault_holds_and_is_judged_again(stack: RunningStack) -> None:
    stack.script("pipeline.sh", "check", "plain_consumer")
    done = stack.script("pipeline.sh", "run", "plain_consumer")
    assert "plain_consumer: HOLDS  every row that follows from visits is there once" in done.stdout
    document = judged_now(stack)
    assert (document["outcome"], document["expected"], document["observed"]) == ("holds", 4000, 4000)
    output = stack.home / "output" / "pipelines" / "plain_consumer" / "run" / "page_views.jsonl"
    whole = output.read_text(encoding="utf-8").splitlines(keepends=True)
    output.write_text("".join([whole[0], *whole[:-2]]), encoding="utf-8")
    document = judged_now(stack)
    assert (document["outcome"], document["lost"], document["duplicated"]) == ("violated", 2, 1)
    output.rename(output.with_suffix(".away"))
    assert judged_now(stack)["outcome"] == "unknown"


def judged_now(stack: RunningStack) -> dict[str, Any]:
    """The JSON of scripts/pipeline.sh verdict, whose exit code is that of the outcome."""
    done = stack.script("pipeline.sh", "verdict", "plain_consumer", "--json", check=False)
    document: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == Outcome(document["outcome"]).exit_code
    return document


@pytest.mark.full
def test_a_consumer_loses_nothing_to_a_broken_broker_and_a_second_consumer(stack: RunningStack) -> None:
    found = broken(stack, "plain_consumer", "kill-broker", "two-drivers")
    assert {row: counts[1] for row, counts in found.items()} == {"kill-broker": 0, "two-drivers": 0}


@pytest.mark.full
def test_a_function_that_writes_repeats_what_came_after_the_checkpoint(stack: RunningStack) -> None:
    # The first kill comes before the first checkpoint, which is due after 5 s.
    outcome, lost, repeated, unexpected = broken(stack, "flink_own_sink", "kill")["kill"]
    assert (outcome, lost, unexpected) == ("HOLDS", 0, 0)
    assert repeated > 0


@pytest.mark.full
@pytest.mark.parametrize("name", ["to_kafka", "flink_kafka_exactly_once"])
def test_a_pipeline_that_is_upgraded_in_mid_flight_loses_nothing(stack: RunningStack, name: str) -> None:
    assert broken(stack, name, "upgrade")["upgrade"][:2] == ("HOLDS", 0)


@pytest.mark.full
def test_a_topic_is_judged_with_and_without_what_was_aborted(broker: Broker, tmp_path: Path) -> None:
    broker.create_topics("pipeline_in", "pipeline_out")
    copier = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "pipeline"})
    copier.init_transactions()
    for number in range(10):
        copier.begin_transaction()
        copier.produce("pipeline_in", str(number))
        copier.produce("pipeline_out", str(number))
        copier.commit_transaction()
    copier.begin_transaction()
    copier.produce("pipeline_out", "3")
    copier.flush()
    copier.abort_transaction()
    assert judged(broker, tmp_path, "committed = true") == (Outcome.HOLDS, 0, 0)
    assert judged(broker, tmp_path, "committed = false") == (Outcome.VIOLATED, 0, 1)
    copier.begin_transaction()
    copier.produce("pipeline_out", "3")
    copier.flush()
    # It may be committed yet, and hides what others have committed behind it.
    assert judged(broker, tmp_path, "committed = true")[0] is Outcome.UNKNOWN
    copier.abort_transaction()


def judged(broker: Broker, folder: Path, key: str) -> tuple[Outcome, int, int]:
    """Outcome, lost and repeated of a pipeline from one topic into another."""
    file = folder / "copy.toml"
    address = f'bootstrap = "{broker.bootstrap}"'
    file.write_text(
        f'promise = "exactly-once"\n[source]\ntopic = "pipeline_in"\n{address}\n[output]\nreader = "kafka"\n'
        f'topic = "pipeline_out"\n{address}\n{key}\n[expected]\nsql = "SELECT value FROM source"\n'
    )
    with open_store() as store:
        found = Judge(store, read(file)).verdict()
    return found.outcome, found.lost, found.duplicated


@pytest.mark.full
@pytest.mark.parametrize("name", [sink.pipeline for sink in SINKS if sink.pipeline not in LESSON])
def test_a_sink_keeps_its_promise(stack: RunningStack, name: str) -> None:
    """A row that is written again is there once where the sink can tell, and twice where it cannot; none is lost."""
    pipeline = read(find(name))
    if pipeline.start is not None and pipeline.start.environment == "flink":
        # A kill may come right after a checkpoint, and then even an append repeats nothing.
        assert broken(stack, name, "kill")["kill"][:2] == ("HOLDS", 0)
    else:
        outcome, lost, repeated, _ = broken(stack, name, "newest-commit-deleted")["newest-commit-deleted"]
        assert (outcome, lost) == ("HOLDS", 0)
        assert bool(repeated) == (pipeline.promise == AT_LEAST_ONCE)


@pytest.mark.full
def test_a_consumer_loses_nothing_in_a_soak(stack: RunningStack) -> None:
    done = stack.script("pipeline.sh", "soak", "plain_consumer", "--minutes", "2", "--seed", str(SEED))
    assert f"seed {SEED}; faults: kill, stop, kill-broker\n" in done.stderr
    assert "plain_consumer: HOLDS  every row that follows from visits_soak_" in done.stdout


# 12 minutes alone, and three times as many beside another worker.
@pytest.mark.full
@pytest.mark.timeout(3600)
def test_the_lesson_on_sinks_proves_its_sentences(stack: RunningStack) -> None:
    done = stack.script("walkthroughs/22_which_sink.sh", check=False, seconds=LONG_SECONDS)
    print(done.stderr, done.stdout)
    assert done.returncode == 0
    require_all_proven("walkthroughs/22_which_sink.sh", done.stdout)


@pytest.mark.full
@pytest.mark.parametrize(("name", "repeats"), [("postgres_append", True), ("to_postgres_batch_id", False)])
def test_rows_whose_commit_was_not_answered_are_written_again(stack: RunningStack, name: str, *, repeats: bool) -> None:
    found = broken(stack, name, "sink-away", "answer-lost")
    assert {row: (outcome, lost) for row, (outcome, lost, *_) in found.items()} == dict.fromkeys(found, ("HOLDS", 0))
    assert bool(found["answer-lost"][2]) == repeats


@pytest.mark.full
def test_all_is_appended_again_with_an_empty_checkpoint(stack: RunningStack) -> None:
    outcome, lost, repeated, _ = broken(stack, "postgres_append", "empty-checkpoint")["empty-checkpoint"]
    assert (outcome, lost) == ("HOLDS", 0)
    assert repeated >= 4000
