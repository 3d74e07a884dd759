"""Faults of the output, from the tables of the judge: a case for each record or line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from faultline.verdict.store import Store

# All queries return the columns of a `Case`, in a fixed order. When a record is there less often than it was sent, the
# last ones sent count as missing.
_PLACES = """
    (SELECT digest, min({{'file': file, 'line': line}}, 3) AS places FROM lines
     SEMI JOIN (SELECT digest FROM odd WHERE {category} > 0) USING (digest) WHERE {kind} GROUP BY digest)
"""
_ABSENT = """
SELECT '{category}', kafka_partition, kafka_offset, NULL, NULL, NULL, sent, seen, NULL, here.places, spare.places
FROM (
    SELECT digest, sent.kafka_partition, sent.kafka_offset, odd.sent, odd.seen, odd.{category} AS absent,
           row_number() OVER (PARTITION BY digest ORDER BY sent.kafka_partition DESC, sent.kafka_offset DESC) AS nth
    FROM odd JOIN sent USING (digest) JOIN ends ON ends.kafka_partition = sent.kafka_partition
    WHERE odd.{category} > 0 AND (sent.kafka_offset < end_offset) = {due}
) LEFT JOIN {here} here USING (digest) LEFT JOIN {spare} spare USING (digest)
WHERE nth <= absent ORDER BY kafka_partition, kafka_offset
"""
_REPEATED = """
SELECT 'duplicated', first.kafka_partition, first.kafka_offset, NULL, NULL, NULL, sent, seen, NULL, places, NULL
FROM odd JOIN (
    SELECT digest, min({{'kafka_partition': kafka_partition, 'kafka_offset': kafka_offset}}) AS first
    FROM sent SEMI JOIN (SELECT digest FROM odd WHERE duplicated > 0) USING (digest) GROUP BY digest
) USING (digest) JOIN {here} here USING (digest)
WHERE duplicated > 0 ORDER BY first
"""
_STRANGE = """
SELECT 'unexpected', NULL, NULL, file, line, position, NULL, NULL, NULL, NULL, NULL
FROM lines SEMI JOIN (SELECT digest FROM odd WHERE unexpected > 0) USING (digest) ORDER BY file, line
"""
_MISPLACED = """
SELECT 'disordered', kafka_partition, kafka_offset, file, line, NULL, NULL, NULL, after, NULL, NULL
FROM disorder ORDER BY file, line
"""


def _query(category: str) -> str:
    here = _PLACES.format(category=category, kind="NOT leftover")
    if category in ("lost", "pending"):
        spare = _PLACES.format(category=category, kind="leftover")
        return _ABSENT.format(category=category, due=category == "lost", here=here, spare=spare)
    return {"duplicated": _REPEATED.format(here=here), "unexpected": _STRANGE, "disordered": _MISPLACED}[category]


class Case(NamedTuple):
    """A row of the queries: the record, the line, how often it was sent and is there, and up to three places.

    `after` is the larger offset that a line comes after; `spare` are its places in leftovers.
    """

    category: str
    partition: int | None
    offset: int | None
    file: int | None
    line: int | None
    position: int | None
    sent: int | None
    seen: int | None
    after: int | None
    here: list[dict[str, int]] | None
    spare: list[dict[str, int]] | None

    @property
    def record(self) -> tuple[int, int] | None:
        """Partition and offset of the record, when it is about one."""
        return None if self.partition is None or self.offset is None else (self.partition, self.offset)


def cases_of(store: Store, category: str, limit: int | None = None) -> Iterator[Case]:
    """Yield the cases of a category: all, or the first ones."""
    end = "" if limit is None else f" LIMIT {limit}"
    return (_case(row) for row in store.stream(_query(category) + end))


def _case(row: tuple[Any, ...]) -> Case:
    return Case(*row)
