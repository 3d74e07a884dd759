"""What every row is judged by, besides the verdict: offsets, batches, transactions, readers."""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass
from typing import Any

from faults.model import EXACTLY_ONCE, Check, Loses, Repeats, Row
from faults.scene import Scene
from faults.timeline import EVENTS, read_lines

_WINDOWS = "windows"
"""The uid of the operator that counts."""
_STARTING = re.compile(r"Partition: (?P<topic>\S+)-(?P<partition>\d+), StartingOffset: (?P<offset>-?\d+)")


class Witness:
    """Remembers, while a row runs, what can only be known before the repair."""

    def __init__(self, scene: Scene, row: Row) -> None:
        self._scene, self._row = scene, row
        self._ends: list[str] = []
        self._aside = self._tasks = 0
        self._planned: dict[str, bytes] = {}
        self._prepared = 0
        self.checks: list[Check] = []

    def before(self) -> None:
        """Look at the job before anything is broken."""
        self._tasks = int(self._scene.job()["tasks"])

    def hit(self) -> bool:
        """Whether the fault came at the moment that the row is about."""
        if self._row.plans and not self._batches_without_commit():
            return False
        if self._row.between_phases and not self._completed_since():
            return False
        if not self._row.in_transaction:
            return True
        # The broker may be the one that is dead: the last look before the fault counts.
        at = max(event["at"] for event in read_lines(self._scene.folder / EVENTS) if event["text"] == "break")
        samples = [each for each in read_lines(self._scene.folder / "kafka.jsonl") if "stable" in each]
        last = max((each for each in samples if each["at"] <= at), key=lambda each: each["at"], default=None)
        self._prepared = 0 if last is None else sum(last["windows"].values()) - sum(last["stable"].values())
        return self._prepared > 0

    def _completed_since(self) -> bool:
        """Whether a checkpoint was completed after the moment from which the broker could not answer."""
        moment = (self._scene.folder / "moment").stat().st_mtime
        return any((path / "_metadata").stat().st_mtime > moment for path in self._scene.complete_checkpoints())

    def broken(self) -> None:
        """Look at what is broken, before it is healed."""
        self.checks.clear()
        if self._row.cancels:
            state = self._scene.job()["state"]
            self.checks.append(Check("state of the job after the cancel", state, "CANCELED"))
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

    def _batches_without_commit(self) -> dict[str, bytes]:
        offsets, commits = self._scene.spark / "offsets", self._scene.spark / "commits"
        if not offsets.is_dir():
            return {}
        return {
            file.name: file.read_bytes()
            for file in offsets.iterdir()
            if file.name.isdigit() and not (commits / file.name).exists()
        }

    def healed(self) -> None:
        """Look at what the repair has begun."""
        if self._row.restores:
            self._check_offsets()
        if self._row.parallelism > 1:
            expected = str(self._tasks * self._row.parallelism)
            self.checks.append(Check("tasks of the restored job", str(self._scene.job()["tasks"]), expected))

    def _check_offsets(self) -> None:
        job = self._scene.job()
        inside = _path(job["restored_from"])
        promised = json.loads(self._scene.ask(f"scripts/exec.sh jobmanager python -m inspector.flink offsets {inside}"))
        topic = self._scene.stack.settings.values["VISITS_TOPIC"]
        log = self._scene.ask("scripts/logs.sh taskmanager 100000")
        read = [found for found in _STARTING.finditer(log) if found["topic"] == topic][-len(promised) :]
        began = {found["partition"]: int(found["offset"]) for found in read}
        self.checks.append(
            Check("the job began to read at", _offsets(began), _offsets({str(p): int(o) for p, o in promised.items()}))
        )

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
        [(name, planned)] = self._planned.items()
        before = (self._scene.spark / "offsets" / str(int(name) - 1)).read_bytes()
        return _visits_up_to(planned) - _visits_up_to(before)

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
    return [
        Check(f"verdict on {each['pipeline']} holds", str(each["outcome"] == "holds"), "False")
        for each in verdict["verdicts"]
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
    if row.mode != EXACTLY_ONCE:
        checks.append(Check("windows lost", str(flink["lost"]), "0"))
    elif predicted.repeated or predicted.lost:
        checks.append(Check("records written twice", str(flink["duplicated"]), str(predicted.repeated)))
        checks.append(Check("windows lost", str(flink["lost"]), str(predicted.lost)))
        if row.loses is not Loses.OPEN:
            # A window whose state is gone counts only the visits that come later.
            checks.append(Check("windows unexpected", str(flink["unexpected"]), "0"))
    else:
        checks.append(Check("verdict on flink", flink["outcome"], "holds"))
    checks += [Check(f"some visits are {name}", str(flink[name] > 0), "True") for name in row.sets_aside]
    checks.append(Check("pending windows", str(flink["pending"]), "0"))
    if predicted.lines:
        checks.append(Check("visits written twice", str(spark["duplicated"]), str(predicted.lines)))
        checks += [Check(f"visits {name}", str(spark[name]), "0") for name in ("lost", "unexpected")]
    else:
        checks.append(Check("verdict on spark", spark["outcome"], "holds"))
    return checks
