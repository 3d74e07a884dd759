"""What every row is judged by, besides the verdict: offsets, batches, transactions, readers."""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flink_job.guarantees import EXACTLY_ONCE

from faults.model import Check, Loses, Repeats, Row
from faults.scene import Scene
from faults.sink_log import SINK_LOG, lines_of
from faults.timeline import CHECKPOINTS, EVENTS, read_lines
from faults.times import phase_begin

_WINDOWS = "windows"
"""The uid of the operator that counts."""
_WAITED_SECONDS = 8.0
"""Longer than two checkpoints, shorter than the timeout of the transaction that is in the way."""
_STARTING = re.compile(r"Partition: (?P<topic>\S+)-(?P<partition>\d+), StartingOffset: (?P<offset>-?\d+)")


class Witness:
    """Remembers, while a row runs, what can only be known before the repair."""

    def __init__(self, scene: Scene, row: Row) -> None:
        self._scene, self._row = scene, row
        self._ends: list[str] = []
        self._aside = 0
        self._job: dict[str, Any] = {}
        self._planned: dict[str, bytes] = {}
        self._sizes: dict[str, int] = {}
        self._promised: Path | None = None
        self._prepared = 0
        self.checks: list[Check] = []

    def before(self) -> None:
        """Look at the job before anything is broken."""
        self._job = self._scene.job()

    def struck(self) -> None:
        """Look at what the fault has met, as soon as it is there."""
        self._prepared = self._uncommitted() if self._row.in_transaction else 0

    def _uncommitted(self) -> int:
        """How many windows are written and not committed; by the last sample before the fault if that hits the broker.

        A broker that comes back has aborted or committed some of them.
        """
        if not any(" kafka" in step.command for step in self._row.breaks):
            topic = self._scene.stack.settings.values["VISIT_WINDOWS_TOPIC"]
            return int(json.loads(self._scene.ask(f"scripts/open_transactions.sh {topic}", codes=(0, 1)))["open"])
        at = phase_begin({"events": read_lines(self._scene.folder / EVENTS)}, "break") or 0.0
        samples = [each for each in read_lines(self._scene.folder / "kafka.jsonl") if "stable" in each]
        last = max((each for each in samples if each["at"] <= at), key=lambda each: each["at"], default=None)
        return 0 if last is None else sum(last["windows"].values()) - sum(last["stable"].values())

    def hit(self) -> bool:
        """Whether the fault came at the moment that the row is about."""
        if self._row.plans and not self._batches_without_commit():
            return False
        if self._row.between_phases and not self._completed_since():
            return False
        return self._prepared > 0 or not self._row.in_transaction

    def _completed_since(self) -> bool:
        """Whether a checkpoint was completed after the moment from which the broker could not answer."""
        moment = (self._scene.folder / "moment").stat().st_mtime
        return any((path / "_metadata").stat().st_mtime > moment for path in self._scene.complete_checkpoints())

    def broken(self) -> None:
        """Look at what is broken, before it is healed."""
        self.checks.clear()
        if self._row.cancels:
            job = self._scene.job()
            self.checks.append(Check("state of the job after the cancel", job["state"], "CANCELED"))
            self.checks.append(Check("its tasks that still run", str(job["running_tasks"]), "0"))
        if self._row.restores:
            self._promised = Path(self._scene.filled(f"{{{self._row.restores}}}"))
        if self._row.blocks_readers:
            self.checks.append(Check("readers of committed windows waited", str(self._readers_waited()), "True"))
        if self._row.repeats is not Repeats.NONE:
            topic = self._scene.stack.settings.values["VISIT_WINDOWS_TOPIC"]
            found = json.loads(self._scene.ask(f"scripts/open_transactions.sh {topic}", codes=(0, 1)))
            self._ends = [f"{each['partition']}:{each['stable']}" for each in found["partitions"]]
        if self._row.repeats is Repeats.ALL:
            settings = self._scene.stack.settings.values
            aside = (settings["VISITS_LATE_TOPIC"], settings["VISITS_REJECTED_TOPIC"])
            self._aside = sum(
                len(self._scene.ask(f"scripts/consume.sh {each} --to-the-end").split("\n")) - 1 for each in aside
            )
        self._planned = self._batches_without_commit()
        self._sizes = {name: self._visits_in(name, planned) for name, planned in self._planned.items()}

    def _batches_without_commit(self) -> dict[str, bytes]:
        offsets, commits = self._scene.spark / "offsets", self._scene.spark / "commits"
        if not offsets.is_dir():
            return {}
        return {
            file.name: file.read_bytes()
            for file in offsets.iterdir()
            if file.name.isdigit() and not (commits / file.name).exists()
        }

    def _readers_waited(self) -> bool:
        """Whether some partition had uncommitted records all the time, and its last stable offset stood still."""
        since = max(each["at"] for each in read_lines(self._scene.folder / EVENTS) if each["kind"] == "broken")
        samples = [
            each
            for each in read_lines(self._scene.folder / "kafka.jsonl")
            if "stable" in each and since < each["at"] < since + _WAITED_SECONDS
        ]
        return len(samples) > 1 and any(
            len({each["stable"][partition] for each in samples}) == 1
            and all(each["windows"][partition] > each["stable"][partition] for each in samples)
            for partition in samples[0]["stable"]
        )

    def healed(self) -> None:
        """Look at what the repair has begun."""
        job = self._scene.job()
        if self._row.parallelism > 1:
            expected = str(int(self._job["tasks"]) * self._row.parallelism)
            self.checks.append(Check("tasks of the restored job", str(job["tasks"]), expected))
        again = any(job[name] != self._job[name] for name in ("job_id", "restored_from", "restarts"))
        if self._row.restarts is not None:
            self.checks.append(Check("the job has started again", str(again), str(self._row.restarts)))
        if self._promised is not None:
            self.checks.append(Check("it was restored from", str(self._outside(job)), str(self._promised)))
        if again and job["restored_from"]:
            self._check_offsets(job)

    def _outside(self, job: dict[str, Any]) -> str:
        """The path on this machine of the checkpoint that a job was restored from."""
        path = job["restored_from"]
        return str(self._scene.stack.backend.path_outside(_path(path))) if path else "no checkpoint"

    def _check_offsets(self, job: dict[str, Any]) -> None:
        """Compare where the job began to read, by its log, with the offsets that the checkpoint has."""
        promised = self._offsets_in(_path(job["restored_from"]))
        topic = self._scene.stack.settings.values["VISITS_TOPIC"]
        log = self._scene.ask(f"scripts/logs.sh {self._scene.working()} 100000")
        read = [each for each in _STARTING.finditer(log) if each["topic"] == topic and each["partition"] in promised]
        began = {each["partition"]: int(each["offset"]) for each in read[-len(promised) :]}
        self.checks.append(Check("the job began to read at", _offsets(began), _offsets(promised)))

    def _offsets_in(self, checkpoint: str) -> dict[str, int]:
        """The offsets that a checkpoint has, by partition; the inspector has followed most of them."""
        for sample in reversed(read_lines(self._scene.folder / CHECKPOINTS)):
            for each in sample["checkpoints"]:
                if each["path"] == checkpoint and each.get("offsets"):
                    return {str(partition): int(offset) for partition, offset in each["offsets"].items()}
        line = f"scripts/exec.sh jobmanager python -m inspector.flink offsets {checkpoint}"
        return {partition: int(offset) for partition, offset in json.loads(self._scene.ask(line)).items()}

    def repeated(self) -> int:
        """How many records must be there twice: windows, and with Repeats.ALL late and unparsable visits too.

        Asked once the job runs again.
        """
        if self._row.repeats is Repeats.NONE:
            return 0
        watermark = 0 if self._row.repeats is Repeats.ALL else self._watermark()
        return int(self._scene.measure("windows_after", str(watermark), *self._ends)) + self._aside

    def lost(self) -> int:
        """How many windows must be lost. Asked once the job runs again."""
        if self._row.loses is Loses.PREPARED:
            return self._prepared
        if self._row.loses is Loses.OPEN:
            states = [state for each in self._restored() if each["uid"] == _WINDOWS for state in each["state"]]
            return sum(window["keys"] for state in states if state["kind"] == "value" for window in state["windows"])
        return 0

    def repeated_lines(self) -> int:
        """How many visits the batch has that was planned before the fault, if it must be written twice."""
        if not self._row.repeats_batch:
            return 0
        [visits] = self._sizes.values()
        return visits

    def _visits_in(self, batch: str, planned: bytes) -> int:
        before = self._scene.spark / "offsets" / str(int(batch) - 1)
        return _visits_up_to(planned) - (_visits_up_to(before.read_bytes()) if before.exists() else 0)

    def _watermark(self) -> int:
        return int(min(each["watermark"] for each in self._restored() if each.get("watermark")))

    def _restored(self) -> list[dict[str, Any]]:
        """The operators in the checkpoint that the job was restored from."""
        path = self._scene.stack.backend.path_outside(_path(self._scene.job()["restored_from"]))
        found = json.loads(self._scene.ask(f"scripts/inspect.sh {path} --json --no-lag"))
        return list(found["operators"])

    def settled(self) -> None:
        """Look at what everything has come to."""
        for name, planned in sorted(self._planned.items()):
            file = self._scene.spark / "offsets" / name
            now = "the same range" if file.exists() and file.read_bytes() == planned else "another range"
            self.checks.append(Check(f"batch {name}, planned before the fault, has", now, "the same range"))
            if (self._scene.output / SINK_LOG).is_dir():
                found = lines_of(self._scene.output, int(name))
                self.checks.append(Check(f"visits that batch {name} has written", str(found), str(self._sizes[name])))
        self.checks.append(Check("the watcher ran to the end", str(self._scene.watches()), "True"))
        seen = json.loads(self._scene.measure("aftermath", str(self._scene.folder)))
        self.checks += [
            Check(f"records of open transactions in {topic}", str(found), "0") for topic, found in seen["open"].items()
        ]
        self.checks.append(Check("a reader saw windows meanwhile", str(seen["seen"] > 0), "True"))
        differ = seen["different"] + seen["missing"] + seen["unseen"]
        self.checks.append(Check("records that a reader meanwhile and a reader now disagree on", str(differ), "0"))


def _visits_up_to(offsets_file: bytes) -> int:
    """The sum of the offsets of the visits topic's partitions in a file of offsets/."""
    [partitions] = json.loads(offsets_file.splitlines()[-1]).values()
    return sum(partitions.values())


def _path(address: str) -> str:
    """The path of a checkpoint, which Flink names by an address such as file:/x."""
    return urllib.parse.urlparse(address).path


def _offsets(offsets: dict[str, int]) -> str:
    return ", ".join(f"partition {partition} offset {offset}" for partition, offset in sorted(offsets.items()))


@dataclass(frozen=True)
class Predicted:
    """What the checkpoints predict, counted in records: windows that are there twice or lost, visits written twice."""

    repeated: int = 0
    lost: int = 0
    lines: int = 0


def wrong(verdict: dict[str, Any], pipeline: str) -> int:
    """How many records the verdict on a pipeline finds lost, written twice or unexpected."""
    [found] = [each for each in verdict["verdicts"] if each["pipeline"] == pipeline]
    return int(found["lost"] + found["duplicated"] + found["unexpected"])


def none_holds(verdict: dict[str, Any]) -> list[Check]:
    """Whether no verdict claims that all is well."""
    found = {each["pipeline"]: each["outcome"] for each in verdict["verdicts"]}
    return [
        Check(f"verdict on {name} is violated or unknown", str(found.get(name) in ("violated", "unknown")), "True")
        for name in ("flink", "spark")
    ]


def of_control(row: Row, verdict: dict[str, Any], before: int) -> list[Check]:
    """Whether the verdict has found more that is wrong than `before`."""
    [found] = [each for each in verdict["verdicts"] if each["pipeline"] == row.caught]
    return [
        Check(f"verdict on {row.caught}", found["outcome"], "violated"),
        Check(f"wrong records beyond the {before} before", str(wrong(verdict, row.caught) > before), "True"),
    ]


def of_verdict(row: Row, verdict: dict[str, Any], predicted: Predicted) -> list[Check]:
    """Compare the verdicts with what the row promises."""
    found = {each["pipeline"]: each for each in verdict["verdicts"]}
    flink, spark, source = found["flink"], found["spark"], verdict["source"] or {"outcome": "not judged"}
    checks = [Check("the source: every acknowledged visit is there", source["outcome"], "holds")]
    if row.mode == EXACTLY_ONCE and not (predicted.repeated or predicted.lost):
        checks.append(Check("verdict on flink", flink["outcome"], "holds"))
    else:
        checks += _counted(flink, "windows", {"lost": predicted.lost, "unexpected": 0, "disordered": 0})
        if row.mode == EXACTLY_ONCE:
            checks += _counted(flink, "records", {"duplicated": predicted.repeated})
        if row.loses is Loses.OPEN:
            # A window whose state is gone counts only the visits that come later.
            checks = [check for check in checks if check.what != "windows unexpected"]
    checks += [Check(f"some visits are {name}", str(flink[name] > 0), "True") for name in row.sets_aside]
    checks.append(Check("pending windows", str(flink["pending"]), "0"))
    if predicted.lines:
        counts = {"duplicated": predicted.lines, "lost": 0, "unexpected": 0, "disordered": 0, "pending": 0}
        checks += _counted(spark, "visits", counts)
    else:
        checks.append(Check("verdict on spark", spark["outcome"], "holds"))
    return checks


def _counted(found: dict[str, Any], noun: str, counts: dict[str, int]) -> list[Check]:
    """Checks of the counts of a verdict; one that is unknown has counted nothing."""
    known = Check(f"verdict on {found['pipeline']} has counted", str(found["outcome"] != "unknown"), "True")
    return [known, *(Check(f"{noun} {name}", str(found[name]), str(count)) for name, count in counts.items())]
