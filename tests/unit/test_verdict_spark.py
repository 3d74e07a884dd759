"""The judge of the synchronizer: each record is one line, in its order; whatever is not is counted and named."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from faultline.formats.verdict import Outcome, Verdict
from faultline.verdict.checker import Options
from faultline.verdict.model import Unknown
from faultline.verdict.records import Batch as Rows
from faultline.verdict.records import Spans
from tests.judge.spark_world import (
    FOREACH_APPEND,
    FOREACH_OVERWRITE,
    TOPIC,
    Batch,
    Query,
    Topic,
    append_line,
    even_batches,
    judge_fully,
    judge_output,
    lines_of,
    make_pipe,
    part_name,
    replace_lines,
    rewrite,
    visit,
    write_output,
)

VALUES: dict[int, list[bytes | None]] = {
    0: [visit("a", 0), visit("b", 1_000), visit("c", 2_000), b"{ not json", None],
    1: [visit("d", 0), visit("e", 500), visit("a", 0)],  # the last is the first one again
}
ONE_BATCH = [Batch({0: (0, 5), 1: (0, 3)})]


@pytest.fixture
def topic() -> Topic:
    return Topic(VALUES)


@pytest.fixture
def query(tmp_path: Path, topic: Topic) -> Query:
    return write_output(tmp_path, topic, ONE_BATCH)


def counts(verdict: Verdict) -> tuple[int, int, int, int]:
    return verdict.lost, verdict.duplicated, verdict.unexpected, verdict.disordered


def test_every_record_once_holds(query: Query, topic: Topic) -> None:
    verdict = judge_output(query, topic)
    assert (verdict.outcome, verdict.expected, verdict.observed) == (Outcome.HOLDS, 8, 8)
    assert verdict.reason == "every record of visits is one line of the output"
    assert (verdict.examples, verdict.notes) == ((), ())
    assert set(verdict.seconds) == {"reading", "judging"}


@pytest.mark.parametrize("number", range(5))
def test_one_line_repeated_is_duplicated(query: Query, topic: Topic, number: int) -> None:
    append_line(query.files[0, 1], lines_of(query.files[0, 0])[number])
    judged = judge_fully(query, topic)
    assert (judged.verdict.outcome, counts(judged.verdict)) == (Outcome.VIOLATED, (0, 1, 0, 0))
    assert f"{query.files[0, 1].name} line 4" in judged.verdict.examples[0].text


def test_a_line_that_is_there_too_often_is_one_finding(query: Query, topic: Topic) -> None:
    file = query.files[0, 0]
    replace_lines(file, [*lines_of(file), *[lines_of(file)[1]] * 4])
    judged = judge_fully(query, topic)
    assert judged.verdict.duplicated == 4
    (finding,) = judged.findings["duplicated"]
    assert "was sent once and is there 5 times" in finding.text
    assert finding.names["visit_id"] == "b"


def test_each_line_never_sent_is_a_finding(query: Query, topic: Topic) -> None:
    for file in query.files.values():
        append_line(file, visit("z", 0))
        append_line(file, visit("z", 0))
    found = judge_fully(query, topic).findings["unexpected"]
    first, second = query.files[0, 0].name, query.files[0, 1].name
    places = [(each.names["file"], each.names["line"]) for each in found]
    assert places == [(first, 6), (first, 7), (second, 4), (second, 5)]
    assert found[0].names["visit_id"] == "z"


def test_one_byte_changed_is_lost_and_unexpected(query: Query, topic: Topic) -> None:
    file = query.files[0, 0]
    lines = lines_of(file)
    replace_lines(file, [lines[0], lines[1].replace(b"home", b"hose"), *lines[2:]])
    judged = judge_fully(query, topic)
    assert counts(judged.verdict) == (1, 0, 1, 0)
    text = judged.verdict.examples[0].text
    assert text == ("visit b of 2026-01-01T00:00:01.000Z (visits partition 0 offset 1) is on no line of the output")


def test_of_a_record_sent_twice_the_later_one_is_taken_for_lost(query: Query, topic: Topic) -> None:
    replace_lines(query.files[0, 0], lines_of(query.files[0, 0])[1:])
    (finding,) = judge_fully(query, topic).findings["lost"]
    assert (finding.names["partition"], finding.names["offset"]) == (1, 2)
    assert f"was sent 2 times and is there once: {query.files[0, 1].name} line 3" in finding.text


def test_as_it_is_what_no_batch_has_committed_is_pending_or_there(tmp_path: Path, topic: Topic) -> None:
    batches = [Batch({0: (0, 2)}), Batch({0: (2, 3), 1: (0, 1)}), Batch({0: (3, 4), 1: (1, 2)})]
    query = write_output(tmp_path, topic, batches, committed=2)
    judged = judge_fully(query, topic, caught_up=False)
    verdict = judged.verdict
    assert (verdict.outcome, verdict.observed, verdict.pending) == (Outcome.HOLDS, 6, 2)
    assert verdict.reason.startswith("judged as it is: ")
    assert verdict.reason.endswith("; 2 pending")
    assert "is beyond batch 1, the last committed" in judged.findings["pending"][0].text
    # The same records are due once the query counts as caught up.
    assert counts(judge_fully(query, topic).verdict) == (2, 0, 0, 0)
    # And a committed one is due now.
    query.files[1, 1].write_bytes(b"")
    assert counts(judge_fully(query, topic, caught_up=False).verdict) == (1, 0, 0, 0)


def leftover(query: Query, *lines: bytes) -> Path:
    file = query.output / part_name(7, 0, attempt=1)
    replace_lines(file, lines)
    return file


def test_leftovers_count_only_when_they_were_never_sent(query: Query, topic: Topic) -> None:
    file = leftover(query, visit("b", 1_000))
    verdict = judge_output(query, topic)
    assert (verdict.outcome, verdict.observed) == (Outcome.HOLDS, 8)
    assert verdict.notes[0].startswith("1 file with 1 line that the sink's log does not name")
    append_line(file, visit("z", 0))
    judged = judge_fully(query, topic)
    assert (judged.verdict.outcome, counts(judged.verdict)) == (Outcome.VIOLATED, (0, 0, 1, 0))
    assert judged.findings["unexpected"][0].names["file"] == file.name


def test_a_leftover_does_not_stand_in_for_a_lost_line(query: Query, topic: Topic) -> None:
    file = leftover(query, visit("b", 1_000), visit("a", 0))
    lines = lines_of(query.files[0, 0])
    replace_lines(query.files[0, 0], lines[1:])
    replace_lines(query.files[0, 1], lines_of(query.files[0, 1])[:2])
    judged = judge_fully(query, topic)
    assert counts(judged.verdict) == (2, 0, 0, 0)
    assert f"is on no line of the output, only in leftover {file.name} line 2" in judged.verdict.examples[0].text


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_torn_line_of_the_output_is_unexpected_and_its_record_lost(query: Query, topic: Topic, cut: int) -> None:
    file = query.files[0, 1]
    topic.records[1][2] = topic.records[1][2]._replace(value=visit("last", 9_000))
    content = b"".join(line + b"\n" for line in topic.lines(1, 0, 3))
    file.write_bytes(content[:-cut])
    judged = judge_fully(query, topic)
    assert (judged.verdict.outcome, counts(judged.verdict)) == (Outcome.VIOLATED, (1, 0, 1, 0))
    assert f"{file.name} line 3 has no line end, so it is cut off: " in judged.findings["unexpected"][0].text
    assert judged.findings["lost"][0].names["visit_id"] == "last"


def test_a_file_that_the_log_names_and_nobody_has_is_named(tmp_path: Path, topic: Topic) -> None:
    query = write_output(tmp_path, topic, even_batches(topic, 2))
    kept = query.files[1, 1].read_bytes()
    query.files[1, 1].unlink()
    judged = judge_fully(query, topic)
    assert (judged.verdict.outcome, judged.verdict.lost) == (Outcome.VIOLATED, 2)
    assert judged.verdict.examples[0].names == {"file": query.files[1, 1].name, "batch": 1}
    # Even when its lines are somewhere else too.
    (query.output / "people.txt").write_bytes(kept)
    judged = judge_fully(query, topic)
    assert (judged.verdict.outcome, counts(judged.verdict)) == (Outcome.VIOLATED, (0, 0, 0, 0))
    assert query.files[1, 1].name in judged.verdict.reason


def test_nothing_read_is_unknown_but_nothing_of_what_is_due_is_violated(tmp_path: Path, topic: Topic) -> None:
    none = write_output(tmp_path / "none", Topic(), [])
    verdict = judge_output(none, Topic())
    assert (verdict.outcome, verdict.reason[:24]) == (Outcome.UNKNOWN, "topic visits is empty: n")
    verdict = judge_output(none, topic, caught_up=False)
    assert (verdict.outcome, verdict.pending) == (Outcome.UNKNOWN, 8)
    assert "no batch is committed in" in verdict.reason
    assert judge_output(none, topic).lost == 8
    query = write_output(tmp_path / "query", topic, ONE_BATCH, sink=FOREACH_APPEND)
    for file in query.files.values():
        file.unlink()
    query.output.rmdir()
    for caught_up in (False, True):
        verdict = judge_output(query, topic, caught_up=caught_up)
        assert (verdict.outcome, verdict.lost) == (Outcome.VIOLATED, 8)
        assert "does not exist" in verdict.notes[0]


@pytest.mark.parametrize("seed", range(10))
def test_counts_are_those_of_a_plain_multiset_difference(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    alphabet = [visit(letter, 0) for letter in "abcdefgh"]
    source = chance.choices(alphabet[:6], k=chance.randrange(1, 30))
    lines = chance.choices(alphabet, k=chance.randrange(1, 30))
    topic = Topic({0: source})
    query = write_output(tmp_path, topic, even_batches(topic, 1))
    replace_lines(query.files[0, 0], lines)
    verdict = judge_fully(query, topic).verdict
    expected, observed = Counter(source), Counter(lines)
    surplus = observed - expected
    assert verdict.lost == (expected - observed).total()
    assert verdict.unexpected == sum(count for line, count in surplus.items() if line not in expected)
    assert verdict.duplicated == surplus.total() - verdict.unexpected


# --- Order -----------------------------------------------------------------------------------------


def numbered(count: int) -> Topic:
    return Topic({0: [visit(f"v{number}", number) for number in range(count)], 1: [visit("w", 0)]})


def swap(first: Path, second: Path) -> None:
    content = first.read_bytes()
    rewrite(first, second.read_bytes())
    rewrite(second, content)


@pytest.mark.parametrize(
    ("order", "late"),
    [
        ([0, 1, 2, 3], []),
        ([1, 0, 2, 3], [0]),
        ([3, 0, 1, 2], [0, 1, 2]),
        ([0, 2, 1, 3], [1]),
        ([3, 2, 1, 0], [2, 1, 0]),
    ],
)
def test_lines_come_in_the_order_of_their_offsets(tmp_path: Path, order: list[int], late: list[int]) -> None:
    topic = numbered(4)
    query = write_output(tmp_path, topic, even_batches(topic, 1))
    lines = lines_of(query.files[0, 0])
    replace_lines(query.files[0, 0], [lines[number] for number in order])
    judged = judge_fully(query, topic)
    assert counts(judged.verdict) == (0, 0, 0, len(late))
    assert judged.verdict.outcome is (Outcome.VIOLATED if late else Outcome.HOLDS)
    assert [finding.names["offset"] for finding in judged.findings["disordered"]] == late
    if late:
        (first, *_) = judged.findings["disordered"]
        assert f"comes after offset {max(order[: order.index(late[0])])}: " in first.text
        assert {"visit_id", "event_time", "topic", "partition", "offset", "file", "line"} == set(first.names)


def test_two_partitions_in_one_file_have_no_order_between_them(tmp_path: Path) -> None:
    topic = Topic({0: [visit("a", 0), visit("b", 1)], 1: [visit("c", 0), visit("d", 1)]})
    query = write_output(tmp_path, topic, even_batches(topic, 1))
    (first, second), (third, fourth) = lines_of(query.files[0, 0]), lines_of(query.files[0, 1])
    replace_lines(query.files[0, 0], [third, first, second, fourth])
    query.files[0, 1].write_bytes(b"")
    assert judge_output(query, topic).outcome is Outcome.HOLDS
    replace_lines(query.files[0, 0], [fourth, first, second, third])
    assert counts(judge_output(query, topic)) == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("sink", "compact_every", "disordered"),
    [
        ("files", 10, 4),
        (FOREACH_OVERWRITE, 10, 4),
        # It is not known which file of this sink was written first.
        (FOREACH_APPEND, 10, 0),
        # Batches 0 to 2 are in one compacted log, one after the other.
        ("files", 3, 4),
        ("files", 2, 4),
    ],
)
def test_the_batches_come_in_the_order_of_their_offsets(
    tmp_path: Path, sink: str, compact_every: int, disordered: int
) -> None:
    topic = numbered(6)
    batches = [Batch({0: (0, 2)}), Batch({0: (2, 4)}), Batch({0: (4, 6), 1: (0, 1)})]
    query = write_output(tmp_path, topic, batches, sink=sink, compact_every=compact_every)
    assert judge_output(query, topic).outcome is Outcome.HOLDS
    swap(query.files[0, 0], query.files[2, 0])
    judged = judge_fully(query, topic)
    assert counts(judged.verdict) == (0, 0, 0, disordered)
    found = sorted((int(str(each.names["offset"])), each.text) for each in judged.findings["disordered"])
    assert [offset for offset, _ in found] == list(range(disordered))
    assert all(" comes after offset 5: " in text for _, text in found)


def test_a_record_sent_twice_or_there_twice_has_no_order(tmp_path: Path) -> None:
    topic = Topic({0: [visit("a", 0), visit("b", 1), visit("a", 0), visit("c", 2)]})
    query = write_output(tmp_path, topic, even_batches(topic, 1))
    first, second, third, last = lines_of(query.files[0, 0])
    replace_lines(query.files[0, 0], [second, first, third, last])
    assert judge_output(query, topic).outcome is Outcome.HOLDS
    replace_lines(query.files[0, 0], [last, second, second, first, third])
    assert counts(judge_output(query, topic)) == (0, 1, 0, 0)


# --- What may not be opened, read or printed ---------------------------------------------------------


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["pipe", part_name(9, 0)])
def test_a_named_pipe_is_unexpected_and_not_opened(query: Query, topic: Topic, name: str) -> None:
    make_pipe(query.output / name)
    judged = judge_fully(query, topic)
    assert (judged.verdict.outcome, counts(judged.verdict)) == (Outcome.VIOLATED, (0, 0, 1, 0))
    (finding,) = judged.findings["unexpected"]
    assert (finding.names, finding.text) == ({"file": name}, f"{name} is a named pipe, not a file of lines")


@pytest.mark.timeout(20)
def test_a_pipe_in_the_place_of_a_file_that_counts_loses_its_lines(query: Query, topic: Topic) -> None:
    query.files[0, 1].unlink()
    make_pipe(query.files[0, 1])
    assert counts(judge_fully(query, topic).verdict) == (3, 0, 1, 0)


class DeadBroker(Topic):
    """A topic that can be read once; then its broker is gone."""

    def __init__(self) -> None:
        super().__init__(VALUES)
        self.reads = 0

    def read(self, topic: str, spans: Spans) -> Iterator[Rows]:
        self.reads += 1
        if self.reads > 2:
            raise Unknown("the broker is gone")
        yield from super().read(topic, spans)


def test_a_broker_that_dies_leaves_what_is_proven(query: Query) -> None:
    topic = DeadBroker()
    query.files[0, 0].write_bytes(b"")
    judged = judge_fully(query, topic)
    assert (judged.verdict.outcome, judged.verdict.lost) == (Outcome.VIOLATED, 5)
    # One read per partition for the judgement; one failing read for the examples, and no more.
    assert topic.reads == 3
    assert judged.findings["lost"][1].names == {"topic": TOPIC, "partition": 0, "offset": 2}
    assert judged.findings["lost"][1].text.startswith("a record (visits partition 0 offset 2) is on no line")


def test_findings_of_a_file_that_went_away_meanwhile_are_given(query: Query, topic: Topic) -> None:
    class Vanishing(Topic):
        def read(self, topic: str, spans: Spans) -> Iterator[Rows]:
            yield from super().read(topic, spans)
            query.files[0, 1].unlink(missing_ok=True)

    append_line(query.files[0, 1], visit("z", 0))
    (finding,) = judge_fully(query, Vanishing(VALUES)).findings["unexpected"]
    assert finding.text.endswith("line 4 was never sent; it cannot be read again")


def test_nothing_that_a_record_holds_forges_a_line(query: Query, topic: Topic) -> None:
    hostile = b'{"visit_id":"x\x1b[2Jflink: HOLDS\xe2\x80\xae", "event_time":"2026-01-01T00:00:00Z"}\r\x1b[2J'
    append_line(query.files[0, 0], hostile)
    (query.output / "name\nflink: HOLDS").write_bytes(b"\x07\n")
    judged = judge_fully(query, topic)
    texts = [finding.text for finding in judged.verdict.examples]
    assert len(texts) == 2
    assert all(text.isprintable() for text in (*texts, *judged.verdict.notes, judged.verdict.reason))
    # The names have it unchanged; JSON escapes it.
    assert "name\nflink: HOLDS" in [finding.names["file"] for finding in judged.verdict.examples]


def test_a_lost_visits_id_is_escaped_in_the_text_and_raw_in_the_names(tmp_path: Path) -> None:
    name = "x\u202e\u2028"
    topic = Topic({0: [visit("a", 0), json.dumps({"visit_id": name, "event_time": "2026-01-01T00:00:00Z"}).encode()]})
    query = write_output(tmp_path, topic, even_batches(topic, 1))
    replace_lines(query.files[0, 0], lines_of(query.files[0, 0])[:1])
    (finding,) = judge_fully(query, topic).findings["lost"]
    assert finding.text.startswith("visit x\\u202e\\u2028 of ")
    assert finding.names["visit_id"] == name


def test_a_very_long_line_has_a_finding_without_names(query: Query, topic: Topic) -> None:
    with query.files[0, 0].open("ab") as stream:
        stream.write(b'{"visit_id":"' + b"x" * (9 << 20) + b"\n")
    judged = judge_fully(query, topic)
    assert counts(judged.verdict) == (0, 0, 1, 0)
    (finding,) = judged.findings["unexpected"]
    assert set(finding.names) == {"file", "line"}
    assert len(finding.text) < 400


# --- The settings of the run -------------------------------------------------------------------------


def test_the_runs_own_settings_judge_it_not_those_of_the_shell(query: Query, topic: Topic) -> None:
    other = {"STACK_VISITS_TOPIC": "elsewhere", "STACK_SPARK_SINK": "foreach-append"}
    assert judge_output(query, topic, settings=other).outcome is Outcome.HOLDS


def test_the_checkpoint_of_another_query_hides_no_loss(tmp_path: Path, topic: Topic) -> None:
    # The other query has committed one batch only; the output of this one lacks the other half.
    other = write_output(tmp_path, topic, [Batch({0: (0, 1)})], sink=FOREACH_APPEND)
    query = write_output(tmp_path, topic, ONE_BATCH)
    replace_lines(query.files[0, 0], lines_of(query.files[0, 0])[:1])
    for options in (
        Options(checkpoint=other.checkpoint, output=query.output),
        Options(checkpoint=other.checkpoint, sink="files"),
        Options(sink="foreach-overwrite", checkpoint=query.checkpoint),
    ):
        with pytest.raises(Unknown, match=r"^checkpoint .* belongs to (sink|output) \S+ and not \S+; leave --\w+ out"):
            judge_output(query, topic, options=options, caught_up=False)
    assert judge_output(query, topic, options=Options()).lost == 4
    same = Options(checkpoint=query.checkpoint, output=query.output, sink="files")
    assert judge_output(query, topic, options=same).lost == 4


def test_a_checkpoint_that_was_copied_is_refused(query: Query, topic: Topic) -> None:
    copied = query.checkpoint.with_name("copy")
    query.checkpoint.rename(copied)
    with pytest.raises(Unknown, match=r"is of checkpoint checkpoints/spark/visits_json and is in \S+/copy"):
        judge_output(query, topic, options=Options(checkpoint=copied))


def test_without_settings_of_a_run_the_stacks_are_taken_and_that_is_noted(query: Query, topic: Topic) -> None:
    (query.checkpoint / "synchronizer.json").unlink()
    verdict = judge_output(query, topic, options=Options())
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.notes == (f"no settings of a run in {query.checkpoint}, judged with those of .env",)


def test_settings_of_a_run_that_cannot_be_read_are_unknown(query: Query, topic: Topic) -> None:
    file = query.checkpoint / "synchronizer.json"
    file.write_text("nonsense")
    with pytest.raises(Unknown, match=rf"{re.escape(str(file))} does not hold the settings of a run"):
        judge_output(query, topic)


@pytest.mark.parametrize("change", [{"topic": 5}, {"topic": ""}, {"sink": "kafka"}, {"sink": None}])
def test_settings_of_a_run_that_make_no_sense_are_unknown(
    query: Query, topic: Topic, change: dict[str, object]
) -> None:
    file = query.checkpoint / "synchronizer.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(Unknown, match=r"synchronizer\.json"):
        judge_output(query, topic)


def test_an_unknown_sink_is_refused(query: Query, topic: Topic) -> None:
    with pytest.raises(Unknown, match="--sink kafka is unknown; one of files, foreach-append, foreach-overwrite"):
        judge_output(query, topic, options=Options(sink="kafka"))
