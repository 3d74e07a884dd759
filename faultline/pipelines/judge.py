"""Compares the rows that a pipeline must write with those that it wrote, as multisets, and makes the verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

from faultline.formats.verdict import Finding, Outcome, Verdict
from faultline.pipelines.readers import reader_of
from faultline.pipelines.readers.files import BROKEN, LINES, in_a_line, is_nested, sql_name
from faultline.pipelines.readers.topic import BINARY, KEPT, TEXT, load_topic
from faultline.pipelines.spec import AT_LEAST_ONCE, EXACTLY_ONCE, NONE, Pipeline, SpecError
from faultline.verdict.checker import Stopwatch, source_spans
from faultline.verdict.cluster import Cluster
from faultline.verdict.escape import name_of, printable
from faultline.verdict.model import Unknown, first_findings, plural, unknown
from faultline.verdict.store import Store

CATEGORIES = ("expected", "observed", "lost", "duplicated", "unexpected")
"""The counts of a pipeline's verdict."""

_MUST, _THERE, _UNFIT = map(sql_name, ("rows expected", "rows there", "no row of these types"))
"""Columns beside those of a query, by names that no query is likely to use."""
_DECIMAL = "DECIMAL(38,12)"
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_NUMBERS = re.compile(rf'"[^"]*"|\b(?:{"|".join(_WHOLE)}|DECIMAL\(\d+,\d+\))(?=[^\w(]|$)')
"""In the name of a nested type: a quoted name of a field, or a type of numbers that a cast rounds to."""
_WITH_ZONE = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS")


@dataclass(frozen=True)
class Counts:
    """Rows of the multisets: those that follow from the source, those that are written, and the differences.

    `alike`: expected rows that are like another one.
    """

    expected: int
    observed: int
    lost: int
    repeated: int
    unexpected: int
    alike: int


def columns_of(store: Store, pipeline: Pipeline) -> dict[str, str]:
    """Check the query on an empty table `source`; returns name and type of its columns. Raises SpecError."""
    store.create("source", BINARY if pipeline.source.binary else TEXT)
    columns, output = _columns(store, pipeline, "expected.sql", pipeline.expected.sql), pipeline.output
    if output.sql and output.reader in ("json", "kafka"):
        # The columns of the others are known once the output is there.
        store.create("output", LINES if output.reader == "json" else BINARY if output.binary else TEXT)
        _columns(store, pipeline, "output.sql", output.sql)
    for name, kind in columns.items() if output.reader == "postgres" and not output.sql else ():
        if kind == "BLOB" or is_nested(kind):
            raise SpecError(
                f"{pipeline.file}: column {name!r} of expected.sql is of type {kind}, and Postgres is read as text,"
                " which has other forms of it; yield its parts (->>), or make the column by output.sql"
            )
    return columns


def _columns(store: Store, pipeline: Pipeline, key: str, query: str) -> dict[str, str]:
    try:
        found = duckdb.extract_statements(query)
        if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
            raise SpecError(f"{pipeline.file}: {key} is not one SELECT; write one query, without others behind it")
        described = store.rows(f"DESCRIBE ({_bare(query)})")
    except duckdb.Error as error:
        raise SpecError(f"{pipeline.file}: {key} is no valid query: {in_a_line(error)}") from None
    # For DuckDB, the case of a name makes no difference.
    names = [str(row[0]).lower() for row in described]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise SpecError(f"{pipeline.file}: {key} has the column {repeated[0]!r} twice; give one another name (AS)")
    return {str(row[0]): str(row[1]) for row in described}


def _bare(query: str) -> str:
    return query.strip().rstrip(";") + "\n"


def _changed(quoted: str, written: str, kind: str) -> list[str]:
    """Return the condition under which a value loses something in the query's type: 1.6 is not the 2 that it casts to.

    `written`: its type in the output, in which it is compared; a text is compared as a decimal or a time, and the whole
    numbers and decimals in a nested value as decimals.
    """
    if kind in (written, "JSON"):
        return []
    wide = written
    if is_nested(kind):
        wide = _NUMBERS.sub(lambda found: found[0] if found[0].startswith('"') else _DECIMAL, kind)
        if wide == kind:
            return []
    elif is_nested(written):
        return []
    elif written == "VARCHAR":
        if kind in _WHOLE or kind.startswith("DECIMAL"):
            wide = _DECIMAL
        elif kind == "DATE":
            wide = "TIMESTAMP"
        else:
            return []
    return [f"TRY_CAST({quoted} AS {wide}) <> TRY_CAST(TRY_CAST({quoted} AS {kind}) AS {wide})"]


class Judge:
    """Judges one pipeline, as often as it is asked."""

    def __init__(self, store: Store, pipeline: Pipeline) -> None:
        """Check the query. Raises SpecError."""
        self._store, self._pipeline = store, pipeline
        self._columns = columns_of(store, pipeline)
        self._clock = Stopwatch()
        self._records: dict[str, int] = {}
        self._notes: list[str] = []

    def read_source(self) -> None:
        """Read the topic up to its present end, and run the query over it. Raises Unknown."""
        source, store = self._pipeline.source, self._store
        cluster = Cluster(source.bootstrap)
        with self._clock.measure("reading"):
            spans = source_spans(cluster, source.topic, caught_up=True, remedy=KEPT)
            load_topic(store, "source", cluster, source.topic, spans, binary=source.binary)
            counted = [
                store.numbers("SELECT count(*) FROM source WHERE partition = $number", number=each) for each in spans
            ]
        by_partition = {f"in partition {each}": count for each, (count,) in zip(spans, counted, strict=True)}
        self._records = {"source": sum(by_partition.values()), **by_partition}
        with self._clock.measure("judging"):
            self._run("expected", self._pipeline.expected.sql, "expected.sql")

    def _run(self, table: str, query: str, key: str) -> None:
        try:
            self._store.execute(f"CREATE OR REPLACE TABLE {table} AS {_bare(query)}")
        except duckdb.Error as error:
            raise Unknown(f"{key} fails on the records: {in_a_line(error)}; correct the query") from None

    def compare(self) -> Counts:
        """Read the output, and compare. Raises Unknown when it cannot be read, SpecError when a column is missing."""
        output, store = self._pipeline.output, self._store
        with self._clock.measure("reading"):
            self._notes = reader_of(output).load(store, output, self._columns)
        with self._clock.measure("judging"):
            if output.sql:
                _columns(store, self._pipeline, "output.sql", output.sql)
                self._run("output_made", output.sql, "output.sql")
                store.execute("CREATE OR REPLACE TABLE output AS FROM output_made")
            try:
                self._fit()
                return self._count()
            except duckdb.Error as error:
                file = self._pipeline.file
                raise Unknown(f"{file}: the output cannot be set against expected.sql: {in_a_line(error)}") from None

    def _fit(self) -> None:
        """Make table `observed`: the columns of the query in their types; _UNFIT says why a row has none of them."""
        there = {str(row[0]): str(row[1]) for row in self._store.rows("DESCRIBE output")}
        for name in self._columns:
            if name not in there:
                have = ", ".join(each for each in there if each != BROKEN)
                file = self._pipeline.file
                raise SpecError(f"{file}: the output has no column {name!r}, which expected.sql yields; it has {have}")
        broken = sql_name(BROKEN)
        fitted, unfit = [], [f"{broken} IS NOT NULL"] if BROKEN in there else []
        for name, kind in self._columns.items():
            quoted = sql_name(name)
            # A text may have the offset of a zone, which a cast to a time without one leaves out.
            has_zone = there[name] == "VARCHAR" and kind in _WITH_ZONE
            value = f"TRY_CAST({quoted} AS TIMESTAMPTZ)" if has_zone else quoted
            fitted.append(f"TRY_CAST({value} AS {kind}) AS {quoted}")
            unfit.append(f"({quoted} IS NOT NULL AND TRY_CAST({value} AS {kind}) IS NULL)")
            unfit += _changed(quoted, there[name], kind)
        raw = ", ".join(f"{sql_name(name)}::VARCHAR" for name in self._columns)
        shown = f"concat_ws(', ', {raw})"
        shown = f"coalesce({broken}, {shown})" if BROKEN in there else shown
        self._store.execute(
            f"CREATE OR REPLACE TABLE observed AS SELECT {', '.join(fitted)}, "
            f"CASE WHEN {' OR '.join(unfit)} THEN {shown} END AS {_UNFIT} FROM output"
        )

    def _count(self) -> Counts:
        store, names = self._store, ", ".join(map(sql_name, self._columns))
        # GROUP BY takes NULLs for equal, as a multiset of rows does.
        store.execute(
            f"CREATE OR REPLACE TABLE differing AS "
            f"SELECT {names}, sum({_MUST})::BIGINT AS {_MUST}, sum({_THERE})::BIGINT AS {_THERE} "
            f"FROM (SELECT {names}, 1 AS {_MUST}, 0 AS {_THERE} FROM expected UNION ALL "
            f"SELECT {names}, 0, 1 FROM observed WHERE {_UNFIT} IS NULL) GROUP BY {names} "
            f"HAVING sum({_MUST}) <> sum({_THERE}) OR sum({_MUST}) > 1"
        )
        (expected,) = store.numbers("SELECT count(*) FROM expected")
        observed, unfit = store.numbers(f"SELECT count(*), count({_UNFIT}) FROM observed")
        lost, repeated, unexpected, alike = store.numbers(
            f"SELECT sum({_MUST} - {_THERE}) FILTER ({_MUST} > {_THERE}), "
            f"sum({_THERE} - {_MUST}) FILTER ({_MUST} > 0 AND {_THERE} > {_MUST}), "
            f"sum({_THERE}) FILTER ({_MUST} = 0), sum({_MUST} - 1) FILTER ({_MUST} > 1) FROM differing"
        )
        return Counts(expected, observed, lost, repeated, unexpected + unfit, alike)

    def verdict(self) -> Verdict:
        """Read the source and the output, and judge. Raises SpecError when the file and the output do not fit."""
        try:
            self.read_source()
            counts = self.compare()
        except Unknown as cause:
            return unknown(self._pipeline.name, str(cause))
        outcome, reason = decide(self._pipeline, counts, self._records["source"])
        return Verdict(
            self._pipeline.name, outcome, reason,
            expected=counts.expected, observed=counts.observed, lost=counts.lost, duplicated=counts.repeated,
            unexpected=counts.unexpected, examples=first_findings(self._findings, ("lost", "duplicated", "unexpected")),
            notes=(*self._notes, *_alike(counts.alike)), records=self._records, seconds=self._clock.seconds,
        )  # fmt: skip

    def _findings(self, category: str) -> Iterator[Finding]:
        """Yield the rows of a category."""
        where = {
            "lost": f"{_MUST} > {_THERE}", "duplicated": f"{_MUST} > 0 AND {_THERE} > {_MUST}",
            "unexpected": f"{_MUST} = 0",
        }[category]  # fmt: skip
        shown = ", ".join(f"{sql_name(name)}::VARCHAR" for name in self._columns)
        rows = self._store.stream(f"SELECT {_MUST}, {_THERE}, {shown} FROM differing WHERE {where} ORDER BY ALL")
        for must, there, *values in rows:
            row = {
                name: None if value is None else str(value) for name, value in zip(self._columns, values, strict=True)
            }
            words = ", ".join(f"{name}={printable(name_of(str(value)))}" for name, value in row.items())
            text = f"{words}: expected {must}, there {there}"
            yield Finding(category, text, {"row": row, "expected": must, "observed": there})
        if category == "unexpected":
            for (line,) in self._store.stream(f"SELECT {_UNFIT} FROM observed WHERE {_UNFIT} IS NOT NULL"):
                text = f"no row of the query's types: {printable(name_of(str(line)))}"
                yield Finding(category, text, {"line": str(line)})


def _alike(rows: int) -> list[str]:
    """Say how many expected rows are like another one; nothing where there are none."""
    if not rows:
        return []
    return [
        f"{plural(rows, 'expected row')} like another one: if one is lost and the other repeated, the counts do not"
        " show it; let expected.sql yield an id"
    ]


def decide(pipeline: Pipeline, counts: Counts, records: int) -> tuple[Outcome, str]:
    """Return the outcome of the counts under the promise of a pipeline, and its reason."""
    topic, promise = pipeline.source.topic, pipeline.promise
    if not records:
        return Outcome.UNKNOWN, f"topic {topic} is empty, so nothing is proven; feed it, and judge again"
    faults = [
        f"lost {counts.lost:,}" if counts.lost and promise != NONE else "",
        f"repeated {counts.repeated:,}" if counts.repeated and promise == EXACTLY_ONCE else "",
        f"{plural(counts.unexpected, 'row')} that nothing in {topic} calls for" if counts.unexpected else "",
    ]
    if any(faults):
        return Outcome.VIOLATED, ", ".join(filter(None, faults))
    if not counts.expected:
        return Outcome.UNKNOWN, f"the query yields no row of {plural(records, 'record')} of {topic}: nothing is proven"
    if promise == NONE:
        return Outcome.HOLDS, f"lost {counts.lost:,}, repeated {counts.repeated:,}: nothing is promised"
    if promise == AT_LEAST_ONCE and counts.repeated:
        return Outcome.HOLDS, f"every row that follows from {topic} is there; repeated {counts.repeated:,}"
    return Outcome.HOLDS, f"every row that follows from {topic} is there once"
