"""Bytes that no program of the project writes are findings: they end no verdict, and hide no other fault."""

from __future__ import annotations

import json
import random
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.hostile_values import VALUES
from faultline.formats.ledger import ledger_files
from faultline.formats.run import SINKS, RunError, as_json, flink_run_of, flink_runs
from faultline.formats.verdict import CATEGORIES, Outcome
from faultline.formats.visit import MAX_NESTING, parse_visit, refusal_reasons
from faultline.settings import Settings
from faultline.verdict.checker import Moved, Options
from faultline.verdict.flink import reader
from faultline.verdict.keys import key_hashes
from faultline.verdict.model import Judgement, Unknown
from faultline.verdict.records import UNREADABLE, Record
from faultline.verdict.source.ledger import load_ledgers
from faultline.verdict.spark.checkpoint import newest_commit
from faultline.verdict.spark.lines import Part, read_lines
from faultline.verdict.spark.locations import locations as locations_of
from faultline.verdict.spark.output import list_output
from tests.judge import source_world
from tests.judge.flink_world import Outputs, Source, judge_outputs
from tests.judge.shared_store import shared_store
from tests.judge.spark_world import TOPIC, Query, Topic, even_batches, visit, write_output
from tests.judge.windows_runs import UNPARSABLE, Run, read_all, settled_source
from tests.judge.windows_worlds import examples
from tests.stack.flink_corpus import corpus

pytestmark = pytest.mark.timeout(600)

TIMESTAMPS = st.sampled_from([-1, 0, 1_767_225_600_000, 1_767_225_600_000_000, 2**63 - 1])
NAMES = st.sampled_from(["source.partition", "source.offset", "reason", "", "\ufffd"])
HEADERS = st.one_of(
    st.just(UNREADABLE), st.lists(st.tuples(NAMES, st.none() | st.binary(max_size=20)), max_size=4).map(tuple)
)


def altered(value: bytes, places: list[int], byte: int) -> bytes:
    """Some bytes of a value replaced, or the value cut where the first of them was."""
    changed = bytearray(value)
    for place in places:
        changed[place % len(changed)] = byte
    return bytes(changed[: places[0] % len(changed)] if byte > 200 else changed)


def values(right: list[bytes]) -> st.SearchStrategy[bytes | None]:
    """Anything, and what is almost right."""
    almost = st.builds(altered, st.sampled_from(right), st.lists(st.integers(0, 500), min_size=1), st.integers(0, 255))
    deep = st.integers(1, 3_000).map(lambda depth: b"[" * depth)
    return st.one_of(st.binary(max_size=300), almost, deep, st.sampled_from(UNPARSABLE))


def world() -> tuple[Source, Outputs]:
    source = settled_source(random.Random(1), 2, 60)
    return source, read_all(Run(source), random.Random(1))


SOURCE, OUTPUTS = world()
OUTPUT_VALUES = [record.value or b"{}" for record in [*OUTPUTS.windows, *OUTPUTS.late, *OUTPUTS.rejected]]
FOREIGN = st.tuples(
    st.sampled_from(["windows", "late", "rejected"]), st.none() | st.binary(max_size=40), values(OUTPUT_VALUES),
    TIMESTAMPS, HEADERS,
)  # fmt: skip


def findings(judgement: Judgement) -> list[str]:
    """Every finding as text; each is one line, and can be written as JSON."""
    found = []
    for category in CATEGORIES:
        for finding in judgement.findings(category):
            json.dumps(finding.as_json())
            found.append(finding.text)
    assert all(text.isprintable() and len(text) < 1_500 for text in found)
    return found


@examples(80)
@given(st.lists(FOREIGN, min_size=1, max_size=6))
def test_foreign_records_on_the_outputs_are_named_and_hide_no_loss(
    foreign: list[tuple[str, bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]],
) -> None:
    topics = {name: list(getattr(OUTPUTS, name)) for name in ("windows", "late", "rejected")}
    gone = topics["windows"].pop(3)
    places: list[int] = []
    for topic, key, value, timestamp, headers in foreign:
        topics[topic].append(Record(0, 10_000 + len(places), key, value, timestamp, headers))
        places.append(10_000 + len(places))
    texts: list[str] = []
    verdict = judge_outputs(SOURCE, Outputs(**topics), look=lambda each: texts.extend(findings(each))).verdict
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.lost >= 1
    assert any(json.loads(gone.value or b"")["window_start"] in text for text in texts)
    for place in places:
        assert any(f"offset {place}" in text for text in texts), place


@examples(400)
@given(values([record.value or b"{}" for records in SOURCE.values() for record in records]))
def test_every_value_is_a_visit_or_has_a_reason(value: bytes | None) -> None:
    assert parse_visit(value) is not None or refusal_reasons(value)


def test_the_reader_and_the_rule_agree_on_every_value_at_the_edges() -> None:
    assert [value for value in corpus(20_000) if reader.read_visit(value) != parse_visit(value)] == []


@examples(400)
@given(values([record.value or b"{}" for records in SOURCE.values() for record in records]))
def test_the_reader_and_the_rule_agree_on_what_is_almost_a_visit(value: bytes | None) -> None:
    assert reader.read_visit(value) == parse_visit(value)


@examples(400)
@given(values([record.value or b"{}" for record in OUTPUTS.windows]))
def test_a_window_is_read_as_the_decoder_reads_it(value: bytes | None) -> None:
    found = reader.parse_window(value, 10_000)
    with pytest.MonkeyPatch.context() as decoded:
        decoded.setattr(reader, "_PLAIN_WINDOW", re.compile("no window"))
        assert reader.parse_window(value, 10_000) == found


def ledger(folder: Path) -> list[Path]:
    """A generator's ledger of a few visits."""
    world = source_world.World()
    world.begin_run()
    for number in range(6):
        world.send(number % 2, b"key", b"value %d" % number, 1_000 + number, arrives=True, acked=number % 3 > 0)
    return world.write(folder / "ledger")


def read_everything(folder: Path, query: Query) -> None:
    """Read all that the verdict reads from files, up to the first that it cannot."""
    settings = Settings({"STACK_HOME": str(folder)})
    found = list_output(query.output, SINKS[0], None)
    for file in found.files:
        for _ in read_lines(Part(file.path, 0, file.size), torn=True):
            pass
    newest_commit(query.checkpoint, TOPIC)
    locations_of(settings, Options())
    flink_runs(settings.flink_notes, "visit_windows")
    load_ledgers(shared_store.get(), ledger_files(folder / "ledger", source_world.TOPIC), source_world.TOPIC_ID)


@examples(150)
@given(st.integers(0, 100), st.binary(max_size=200), st.lists(st.integers(0, 2_000), min_size=1), st.integers(0, 255))
def test_files_of_any_content_are_read_or_refused_in_one_line(
    chosen: int, anything: bytes, places: list[int], byte: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        topic = Topic({0: [visit(f"v{number}", number) for number in range(9)]})
        query = write_output(folder, topic, even_batches(topic, 3), compact_every=2)
        ledger(folder)
        job = folder / "checkpoints" / "flink" / "abc" / "job.json"
        job.parent.mkdir(parents=True)
        job.write_text(as_json(flink_run_of(Settings({}), job_id="abc")))
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        read_everything(folder, query)
        file = files[chosen % len(files)]
        content = file.read_bytes()
        file.write_bytes(altered(content, places, byte) if content and byte % 3 else anything)
        try:
            read_everything(folder, query)
        except (Unknown, Moved, RunError) as refused:
            assert len(str(refused).splitlines()) == 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", VALUES)
def test_a_megabyte_of_anything_is_no_visit(name: str) -> None:
    """It ends: a rule that takes the square of the length would need hours. Its CPU time is a benchmark."""
    assert parse_visit(VALUES[name]) is None


def test_the_deepest_visit_is_one_at_any_depth_of_the_stack() -> None:
    def at_depth(depth: int, value: bytes) -> bool:
        return at_depth(depth - 1, value) if depth else parse_visit(value) is not None

    for nested, is_visit in ((MAX_NESTING - 1, True), (MAX_NESTING, False)):
        value = b'{"visit_id":"a","event_time":"2026-01-01T00:00:00Z","x":' + b"[" * nested + b"]" * nested + b"}"
        assert [at_depth(depth, value) for depth in (0, 700)] == [is_visit, is_visit]
    for brackets in (MAX_NESTING - 5, MAX_NESTING, MAX_NESTING + 2):
        assert not at_depth(500, b"[" * brackets)


def test_long_keys_are_hashed_as_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [random.Random(length).randbytes(length) for length in range(40)]
    short = key_hashes(keys).to_pylist()
    monkeypatch.setattr("faultline.verdict.keys._LONG", -1)
    assert key_hashes(keys).to_pylist() == short
