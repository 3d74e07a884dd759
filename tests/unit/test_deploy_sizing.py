"""The size of a cluster: its arithmetic, the figures that it starts from, and the page that shows it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from deploy.__main__ import main
from deploy.measured import Figure, MeasuredError, measured
from deploy.settings import FILE as KUBERNETES
from deploy.settings import cluster_settings
from deploy.size_table import sections, table
from deploy.sizing import Load, Sizing, gibibytes, trigger_seconds
from faultline.settings import ROOT, SettingsError

SETTINGS = cluster_settings()
MEASURED = measured()
# What the tests expect follows from these: they are fixed, so that a new measurement changes no test.
FIXED = {
    "flink_cpu_seconds_per_million": 16.0,
    "spark_cpu_seconds_per_million": 5.6,
    "taskmanager_recovery_seconds": 10.0,
    "batch_writes_per_file": 4.4,
}
FIGURES = {name: replace(figure, value=FIXED.get(name, figure.value)) for name, figure in MEASURED.items()}
MILLION = Load(visits_per_second=1e6, busy=0.5)


def rows(load: Load, figures: dict[str, Figure] | None = None) -> dict[str, tuple[str, str]]:
    found = sections(Sizing(load, SETTINGS, figures or FIGURES))
    return {f"{title}: {row.what}": (row.value, row.how) for title, listed in found for row in listed}


def everything(value: float) -> dict[str, Figure]:
    """The figures, with this value for those of brokers, state, checkpoints and batches."""
    others = ("kafka_", "state_", "checkpoint_", "batch_", "sink_log_")
    return {
        name: Figure(name, value, figure.what, figure.by) if name.startswith(others) else figure
        for name, figure in FIGURES.items()
    }


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    words = "size --visits-per-second 1000000 --price-writes 0.005 --price-reads 0.0004"
    assert main(words.split()) == 0
    printed = capsys.readouterr().out
    page = (ROOT / "docs" / "scaling_out.md").read_text(encoding="utf-8")
    assert f"scripts/deploy.sh {words}" in page
    assert f"```text\n{printed}```" in page


def test_every_measured_figure_is_in_the_benchmarks() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    known = [figure for figure in MEASURED.values() if figure.quote]
    assert len(known) > 3
    for figure in known:
        assert figure.quote is not None
        # The page breaks its lines where it likes.
        assert re.sub(r"\s+", " ", figure.quote) in re.sub(r"\s+", " ", page), figure.name
        numbers = {float(word) for word in re.findall(r"\d+(?:\.\d+)?", figure.quote.replace(",", ""))}
        assert figure.value in numbers, figure.name
        assert (ROOT / figure.by).is_file(), figure.name


def test_a_busier_core_needs_fewer_slots_and_catches_up_later() -> None:
    half, most = rows(MILLION), rows(Load(1e6, 0.8))
    assert (half["the windowing job: slots"][0], most["the windowing job: slots"][0]) == ("33", "21")
    kill = "the windowing job: to catch up after a kill"
    assert (half[kill][0], most[kill][0]) == ("10.0 s", "40.0 s")


def test_a_small_load_needs_one_of_each_broker_and_one_slot() -> None:
    found = rows(Load(1000, 0.5))
    assert found["the windowing job: slots"][0] == "1"
    assert found["Kafka: partitions of visits"][0] == "3"
    assert found["Kafka: visits that arrive"][0] == "0.44 MB/s"


@pytest.mark.parametrize("visits", [1e3, 5e4, 6.4e4, 1e5, 3.3e5, 1e6, 2e6, 4e6])
@pytest.mark.parametrize("busy", [0.2, 0.5, 0.9])
def test_the_lines_for_a_load_are_settings_by_which_work_spreads(tmp_path: Path, visits: float, busy: float) -> None:
    sizing = Sizing(Load(visits, busy), SETTINGS, FIGURES)
    file = tmp_path / "kubernetes.env"
    file.write_text(KUBERNETES.read_text(encoding="utf-8") + "\n".join(sizing.lines()) + "\n", encoding="utf-8")
    settings = cluster_settings(file)
    partitions, tasks = settings.number("TOPIC_PARTITIONS"), settings.number("FLINK_PARALLELISM")
    assert partitions % tasks == partitions % settings.number("KAFKA_BROKERS") == 0
    assert tasks >= visits / 1e6 * FIGURES["flink_cpu_seconds_per_million"].value / busy
    assert partitions >= visits / 1e6 * FIGURES["spark_cpu_seconds_per_million"].value / busy
    assert settings.megabytes("FLINK_TASK_HEAP") >= 320


def test_a_file_above_64_mib_is_sent_in_parts_and_each_is_a_write() -> None:
    # 2.2 GB of a batch: 66.7 MB in each of 33 files; 104.8 MB in each of 21 are two parts, a begin and an end.
    assert Sizing(MILLION, SETTINGS, FIGURES).requests_for_parts == 0
    most = Sizing(Load(1e6, 0.8), SETTINGS, FIGURES)
    assert (most.partitions, most.requests_for_parts) == (21, 3)
    assert "(4.4 + 3 for parts) x 21 files" in rows(Load(1e6, 0.8))["the object store: writes"][1]
    assert "parts" not in rows(Load(1e6, 0.8))["the object store: reads"][1]


def test_too_many_slots_for_the_layout_of_the_state_are_said() -> None:
    assert rows(Load(3.9e6, 0.5))["the windowing job: FLINK_MAX_PARALLELISM"][1].startswith("enough")
    assert rows(Load(5e6, 0.5))["the windowing job: FLINK_MAX_PARALLELISM"][1].startswith("TOO FEW")


def test_measured_figures_fill_every_line() -> None:
    found = rows(Load(1e6, 0.5, price_writes=0.005, price_reads=0.0004), everything(2))
    # 2 x 33 slots / 4 s + 2 x 33 files / 5 s = 29.7 /s
    assert found["the object store: writes"] == ("30 /s", "2 x 33 slots / 4 s + 2 x 33 files / 5 s")
    # 29.7 /s x 2,592,000 s / 1,000 x 0.005
    assert found["the object store: writes, a month"] == ("385", "for 77 million in 30 days, at 0.005 for 1,000")
    # 570,240 files of 2 bytes.
    assert found["the synchronizer: the sink's log grows by"][0] == "1.14 MB"
    assert found["the windowing job: state, hashmap"] == ("0.01 GB", "x 2 bytes; 0 MB for a slot")
    assert found["the windowing job: windows wait for their commit"][0] == "6.0 s"


def test_a_file_of_figures_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "measured.yaml"
    for text in ("visit_bytes: 440", "visit_bytes: {what: a, by: b}", "visit_bytes: {value: many, what: a, by: b}"):
        broken.write_text(text)
        with pytest.raises(MeasuredError, match=r"measured\.yaml is not a list of figures"):
            measured(broken)
    broken.write_text("visit_bytes: {value: -1, what: a, by: b}")
    with pytest.raises(MeasuredError, match="visit_bytes is -1, not a number above 0"):
        measured(broken)


@pytest.mark.parametrize(
    ("text", "seconds"), [("500 milliseconds", 0.5), ("5 seconds", 5), ("1 minute", 60), ("2 hours", 7200)]
)
def test_the_seconds_of_a_trigger(text: str, seconds: float) -> None:
    assert trigger_seconds(SETTINGS.changed({"SPARK_TRIGGER": text})) == seconds


def test_settings_that_cannot_be_computed_with_are_refused() -> None:
    with pytest.raises(SettingsError, match="SPARK_TRIGGER=available-now is not an interval"):
        table(MILLION, SETTINGS.changed({"SPARK_TRIGGER": "available-now"}), FIGURES)
    with pytest.raises(SettingsError, match="5 is not a size like 100Gi"):
        gibibytes("5")
