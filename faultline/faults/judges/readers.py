"""Readers of committed windows, and the transactions that they wait for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from faultline.faults.judge import Check, Judge, Look
from faultline.faults.scene import Scene
from faultline.faults.timeline import broken_at, broker_samples
from faultline.formats.verdict import Verdicts

_WAITED_SECONDS = 8.0
"""Longer than two checkpoints, shorter than the timeout of the transaction that is in the way."""


@dataclass(frozen=True)
class Readers(Judge):
    """A reader that reads all the time has seen every window that is committed at the end, and no other."""

    def settled(self, look: Look) -> list[Check]:
        """Compare what it saw with what is there; no transaction is open either."""
        return reads_compared(look.scene)


def reads_compared(scene: Scene) -> list[Check]:
    """Compare what a reader saw all the time with what is there now."""
    checks = [Check("the watcher ran to the end", str(scene.watches()), "True")]
    seen = json.loads(scene.probe("reads_compared", str(scene.folder)))
    checks += [
        Check(f"records of open transactions in {topic}", str(found), "0") for topic, found in seen["open"].items()
    ]
    differ = seen["different"] + seen["missing"] + seen["unseen"]
    checks.append(Check("a reader saw windows meanwhile", str(seen["seen"] > 0), "True"))
    checks.append(Check("records that a reader meanwhile and a reader now disagree on", str(differ), "0"))
    return checks


@dataclass(frozen=True)
class BlocksReaders(Judge):
    """While it is broken, readers of committed windows wait in some partition."""

    def before_repair(self, look: Look) -> list[Check]:
        """Look at the last stable offsets since the fault."""
        since = broken_at(look.scene.folder)
        samples = [each for each in broker_samples(look.scene.folder) if since < each["at"]]
        waited = bool(samples) and any(_stood_still(samples, partition) for partition in samples[0]["stable"])
        return [Check("readers of committed windows waited", str(waited), "True")]


def _stood_still(samples: list[dict[str, Any]], partition: str) -> bool:
    """Return whether the partition had uncommitted records for long, and its last stable offset did not move.

    A commit of the job may move it once, up to the transaction that is in the way.
    """
    begin = None
    for each in samples:
        stable = each["stable"][partition]
        if each["windows"][partition] <= stable:
            begin = None
        elif begin is None or begin["stable"][partition] != stable:
            begin = each
        elif each["at"] - begin["at"] >= _WAITED_SECONDS:
            return True
    return False


@dataclass(frozen=True)
class Wrote(Judge):
    """The load was what the row says, by the lines that the synchronizer has written since the row began.

    `what` is a number of faultline/probes/written.py, and `least` the least that it must be.
    """

    what: str
    least: int

    def verdict(self, look: Look, found: Verdicts) -> list[Check]:  # noqa: ARG002
        """Look at the lines."""
        written = json.loads(look.scene.probe("written", str(look.scene.folder)))[self.what]
        return [Check(f"{self.what} in the lines written, at least {self.least}", str(written >= self.least), "True")]
