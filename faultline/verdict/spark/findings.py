"""Every fault of the output as a finding: which visit, where it was sent, and where its line is."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from faultline.formats.verdict import CATEGORIES, Finding
from faultline.formats.visit import iso_time, parse_visit
from faultline.verdict.checker import Stopwatch
from faultline.verdict.escape import name_of, printable, shown
from faultline.verdict.loading import TopicReader
from faultline.verdict.model import EXAMPLES_PER_CATEGORY, Judgement
from faultline.verdict.source.reader import NOT_READ_AGAIN, Position, with_records
from faultline.verdict.spark.cases import Case, cases_of
from faultline.verdict.spark.judge import SparkFacts, judge, missing_file
from faultline.verdict.spark.lines import Text, line_at
from faultline.verdict.store import Store

_CASES_AT_ONCE = 20_000
_TEXT_BYTES = 1 << 20
"""Longer lines are not parsed for names."""


def judgement(store: Store, reader: TopicReader, facts: SparkFacts, clock: Stopwatch) -> Judgement:
    """Judge tables that are filled; `reader` fetches the records that findings are about."""
    with clock.measure("judging"):
        verdict = judge(store, facts)
        findings = SparkFindings(store, facts, reader)
        examples = findings.first({category for category in CATEGORIES if getattr(verdict, category)})
    return Judgement(replace(verdict, examples=tuple(examples), seconds=dict(clock.seconds)), findings.of)


@dataclass
class SparkFindings:
    """The findings behind a verdict, from the tables that the judge leaves."""

    store: Store
    facts: SparkFacts
    reader: TopicReader
    _broker_is_gone: bool = field(default=False, init=False)

    def of(self, category: str) -> Iterator[Finding]:
        """Yield all findings of a category by place: those about a whole file, then one finding per record.

        A missing file is a finding without a count; all other findings add up to the verdict's counts, where one
        finding of a duplicated record counts for all its copies.
        """
        yield from self._of_files(category)
        cases = cases_of(self.store, category)
        while some := list(islice(cases, _CASES_AT_ONCE)):
            yield from self._describe(some)

    def first(self, counted: Container[str]) -> list[Finding]:
        """Return the first few findings of each category, with one read of the topic for all of them.

        `counted` are the categories that have findings of records.
        """
        found = {category: list(islice(self._of_files(category), EXAMPLES_PER_CATEGORY)) for category in CATEGORIES}
        cases: list[Case] = []
        for category in CATEGORIES:
            wanted = EXAMPLES_PER_CATEGORY - len(found[category])
            if wanted and category in counted:
                cases += cases_of(self.store, category, wanted)
        for finding in self._describe(cases):
            found[finding.category].append(finding)
        return [finding for category in CATEGORIES for finding in found[category]]

    def _of_files(self, category: str) -> Iterator[Finding]:
        if category == "lost":
            for name, batch in self.facts.output.missing.items():
                yield Finding("lost", missing_file(name, batch), {"file": name, "batch": batch})
        if category == "unexpected":
            for name, kind in sorted(self.facts.output.special.items()):
                yield Finding("unexpected", f"{printable(name)} is {kind}, not a file of lines", {"file": name})

    def _describe(self, cases: list[Case]) -> Iterator[Finding]:
        known = self._visits({case.record for case in cases if case.record is not None})
        for case in cases:
            if case.record is None:
                yield self._strange(case)
                continue
            partition, offset = case.record
            names = known.get(case.record)
            about = {**(names or {}), "topic": self.facts.places.topic, "partition": partition, "offset": offset}
            subject = "a record" if names is None else "an unparsable record"
            if names:
                subject = f"visit {printable(str(names['visit_id']))} of {names['event_time']}"
            place = f"{self.facts.places.topic} partition {partition} offset {offset}"
            yield self._sent(case, f"{subject} ({place})", about)

    def _sent(self, case: Case, subject: str, about: dict[str, object]) -> Finding:
        commit = self.facts.commit
        if case.category == "pending":
            text = f"is beyond batch {commit.batch}, the last committed" if commit else "is in no committed batch"
            return Finding(case.category, f"{subject} {text}", about)
        if case.category == "disordered":
            assert case.file is not None
            where = self._place({"file": case.file, "line": case.line or 0})
            about |= {"file": self._name(case.file), "line": case.line}
            return Finding(case.category, f"{subject} comes after offset {case.after}: {where}", about)
        if case.here:
            about |= {"file": self._name(case.here[0]["file"]), "line": case.here[0]["line"]}
            where = ", ".join(map(self._place, case.here)) + (", ..." if (case.seen or 0) > len(case.here) else "")
            text = f"was sent {_times(case.sent)} and is there {_times(case.seen)}: {where}"
        else:
            text = "is on no line of the output"
            text += f", only in leftover {self._place(case.spare[0])}" if case.spare else ""
        return Finding(case.category, f"{subject} {text}", about)

    def _strange(self, case: Case) -> Finding:
        assert case.file is not None
        names: dict[str, object] = {"file": self._name(case.file), "line": case.line}
        where = self._place({"file": case.file, "line": case.line or 0})
        text = self._line(case.file, case.position or 0)
        if text is None:
            return Finding(case.category, f"{where} was never sent; it cannot be read again", names)
        said = "has no line end, so it is cut off" if text.torn else "was never sent"
        visit = _visit_names(text.content) if text.whole or text.torn else {}
        return Finding(case.category, f"{where} {said}: {shown(text.content)}", {**visit, **names})

    def _name(self, file: int) -> str:
        return self.facts.output.files[file].name

    def _place(self, place: dict[str, int]) -> str:
        return f"{printable(self._name(place['file']))} line {place['line']}"

    def _line(self, file: int, position: int) -> Text | None:
        try:
            return line_at(self.facts.output.files[file].path, position, _TEXT_BYTES)
        except OSError:
            return None

    def _visits(self, records: set[tuple[int, int]]) -> dict[tuple[int, int], dict[str, object]]:
        """Read the names of records: empty for one that is not a visit; those that cannot be read are omitted.

        The findings stay valid when the broker dies now; each further read would wait for it again.
        """
        found: dict[tuple[int, int], dict[str, object]] = {}
        if self._broker_is_gone:
            return found
        positions = (Position(*place, ()) for place in sorted(records))
        try:
            for place, record in with_records(self.reader, self.facts.places.topic, positions):
                if record:
                    found[place.partition, place.offset] = _visit_names(record.value)
        except NOT_READ_AGAIN:
            self._broker_is_gone = True
        return found


def _times(count: int | None) -> str:
    return "once" if count == 1 else f"{count or 0:,} times"


def _visit_names(content: bytes | None) -> dict[str, object]:
    visit = parse_visit(content)
    return {} if visit is None else {"visit_id": name_of(visit.visit_id), "event_time": iso_time(visit.event_time)}
