"""Places of a stack's data, the words for them in its notes, and the notes, which stay on a disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.formats.run import SPARK_RUN_FILE, SparkRun, as_json
from faultline.settings import Settings, SettingsError
from faultline.storage.data import flink_checkpoints, location_noted, noted, notes_of, spark_checkpoints
from faultline.storage.objects import CREDENTIALS
from faultline.storage.words import location_of
from faultline.verdict.checker import Options
from faultline.verdict.model import Unknown
from faultline.verdict.spark.locations import locations


@pytest.fixture
def in_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A stack with its data in a store, which nobody asks here."""
    key = tmp_path / "credentials"
    key.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv(CREDENTIALS, str(key))
    return at(tmp_path, DATA="s3://bucket/below", STORE_ENDPOINT="http://127.0.0.1:1")


def at(home: Path, **values: str) -> Settings:
    return Settings({"STACK_HOME": str(home), **{f"STACK_{name}": value for name, value in values.items()}})


def test_data_is_below_the_home_unless_it_is_in_a_store(tmp_path: Path, in_store: Settings) -> None:
    home = tmp_path / "a home"
    assert at(home).flink_checkpoints == f"{tmp_path.as_uri()}/a%20home/checkpoints/flink"
    assert flink_checkpoints(at(home)) == home / "checkpoints" / "flink"
    assert in_store.flink_checkpoints == "s3://bucket/below/checkpoints/flink"
    assert in_store.spark_outputs == "s3://bucket/below/output"
    assert str(spark_checkpoints(in_store)) == "s3://bucket/below/checkpoints/spark"


@pytest.mark.parametrize("word", ["bucket", "/data", "s3://", "s3a://bucket", "s3:///x", "file:///x"])
def test_other_words_for_the_store_are_refused(word: str) -> None:
    with pytest.raises(SettingsError, match=f"DATA='{word.rstrip('/')}' is neither empty, nor disk, nor"):
        _ = Settings({"STACK_DATA": word}).data


def test_notes_name_a_place_by_its_path_below_the_data(tmp_path: Path, in_store: Settings) -> None:
    on_disk = at(tmp_path)
    for settings, root, elsewhere in (
        (on_disk, str(tmp_path.resolve()), "/elsewhere/x"),
        (in_store, "s3://bucket/below", "s3://other/below/x"),
        (in_store, "s3://bucket/below", "/elsewhere/x"),
    ):
        place = location_of(f"{root}/output/x", settings)
        assert noted(place, settings) == "output/x"
        assert location_noted("output/x", settings) == place
        assert noted(location_of(elsewhere, settings), settings) == elsewhere
        assert str(location_noted(elsewhere, settings)) == elsewhere


def test_notes_are_on_a_disk(tmp_path: Path, in_store: Settings) -> None:
    settings = at(tmp_path)
    assert notes_of(tmp_path / "anywhere", settings) == tmp_path / "anywhere"
    assert notes_of(tmp_path / "anywhere", in_store) == tmp_path / "anywhere"
    home = tmp_path.resolve()
    for each in (settings, in_store):
        checkpoint = spark_checkpoints(each) / "visits_json"
        assert notes_of(checkpoint, each) == each.spark_notes / "visits_json" == home / "checkpoints/spark/visits_json"
        assert notes_of(flink_checkpoints(each), each) == each.flink_notes
    assert notes_of(location_of("s3://bucket/elsewhere", in_store), in_store) is None
    assert notes_of(location_of("s3://bucket/below/x", in_store), settings) is None


def test_the_verdict_finds_the_run_of_a_query_in_a_store_by_its_notes(in_store: Settings) -> None:
    run = SparkRun("other_visits", "files", "output/elsewhere", "checkpoints/spark/visits_json")
    file = in_store.spark_notes / "visits_json" / SPARK_RUN_FILE
    file.parent.mkdir(parents=True)
    file.write_text(as_json(run), encoding="utf-8")
    found = locations(in_store, Options())
    assert (found.topic, str(found.output)) == ("other_visits", "s3://bucket/below/output/elsewhere")
    assert (str(found.checkpoint), found.notes) == ("s3://bucket/below/checkpoints/spark/visits_json", ())
    copied = in_store.home / "copy"
    file.parent.rename(copied)
    with pytest.raises(Unknown, match=f"{copied}/{SPARK_RUN_FILE} is of checkpoint .* and is in copy,"):
        locations(in_store, Options(checkpoint=location_of("s3://bucket/below/copy", in_store)))
