"""What counts as a window record, which record a routed one stands for, and what the verdict prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Message

from contract.visit import VisitWindow, iso_time
from tests.unit.verdict_world import START, WINDOW_MS
from verdict.__main__ import _worst, main
from verdict.digest import digest, record_digest
from verdict.flink_reader import parse_window, source_place
from verdict.model import Example, Outcome, Verdict, unknown
from verdict.report import print_report
from verdict.store import open_store, rows

WINDOW: dict[str, object] = {
    "visit_id": "a",
    "window_start": iso_time(START),
    "window_end": iso_time(START + WINDOW_MS),
    "count": 2,
    "first_event_time": iso_time(START + 1),
    "last_event_time": iso_time(START + 2),
}


def test_a_window_is_read() -> None:
    expected = VisitWindow("a", START, START + WINDOW_MS, 2, START + 1, START + 2)
    assert parse_window(json.dumps(WINDOW).encode(), WINDOW_MS) == expected


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"count": "2"}, "has no proper visit_id or count"),
        ({"count": 2.0}, "has no proper visit_id or count"),
        ({"count": True}, "has no proper visit_id or count"),
        ({"count": 2**70}, "has no proper visit_id or count"),
        ({"visit_id": None}, "has no proper visit_id or count"),
        ({"first_event_time": "yesterday"}, "has a time that is none"),
        ({"last_event_time": 5}, "has a time that is none"),
        ({"window_start": iso_time(START + 1)}, "is not a window of 10 s"),
        ({"window_end": iso_time(START + 2 * WINDOW_MS)}, "is not a window of 10 s"),
        ({"processed_at": iso_time(START)}, "does not have the fields of a window"),
    ],
)
def test_what_is_no_window_says_why(change: dict[str, object], fault: str) -> None:
    assert str(parse_window(json.dumps(WINDOW | change).encode(), WINDOW_MS)).startswith(fault)


@pytest.mark.parametrize("value", [None, b"", b"{", b"\xff", b"[" * 100_000, b"null", b"[]"])
def test_any_bytes_are_read_without_failing(value: bytes | None) -> None:
    assert isinstance(parse_window(value, WINDOW_MS), str)


@pytest.mark.parametrize(
    ("partition", "offset", "place"),
    [
        (b"1", b"22", (1, 22)),
        (b"1", None, (None, None)),
        (b"", b"22", (None, None)),
        (b"-1", b"22", (None, None)),
        (b"one", b"22", (None, None)),
        (b"1", b"9223372036854775808", (None, None)),
        (b"2147483648", b"1", (None, None)),
        (b"1", b"9" * 5_000, (None, None)),
    ],
)
def test_headers_name_the_source_record_or_nothing(
    partition: bytes | None, offset: bytes | None, place: tuple[int | None, int | None]
) -> None:
    headers: list[tuple[str, str | bytes | None]] = [("source.partition", partition), ("source.offset", offset)]
    assert source_place(Message(topic="visits_late", headers=headers)) == place
    assert source_place(Message(topic="visits_late")) == (None, None)


def test_digests_tell_keys_values_and_nulls_apart() -> None:
    records = [
        (None, None),
        (None, b""),
        (b"", None),
        (b"", b""),
        (b"a", b"b"),
        (b"ab", b""),
        (b"", b"ab"),
        (b"b", b"a"),
    ]
    assert len({record_digest(key, value) for key, value in records}) == len(records)
    assert digest(b"a") != digest(b"a ")


def test_the_json_has_the_promised_fields() -> None:
    verdict = Verdict("spark", Outcome.VIOLATED, "why", 3, 2, 1, examples=(Example("lost", "text", {"visit_id": "a"}),))
    document = json.loads(json.dumps(verdict.as_json()))
    for name in ("expected", "observed", "lost", "duplicated", "unexpected", "pending", "late", "rejected"):
        assert isinstance(document[name], int)
    assert (document["pipeline"], document["outcome"]) == ("spark", "violated")
    assert document["examples"] == [{"category": "lost", "text": "text", "visit_id": "a"}]


def test_violated_comes_before_unknown_before_holds() -> None:
    holds = Verdict("spark", Outcome.HOLDS, "")
    violated = Verdict("flink", Outcome.VIOLATED, "")
    assert _worst([holds, unknown("flink", ""), violated]) is Outcome.VIOLATED
    assert _worst([holds, unknown("flink", "")]) is Outcome.UNKNOWN
    assert _worst([holds]) is Outcome.HOLDS
    assert [outcome.exit_code for outcome in Outcome] == [0, 1, 2]


def test_the_report_is_plain_in_a_pipe_and_keeps_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    example = Example("unexpected", "x.txt line 1 was never sent: [red]{}[/]", {})
    verdict = Verdict("spark", Outcome.VIOLATED, "why", examples=(example,), records={"source": 1, "lost": 1})
    print_report([verdict, unknown("flink", "no broker")])
    output = capsys.readouterr().out
    assert "\x1b" not in output
    assert "[red]{}[/]" in output
    assert output.splitlines()[-2:] == ["spark: VIOLATED  why", "flink: UNKNOWN  no broker"]


def test_a_mistake_in_the_call_is_never_taken_for_a_verdict() -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["storm"])
    assert stopped.value.code == 2


def test_the_database_draws_nothing_on_stdout_and_spills_into_its_own_folder() -> None:
    with open_store() as connection:
        shown, limit, folder = rows(
            connection,
            "SELECT current_setting('enable_progress_bar'), current_setting('memory_limit'), "
            "current_setting('temp_directory')",
        )[0]
        assert shown is False
        assert str(limit).endswith("MiB")
        home = Path(str(folder)).parent
        assert home.is_dir()
    assert not home.exists()
