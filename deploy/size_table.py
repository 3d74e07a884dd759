"""The table of `scripts/deploy.sh size`: each line has its arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deploy.measured import Figure
from deploy.sizing import DAY, HEAP, MONTH, Load, Sizing
from faultline.settings import Settings

_FULL, _CHECKPOINT_SECONDS = "state_bytes_per_window", "checkpoint_seconds"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    value: str
    how: str


def table(load: Load, settings: Settings, figures: Mapping[str, Figure]) -> str:
    """The rows as text, and the settings that follow from them. Raises SettingsError."""
    sizing = Sizing(load, settings, figures)
    lines = [f"{load.visits_per_second:,.0f} visits/s, each core {load.busy:.0%} busy"]
    for title, rows in sections(sizing):
        lines += ["", title]
        lines += [f"  {row.what:<29} {row.value:>12}  {row.how}".rstrip() for row in rows]
    lines += ["", "lines for deploy/kubernetes.env", *(f"  {line}" for line in sizing.lines())]
    return "\n".join(lines) + "\n"


def sections(sizing: Sizing) -> Iterator[tuple[str, list[Row]]]:
    """The rows, by component."""
    yield "Kafka", list(_kafka(sizing))
    yield "the windowing job", list(_flink(sizing))
    yield "the synchronizer", list(_spark(sizing))
    yield "the object store", list(_store(sizing))


def _rate_of_bytes(megabytes: float) -> str:
    """`440 MB/s`, and `0.44 MB/s` for little."""
    return f"{megabytes:,.0f} MB/s" if megabytes >= 100 else f"{megabytes:.3g} MB/s"


def _cores(sizing: Sizing, figure: str) -> str:
    return f"{sizing.millions:g} million/s x {sizing.figure(figure):g} s / {sizing.load.busy:g} busy"


def _kafka(sizing: Sizing) -> Iterator[Row]:
    visits, settings = sizing.load.visits_per_second, sizing.settings
    yield Row(
        "visits that arrive", _rate_of_bytes(sizing.arriving),
        f"{visits:,.0f} visits/s x {sizing.figure('visit_bytes'):,.0f} bytes",
    )  # fmt: skip
    yield Row("written by the brokers", _rate_of_bytes(sizing.written), f"x {sizing.replicas} replicas")
    yield Row("read from them", _rate_of_bytes(sizing.arriving * 2), "by the windowing job and by the synchronizer")
    yield Row(
        "partitions of visits", f"{sizing.partitions:,}",
        f"a multiple of {sizing.slots} slots and {sizing.brokers} brokers, for {sizing.executor_cores} executor cores",
    )  # fmt: skip
    reader = sizing.figure("reader_records_per_second")
    yield Row(
        "visits of a partition", f"{visits / sizing.partitions:,.0f} /s", f"one reader was measured at {reader:,.0f}"
    )
    retention = settings.text("TOPIC_RETENTION_MS")
    yield Row(
        "kept for each day", f"{sizing.written * DAY / 1e6:,.3g} TB",
        f"TOPIC_RETENTION_MS={retention}: -1 keeps every day",
    )  # fmt: skip
    yield Row(
        "the disks are full after", f"{sizing.minutes_until_full:,.3g} min",
        f"{sizing.brokers} x {settings.text('KAFKA_DISK')}",
    )  # fmt: skip
    cpu = "kafka_cpu_seconds_per_million"
    yield Row("cores of the brokers", f"{sizing.broker_cores:,}", _cores(sizing, cpu))


def _flink(sizing: Sizing) -> Iterator[Row]:
    busy = sizing.load.busy
    yield Row(
        "slots", f"{sizing.slots:,}",
        f"{_cores(sizing, 'flink_cpu_seconds_per_million')}; a multiple of {sizing.brokers} brokers",
    )  # fmt: skip
    yield Row("TaskManagers", f"{sizing.task_managers:,}", f"{sizing.slots_each} slots and cores each")
    limit = sizing.settings.number("FLINK_MAX_PARALLELISM")
    enough = "enough" if sizing.slots <= limit else "TOO FEW: raise it before the first start"
    yield Row("FLINK_MAX_PARALLELISM", f"{limit:,}", f"{enough}; state cannot be restored with another number")
    is_enough = sizing.needed_buffers <= sizing.network_buffers
    enough = "enough" if is_enough else "TOO FEW: raise taskmanager.memory.network.* in flink_job/conf/config.yaml"
    yield Row(
        "network buffers", f"{sizing.needed_buffers:,}",
        f"of a TaskManager, which has {sizing.network_buffers:,}: {enough}",
    )  # fmt: skip
    down = sizing.figure("taskmanager_recovery_seconds")
    yield Row(
        "to catch up after a kill", f"{sizing.catch_up:,.1f} s",
        f"{down:g} s without output x {busy:g} / {1 - busy:g}",
    )  # fmt: skip
    yield Row("records that it writes", f"{sizing.results:,.0f} /s", "as many for each visit as in the benchmark")
    yield Row(
        "windows open at once", f"{sizing.open_windows:,.0f}", f"each for {sizing.window} s, from first visit to end"
    )
    for backend, name in (("hashmap", _FULL), ("rocksdb", "state_bytes_per_window_rocksdb")):
        yield Row(f"state, {backend}", *_state(sizing, name))
    yield Row("task heap of a TaskManager", *_heap(sizing))
    yield Row("full checkpoints write", *_bandwidth(sizing))
    yield Row("while one is written", *_burst(sizing))
    at_once = sizing.open_transactions
    yield Row("transactions open", f"{at_once:,}", f"at most: {sizing.slots} tasks x {sizing.sinks} topics")
    yield Row("with those about to commit", f"{at_once * 2:,}", "at most: one checkpoint at a time, so twice as many")
    yield Row(
        "transactions that end", f"{at_once / sizing.interval:,.1f} /s",
        f"at most: each at a checkpoint, every {sizing.interval:g} s",
    )  # fmt: skip
    yield Row("windows wait for their commit", *_wait(sizing))


def _state(sizing: Sizing, name: str) -> tuple[str, str]:
    whole = sizing.state(name)
    return f"{whole / 1e9:,.2f} GB", f"x {sizing.figure(name):g} bytes; {whole / sizing.slots / 1e6:,.0f} MB for a slot"


def _heap(sizing: Sizing) -> tuple[str, str]:
    windows = sizing.open_windows / sizing.task_managers
    return (
        f"{sizing.heap:,.0f} MB",
        f"hashmap: {windows:,.0f} windows; a million were measured in {sizing.figure(HEAP):,.0f} MB",
    )


def _bandwidth(sizing: Sizing) -> tuple[str, str]:
    whole = sizing.state(_FULL)
    return _rate_of_bytes(whole / sizing.interval / 1e6), f"on average: all of it every {sizing.interval:g} s"


def _burst(sizing: Sizing) -> tuple[str, str]:
    whole, seconds = sizing.state(_FULL), sizing.figure(_CHECKPOINT_SECONDS)
    return (
        _rate_of_bytes(whole / seconds / 1e6),
        f"{whole / 1e9:,.2f} GB in {seconds:g} s; with less a checkpoint takes longer",
    )


def _wait(sizing: Sizing) -> tuple[str, str]:
    seconds = sizing.figure(_CHECKPOINT_SECONDS)
    return (
        f"{sizing.interval + seconds:,.1f} s",
        f"the interval of {sizing.interval:g} s + {seconds:g} s for the tasks, measured at 4,000 visits/s",
    )


def _spark(sizing: Sizing) -> Iterator[Row]:
    yield Row("executor cores", f"{sizing.executor_cores:,}", _cores(sizing, "spark_cpu_seconds_per_million"))
    yield Row("executors", f"{sizing.executors:,}", f"{sizing.cores_each} cores each")
    yield Row("visits of a batch", f"{sizing.batch:,.0f}", f"every {sizing.trigger:g} s")
    yield Row(
        "files of a batch", f"{sizing.partitions:,}", f"one for each partition, {sizing.file_bytes / 1e6:,.1f} MB each"
    )
    yield Row(
        "files of a day", f"{sizing.files_of_a_day:,.0f}", f"{sizing.partitions} x {DAY:,} s / {sizing.trigger:g} s"
    )
    yield Row("the sink's log grows by", *_sink_log(sizing))


def _sink_log(sizing: Sizing) -> tuple[str, str]:
    each = sizing.figure("sink_log_bytes_per_file")
    return (
        f"{sizing.files_of_a_day * each / 1e6:,.3g} MB",
        f"each day, {each:g} bytes a file; all of it is written again every {sizing.seconds_between_compactions:g} s",
    )


def _store(sizing: Sizing) -> Iterator[Row]:
    yield Row("visits written", _rate_of_bytes(sizing.arriving), "by the synchronizer: the bytes as they came")
    yield Row("kept for each day", f"{sizing.arriving * DAY / 1e6:,.3g} TB", "nothing removes the synchronizer's files")
    yield from _requests(sizing, "writes", sizing.load.price_writes)
    yield from _requests(sizing, "reads", sizing.load.price_reads)


def _requests(sizing: Sizing, kind: str, price: float | None) -> Iterator[Row]:
    slot, file = f"checkpoint_{kind}_per_slot", f"batch_{kind}_per_file"
    each = f"{sizing.figure(file):g}"
    if kind == "writes" and sizing.requests_for_parts:
        each = f"({each} + {sizing.requests_for_parts} for parts)"
    yield Row(
        kind,
        f"{sizing.requests(kind):,.0f} /s",
        f"{sizing.figure(slot):g} x {sizing.slots} slots / {sizing.interval:g} s + "
        f"{each} x {sizing.partitions} files / {sizing.trigger:g} s",
    )
    requests = sizing.requests(kind) * MONTH
    millions = f"{requests / 1e6:,.3g} million"
    if price is None:
        yield Row(f"{kind}, a month", millions, f"in 30 days; --price-{kind} gives what they cost")
        return
    cost = f"{requests / 1000 * price:,.0f}"
    yield Row(f"{kind}, a month", cost, f"for {millions} in 30 days, at {price:g} for 1,000")
