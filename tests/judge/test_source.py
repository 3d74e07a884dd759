"""The judge of the source: what was acknowledged is there once; lost, repeated and strange records are named."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faultline.formats.ledger import acked_line
from faultline.formats.verdict import Outcome, Verdict
from faultline.formats.visit import iso_time
from faultline.verdict.model import Unknown
from faultline.verdict.records import Batch, Span, Spans
from faultline.verdict.source.judge import not_judged
from faultline.verdict.source.ledger import ledgers_of
from tests.judge.source_world import OTHER_ID, START, TOPIC_ID, MemoryTopic, World, judge_source, random_world
from tests.tiers import seeds

Counts = tuple[int, int, int]
"""Lost, duplicated, unexpected."""


def counts(verdict: Verdict) -> Counts:
    return verdict.lost, verdict.duplicated, verdict.unexpected


def small_world(visits: int = 4) -> World:
    world = World()
    world.begin_run()
    for number in range(visits):
        world.send(number % 2, b"v%d" % number, b"value %d" % number, START + number, arrives=True, acked=True)
    return world


@pytest.mark.parametrize("seed", seeds(200))
def test_faultless_worlds_hold(seed: int, tmp_path: Path) -> None:
    world = random_world(seed)
    verdict = judge_source(world, tmp_path).verdict
    assert (verdict.outcome, counts(verdict)) == (Outcome.HOLDS, (0, 0, 0))
    acked = sum(visit.acked is not None for visit in world.visits)
    arrived = sum(visit.acked is None and visit.record.offset >= 0 for visit in world.visits)
    assert verdict.records["acknowledged"] == acked
    assert verdict.records["unacknowledged"] == arrived
    assert verdict.expected == verdict.observed == acked + arrived


@pytest.mark.parametrize("seed", seeds(20))
def test_a_running_generator_is_ahead_of_what_was_read(seed: int, tmp_path: Path) -> None:
    world = random_world(seed)
    chance = random.Random(seed)
    spans = {partition: Span(0, chance.randrange(end + 1)) for partition, end in world.topic.ends.items()}
    judged = judge_source(world, tmp_path, caught_up=False, spans=spans).verdict
    assert counts(judged) == (0, 0, 0)
    beyond = sum(visit.acked is not None and visit.acked >= spans[visit.record.partition].end for visit in world.visits)
    assert any("beyond the records" in note for note in judged.notes) == (beyond > 0)
    if beyond:
        at_rest = judge_source(world, tmp_path, spans=spans)
        assert counts(at_rest.verdict) == (beyond, 0, 0)
        assert "the partition ends at offset" in at_rest.findings["lost"][0].text


# Each mutant does one wrong thing to a faultless world, and gives what must be counted.


def missing(world: World, chance: random.Random) -> Counts:
    gone = chance.choice(world.unique(acked=True, arrived=True)).record
    del world.topic.records[gone.partition][gone.offset]
    return 1, 0, 0


def written_again_by_a_retry(world: World, chance: random.Random) -> Counts:
    record = chance.choice(world.unique(acked=True, arrived=True)).record
    world.topic.append(record.partition, record.key, record.value, record.timestamp)
    return 0, 1, 0


def foreign(world: World, chance: random.Random) -> Counts:
    world.topic.append(chance.choice([0, 1]), chance.choice([None, b"v"]), chance.choice([None, b"\n\x1b"]), -1)
    return 0, 0, 1


def byte_altered(world: World, chance: random.Random) -> Counts:
    record = chance.choice(world.unique(acked=True, arrived=True)).record
    value = bytearray(record.value or b"")
    # No visit has such a byte, so it becomes the value of no other one.
    value[chance.randrange(len(value))] ^= 1 << 7
    world.topic.replace(record, value=bytes(value))
    return 1, 0, 1


def timestamp_altered(world: World, chance: random.Random) -> Counts:
    record = chance.choice(world.unique(acked=True, arrived=True)).record
    world.topic.replace(record, timestamp=chance.choice([-1, record.timestamp + 1, 2**62]))
    return 1, 1, 0


def key_altered(world: World, chance: random.Random) -> Counts:
    record = chance.choice(world.unique(acked=True, arrived=True)).record
    world.topic.replace(record, key=chance.choice([None, b"another"]))
    return 1, 0, 1


def moved_from_key_to_value(world: World, chance: random.Random) -> Counts:
    record = chance.choice([visit for visit in world.unique(acked=True, arrived=True) if visit.record.key]).record
    key, value = record.key or b"", record.value or b""
    world.topic.replace(record, key=key[:-1], value=key[-1:] + value)
    return 1, 0, 1


def offsets_swapped(world: World, chance: random.Random) -> Counts:
    victims = world.unique(acked=True, arrived=True)
    first = chance.choice(victims).record
    second = chance.choice([v.record for v in victims if v.record.partition == first.partition and v.record != first])
    world.topic.replace(first, offset=second.offset)
    world.topic.replace(second, offset=first.offset)
    places = world.topic.records[first.partition]
    places[first.offset], places[second.offset] = places[second.offset], places[first.offset]
    return 2, 2, 0


def unacknowledged_there_twice(world: World, chance: random.Random) -> Counts:
    record = chance.choice(world.unique(acked=False, arrived=True)).record
    world.topic.append(record.partition, record.key, record.value, record.timestamp)
    return 0, 1, 0


def unacknowledged_with_another_timestamp(world: World, chance: random.Random) -> Counts:
    record = chance.choice(world.unique(acked=False, arrived=True)).record
    world.topic.replace(record, timestamp=record.timestamp + 1)
    return 0, 1, 0


def in_another_partition(world: World, chance: random.Random) -> Counts:
    record = chance.choice(world.unique(acked=True, arrived=True)).record
    del world.topic.records[record.partition][record.offset]
    world.topic.append(1 - record.partition, record.key, record.value, record.timestamp)
    return 1, 1, 0


def acknowledged_at_one_place(world: World, chance: random.Random) -> Counts:
    """The broker loses its newest record and gives the offset to the next one."""
    world.send(0, b"first", b"first", START, arrives=True, acked=True)
    world.topic.ends[0] -= 1
    same = chance.random() < 0.5
    key = b"first" if same else b"second"
    world.send(0, key, key, START, arrives=True, acked=True)
    return 1, 0, 0


def cut_off(world: World, chance: random.Random) -> Counts:
    """The broker comes back without its newest records."""
    partition = chance.choice([visit.record.partition for visit in world.visits if visit.acked is not None])
    newest = max(v.acked for v in world.visits if v.acked is not None and v.record.partition == partition)
    for offset in [offset for offset in world.topic.records[partition] if offset >= newest]:
        del world.topic.records[partition][offset]
    world.topic.ends[partition] = newest
    return 1, 0, 0


MUTANTS = (
    missing, written_again_by_a_retry, foreign, byte_altered, timestamp_altered, key_altered, moved_from_key_to_value,
    offsets_swapped, unacknowledged_there_twice, unacknowledged_with_another_timestamp, in_another_partition,
    acknowledged_at_one_place, cut_off,
)  # fmt: skip


def world_to_spoil(seed: int) -> World:
    """A faultless world that has something for each mutant."""
    world = random_world(seed)
    for number in range(2):
        unique = b"spoil-%d-%d" % (seed, number)
        world.send(number, unique, unique, START + number, arrives=True, acked=True)
        world.send(number, unique, unique + b"!", START + number, arrives=True, acked=True)
        world.send(number, unique, unique + b"?", START + number, arrives=True, acked=False)
    world.runs[-1].torn = ""
    return world


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
@pytest.mark.parametrize("seed", seeds(20))
def test_mutants_are_violated(mutant: Callable[[World, random.Random], Counts], seed: int, tmp_path: Path) -> None:
    world = world_to_spoil(seed)
    wrong = mutant(world, random.Random(seed))
    judged = judge_source(world, tmp_path)
    assert judged.verdict.outcome is Outcome.VIOLATED
    assert counts(judged.verdict) == wrong


def test_a_lost_visit_is_named(tmp_path: Path) -> None:
    world = small_world()
    del world.topic.records[0][1]
    (lost,) = judge_source(world, tmp_path).findings["lost"]
    assert lost.names == {
        "visit_id": "v2", "topic": "visits", "partition": 0, "offset": 1, "timestamp": iso_time(START + 2),
        "number": 2, "file": "20260101T000000.000Z-1.ledger.csv",
    }  # fmt: skip
    assert lost.text == (
        "visit v2 (number 2 of 20260101T000000.000Z-1.ledger.csv) was acknowledged at visits partition 0 offset 1: "
        "no record is there"
    )


def test_a_visit_with_another_timestamp_is_named_with_both(tmp_path: Path) -> None:
    world = small_world()
    world.topic.replace(world.topic.records[0][1], timestamp=START)
    judged = judge_source(world, tmp_path)
    (lost,) = judged.findings["lost"]
    assert lost.names["timestamp"] == iso_time(START + 2)
    assert lost.text.endswith(f": the record there has the timestamp {iso_time(START)}")
    (repeated,) = judged.findings["duplicated"]
    assert (repeated.names["visit_id"], repeated.names["timestamp"]) == ("v2", iso_time(START))


def test_a_repeated_record_is_named_with_its_visit(tmp_path: Path) -> None:
    world = small_world()
    world.topic.append(1, b"v2", b"value 2", START)
    (repeated,) = judge_source(world, tmp_path).findings["duplicated"]
    assert repeated.names == {
        "visit_id": "v2", "topic": "visits", "partition": 1, "offset": 2, "timestamp": iso_time(START),
        "number": 2, "file": "20260101T000000.000Z-1.ledger.csv",
    }  # fmt: skip
    assert repeated.text == (
        "visits partition 1 offset 2 repeats visit v2 (number 2 of 20260101T000000.000Z-1.ledger.csv): "
        "key v2, value value 2"
    )


def test_a_foreign_record_cannot_forge_a_line(tmp_path: Path) -> None:
    world = small_world()
    world.topic.append(1, b"k\n", b"\x1b[2Jverdict: holds\r\n", 2**62)
    (strange,) = judge_source(world, tmp_path).findings["unexpected"]
    assert strange.text == (
        "visits partition 1 offset 2 was never sent by a generator that kept a ledger: "
        r"key k\n, value \x1b[2Jverdict: holds\r\n"
    )
    assert strange.names["timestamp"] == 2**62


def test_findings_stand_when_the_broker_dies_after_the_judging(tmp_path: Path) -> None:
    world = small_world()
    for number in range(5):
        world.topic.append(1, b"x", b"%d" % number, START)

    class Dying(MemoryTopic):
        reads = 0

        def read(self, topic: str, spans: Spans) -> Iterator[Batch]:
            self.reads += 1
            if self.reads > len(spans_read):
                raise Unknown("the broker does not answer")
            yield from super().read(topic, spans)

    spans_read = world.topic.spans()
    world.topic.__class__ = Dying
    judged = judge_source(world, tmp_path)
    assert (judged.verdict.outcome, judged.verdict.unexpected) == (Outcome.VIOLATED, 5)
    assert all(finding.text.endswith(": it cannot be read again") for finding in judged.findings["unexpected"])


def test_a_key_may_be_as_long_as_a_record(tmp_path: Path) -> None:
    world = small_world()
    for _ in range(3):
        world.send(0, "\u00e9".encode() * 350_000, b"value", START, arrives=True, acked=True)
    assert judge_source(world, tmp_path).verdict.outcome is Outcome.HOLDS


def test_findings_far_apart_are_read_in_several_runs(tmp_path: Path) -> None:
    world = small_world()
    for end in (10, 60_000, 60_001, 200_000):
        world.topic.ends[1] = end
        world.topic.append(1, b"x", b"%d" % end, START)
    found = judge_source(world, tmp_path).findings["unexpected"]
    assert [finding.names["offset"] for finding in found] == [10, 60_000, 60_001, 200_000]
    assert [finding.text.rpartition(" ")[2] for finding in found] == ["10", "60000", "60001", "200000"]


def test_ledgers_of_a_deleted_topic_are_left_out_with_a_note(tmp_path: Path) -> None:
    world = World()
    for _ in range(2):
        world.begin_run(OTHER_ID)
        world.send(0, b"old", b"old", START, arrives=False, acked=False)
    world.begin_run()
    world.send(0, b"new", b"new", START, arrives=True, acked=True)
    judged = judge_source(world, tmp_path).verdict
    assert judged.outcome is Outcome.HOLDS
    assert judged.notes == ("2 ledgers left out: of another topic that had the name visits and was deleted",)
    world.topic.append(0, b"old", b"old", START)
    assert counts(judge_source(world, tmp_path).verdict) == (0, 0, 1)


def test_a_topic_without_a_ledger_is_not_judged(tmp_path: Path) -> None:
    assert ledgers_of([], TOPIC_ID) == ([], 0)
    world = World()
    world.begin_run(OTHER_ID)
    chosen, others = ledgers_of(world.write(tmp_path), TOPIC_ID)
    assert (chosen, others) == ([], 1)
    assert str(not_judged("visits", 0)) == (
        "no ledger: topic visits was written by other programs, so what was sent is not known"
    )
    assert str(not_judged("visits", 1)).endswith(" (1 ledger of a deleted topic of this name left out)")


def test_nothing_sent_is_unknown(tmp_path: Path) -> None:
    world = World()
    world.begin_run()
    assert judge_source(world, tmp_path).verdict.outcome is Outcome.UNKNOWN
    world.send(0, b"a", b"a", START, arrives=False, acked=False)
    verdict = judge_source(world, tmp_path).verdict
    assert verdict.outcome is Outcome.UNKNOWN
    assert "is empty" in verdict.reason


def refused(world: World, folder: Path) -> str:
    with pytest.raises(Unknown) as raised:
        judge_source(world, folder)
    return str(raised.value).replace(str(folder), "")


FILE = "ledger /visits/20260101T000000.000Z-1.ledger.csv"


@pytest.mark.parametrize(
    "line",
    [
        "", "acked,0", "acked,0,0,0,,5,,,\n", "ackd,0,0,0,,5,,\n", "sent,4,0,,5,6,abcd,key\n",
        "sent,4,0,7,5,6,{},key\n",
        "sent,-1,0,,5,6,{},key\n", "sent,4,0,,5,,{},key\n", "sent,4,x,,5,6,{},key\n", "sent,4,0,,5,6,{}z,key\n",
        "acked,0,0,,,5,,\n", "acked,0,0,0,,5,,key\n", "topic,,,,,5,AbCdEfGhIjKlMnOpQrSt_-,visits\n",
        "sent,4,0,,5,6,{},\udcff\n",
        "acked,0,0,99999999999999999999,,5,,\n", "\x00\x00\x00\n", "\n",
    ],
)  # fmt: skip
def test_a_damaged_line_is_refused(line: str, tmp_path: Path) -> None:
    world = small_world()
    world.runs[0].lines[4] = line.format("0" * 32) or world.runs[0].lines[4][:20]
    assert refused(world, tmp_path).startswith(f"{FILE} line 6 cannot be read: ")


def test_lines_out_of_order_are_refused(tmp_path: Path) -> None:
    world = small_world()
    lines = world.runs[0].lines
    world.runs[0].lines = [*lines[:2], *lines[3:]]
    assert f"{FILE} line 4 acknowledges visit 1, which no line before it sends: " in refused(world, tmp_path)
    world.runs[0].lines = [*lines[:2], *lines[4:]]
    assert f"{FILE} line 4 sends visit 2 where visit 1 is due: " in refused(world, tmp_path)
    # The first and the last number are right, and so is how many there are.
    world.runs[0].lines = [*lines[:2], lines[4], *lines[3:]]
    assert f"{FILE} line 4 sends visit 2 where visit 1 is due: " in refused(world, tmp_path)
    world.runs[0].lines = [*lines, lines[0]]
    assert f"{FILE} line 10 sends visit 0 where visit 4 is due: " in refused(world, tmp_path)


@pytest.mark.parametrize("wrong", [acked_line(0, 0, 7, START), acked_line(2, 1, 1, START)])
def test_two_answers_about_a_visit_are_refused(wrong: str, tmp_path: Path) -> None:
    """Visit 0 was acknowledged before, and visit 2 was sent to another partition."""
    world = small_world()
    world.runs[0].lines[5] = wrong
    assert refused(world, tmp_path).startswith(f"{FILE} contradicts itself about visit {wrong[6]}: ")


def test_a_first_line_that_is_none_is_refused(tmp_path: Path) -> None:
    world = small_world()
    path = world.write(tmp_path)[0]
    path.write_text("sent" + path.read_text()[5:])
    with pytest.raises(Unknown, match="line 1 cannot be read"):
        ledgers_of([path], TOPIC_ID)


def test_a_ledger_that_was_never_begun_is_left_out(tmp_path: Path) -> None:
    path = small_world().write(tmp_path)[0]
    path.write_text(path.read_text()[:20])
    assert ledgers_of([path], TOPIC_ID) == ([], 0)


def test_a_ledger_that_cannot_be_opened_is_unknown(tmp_path: Path) -> None:
    path = small_world().write(tmp_path)[0]
    path.unlink()
    for make in (os.mkdir, os.mkfifo):
        make(path)
        with pytest.raises(Unknown, match=r"is no file; move it out of the folder of the ledgers"):
            ledgers_of([path], TOPIC_ID)
        path.rename(tmp_path / make.__name__)


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_an_answer_that_was_cut_off_leaves_the_visit_unacknowledged(cut: int, tmp_path: Path) -> None:
    world = small_world()
    world.runs[0].torn = world.runs[0].lines.pop()[: -min(cut, 20)]
    verdict = judge_source(world, tmp_path).verdict
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.records["unacknowledged"] == 1
    assert verdict.notes == ("1 visit sent without an acknowledgement, 1 of them in the topic: both are allowed",)


def test_a_ledger_is_read_in_chunks_and_joined_in_buckets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("faultline.verdict.source.ledger._CHUNK_BYTES", 100)
    monkeypatch.setattr("faultline.verdict.source.judge._BUCKET", 7)
    assert judge_source(world_to_spoil(1), tmp_path).verdict.outcome is Outcome.HOLDS
    for mutant in MUTANTS:
        world = world_to_spoil(1)
        wrong = mutant(world, random.Random(1))
        assert counts(judge_source(world, tmp_path).verdict) == wrong
    line = next(index for index, text in enumerate(world.runs[-1].lines) if text.startswith("acked"))
    world.runs[-1].lines[line] = "what\n"
    assert f"line {line + 2} cannot be read" in refused(world, tmp_path)
