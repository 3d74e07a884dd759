"""The reader of the watcher goes on where an earlier one ended; a sampler outlives what it asks."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest

from faultline.probes.watch import read_up_to, sample_once


def test_it_goes_on_after_the_last_whole_line(tmp_path: Path) -> None:
    seen = tmp_path / "seen.jsonl"
    whole = '{"partition": 0, "offset": 4}\n{"partition": 1, "offset": 7}\n{"partition": 0, "offset": 6}\n'
    seen.write_text(whole + '{"partition": 1, "off', encoding="utf-8")
    assert read_up_to(seen) == {0: 7, 1: 8}
    assert seen.read_text(encoding="utf-8") == whole


def test_it_begins_at_the_end_where_nothing_was_read(tmp_path: Path) -> None:
    assert read_up_to(tmp_path / "seen.jsonl") == {}
    (tmp_path / "seen.jsonl").touch()
    assert read_up_to(tmp_path / "seen.jsonl") == {}


@pytest.mark.parametrize("error", [http.client.BadStatusLine("x"), ValueError("not JSON"), RuntimeError()])
def test_whatever_goes_wrong_is_unknown(error: Exception) -> None:
    def sample() -> dict[str, object]:
        raise error

    found = sample_once(sample)
    assert found["unknown"] == (str(error) or "RuntimeError")
