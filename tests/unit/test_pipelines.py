"""The file of a pipeline, and the comparison of what must come out with what is there."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faultline.formats.verdict import Outcome, Verdict
from faultline.pipelines import judge as judged
from faultline.pipelines.judge import Judge
from faultline.pipelines.readers.topic import TEXT, binary_rows, text_rows
from faultline.pipelines.spec import PROMISES, Pipeline, SpecError, read
from faultline.settings import ROOT
from faultline.verdict.model import Unknown
from faultline.verdict.records import Record, batch_of
from faultline.verdict.store import Store, open_store
from tests.judge.windows_worlds import examples
from tests.tree import require_none

SPEC = """
promise = "{promise}"
[source]
topic = "orders"
[start]
command = "python consumer.py {{bootstrap}} {{topic}} {{work}}"
[output]
reader = "json"
path = "{path}"
[expected]
sql = '''{sql}'''
"""
SQL = "SELECT value->>'id' AS id, (value->>'n')::INT AS n FROM source"


def write(folder: Path, text: str) -> Path:
    file = folder / "orders.toml"
    file.write_text(text, encoding="utf-8")
    return file


def spec(folder: Path, *, sql: str = SQL, promise: str = "exactly-once", output: str = "out.jsonl") -> Pipeline:
    return read(write(folder, SPEC.format(promise=promise, path=folder / output, sql=sql)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("promise =", "promises ="), "unknown key promises; is it promise?"),
        (("topic =", "topik ="), "unknown key source.topik; is it source.topic?"),
        (('"exactly-once"', '"at-most-once"'), "promise is 'at-most-once'; write one of exactly-once, at-least-once"),
        (('topic = "orders"', "topic = 5"), "source.topic is not a string"),
        (('topic = "orders"', ""), "lacks the key source.topic"),
        (('reader = "json"', 'reader = "xml"'), "output.reader is 'xml'; write one of kafka, json"),
        (('reader = "json"', 'reader = "postgres"'), "lacks the key output.url, which the reader postgres needs"),
        (("{work}", "{wrok}"), "unknown placeholder {wrok}; known are {bootstrap}"),
        (("[expected]", "[expect]"), "unknown key expect; is it expected?"),
        (('command = "python', 'environment = "conda"\ncommand = "python'), "start.environment is 'conda'; write one"),
        (
            ("[output]", '[upgrade]\nenvironment = "x"\n[output]'),
            "upgrade.environment is 'x'; write one of spark",
        ),
        (
            ("[output]", "[upgrade]\n[output]"),
            "[upgrade] changes nothing; write upgrade.command or",
        ),
        (("[start]", "[upgrade]"), "has a table [upgrade] and no table [start]"),
        (("{work}", "{flink_jars}"), "{flink_jars} is for the readers postgres and iceberg; leave it out"),
        (
            ("consumer.py {bootstrap}", "consumer.py 'a {bootstrap}"),
            "start.command is no command: No closing quotation",
        ),
        (("[start]", "[start]\nquiet_seconds = -1"), "start.quiet_seconds is -1; write a number from 0 to 300"),
        (("[start]", "[feed]\nrecords = 9000\nper_second = 10\n[start]"), "takes 900 s, and a feed has 600 s"),
        (("[source]", "[source"), "is not TOML"),
        (('[source]\ntopic = "orders"', ""), "has no table [source]"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    text = SPEC.format(promise="exactly-once", path="out", sql=SQL)
    assert change[0] in text
    with pytest.raises(SpecError) as refused:
        read(write(tmp_path, text.replace(*change, 1)))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert str(tmp_path) in str(refused.value)


def test_every_pipeline_of_the_repository_has_at_most_30_lines_and_a_query() -> None:
    found = sorted((ROOT / "pipelines").glob("**/*.toml"))
    assert found
    require_none(f"{file}: too long" for file in found if len(file.read_text(encoding="utf-8").splitlines()) > 30)
    with open_store(in_memory=True) as store:
        assert all(judged.columns_of(store, read(file)) for file in found)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELEC 1", "expected.sql is no valid query: Parser Error"),
        ("SELECT nothing FROM source", "expected.sql is no valid query: Binder Error"),
        ("SELECT 1 AS a; SELECT 2 AS b", "expected.sql is not one SELECT"),
        ("DROP TABLE source", "expected.sql is not one SELECT"),
        ("SELECT key, key FROM source", "expected.sql has the column"),
    ],
)
def test_a_wrong_query_is_refused_in_one_line(tmp_path: Path, sql: str, words: str) -> None:
    with open_store(in_memory=True) as store, pytest.raises(SpecError) as refused:
        judged.columns_of(store, spec(tmp_path, sql=sql))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('reader = "json"', 'reader = "json"\nsql = "SELEC line"'), "output.sql is no valid query: Parser Error"),
        (('reader = "json"', 'reader = "json"\nsql = "SELECT n FROM output"'), "output.sql is no valid query: Binder"),
        (
            ('reader = "json"', 'reader = "postgres"\nurl = "{postgres}"\ntable = "t"'),
            "column 'n' of expected.sql is of",
        ),
    ],
)
def test_a_query_that_does_not_fit_the_output_is_refused(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    text = SPEC.format(promise="exactly-once", path="out", sql="SELECT (value->'n')::INT[] AS n FROM source")
    with open_store(in_memory=True) as store, pytest.raises(SpecError) as refused:
        judged.columns_of(store, read(write(tmp_path, text.replace(*change))))
    assert words in str(refused.value)


def records(values: list[str | bytes]) -> list[Record]:
    content = [value.encode() if isinstance(value, str) else value for value in values]
    return [Record(number % 2, number // 2, None, value, 1_000 * number) for number, value in enumerate(content)]


class OfRecords(Judge):
    """A judge whose source is the records of a test; all else is its own."""

    def __init__(self, store: Store, pipeline: Pipeline, values: list[str | bytes]) -> None:
        super().__init__(store, pipeline)
        self._values = values

    def read_source(self) -> None:
        self._store.create("source", TEXT)
        if self._values:
            self._store.append("source", pa.Table.from_batches([text_rows(batch_of(records(self._values)))]))
        self._records = {"source": len(self._values)}
        self._run("expected", self._pipeline.expected.sql, "expected.sql")


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with open_store(in_memory=True) as opened:
        yield opened


def verdict(store: Store, pipeline: Pipeline, source: list[str | bytes]) -> Verdict:
    return OfRecords(store, pipeline, source).verdict()


def visit(number: int, n: object = 1) -> str:
    return json.dumps({"id": f"a{number}", "n": n})


ROWS_OF_OUTPUT = st.lists(st.tuples(st.integers(0, 6), st.sampled_from([1, 2, None])), max_size=25)


@examples(100)
@given(must=ROWS_OF_OUTPUT, there=ROWS_OF_OUTPUT, promise=st.sampled_from(PROMISES))
def test_lost_and_repeated_are_counted_as_by_hand(
    store: Store,
    tmp_path_factory: pytest.TempPathFactory,
    must: list[tuple[int, int | None]],
    there: list[tuple[int, int | None]],
    promise: str,
) -> None:
    folder = tmp_path_factory.mktemp("pipeline")
    pipeline = spec(folder, promise=promise)
    (folder / "out.jsonl").write_text("".join(visit(*row) + "\n" for row in there))
    wanted, found = Counter(must), Counter(there)
    lost = sum((wanted - found).values())
    repeated = sum(more for row, more in (found - wanted).items() if row in wanted)
    unexpected = sum(more for row, more in (found - wanted).items() if row not in wanted)
    judgement = verdict(store, pipeline, [visit(*row) for row in must])
    counts = (judgement.lost, judgement.duplicated, judgement.unexpected)
    assert counts == (lost, repeated, unexpected)
    assert (judgement.expected, judgement.observed) == (len(must), len(there))
    assert judgement.expected == judgement.observed - judgement.duplicated - judgement.unexpected + judgement.lost
    violated = unexpected or (lost and promise != "none") or (repeated and promise == "exactly-once")
    right = Outcome.UNKNOWN if not must else Outcome.VIOLATED if violated else Outcome.HOLDS
    assert judgement.outcome is right
    assert Verdict.from_json(judgement.as_json()) == judgement


def test_a_torn_line_and_a_value_of_another_type_are_unexpected(store: Store, tmp_path: Path) -> None:
    lines = [visit(1), '{"id": "a2", "n' + visit(3), visit(4, "many")]
    (tmp_path / "out.jsonl").write_text("\n".join(lines))
    found = verdict(store, spec(tmp_path), [visit(number) for number in range(1, 5)])
    assert (found.outcome, found.lost, found.unexpected) == (Outcome.VIOLATED, 3, 2)
    assert found.reason == "lost 3, 2 rows that nothing in orders calls for"
    texts = {example.text for example in found.examples}
    assert "id=a2, n=1: expected 1, there 0" in texts
    assert 'no row of the query\'s types: {"id": "a2", "n{"id": "a3", "n": 1}' in texts


def test_an_output_that_is_not_there_is_unknown(store: Store, tmp_path: Path) -> None:
    found = verdict(store, spec(tmp_path), [visit(1)])
    assert found.outcome is Outcome.UNKNOWN
    assert "does not exist; did the pipeline write anything?" in found.reason


def test_an_empty_topic_and_an_empty_query_do_not_hold(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("")
    empty = verdict(store, spec(tmp_path), [])
    assert (empty.outcome, empty.records["source"]) == (Outcome.UNKNOWN, 0)
    none = verdict(store, spec(tmp_path, sql=f"{SQL} WHERE n > 5"), [visit(1)])
    assert (none.outcome, none.records["source"]) == (Outcome.UNKNOWN, 1)
    assert "the query yields no row" in none.reason


def test_a_query_that_fails_on_a_record_is_unknown(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text(visit(1))
    found = verdict(store, spec(tmp_path), [visit(1), visit(2, "many")])
    assert found.outcome is Outcome.UNKNOWN
    assert found.reason.startswith("expected.sql fails on the records")


def test_a_missing_column_is_named(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text('{"id": "a1", "count": 1}\n')
    with pytest.raises(SpecError, match="has no member 'n' in any line"):
        verdict(store, spec(tmp_path), [visit(1)])
    pipeline = read(write(tmp_path, spec_of(tmp_path, "csv")))
    (tmp_path / "out.csv").write_text("id,count\na1,1\n")
    with pytest.raises(SpecError, match=r"the output has no column 'n', which expected\.sql yields; it has id, count"):
        verdict(store, pipeline, [visit(1)])


def spec_of(folder: Path, reader: str) -> str:
    text = SPEC.format(promise="exactly-once", path=folder / f"out.{reader}", sql=SQL)
    return text.replace('reader = "json"', f'reader = "{reader}"')


def test_csv_parquet_and_packed_lines_are_read(store: Store, tmp_path: Path) -> None:
    source: list[str | bytes] = [visit(1), visit(2), visit(2)]
    (tmp_path / "out.csv").write_text("id,n\na1,1\na2,1\na2,1\n")
    assert verdict(store, read(write(tmp_path, spec_of(tmp_path, "csv"))), source).outcome is Outcome.HOLDS
    store.execute(f"COPY (SELECT id, n::BIGINT AS n FROM observed) TO '{tmp_path}/out.parquet' (FORMAT parquet)")
    assert verdict(store, read(write(tmp_path, spec_of(tmp_path, "parquet"))), source).outcome is Outcome.HOLDS
    with gzip.open(tmp_path / "out.jsonl.gz", "wb") as packed:
        packed.write("\n".join(map(str, source)).encode())
    assert verdict(store, spec(tmp_path, output="out.jsonl.gz"), source).outcome is Outcome.HOLDS


def test_output_sql_makes_the_columns(store: Store, tmp_path: Path) -> None:
    text = SPEC.format(promise="exactly-once", path=tmp_path / "out.jsonl", sql=SQL)
    more = "sql = \"SELECT line->>'$.row.id' AS id, 1 AS n FROM output\""
    (tmp_path / "out.jsonl").write_text('{"row": {"id": "a1"}}\n')
    pipeline = read(write(tmp_path, text.replace("[expected]", f"{more}\n[expected]")))
    assert verdict(store, pipeline, [visit(1)]).outcome is Outcome.HOLDS


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("INT", "2", "1.6"),
        ("DECIMAL(10,2)", "1.00", "1.005"),
        ("DATE", "2026-01-01", "2026-01-01 05:00:00"),
        ("BIGINT", "9007199254740993", "9007199254740993.4"),
    ],
)
def test_a_value_that_loses_something_in_the_querys_type_is_unexpected(
    store: Store, tmp_path: Path, kind: str, right: str, wrong: str
) -> None:
    pipeline = spec(tmp_path, sql=f"SELECT value->>'id' AS id, (value->>'n')::{kind} AS n FROM source")
    for written, outcome in {right: Outcome.HOLDS, wrong: Outcome.VIOLATED}.items():
        (tmp_path / "out.jsonl").write_text(visit(1, written))
        # The query makes the same value of both.
        assert verdict(store, pipeline, [visit(1, written)]).outcome is outcome
    parquet = read(write(tmp_path, spec_of(tmp_path, "parquet").replace("::INT", "::DOUBLE::INT")))
    for typed, outcome in {"2.0": Outcome.HOLDS, "1.6": Outcome.VIOLATED}.items():
        store.execute(f"COPY (SELECT 'a1' AS id, {typed}::DOUBLE AS n) TO '{tmp_path}/out.parquet' (FORMAT parquet)")
        assert verdict(store, parquet, [visit(1, typed)]).outcome is outcome


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [("INT[]", [2], [1.6]), ("STRUCT(a INT)", {"a": 2}, {"a": 1.6}), ("MAP(VARCHAR, INT)", {"int": 2}, {"int": 1.6})],
)
def test_a_number_inside_a_value_loses_nothing(
    store: Store, tmp_path: Path, kind: str, right: object, wrong: object
) -> None:
    pipeline = spec(tmp_path, sql=f"SELECT value->>'id' AS id, (value->'n')::{kind} AS n FROM source")
    for there, outcome in ((right, Outcome.HOLDS), (wrong, Outcome.VIOLATED)):
        (tmp_path / "out.jsonl").write_text(visit(1, there))
        assert verdict(store, pipeline, [visit(1, right)]).outcome is outcome


def test_the_name_of_a_file_is_no_pattern(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "out.csv"
    folder.mkdir()
    for number, name in enumerate(("a?.csv", "ab.csv", "[a]*.csv")):
        (folder / name).write_text(f"id,n\na{number},1\n")
    pipeline = read(write(tmp_path, spec_of(tmp_path, "csv")))
    assert verdict(store, pipeline, [visit(number) for number in range(3)]).outcome is Outcome.HOLDS


@pytest.mark.parametrize(
    ("written", "outcome"),
    [
        ("2026-07-01T10:00:00Z", Outcome.HOLDS), ("2026-07-01 12:00:00+02:00", Outcome.HOLDS),
        ("2026-07-01 10:00:00", Outcome.HOLDS), ("2026-07-01T10:00:00+02:00", Outcome.VIOLATED),
    ],
)  # fmt: skip
def test_a_text_with_the_offset_of_a_zone_is_that_moment(
    store: Store, tmp_path: Path, written: str, outcome: Outcome
) -> None:
    pipeline = spec(tmp_path, sql=SQL.replace("::INT", "::TIMESTAMP"))
    (tmp_path / "out.jsonl").write_text(visit(1, written))
    assert verdict(store, pipeline, [visit(1, "2026-07-01T10:00:00Z")]).outcome is outcome


@pytest.mark.parametrize("name", ["must", "there", "unfit", "Broken_Line"])
def test_a_column_may_have_any_name(store: Store, tmp_path: Path, name: str) -> None:
    pipeline = spec(tmp_path, sql=f"SELECT (value->>'n')::INT AS {name} FROM source")
    (tmp_path / "out.jsonl").write_text(f'{{"{name}": 1}}')
    found = verdict(store, pipeline, [visit(1, 1), visit(2, 0)])
    assert (found.outcome, found.lost, found.unexpected) == (Outcome.VIOLATED, 1, 0)


def test_csv_is_read_as_it_is_written(store: Store, tmp_path: Path) -> None:
    """No line is skipped by a guess, and an empty text is no NULL."""
    torn = spec_of(tmp_path, "csv").replace('path = "', 'header = false\npath = "')
    (tmp_path / "out.csv").write_text("a1\na2,1\n")
    found = verdict(store, read(write(tmp_path, torn)), [visit(2)])
    assert found.outcome is Outcome.UNKNOWN
    assert found.reason.startswith(f"output {tmp_path}/out.csv cannot be read as csv: ")
    pipeline = read(write(tmp_path, spec_of(tmp_path, "csv").replace("(value->>'n')::INT", "value->>'n'")))
    for field, number in {'""': "", "": None}.items():
        (tmp_path / "out.csv").write_text(f"id,n\na1,{field}\n")
        assert verdict(store, pipeline, [visit(1, number)]).outcome is Outcome.HOLDS
    (tmp_path / "out.csv").write_text('id,n\na1,""\n')
    assert verdict(store, pipeline, [visit(1, None)]).outcome is Outcome.VIOLATED
    spark = spec_of(tmp_path, "csv").replace("(value->>'n')::INT", "value->>'n'")
    spark = spark.replace('reader = "csv"', 'reader = "csv"\nescape = "\\\\"')
    (tmp_path / "out.csv").write_text('id,n\na1,"a \\"quote\\", and more"\n')
    assert verdict(store, read(write(tmp_path, spark)), [visit(1, 'a "quote", and more')]).outcome is Outcome.HOLDS


def test_a_member_that_is_always_null_may_be_left_out(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text('{"id": "a1"}\n')
    assert verdict(store, spec(tmp_path), [visit(1, None)]).outcome is Outcome.HOLDS


def test_rows_that_are_alike_are_a_note(store: Store, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text(f"{visit(1)}\n{visit(1)}\n")
    found = verdict(store, spec(tmp_path), [visit(1), visit(1)])
    assert "1 expected row like another one" in "".join(found.notes)


def test_times_with_a_zone_are_compared_in_utc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        with open_store(in_memory=True) as store:
            zoned = "SELECT 'a1' AS id, TIMESTAMPTZ '2026-07-01 10:00:00Z' AS n"
            store.execute(f"COPY ({zoned}) TO '{tmp_path}/out.parquet' (FORMAT parquet)")
            text = spec_of(tmp_path, "parquet").replace("::INT", "::TIMESTAMP")
            found = verdict(store, read(write(tmp_path, text)), [visit(1, "2026-07-01 10:00:00")])
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found.outcome is Outcome.HOLDS


def test_only_files_that_the_log_of_sparks_sink_names_are_read(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    (folder / "_spark_metadata").mkdir(parents=True)
    name = "part-00000-11111111-1111-1111-1111-111111111111-c000.json"
    (folder / name).write_text(visit(1) + "\n")
    (folder / name.replace("1111-c", "2222-c")).write_text(visit(1) + "\n")
    entry = {"path": (folder / name).as_uri(), "size": (folder / name).stat().st_size, "action": "add"}
    (folder / "_spark_metadata" / "0").write_text(f"v1\n{json.dumps(entry)}")
    (folder / "backup.json").write_text(visit(1) + "\n")
    found = verdict(store, spec(tmp_path, output="out"), [visit(1)])
    assert found.outcome is Outcome.HOLDS
    assert "1 files are not in _spark_metadata, as backup.json: readers skip them" in found.notes
    assert "1 files of interrupted batches are not in _spark_metadata: readers skip them" in found.notes


def test_json_has_the_columns_that_names_of_folders_say(store: Store, tmp_path: Path) -> None:
    for name, n in (("id=a%3A1", 1), ("id=__HIVE_DEFAULT_PARTITION__", 2)):
        (tmp_path / "out" / name).mkdir(parents=True)
        (tmp_path / "out" / name / "part-0.json").write_text(json.dumps({"n": n}) + "\n")
    sql = "SELECT value->>'id' AS id, (value->>'n')::INT AS n FROM source"
    written: list[str | bytes] = ['{"id": "a:1", "n": 1}', '{"id": null, "n": 2}']
    assert verdict(store, spec(tmp_path, sql=sql, output="out"), written).outcome is Outcome.HOLDS
    (tmp_path / "out" / "id=a%3A1" / "part-0.json").write_text('{"id": "a9", "n": 1}\n{"id": "a9", "n": 1}\n')
    found = verdict(store, spec(tmp_path, sql=sql, output="out"), written)
    assert (found.outcome, found.counts["duplicated"]) == (Outcome.VIOLATED, 1)


def test_a_value_that_is_no_text_is_refused_and_can_be_read_as_bytes() -> None:
    batch = batch_of(records([b"\xff", "a"]))
    with pytest.raises(Unknown, match=r"is not UTF-8; set binary = true"):
        text_rows(batch)
    assert binary_rows(batch).column("value").to_pylist() == [b"\xff", b"a"]
