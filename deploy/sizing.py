"""The size of a cluster that a load needs: the quantities, from settings and measured figures.

The sizes assume that work spreads evenly, which needs as many partitions for each task as for any other, and that a
record costs the CPU that it costs on the small cluster.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from deploy import kafka
from deploy.flink import cluster_options
from deploy.measured import Figure
from faultline.settings import Settings, SettingsError

DAY = 86_400
MONTH = 30 * DAY
HEAP = "task_heap_megabytes_per_million_windows"
_UNITS = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3600.0}
_HEAP_STEP = 64
_PART_BYTES = 64 * 2**20
"""Hadoop's s3a:// sends a file above this size in parts (fs.s3a.multipart.size, its default)."""
_EXCHANGES = 2
"""Steps of the windowing job in which each task sends to each task of the next one."""
_BUFFER_BYTES, _OF_A_CHANNEL = 32 * 2**10, 2
"""taskmanager.memory.segment-size, and taskmanager.network.memory.buffers-per-channel: their defaults."""
_COMPACTED = 10
"""Batches between two compactions of the sink's log (spark.sql.streaming.fileSink.log.compactInterval, its default)."""


@dataclass(frozen=True)
class Load:
    """The load of a cluster. `busy`: the share of a core that a task uses; prices are of 1,000 requests."""

    visits_per_second: float
    busy: float
    price_writes: float | None = None
    price_reads: float | None = None


def trigger_seconds(settings: Settings) -> float:
    """Seconds between two micro-batches. Raises SettingsError when they are not fixed."""
    match = re.fullmatch(r"(\d+) (millisecond|second|minute|hour)s?", settings.text("SPARK_TRIGGER"))
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
        self.load, self.settings, self.figures = load, settings, figures
        self.millions = load.visits_per_second / 1e6
        self.brokers = settings.number("KAFKA_BROKERS")
        self.replicas = settings.number("KAFKA_REPLICATION")
        self.interval = settings.number("FLINK_CHECKPOINT_INTERVAL_MS") / 1000
        self.trigger = trigger_seconds(settings)
        self.window = settings.number("FLINK_WINDOW_SECONDS") + settings.number("FLINK_OUT_OF_ORDERNESS_SECONDS")
        # The windowing job reads one topic and writes the others, each task with a transaction for each of them.
        self.sinks = len(kafka.topics(settings)) - 1
        options = cluster_options(settings)
        self.slots_each = int(options["taskmanager.numberOfTaskSlots"])
        self.network_buffers = int(options["taskmanager.memory.network.max"].removesuffix("m")) * 2**20 // _BUFFER_BYTES
        self.cores_each = settings.number("SPARK_EXECUTOR_CORES")

    def figure(self, name: str) -> float:
        """A measured figure."""
        return self.figures[name].value

    def _cores(self, figure: str) -> int:
        return math.ceil(self.millions * self.figure(figure) / self.load.busy)

    # --- Kafka ---

    @property
    def arriving(self) -> float:
        """Megabytes of visits in a second."""
        return self.load.visits_per_second * self.figure("visit_bytes") / 1e6

    @property
    def written(self) -> float:
        """Megabytes that all brokers write in a second."""
        return self.arriving * self.replicas

    @property
    def partitions(self) -> int:
        """Partitions of `visits`: a multiple of the tasks and of the brokers, no fewer than executor cores."""
        even = math.lcm(self.slots, self.brokers)
        return math.ceil(self.executor_cores / even) * even

    @property
    def minutes_until_full(self) -> float:
        """Minutes until the disks of the brokers are full."""
        disks = self.brokers * gibibytes(self.settings.text("KAFKA_DISK")) * 2**30
        return disks / (self.written * 1e6) / 60

    @property
    def broker_cores(self) -> int:
        """Cores of all brokers together."""
        return self._cores("kafka_cpu_seconds_per_million")

    # --- the windowing job ---

    @property
    def slots(self) -> int:
        """Tasks of each step; a multiple of the brokers, unless they are fewer."""
        need = self._cores("flink_cpu_seconds_per_million")
        return need if need < self.brokers else math.ceil(need / self.brokers) * self.brokers

    @property
    def task_managers(self) -> int:
        """TaskManagers for the slots."""
        return math.ceil(self.slots / self.slots_each)

    @property
    def most_tasks(self) -> int:
        """FLINK_MAX_PARALLELISM, or a larger power of two where the slots are more."""
        return max(self.settings.number("FLINK_MAX_PARALLELISM"), 1 << (self.slots - 1).bit_length())

    @property
    def needed_buffers(self) -> int:
        """Network buffers of a TaskManager: of each channel from another one, and for each task that it sends to."""
        remote = max(0, self.slots - self.slots_each)
        return self.slots_each * _EXCHANGES * (_OF_A_CHANNEL * remote + self.slots + 1)

    @property
    def catch_up(self) -> float:
        """Seconds from the restart after a kill until the job is where it would be without it."""
        busy = self.load.busy
        return self.figure("taskmanager_recovery_seconds") * busy / (1 - busy)

    @property
    def results(self) -> float:
        """Records that the job writes in a second."""
        return self.millions * self.figure("results_per_million")

    @property
    def open_windows(self) -> float:
        """Windows in the state at once."""
        return self.results * self.window

    def state(self, figure: str) -> float:
        """Bytes of the state, by the figure of a window's bytes."""
        return self.open_windows * self.figure(figure)

    @property
    def heap(self) -> float:
        """Megabytes of task heap for the windows of a TaskManager, state backend hashmap."""
        return self.open_windows / self.task_managers * self.figure(HEAP) / 1e6

    @property
    def open_transactions(self) -> int:
        """Transactions at once, at most, without those about to commit."""
        return self.slots * self.sinks

    # --- the synchronizer ---

    @property
    def executor_cores(self) -> int:
        """Cores of all executors together."""
        return self._cores("spark_cpu_seconds_per_million")

    @property
    def executors(self) -> int:
        """Executors for these cores."""
        return math.ceil(self.executor_cores / self.cores_each)

    @property
    def batch(self) -> float:
        """Visits of a micro-batch."""
        return self.load.visits_per_second * self.trigger

    @property
    def file_bytes(self) -> float:
        """Bytes of a file; a micro-batch has one for each partition."""
        return self.batch * self.figure("visit_bytes") / self.partitions

    @property
    def files_of_a_day(self) -> float:
        """Files that the synchronizer writes in a day."""
        return self.partitions * DAY / self.trigger

    @property
    def seconds_between_compactions(self) -> float:
        """Seconds between two compactions of the sink's log."""
        return _COMPACTED * self.trigger

    # --- the object store ---

    @property
    def requests_for_parts(self) -> int:
        """Writes for a file beyond the one that is measured: a file in parts has each of them, a begin and an end."""
        parts = math.ceil(self.file_bytes / _PART_BYTES)
        return parts + 1 if parts > 1 else 0

    def requests(self, kind: str) -> float:
        """Requests in a second of a kind, `writes` or `reads`, for checkpoints and micro-batches."""
        parts = self.requests_for_parts if kind == "writes" else 0
        of_slots = self.figure(f"checkpoint_{kind}_per_slot") * self.slots / self.interval
        return of_slots + (self.figure(f"batch_{kind}_per_file") + parts) * self.partitions / self.trigger

    # --- settings ---

    def lines(self) -> list[str]:
        """Lines of deploy/kubernetes.env for this load. Raises SettingsError."""
        heap = math.ceil(self.heap / _HEAP_STEP) * _HEAP_STEP
        raised = self.most_tasks > self.settings.number("FLINK_MAX_PARALLELISM")
        return [
            f"KAFKA_CPU={math.ceil(self.broker_cores / self.brokers)}",
            f"TOPIC_PARTITIONS={self.partitions}",
            f"FLINK_PARALLELISM={self.slots}",
            *([f"FLINK_MAX_PARALLELISM={self.most_tasks}"] if raised else []),
            f"FLINK_TASK_HEAP={max(heap, self.settings.megabytes('FLINK_TASK_HEAP'))}m",
            f"SPARK_EXECUTORS={self.executors}",
        ]
