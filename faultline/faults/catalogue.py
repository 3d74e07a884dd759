"""The faults: the steps that break something, and those that repair it. A soak chooses among those of its stack."""

from __future__ import annotations

from collections.abc import Collection

from faultline.faults.model import Fault
from faultline.faults.steps import Cancel, Kill, Pause, Restore, Resume, Start, Stop

_NEED_THE_STORE = (
    "jobmanager", "jobmanager-2", "taskmanager", "taskmanager-2", "spark", "spark-worker", "spark-worker-2",
)  # fmt: skip
"""Services with data in the object store: until it answers, none of them starts."""


def _kill(name: str, service: str, *others: str) -> Fault:
    """SIGKILL to a service; `others`: what its start needs besides."""
    return Fault(name, (Kill(service),), (Start(service),), frozenset({service, *others}))


def _freeze(name: str, service: str, *others: str, longest: float = 15.0) -> Fault:
    """A service stands still: its process is there, its connections stay open, and nothing answers."""
    return Fault(name, (Pause(service),), (Resume(service),), frozenset({service, *others}), seconds=(1.0, longest))


_FAULTS = (
    _kill("broker-kill", "kafka"),
    _freeze("broker-freeze", "kafka"),
    Fault("broker-bounce", (Stop("kafka"),), (Start("kafka"),), frozenset({"kafka"})),
    # Of three: the others elect leaders without it.
    _kill("broker-2-kill", "kafka-2"),
    _freeze("broker-3-freeze", "kafka-3"),
    # Visits are sent and not acknowledged. Its start asks the broker for the newest event time.
    _kill("generator-kill", "generator", "kafka"),
    # Event time does not move.
    _freeze("generator-freeze", "generator"),
    Fault("job-cancel", (Cancel(),), (Restore(),), frozenset({"jobmanager", "taskmanager", "kafka"})),
    # The job is gone, and a person restores it, which needs all of them. A second JobManager takes the job over.
    Fault(
        "jobmanager-kill",
        (Kill("jobmanager"),),
        (Start("jobmanager"), Restore()),
        frozenset({"jobmanager", "taskmanager", "kafka"}),
        without=frozenset({"jobmanager-2"}),
    ),
    # Of two: with both gone, the restore of another fault would find none that leads.
    _kill("jobmanager-1-of-2-kill", "jobmanager", "jobmanager-2"),
    _kill("jobmanager-2-of-2-kill", "jobmanager-2", "jobmanager"),
    # Tasks run, and no checkpoint is triggered or completed.
    _freeze("jobmanager-freeze", "jobmanager"),
    _kill("taskmanager-kill", "taskmanager"),
    _kill("taskmanager-2-kill", "taskmanager-2"),
    _freeze("taskmanager-freeze", "taskmanager", longest=20.0),
    # Its start asks for the broker.
    _kill("synchronizer-kill", "spark", "kafka"),
    _freeze("synchronizer-freeze", "spark"),
    # With its executor.
    _kill("spark-worker-kill", "spark-worker"),
    _freeze("spark-worker-2-freeze", "spark-worker-2"),
    # Checkpoints and batches fail until it is back. A driver whose commit has failed ends.
    Fault("store-kill", (Kill("store"),), (Start("store"), Start("spark")), frozenset({"store", *_NEED_THE_STORE})),
    # Checkpoints and batches wait.
    _freeze("store-freeze", "store", *_NEED_THE_STORE, longest=8.0),
)
CATALOGUE = {fault.name: fault for fault in sorted(_FAULTS, key=lambda fault: fault.name)}
"""The faults by name, in the order of their names."""


def possible(services: Collection[str]) -> dict[str, Fault]:
    """The faults of a stack with these services, by name."""
    has = frozenset(services)
    return {name: fault for name, fault in CATALOGUE.items() if fault.needs <= has and not fault.without & has}
