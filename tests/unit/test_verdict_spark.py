"""The judge of the synchronizer: each record is one line; lost, repeated and strange lines are told apart and named."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

from contract.visit import output_line
from tests.unit.verdict_world import visit
from verdict.digest import digest
from verdict.model import Outcome, Verdict
from verdict.spark_checkpoint import Commit
from verdict.spark_judge import SparkFacts, judge
from verdict.store import Appender, create_tables

Source = dict[int, list[bytes]]
Files = dict[str, list[bytes]]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as opened:
        yield opened


def judge_lines(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    files: Files,
    commit: Commit | None,
    *,
    leftovers: tuple[str, ...] = (),
    missing: dict[str, int] | None = None,
) -> Verdict:
    """Fill the tables as the readers do, and judge."""
    create_tables(connection)
    with Appender(connection, "sent") as sent:
        for partition, values in source.items():
            for offset, value in enumerate(values):
                sent.add(partition, offset, digest(output_line(value)))
    with Appender(connection, "lines") as lines:
        for number, (name, texts) in enumerate(files.items()):
            for line, text in enumerate(texts, start=1):
                lines.add(number, line, line, digest(text), name in leftovers)
    verdict = judge(
        connection,
        SparkFacts(
            topic="visits",
            commit=commit,
            files=list(files),
            record=lambda partition, offset: source[partition][offset],
            line_text=lambda file, position: list(files.values())[file][position - 1],
            missing=missing or {},
        ),
    )
    found = verdict.observed - verdict.duplicated - verdict.unexpected + verdict.lost + verdict.pending
    assert verdict.expected == found
    records = dict(verdict.records)
    assert records.pop("source") == sum(records.values())
    return verdict


SOURCE: Source = {
    0: [visit("a", 0), visit("b", 1_000), visit("c", 2_000), b"{ not json", b""],
    1: [visit("d", 0), visit("e", 500), visit("a", 0)],  # the last is the first one again
}
COMMITTED = Commit(4, {0: 5, 1: 3})


def all_lines() -> Files:
    return {"part-0": [*SOURCE[0]], "part-1": [*SOURCE[1]]}


def test_every_record_once_holds(connection: duckdb.DuckDBPyConnection) -> None:
    verdict = judge_lines(connection, SOURCE, all_lines(), COMMITTED)
    assert (verdict.outcome, verdict.expected, verdict.observed) == (Outcome.HOLDS, 8, 8)
    assert verdict.examples == ()


@pytest.mark.parametrize("number", range(8))
def test_one_line_removed_is_lost(connection: duckdb.DuckDBPyConnection, number: int) -> None:
    files = all_lines()
    name, index = ("part-0", number) if number < 5 else ("part-1", number - 5)
    gone = files[name].pop(index)
    verdict = judge_lines(connection, SOURCE, files, COMMITTED)
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 1, 0, 0)
    names = verdict.examples[0].names
    assert SOURCE[int(str(names["partition"]))][int(str(names["offset"]))] == gone


@pytest.mark.parametrize("number", range(5))
def test_one_line_repeated_is_duplicated(connection: duckdb.DuckDBPyConnection, number: int) -> None:
    files = all_lines()
    files["part-1"].append(files["part-0"][number])
    verdict = judge_lines(connection, SOURCE, files, COMMITTED)
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 0, 1, 0)
    assert "part-1 line 4" in verdict.examples[0].text


@pytest.mark.parametrize("stranger", [visit("z", 0), b" ", SOURCE[0][0] + b" ", SOURCE[0][0][:-1], b"\xff\xfe"])
def test_one_line_never_sent_is_unexpected(connection: duckdb.DuckDBPyConnection, stranger: bytes) -> None:
    files = all_lines()
    files["part-1"].insert(1, stranger)
    verdict = judge_lines(connection, SOURCE, files, COMMITTED)
    assert (verdict.outcome, verdict.lost, verdict.duplicated, verdict.unexpected) == (Outcome.VIOLATED, 0, 0, 1)
    assert verdict.examples[0].names["file"] == "part-1"
    assert verdict.examples[0].names["line"] == 2


def test_one_byte_changed_is_lost_and_unexpected(connection: duckdb.DuckDBPyConnection) -> None:
    files = all_lines()
    files["part-0"][1] = files["part-0"][1].replace(b"home", b"hose")
    verdict = judge_lines(connection, SOURCE, files, COMMITTED)
    assert (verdict.lost, verdict.duplicated, verdict.unexpected) == (1, 0, 1)
    assert "visit b of 2026-01-01T00:00:01.000Z (visits partition 0 offset 1)" in verdict.examples[0].text


def test_the_order_of_lines_and_files_does_not_matter(connection: duckdb.DuckDBPyConnection) -> None:
    files = {"x": [*SOURCE[1][::-1]], "y": [], "z": [*SOURCE[0][::-1]]}
    assert judge_lines(connection, SOURCE, files, COMMITTED).outcome is Outcome.HOLDS


def test_a_record_with_line_breaks_is_one_line(connection: duckdb.DuckDBPyConnection) -> None:
    source = {0: [b'{"visit_id":\r\n\n"a"}']}
    files = {"part-0": [b'{"visit_id": "a"}']}
    assert judge_lines(connection, source, files, Commit(0, {0: 1})).outcome is Outcome.HOLDS


def test_what_no_batch_has_committed_is_pending_or_there(connection: duckdb.DuckDBPyConnection) -> None:
    files = {"part-0": SOURCE[0][:3], "part-1": SOURCE[1][:2]}
    commit = Commit(2, {0: 3, 1: 1})
    verdict = judge_lines(connection, SOURCE, files, commit)
    assert (verdict.outcome, verdict.observed, verdict.pending) == (Outcome.HOLDS, 5, 3)
    assert "beyond batch 2" in verdict.examples[0].text
    # The same record is due once it is committed.
    assert judge_lines(connection, SOURCE, files, replace(commit, ends={0: 4, 1: 1})).lost == 1


def test_a_partition_that_no_batch_has_read_is_pending(connection: duckdb.DuckDBPyConnection) -> None:
    verdict = judge_lines(connection, SOURCE, {"part-0": SOURCE[0]}, Commit(0, {0: 5}))
    # visit a was sent in both partitions; it is there once
    assert (verdict.outcome, verdict.lost, verdict.pending) == (Outcome.HOLDS, 0, 3)


def test_leftovers_count_only_when_they_were_never_sent(connection: duckdb.DuckDBPyConnection) -> None:
    files = all_lines() | {"part-2": [SOURCE[0][1]]}
    verdict = judge_lines(connection, SOURCE, files, COMMITTED, leftovers=("part-2",))
    assert (verdict.outcome, verdict.observed) == (Outcome.HOLDS, 8)
    assert "1 line in 1 file" in verdict.notes[0]
    files["part-2"].append(visit("z", 0))
    verdict = judge_lines(connection, SOURCE, files, COMMITTED, leftovers=("part-2",))
    assert (verdict.outcome, verdict.unexpected, verdict.duplicated) == (Outcome.VIOLATED, 1, 0)
    assert verdict.examples[0].names["file"] == "part-2"


def test_a_leftover_does_not_stand_in_for_a_lost_line(connection: duckdb.DuckDBPyConnection) -> None:
    files = {"part-0": SOURCE[0][1:], "part-1": SOURCE[1], "part-2": [SOURCE[0][0]]}
    verdict = judge_lines(connection, SOURCE, files, COMMITTED, leftovers=("part-2",))
    assert (verdict.outcome, verdict.lost) == (Outcome.VIOLATED, 1)
    files["part-1"] = SOURCE[1][:2]
    verdict = judge_lines(connection, SOURCE, files, COMMITTED, leftovers=("part-2",))
    assert verdict.lost == 2
    assert "only in leftover part-2 line 1" in verdict.examples[0].text


def test_a_file_that_the_log_names_and_nobody_has_is_named(connection: duckdb.DuckDBPyConnection) -> None:
    verdict = judge_lines(connection, SOURCE, {"part-0": SOURCE[0]}, COMMITTED, missing={"part-1": 3})
    assert (verdict.outcome, verdict.lost) == (Outcome.VIOLATED, 3)
    assert verdict.examples[0].names == {"file": "part-1", "batch": 3}
    # Even when its lines are somewhere else too.
    verdict = judge_lines(connection, SOURCE, all_lines(), COMMITTED, missing={"part-3": 3})
    assert verdict.outcome is Outcome.VIOLATED


def test_nothing_read_is_unknown_but_nothing_of_what_is_committed_is_violated(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    assert judge_lines(connection, {}, {}, None).outcome is Outcome.UNKNOWN
    assert judge_lines(connection, SOURCE, {}, None).outcome is Outcome.UNKNOWN
    assert judge_lines(connection, SOURCE, {}, COMMITTED).outcome is Outcome.VIOLATED
    partly = judge_lines(connection, SOURCE, {"part-0": SOURCE[0]}, None)
    assert (partly.outcome, partly.pending) == (Outcome.UNKNOWN, 3)


@pytest.mark.parametrize("seed", range(10))
def test_counts_are_those_of_a_plain_multiset_difference(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    chance = random.Random(seed)
    alphabet = [visit(letter, 0) for letter in "abcdefgh"]
    source = {0: chance.choices(alphabet[:6], k=chance.randrange(1, 30))}
    lines = chance.choices(alphabet, k=chance.randrange(1, 30))
    verdict = judge_lines(connection, source, {"part-0": lines}, Commit(0, {0: len(source[0])}))
    expected, observed = Counter(source[0]), Counter(lines)
    surplus = observed - expected
    assert verdict.lost == (expected - observed).total()
    assert verdict.unexpected == sum(count for line, count in surplus.items() if line not in expected)
    assert verdict.duplicated == surplus.total() - verdict.unexpected
