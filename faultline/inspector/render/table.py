"""A Report as tables with colour, for a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from faultline.inspector.growth import sentence
from faultline.inspector.model import Operator, Report, StateStore
from faultline.inspector.render.prose import (
    configuration_line,
    fact_lines,
    folded_line,
    format_line,
    headline,
    is_folded,
    is_telling,
    lag_words,
    restart_sentence,
    step_name,
    transaction_line,
)
from faultline.inspector.words import age_words, offset_words, size_words, time_words

STATE_STYLES = {
    "committed": "green",
    "complete": "green",
    "planned": "yellow",
    "incomplete": "yellow",
    "unknown": "yellow",
}


def _text(content: str, style: str = "") -> Text:
    """Text as it is: paths and states hold brackets that rich would take for markup."""
    return Text(content, style=style)


def spark_steps(report: Report) -> Table:
    """One row for each batch and Kafka partition, one for any other source."""
    table = Table("batch", "state", "planned at", "watermark", "source", "from", "to", "rows", title="Batches")
    for step in report.steps:
        first = [
            _text(str(step.number)),
            _text(step.state, STATE_STYLES.get(step.state, "red")),
            _text(time_words(step.at)),
            _text(time_words(step.watermark)),
        ]
        if not step.sources:
            table.add_row(*first, _text(step.reason))
        for source in step.sources:
            if not source.partitions:
                table.add_row(*first, _text(source.words))
                first = [_text("")] * 4
            for partition in source.partitions:
                table.add_row(
                    *first,
                    _text(f"{partition.topic} {partition.partition}"),
                    _text(offset_words(partition.start)),
                    _text(offset_words(partition.end)),
                    _text("" if partition.rows is None else str(partition.rows)),
                )
                first = [_text("")] * 4
    return table


def flink_steps(report: Report) -> Table:
    """One row for each checkpoint folder."""
    table = Table("name", "state", "completed at", "age", "size", "why not / offsets", title="Checkpoints")
    for step in report.steps:
        table.add_row(
            _text(step_name(report, step)),
            _text(step.state, STATE_STYLES.get(step.state, "red")),
            _text(time_words(step.at)),
            _text(age_words(max(0.0, time.time() - (step.at or 0) / 1000))),
            _text(size_words(step.size or 0)),
            _text(step.reason or "; ".join(source.words for source in step.sources)),
        )
    return table


def _state(store: StateStore) -> str:
    keys = "" if store.keys is None else f": {store.keys}"
    windows = f", {len(store.windows)} open windows" if store.windows else ""
    return f"{store.name} ({store.kind}){keys}{windows}"


def operators(report: Report) -> Table:
    """One row for each operator."""
    table = Table("operator", "name or hash", "parallelism", "state", "watermark", "holds", title="Operators")
    for operator in report.operators:
        if not is_folded(operator):
            table.add_row(*_operator(operator))
    return table


def _operator(operator: Operator) -> list[Text]:
    parallel = "" if operator.parallelism is None else f"{operator.parallelism} of {operator.max_parallelism}"
    name = operator.name if operator.uid and operator.name else operator.id
    return [
        _text(operator.label),
        _text(name),
        _text(parallel),
        _text("" if operator.state_bytes is None else size_words(operator.state_bytes)),
        _text("" if operator.watermark is None else time_words(operator.watermark)),
        _text("\n".join(filter(None, [operator.words, *map(_state, filter(is_telling, operator.state))]))),
    ]


def windows(report: Report) -> Table | None:
    """Open windows of all operators; None when there are none."""
    table = Table("operator", "state", "window starts", "window ends", "keys", "visits", title="Open windows")
    for operator in report.operators:
        for store in operator.state:
            for window in store.windows:
                start = "" if window.start is None else time_words(window.start)
                visits = "" if window.visits is None else str(window.visits)
                table.add_row(
                    _text(operator.label), _text(store.name), start, time_words(window.end), str(window.keys), visits
                )
    return table if table.row_count else None


def previews(report: Report) -> Table | None:
    """Rows of state; None when there are none."""
    table = Table("operator", "state", "key", "window ends", "entry", "value", title="A preview of the state")
    for operator in report.operators:
        for store in operator.state:
            for row in store.rows:
                end = time_words(int(row["window_end"])) if "window_end" in row else ""
                key, entry, value = (_text(row.get(name, "")) for name in ("key", "entry", "value"))
                table.add_row(_text(operator.label), _text(store.name), key, end, entry, value)
    return table if table.row_count else None


def lag(report: Report) -> Table | None:
    """Each partition's distance to the topic's end; None when it was not asked for."""
    table = Table("topic", "partition", "goes on at", "end", "lag", title="Lag")
    for each in report.lag:
        table.add_row(each.topic, str(each.partition), str(each.position), str(each.end), lag_words(each))
    return table if table.row_count else None


def render(report: Report, console: Console) -> None:
    """Print the report; the restart comes last, in bold."""
    console.print(_text(headline(report), "bold"))
    if format_line(report):
        console.print(_text(format_line(report), "dim"))
    if report.steps:
        console.print(spark_steps(report) if report.engine == "spark" else flink_steps(report))
    for line in fact_lines(report):
        console.print(_text(f"  {line}"))
    for table in (operators(report) if report.operators else None, windows(report), previews(report), lag(report)):
        if table is not None:
            console.print(table)
    for line, style in _lines(report):
        console.print(_text(line, style))
    if report.restart:
        console.print(_text(restart_sentence(report), "bold cyan"))


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what needs no table, with its style."""
    if folded_line(report):
        yield folded_line(report), "dim"
    for transaction in report.transactions:
        yield transaction_line(transaction), "bold red" if transaction.fate == "aborted" else ""
    if report.sink:
        yield f"sink {report.sink.path}: {report.sink.words}", ""
    for growth in report.growth:
        yield f"growth of {sentence(growth)}", ""
    if report.configuration:
        yield configuration_line(report), "dim"
    for note in report.notes:
        yield f"note: {note}", "dim"
    for problem in report.problems:
        yield f"PROBLEM: {problem}", "bold red"
