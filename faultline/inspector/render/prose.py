"""A Report in sentences: plain text, one fact per line, the restart last because it matters most."""

from __future__ import annotations

import re
import time
from collections import Counter

from faultline.inspector.growth import sentence
from faultline.inspector.held_back import FATES
from faultline.inspector.model import CheckpointStep, Lag, Operator, Report, StateStore, Transaction, Window
from faultline.inspector.words import age_words, count, offset_words, size_words, time_words

SHOWN_CONFIGURATION = (
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.stateStore.providerClass",
    "spark.sql.streaming.multipleWatermarkPolicy",
)
"""Of the dozen settings that Spark pins, those that users most often want to change and cannot."""

END_OF_INPUT = 2**63 - 1
"""The checkpoint of what a sink of Flink prepared after its last record (CommittableMessage.EOI)."""
PLAN_NUMBER = re.compile(r"\[\d+\]|\$\d+")
"""The numbers that the SQL planner puts into names: `Calc[14]`."""


def restart_sentence(report: Report) -> str:
    """Return the sentence on the restart, lag included; each other thing that it does is a line below."""
    if report.restart is None:
        return ""
    parts = [report.restart.sentence]
    if report.lag:
        behind = sum(lag.records for lag in report.lag)
        topics = {lag.topic for lag in report.lag}
        noun = next(iter(topics)).removesuffix("s") if topics == {"visits"} else "record"
        at_most = "at most " if any(lag.empty is None for lag in report.lag) else ""
        parts.append(f"{at_most}{count(behind, noun)} arrived since")
    first, others = report.restart.details[:1], report.restart.details[1:]
    sentences = ["; ".join([*parts, *first]), *filter(None, [report.restart.transactions]), *others]
    sentences += [
        f"with {_releases(report, each.releases, 'and')} {each.sentence[0].lower()}{each.sentence[1:]}"
        for each in report.restart.elsewhere
    ]
    return "\n".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences)


def _releases(report: Report, which: list[str], word: str) -> str:
    *others, last = which
    return (
        f"{report.engine.capitalize()} {', '.join(others)} {word} {last}"
        if others
        else f"{report.engine.capitalize()} {last}"
    )


def format_line(report: Report) -> str:
    """Say which release wrote it, as far as that can be seen, and the versions of its files; empty when not known."""
    found = [f"{name} {version}" for name, version in report.formats.items()]
    if report.releases:
        found.insert(0, f"written by {_releases(report, report.releases, 'or')}, by what it holds")
    elif report.formats:
        found.insert(0, f"written by a release of {report.engine.capitalize()} that is not known here")
    return "; ".join(found)


def headline(report: Report) -> str:
    """Say what it is, whose it is, and how much of it there is."""
    if report.engine == "spark":
        counts = report.counts
        if not counts.get("batches"):
            return f"Spark query {report.id or '(id not known)'} in {report.path}: no batch was planned yet"
        open_batches = counts["batches"] - counts["committed"]
        return (
            f"Spark query {report.id or '(id not known)'} in {report.path}: {count(counts['batches'], 'batch')}"
            f" on record, {counts['first']} to {counts['last']}; {counts['committed']} committed,"
            f" {open_batches} planned and not committed"
        )
    if report.kind == "folder":
        opened = "; opened: the newest restorable" if report.counts["complete"] else ""
        return (
            f"Flink checkpoints in {report.path}: {report.counts['folders']} of them,"
            f" {report.counts['complete']} complete{opened}"
        )
    return f"Flink {report.kind} {report.id or ''} in {report.path}".replace("  ", " ")


def step_name(report: Report, step: CheckpointStep) -> str:
    """A checkpoint's name below the folder of the report: the same number may be in the folders of several jobs."""
    return step.path.removeprefix(f"{report.path}/") if report.kind == "folder" else step.name


def step_line(report: Report, step: CheckpointStep) -> str:
    """One batch or checkpoint in a line."""
    if report.engine == "spark":
        state = {"planned": "planned, not committed"}.get(step.state, step.state)
        start = f"{step.name}, {state}"
        if step.state == "unreadable" or (step.state == "unknown" and not step.sources):
            return f"{start}: {step.reason}"
        if step.state == "unknown":
            start += f" ({step.reason}; shown as far as it reads like a version that is known)"
        watermark = f", watermark {time_words(step.watermark)}" if step.watermark else ""
        sources = "; ".join(source.words for source in step.sources)
        return f"{start}, planned at {time_words(step.at)}{watermark}: {sources}"
    state = {"complete": "complete", "incomplete": f"not complete: {step.reason}"}.get(
        step.state, f"{step.state}: {step.reason}"
    )
    age = age_words(max(0.0, time.time() - (step.at or 0) / 1000))
    sources = "; ".join(source.words for source in step.sources)
    line = f"{step_name(report, step)}, {state}, {size_words(step.size or 0)}, {age} old"
    return f"{line}: {sources}" if sources else line


def fact_lines(report: Report) -> list[str]:
    """The parts of an offset of the newest step, where they need explaining: Delta, rate."""
    sources = report.steps[-1].sources if report.steps else []
    described = [source for source in sources if source.kind in ("delta", "rate")]
    lines = [f"{source.kind} {name}: {words}" for source in described for name, words in source.facts.items()]
    return lines + [f"{name}: {words}" for name, words in (report.steps[-1].facts if report.steps else {}).items()]


def operator_lines(operator: Operator) -> list[str]:
    """One operator and its states; what each holds below it."""
    facts = []
    if operator.uid and operator.name and operator.uid != operator.name:
        facts.append(f"name {operator.name}")
    if operator.uid is None and operator.name:
        facts.append(f"no uid, hash {operator.id}" if operator.parallelism else f"number {operator.id}")
    if operator.parallelism is not None:
        facts.append(f"parallelism {operator.parallelism} of at most {operator.max_parallelism}")
    if operator.words:
        facts.append(operator.words)
    if operator.state_bytes is not None:
        facts.append(f"{size_words(operator.state_bytes)} of state")
    if operator.watermark is not None:
        facts.append(f"watermark {time_words(operator.watermark)}")
    lines = [f"operator {operator.label}: {', '.join(facts)}"]
    for store in filter(is_telling, operator.state):
        lines += [f"  {line}" for line in store_lines(store)]
    return lines


def is_telling(store: StateStore) -> bool:
    """Return whether it is worth showing: every keyed operator has timers, mostly none of them set."""
    return store.kind != "timers" or store.keys != 0


def window_words(window: Window) -> str:
    """`14 keys, 41 visits`; the visits only where the state has them."""
    visits = [] if window.visits is None else [count(window.visits, "visit")]
    return ", ".join([count(window.keys, "key"), *visits])


def is_folded(operator: Operator) -> bool:
    """Return whether it shares one line with others: nothing is to say of it, as of most steps of an SQL plan."""
    has_something = operator.state or operator.state_bytes or operator.words
    return not has_something and operator.uid is None and operator.name is not None


def folded_line(report: Report) -> str:
    """The operators without state in one line, by name and number; empty when there are none."""
    names = [
        PLAN_NUMBER.sub("", operator.name or "").strip("*") for operator in report.operators if is_folded(operator)
    ]
    if not names:
        return ""
    kinds = ", ".join(f"{number} {name}" for name, number in Counter(names).most_common())
    return f"and {count(len(names), 'operator')} without state, of which a restore needs nothing: {kinds}"


def store_lines(store: StateStore) -> list[str]:
    """One state: how much it holds, its open windows, a preview."""
    facts = [] if store.keys is None else [count(store.keys, "timer" if store.kind == "timers" else "entry")]
    facts += [count(store.partitions, "partition")] if store.partitions is not None else []
    facts += [store.note] if store.note else []
    lines = [f"state {store.name} ({store.kind}): {', '.join(facts)}"]
    if store.windows:
        lines.append(f"  {count(len(store.windows), 'open window')}:")
        for window in store.windows[-10:]:
            start = "" if window.start is None else f"from {time_words(window.start)} "
            lines.append(f"    {start}to {time_words(window.end)}: {window_words(window)}")
    for row in store.rows:
        shown = {name: time_words(int(text)) if name == "window_end" else text for name, text in row.items()}
        words = [f"{name.replace('_', ' ')} {text}" for name, text in shown.items()]
        lines.append("  " + ", ".join(words).replace(", value visits ", ", visits "))
    return lines


def transaction_line(transaction: Transaction) -> str:
    """One transaction, and what became of it where a broker said so."""
    became = f"; {FATES[transaction.fate]}" if transaction.fate else ""
    what = "the end of its input" if transaction.checkpoint == END_OF_INPUT else f"checkpoint {transaction.checkpoint}"
    return (
        f"transaction {transaction.transactional_id}: prepared for {what},"
        f" producer {transaction.producer_id}, epoch {transaction.epoch}{became}"
    )


def configuration_line(report: Report) -> str:
    """Say what the log pins for the whole life of the checkpoint; empty when nothing."""
    shown = {
        name: value
        for name, value in report.configuration.items()
        if report.engine == "flink" or name in SHOWN_CONFIGURATION
    }
    hidden = len(report.configuration) - len(shown)
    more = f" and {count(hidden, 'more setting')} (--json shows all)" if hidden else ""
    return ", ".join(f"{name} = {value.rpartition('.')[2]}" for name, value in shown.items()) + more


def lag_lines(report: Report) -> list[str]:
    """Each partition's distance to the topic's end."""
    return [
        f"{lag.topic} partition {lag.partition}: at {offset_words(lag.position)}, end {lag.end}, {lag_words(lag)}"
        for lag in report.lag
    ]


def lag_words(lag: Lag) -> str:
    """`lag 37`, of records; offsets that hold none are named, and what was not looked at is no lag."""
    if lag.empty is None:
        return f"{lag.end - lag.position} offsets behind, not counted how many hold a record"
    empty = f", and {count(lag.empty, 'offset')} without a record (ends of transactions)" if lag.empty else ""
    return f"lag {lag.records}{empty}"


def render(report: Report) -> str:
    """Return the whole report as text, without a newline at its end."""
    lines = [headline(report), *filter(None, [format_line(report)])]
    total = report.counts.get("batches", report.counts.get("folders", len(report.steps)))
    if total > len(report.steps):
        lines.append(f"the last {len(report.steps)}, --all shows each:")
    lines += [f"  {step_line(report, step)}" for step in report.steps]
    lines += [f"    {line}" for line in fact_lines(report)]
    for operator in report.operators:
        lines += [] if is_folded(operator) else operator_lines(operator)
    lines += list(filter(None, [folded_line(report)]))
    lines += map(transaction_line, report.transactions)
    if report.sink:
        lines.append(f"sink {report.sink.path}: {report.sink.words}")
    lines += [f"growth of {sentence(growth)}" for growth in report.growth]
    if report.configuration:
        lines.append(f"{'pinned' if report.engine == 'spark' else 'job'}: {configuration_line(report)}")
    lines += lag_lines(report)
    lines += [f"note: {note}" for note in report.notes]
    lines += [f"PROBLEM: {problem}" for problem in report.problems]
    if report.restart:
        lines += ["", restart_sentence(report)]
    return "\n".join(lines)
