"""Test that Flink does with a damaged checkpoint what the inspector says."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from faultline.inspector.model import Restart
from tests.damaged import damage
from tests.golden.archives import releases
from tests.golden.record import await_checkpoints, flink_job, produce, restored
from tests.stack.broker import Broker, run_broker
from tests.stack.flink_cluster import described

pytestmark = [pytest.mark.full, pytest.mark.split, pytest.mark.timeout(2400)]

SEEDS = range(5000, 5200)
"""One for each copy that is damaged by chance; what others find becomes a case of its own."""


def flipped(content: bytes) -> bytes:
    """Flip a bit in the middle."""
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[:-1],
    "head": lambda content: content[: len(content) // 3],
    "nuls": lambda content: bytes(len(content)),
    "nuls-behind": lambda content: content + bytes(100),
    "flipped": flipped,
}


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with the topics of the recorded job, and with the transactions that its checkpoints name."""
    for broker in run_broker(tmp_path_factory.mktemp("broker")):
        broker.create_topics("visits", "visit_windows")
        yield broker


def taken(broker: Broker, folder: Path, delivery: str) -> Path:
    """Run the recorded job until it has a few checkpoints; returns the newest."""
    folder.mkdir()
    with flink_job(broker, folder, delivery) as job:
        for start in range(0, 400, 40):
            produce(broker.bootstrap, start, start + 40)
        statistics = await_checkpoints(job, 3)
    return Path(statistics["latest"]["completed"]["external_path"].removeprefix("file:"))


def agree(restart: Restart, reason: str) -> bool:
    """Compare a prediction with Flink's reason, empty when the job runs."""
    if restart.action == "unknown":
        return True
    if restart.action == "impossible" or not reason:
        return (restart.action == "impossible") == bool(reason)
    # A type that changes may be sound, and not that of the job.
    return "not looked at" in "".join(restart.details) or reason.startswith("StateMigrationException")


def require_as_said(broker: Broker, folder: Path, delivery: str, cases: dict[str, Path]) -> None:
    """Compare what is predicted of each checkpoint with what Flink does; shows all disagreements at once."""
    paths = list(cases.values())
    restarts = [report.restart for report in described(*paths, rows=100)]
    reasons = restored(broker, folder, delivery, paths)
    wrong = [
        f"{case}: {restart}; Flink: {reason or 'runs'}"
        for case, restart, reason in zip(cases, restarts, reasons, strict=True)
        if restart is None or not agree(restart, reason)
    ]
    assert not wrong, "\n".join(wrong)


def damaged(whole: Path, folder: Path) -> dict[str, Path]:
    """Copy the job's folder for each damage to each of its newest checkpoint's files; returns the checkpoints.

    Metadata names shared files by absolute paths: the copy's path is as long, and is put in its place.
    """
    job, metadata = whole.parent, (whole / "_metadata").read_bytes()
    named = {file for file in job.rglob("*") if file.is_file() and file.name.encode() in metadata}
    # Subtasks of an operator have files of the same size.
    files = {file.stat().st_size: file for file in sorted({*named, whole / "_metadata"})}.values()
    changes: list[tuple[str, Path, Callable[[bytes], bytes]]] = [("whole", whole / "_metadata", bytes)]
    changes += [
        (f"{file.relative_to(job)} of {file.stat().st_size}: {name}", file, change)
        for file in files
        for name, change in DAMAGES.items()
    ]
    cases = {}
    for number, (case, file, change) in enumerate(changes):
        copy = folder / f"{number:0{len(job.parent.name)}}" / job.name
        shutil.copytree(job, copy)
        (copy / whole.name / "_metadata").write_bytes(metadata.replace(bytes(job), bytes(copy)))
        target = copy / file.relative_to(job)
        target.write_bytes(change(target.read_bytes()))
        cases[case] = copy / whole.name
    return cases


@pytest.mark.parametrize("delivery", ["exactly-once", "rocksdb"])
def test_flink_does_what_the_inspector_says(own_broker: Broker, tmp_path: Path, delivery: str) -> None:
    cases = damaged(taken(own_broker, tmp_path / "taken", delivery), tmp_path)
    require_as_said(own_broker, tmp_path / "taken", delivery, cases)


@pytest.mark.parametrize("release", releases("flink"), ids=lambda folder: str(folder.name))
def test_flink_restores_what_was_damaged_by_chance_as_said(own_broker: Broker, tmp_path: Path, release: Path) -> None:
    newest, cases = max((release / "at-least-once").glob("*/chk-*")), {}
    for seed in SEEDS:
        copy = Path(shutil.copytree(newest, tmp_path / str(seed) / newest.parent.name / newest.name))
        cases[f"{seed}: {damage(copy, random.Random(seed))}"] = copy
    require_as_said(own_broker, tmp_path, "at-least-once", cases)


def test_flink_restores_what_other_releases_wrote(own_broker: Broker, tmp_path: Path) -> None:
    cases = {release.name: max((release / "at-least-once").glob("*/chk-*")) for release in releases("flink")}
    require_as_said(own_broker, tmp_path, "at-least-once", cases)
