"""Reading of window records and of the source record of a routed record, and the output of the verdict."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from faultline.formats.digest import digest, record_digest
from faultline.formats.verdict import Finding, NewestVerdict, Outcome, Verdict, Verdicts
from faultline.formats.visit import iso_time
from faultline.verdict.escape import printable, shown
from faultline.verdict.flink.reader import parse_window, routed_rows
from faultline.verdict.keys import key_hashes
from faultline.verdict.model import unknown
from faultline.verdict.program import main
from faultline.verdict.records import Headers, Record, batch_of
from faultline.verdict.report import print_report
from faultline.verdict.store import open_store
from tests.called import process
from tests.golden.archives import golden
from tests.judge.flink_world import START, WINDOW_MS
from tests.judge.windows_worlds import examples

WINDOW: dict[str, object] = {
    "visit_id": "a",
    "window_start": iso_time(START),
    "window_end": iso_time(START + WINDOW_MS),
    "count": 2,
    "first_event_time": iso_time(START + 1),
    "last_event_time": iso_time(START + 2),
}


@examples(100)
@given(st.lists(st.none() | st.binary(max_size=40), max_size=30))
def test_keys_hashed_at_once_are_hashed_as_the_client_does_it(keys: list[bytes | None]) -> None:
    assert key_hashes(keys).to_pylist() == [None if key is None else murmur2(key) & 0x7FFFFFFF for key in keys]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"count": "2"}, "has no valid visit_id or count"),
        ({"count": 2.0}, "has no valid visit_id or count"),
        ({"count": True}, "has no valid visit_id or count"),
        ({"count": 2**70}, "has no valid visit_id or count"),
        ({"visit_id": None}, "has no valid visit_id or count"),
        ({"count": -1}, "has no valid visit_id or count"),
        ({"first_event_time": "yesterday"}, "has a time that is not written as"),
        ({"last_event_time": 5}, "has a time that is not written as"),
        ({"last_event_time": "2026-01-01T00:00:00Z"}, "has a time that is not written as"),
        ({"last_event_time": "2026-01-01T00:00:00.000001Z"}, "has a time that is not written as"),
        ({"last_event_time": "2026-01-01T00:00:00.000+00:00"}, "has a time that is not written as"),
        ({"window_start": iso_time(START + 1)}, "is not a window of 10 s"),
        ({"window_end": iso_time(START + 2 * WINDOW_MS)}, "is not a window of 10 s"),
        ({"processed_at": iso_time(START)}, "does not have the fields of a window"),
    ],
)
def test_a_record_that_breaks_the_contract_of_a_window_says_why(change: dict[str, object], fault: str) -> None:
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
        (b"01", b"1", (None, None)),
    ],
)
def test_headers_name_the_source_record_or_nothing(
    partition: bytes | None, offset: bytes | None, place: tuple[int | None, int | None]
) -> None:
    headers = (("source.partition", partition), ("source.offset", offset), ("reason", b"window is over"))
    assert source_place(headers) == place
    assert source_place(()) == (None, None)
    assert source_place((*headers, headers[0])) == (None, None)
    assert source_place((*headers, ("more", b""))) == (None, None)


def source_place(headers: Headers) -> tuple[int | None, int | None]:
    (row,) = routed_rows(batch_of([Record(0, 0, None, b"", 0, headers)])).to_pylist()
    return row["source_partition"], row["source_offset"]


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


def test_recorded_verdicts_are_decoded_and_encoded_as_they_were() -> None:
    files = sorted(golden("runs").rglob("verdict.json"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert json.dumps(Verdicts.from_json(json.loads(text)).as_json(), indent=2) + "\n" == text


def test_one_pipelines_json_has_the_sources_verdict_and_the_notes() -> None:
    source, spark = Verdict("source", Outcome.HOLDS, "all there"), Verdict("spark", Outcome.UNKNOWN, "", notes=("a",))
    document = Verdicts((source, spark), ("b",)).as_json("spark")
    assert document == {**spark.as_json(), "notes": ["a", "b"], "source": source.as_json()}
    assert Verdict.from_json(document).notes == ("a", "b")
    assert Verdicts((), ("no ledger",)).as_json("source") == {
        "pipeline": "source", "outcome": "unknown", "reason": "no ledger", "examples": []
    }  # fmt: skip


def test_violated_comes_before_unknown_before_holds() -> None:
    holds = Verdict("spark", Outcome.HOLDS, "")
    violated = Verdict("flink", Outcome.VIOLATED, "")
    assert Verdicts((holds, unknown("flink", ""), violated)).outcome is Outcome.VIOLATED
    assert Verdicts((holds, unknown("flink", ""))).outcome is Outcome.UNKNOWN
    assert Verdicts((holds,)).outcome is Outcome.HOLDS
    assert Verdicts(()).outcome is Outcome.UNKNOWN
    assert [outcome.exit_code for outcome in Outcome] == [0, 1, 2]


def test_the_report_is_plain_in_a_pipe_and_keeps_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    example = Finding("unexpected", 'x.txt line 1 was never sent: [red]{"a":fire:1}[/]', {})
    verdict = Verdict("spark", Outcome.VIOLATED, "why", examples=(example,), records={"source": 1, "lost": 1})
    print_report(Verdicts((verdict, unknown("flink", "no broker"))))
    output = capsys.readouterr().out
    assert "\x1b" not in output
    assert '[red]{"a":fire:1}[/]' in output
    assert output.splitlines()[-2:] == ["spark: VIOLATED  why", "flink: UNKNOWN  no broker"]


def pending_and_lost() -> tuple[Finding, ...]:
    return Finding("lost", "gone"), Finding("pending", "not due")


def test_examples_are_shown_when_something_is_wrong_or_in_the_verbose_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    holds = Verdict("flink", Outcome.HOLDS, "", pending=1, examples=pending_and_lost()[1:], records={"source": 1})
    print_report(Verdicts((holds,)))
    assert "not due\n" not in capsys.readouterr().out
    print_report(Verdicts((holds,)), verbose=True)
    assert "  pending: not due" in capsys.readouterr().out
    violated = Verdict("flink", Outcome.VIOLATED, "", examples=pending_and_lost(), records={"source": 1})
    print_report(Verdicts((violated,)))
    output = capsys.readouterr().out
    assert "  lost: gone" in output
    assert "  pending: not due" not in output


def test_no_text_forges_a_line_or_moves_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\nflink: HOLDS\r\x1b[2K\u202e\u2028\ud800\x85b"
    assert printable(hostile).isprintable()
    assert printable("a\\n") != printable("a\n")
    assert shown(b"\xff\n") == "\ufffd\\n"
    assert shown(None) == "null"
    verdict = Verdict("flink", Outcome.VIOLATED, hostile, examples=(Finding("lost", hostile),), records={"source": 1})
    print_report(Verdicts((verdict,), (hostile,)))
    output = capsys.readouterr().out
    assert not any(line.startswith("flink: HOLDS") for line in output.splitlines())
    assert all(line.isprintable() for line in output.split("\n"))


def test_an_ascii_terminal_gets_escapes_and_no_error() -> None:
    program = (
        "from faultline.formats.verdict import *; from faultline.verdict.report import print_report;"
        "print_report(Verdicts((Verdict('flink', Outcome.VIOLATED, 'caf\\u00e9', records={'source': 1}),)))"
    )
    done = process([sys.executable, "-c", program], {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "flink: VIOLATED  caf\\xe9" in done.stdout


def test_a_mistake_in_the_call_is_never_taken_for_a_verdict() -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["storm"])
    assert stopped.value.code == 2


def test_a_verdict_is_kept_and_where_it_cannot_be_kept_it_is_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = ["flink", "--bootstrap", "127.0.0.1:1", "--json", "--wait", "0"]
    assert main([*nobody, "--keep", str(tmp_path / "verdict.json")]) == Outcome.UNKNOWN.exit_code
    kept = NewestVerdict.read(tmp_path / "verdict.json")
    assert time.time() - 60 < kept.at <= time.time()
    assert kept.verdicts.as_json("flink") == json.loads(capsys.readouterr().out)
    assert main([*nobody, "--keep", str(tmp_path / "none" / "verdict.json")]) == Outcome.UNKNOWN.exit_code
    said = capsys.readouterr()
    assert json.loads(said.out)["outcome"] == "unknown"
    assert said.err.splitlines() == [
        f"verdict: --keep {tmp_path / 'none' / 'verdict.json'} cannot be written: No such file or directory"
    ]


def test_the_database_draws_nothing_on_stdout_and_spills_into_its_own_folder() -> None:
    with open_store() as store:
        ((bar, limit, folder),) = store.rows(
            "SELECT current_setting('enable_progress_bar'), current_setting('memory_limit'), "
            "current_setting('temp_directory')"
        )
        assert bar is False
        assert str(limit).endswith("MiB")
        home = Path(str(folder)).parent
        assert home.is_dir()
    assert not home.exists()
