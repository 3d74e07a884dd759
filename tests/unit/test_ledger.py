"""The generator's ledger: every line is in the file before the call returns, and parses back."""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path
from urllib.parse import unquote_to_bytes

import yaml

from faultline.formats.digest import record_digest
from faultline.formats.ledger import ACKED, FIELDS, SENT, SUFFIX, TOPIC, ledger_files
from faultline.settings import ROOT
from generator.ledger import Ledger, stamp
from generator.visits import ON_TIME, Record

RECORD = Record(b'a key,with "commas",\n%41 and \xff', b"value", 1_767_225_600_000, ON_TIME)


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="ascii", newline="") as file:
        return list(csv.DictReader(file, FIELDS))


def test_lines_parse_back(tmp_path: Path) -> None:
    before = time.time_ns() // 1_000_000
    ledger = Ledger(tmp_path, "visits", "f7OQk5aZQXqeM9JCbZ8ruQ")
    assert [ledger.sent(1, RECORD), ledger.sent(0, RECORD)] == [0, 1]
    ledger.acked(1, 0, 17)
    # Nothing was closed or flushed.
    assert ledger_files(tmp_path, "visits") == [ledger.path]
    topic, first, second, acked = lines(ledger.path)
    assert all(before <= int(line["clock"]) <= before + 60_000 for line in (topic, first, second, acked))
    assert all(line.keys() == set(FIELDS) for line in (topic, first, second, acked))
    assert (topic["event"], topic["digest"], topic["key"]) == (TOPIC, "f7OQk5aZQXqeM9JCbZ8ruQ", "visits")
    assert (first["event"], first["number"], first["partition"], first["kafka_offset"]) == (SENT, "0", "1", "")
    assert int(first["timestamp"]) == RECORD.timestamp
    assert bytes.fromhex(first["digest"]) == record_digest(RECORD.key, RECORD.value)
    assert unquote_to_bytes(first["key"]) == RECORD.key
    assert (second["number"], second["partition"]) == ("1", "0")
    assert list(acked.values())[:4] == [ACKED, "1", "0", "17"]
    assert [acked[name] for name in ("timestamp", "digest", "key")] == ["", "", ""]


def test_each_run_has_a_file_of_its_own_and_names_sort_by_time(tmp_path: Path) -> None:
    first = Ledger(tmp_path, "visits", "x").path
    time.sleep(0.002)
    second = Ledger(tmp_path, "visits", "x").path
    assert ledger_files(tmp_path, "visits") == [first, second]
    assert first.name.endswith(f"Z-{os.getpid()}{SUFFIX}")
    assert stamp(1_767_225_600_007) == "20260101T000000.007Z"


def test_in_containers_the_generator_writes_the_ledger_and_the_tools_read_it() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yaml").read_text(encoding="utf-8"))["services"]
    mount = "${STACK_HOME:-.}/ledger:/faultline/ledger"
    assert f"{mount}:z" in services["permissions"]["volumes"]
    assert f"{mount}:z" in services["generator"]["volumes"]
    assert f"{mount}:ro,z" in services["tools"]["volumes"]
