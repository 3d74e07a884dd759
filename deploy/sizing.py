"""How large a cluster must be for a load: each line has its arithmetic, from settings and measured figures.

It assumes that work spreads evenly and that a record costs the same CPU on many machines as on one. A figure that is
not measured yet leaves its lines without a value, never with a guess.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from contract.settings import Settings, SettingsError
from deploy import kafka
from deploy.flink import cluster_options
from deploy.measured import Figure, MeasuredError

_DAY = 86_400
_MONTH = 30 * _DAY
_UNITS = {"second": 1, "minute": 60, "hour": 3600}


@dataclass(frozen=True)
class Load:
    """What the cluster must carry. `busy`: the share of a core that a task uses; prices are of 1,000 requests."""

    visits_per_second: float
    busy: float
    price_writes: float | None = None
    price_reads: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    value: str
    how: str


def _rate_of_bytes(megabytes: float) -> str:
    """`440 MB/s`, and `0.44 MB/s` for little."""
    return f"{megabytes:,.0f} MB/s" if megabytes >= 100 else f"{megabytes:.3g} MB/s"


def trigger_seconds(settings: Settings) -> float:
    """Seconds between two micro-batches. Raises SettingsError when they are not fixed."""
    match = re.fullmatch(r"(\d+) (second|minute|hour)s?", settings.text("SPARK_TRIGGER"))
    if match is None:
        raise SettingsError(f"SPARK_TRIGGER={settings.text('SPARK_TRIGGER')} is not an interval like '5 seconds'")
    return int(match[1]) * _UNITS[match[2]]


def gibibytes(quantity: str) -> float:
    """A Kubernetes quantity such as `100Gi` in GiB. Raises SettingsError."""
    match = re.fullmatch(r"(\d+)(Gi|Ti)", quantity)
    if match is None:
        raise SettingsError(f"{quantity} is not a size like 100Gi or 2Ti; correct KAFKA_DISK in deploy/kubernetes.env")
    return int(match[1]) * (1024 if match[2] == "Ti" else 1)


class Sizing:
    """The arithmetic for one load."""

    def __init__(self, load: Load, settings: Settings, figures: Mapping[str, Figure]) -> None:
        self._load, self._settings, self._figures = load, settings, figures
        self._millions = load.visits_per_second / 1e6
        self._interval = settings.number("FLINK_CHECKPOINT_INTERVAL_MS") / 1000
        self._trigger = trigger_seconds(settings)
        self._window = settings.number("FLINK_WINDOW_SECONDS") + settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS")
        # The windowing job reads one topic and writes the others, each task with a transaction for each of them.
        self._sinks = len(kafka.topics(settings)) - 1
        self._slots_each = int(cluster_options(settings)["taskmanager.numberOfTaskSlots"])

    @property
    def slots(self) -> int:
        """Tasks of the windowing job, of each kind."""
        return math.ceil(self._millions * self._figure("flink_cpu_seconds_per_million") / self._load.busy)

    @property
    def executor_cores(self) -> int:
        """Cores of all executors together."""
        return math.ceil(self._millions * self._figure("spark_cpu_seconds_per_million") / self._load.busy)

    @property
    def partitions(self) -> int:
        """Partitions of the topic `visits`: no task without one, and as many leaders on each broker."""
        brokers = self._settings.number("KAFKA_BROKERS")
        return math.ceil(max(self.slots, self.executor_cores) / brokers) * brokers

    @property
    def open_windows(self) -> float:
        """Windows in the state at once, at most."""
        return self._millions * self._figure("results_per_million") * self._window

    def _figure(self, name: str) -> float:
        value = self._figures[name].value
        if value is None:
            raise MeasuredError(f"figure {name} has no value in deploy/measured.yaml; restore it with git")
        return value

    def _row(self, what: str, needs: tuple[str, ...], compute: Callable[..., tuple[str, str]]) -> Row:
        """A row from measured figures; without a value when one of them is missing."""
        missing = [name for name in needs if self._figures[name].value is None]
        if missing:
            return Row(what, "not measured", f"needs {', '.join(missing)} (deploy/measured.yaml)")
        return Row(what, *compute(*(self._figure(name) for name in needs)))

    def sections(self) -> Iterator[tuple[str, list[Row]]]:
        """The rows, by component."""
        yield "Kafka", list(self._kafka())
        yield "the windowing job", list(self._flink())
        yield "the synchronizer", list(self._spark())
        yield "the object store", list(self._store())

    def _kafka(self) -> Iterator[Row]:
        visits, replicas = self._load.visits_per_second, self._settings.number("KAFKA_REPLICATION")
        each = self._figure("visit_bytes")
        arriving = visits * each / 1e6
        yield Row("visits that arrive", _rate_of_bytes(arriving), f"{visits:,.0f} visits/s x {each:,.0f} bytes")
        yield Row("written by the brokers", _rate_of_bytes(arriving * replicas), f"x {replicas} replicas")
        yield Row("read from them", _rate_of_bytes(arriving * 2), "by the windowing job and by the synchronizer")
        yield Row(
            "partitions of visits", f"{self.partitions:,}",
            f"for {self.slots} slots and {self.executor_cores} executor cores, a multiple of "
            f"{self._settings.number('KAFKA_BROKERS')} brokers",
        )  # fmt: skip
        reader = self._figure("reader_records_per_second")
        yield Row(
            "visits of a partition", f"{visits / self.partitions:,.0f} /s", f"one reader was measured at {reader:,.0f}"
        )
        kept = arriving * replicas * _DAY / 1e6
        retention = self._settings.text("TOPIC_RETENTION_MS")
        yield Row("kept for each day", f"{kept:,.3g} TB", f"TOPIC_RETENTION_MS={retention}: -1 keeps every day")
        disks = self._settings.number("KAFKA_BROKERS") * gibibytes(self._settings.text("KAFKA_DISK"))
        minutes = disks * 2**30 / (arriving * replicas * 1e6) / 60
        yield Row(
            "the disks are full after", f"{minutes:,.3g} min",
            f"{self._settings.text('KAFKA_BROKERS')} x {self._settings.text('KAFKA_DISK')}",
        )  # fmt: skip
        yield self._row(
            "cores of the brokers",
            ("kafka_cpu_seconds_per_million",),
            lambda cpu: (
                f"{math.ceil(self._millions * cpu / self._load.busy):,}",
                f"{self._millions:g} million/s x {cpu:g} s / {self._load.busy:g} busy",
            ),
        )

    def _flink(self) -> Iterator[Row]:
        busy, cpu = self._load.busy, self._figure("flink_cpu_seconds_per_million")
        yield Row("slots", f"{self.slots:,}", f"{self._millions:g} million/s x {cpu:g} s / {busy:g} busy")
        yield Row(
            "TaskManagers", f"{math.ceil(self.slots / self._slots_each):,}", f"{self._slots_each} slots and cores each"
        )
        limit = self._settings.number("FLINK_MAX_PARALLELISM")
        enough = "enough" if self.slots <= limit else "TOO FEW: raise it before the first start"
        yield Row("FLINK_MAX_PARALLELISM", f"{limit:,}", f"{enough}; state cannot be restored with another number")
        down = self._figure("taskmanager_recovery_seconds")
        yield Row(
            "to catch up after a kill", f"{down * busy / (1 - busy):,.1f} s",
            f"{down:g} s without output x {busy:g} / {1 - busy:g}",
        )  # fmt: skip
        results = self._millions * self._figure("results_per_million")
        yield Row("records that it writes", f"{results:,.0f} /s", "as many for each visit as in the benchmark")
        yield Row(
            "windows open at once", f"{self.open_windows:,.0f}", f"at most: {self._window} s from first visit to end"
        )
        for backend, name in (("hashmap", "state_bytes_per_window"), ("rocksdb", "state_bytes_per_window_rocksdb")):
            yield self._row(f"state, {backend}", (name,), self._state)
        yield self._row("full checkpoints write", ("state_bytes_per_window",), self._checkpoint_bandwidth)
        open_at_once = self.slots * self._sinks
        yield Row("transactions open", f"{open_at_once:,}", f"at most: {self.slots} tasks x {self._sinks} topics")
        yield Row(
            "with those about to commit", f"{open_at_once * 2:,}", "at most: one checkpoint at a time, so twice as many"
        )
        yield Row(
            "transactions that end", f"{open_at_once / self._interval:,.1f} /s",
            f"at most: each at a checkpoint, every {self._interval:g} s",
        )  # fmt: skip
        yield self._row(
            "windows wait for their commit",
            ("checkpoint_seconds",),
            lambda seconds: (f"{self._interval + seconds:,.1f} s", f"at most {self._interval:g} s + {seconds:g} s"),
        )

    def _state(self, each: float) -> tuple[str, str]:
        whole = self.open_windows * each
        return f"{whole / 1e9:,.2f} GB", f"x {each:g} bytes; {whole / self.slots / 1e6:,.0f} MB for a slot"

    def _checkpoint_bandwidth(self, each: float) -> tuple[str, str]:
        return _rate_of_bytes(self.open_windows * each / self._interval / 1e6), f"all of it every {self._interval:g} s"

    def _spark(self) -> Iterator[Row]:
        visits, cpu = self._load.visits_per_second, self._figure("spark_cpu_seconds_per_million")
        cores = self._settings.number("SPARK_EXECUTOR_CORES")
        yield Row(
            "executor cores", f"{self.executor_cores:,}",
            f"{self._millions:g} million/s x {cpu:g} s / {self._load.busy:g} busy",
        )  # fmt: skip
        yield Row("executors", f"{math.ceil(self.executor_cores / cores):,}", f"{cores} cores each")
        yield Row("visits of a batch", f"{visits * self._trigger:,.0f}", f"every {self._trigger:g} s")
        size = visits * self._trigger * self._figure("visit_bytes") / self.partitions / 1e6
        yield Row("files of a batch", f"{self.partitions:,}", f"one for each partition, {size:,.1f} MB each")
        yield Row("files of a day", f"{self.partitions * _DAY / self._trigger:,.0f}", "")

    def _store(self) -> Iterator[Row]:
        arriving = self._load.visits_per_second * self._figure("visit_bytes") / 1e6
        yield Row("visits written", _rate_of_bytes(arriving), "by the synchronizer: the bytes as they came")
        for kind, price in (("writes", self._load.price_writes), ("reads", self._load.price_reads)):
            needs = (f"checkpoint_{kind}_per_slot", f"batch_{kind}_per_file")
            yield self._row(kind, needs, self._requests)
            if price is None:
                yield Row(f"{kind}, a month", "no price", f"give your store's with --price-{kind}")
            else:
                yield self._row(f"{kind}, a month", needs, functools.partial(self._cost, price))

    def _cost(self, price: float, slot: float, file: float) -> tuple[str, str]:
        cost = self._rate(slot, file) * _MONTH / 1000 * price
        return f"{cost:,.0f}", f"30 days at {price:g} for 1,000 requests"

    def _rate(self, slot: float, file: float) -> float:
        return slot * self.slots / self._interval + file * self.partitions / self._trigger

    def _requests(self, slot: float, file: float) -> tuple[str, str]:
        return (
            f"{self._rate(slot, file):,.0f} /s",
            f"{slot:g} x {self.slots} slots / {self._interval:g} s + {file:g} x {self.partitions} files / "
            f"{self._trigger:g} s",
        )


def table(load: Load, settings: Settings, figures: Mapping[str, Figure]) -> str:
    """The rows as text."""
    lines = [f"{load.visits_per_second:,.0f} visits/s, each core {load.busy:.0%} busy"]
    for title, rows in Sizing(load, settings, figures).sections():
        lines += ["", title]
        lines += [f"  {row.what:<29} {row.value:>12}  {row.how}".rstrip() for row in rows]
    return "\n".join(lines) + "\n"
