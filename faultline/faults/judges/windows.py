"""Windows that must be there twice, or be lost: each is a number that is known before the verdict."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from faultline.faults.judge import Check, Judge, Look, Predicted
from faultline.faults.judges.moments import InTransaction
from faultline.formats.verdict import Verdicts
from faultline.storage.engines import flink_name

_WINDOWS = "windows"
"""The uid of the operator that counts."""


@dataclass(frozen=True)
class RepeatsSinceCheckpoint(Judge):
    """The committed windows that end after the watermark in the restored checkpoint are there twice."""

    repeats = True

    def before_repair(self, look: Look) -> list[Check]:
        """Remember where the committed windows end."""
        look.remember(self, _stable_offsets(look))
        return []

    def predicted(self, look: Look) -> Predicted:
        """Count them, once the job runs again."""
        watermark = int(min(each["watermark"] for each in _restored(look) if each.get("watermark")))
        return Predicted(repeated=_windows_after(look, watermark, look.remembered(self)))


@dataclass(frozen=True)
class RepeatsAll(Judge):
    """All committed windows are there twice, and so are late and unparsable visits."""

    repeats = True

    def before_repair(self, look: Look) -> list[Check]:
        """Remember where the committed windows end, and how many visits are set aside."""
        settings = look.scene.stack.settings.values
        topics = (settings["VISITS_LATE_TOPIC"], settings["VISITS_REJECTED_TOPIC"])
        aside = sum(len(look.scene.probe("read_topic", each, "--last", "0").splitlines()) for each in topics)
        look.remember(self, (_stable_offsets(look), aside))
        return []

    def predicted(self, look: Look) -> Predicted:
        """Count them."""
        ends, aside = look.remembered(self)
        return Predicted(repeated=_windows_after(look, 0, ends) + aside)


@dataclass(frozen=True)
class LosesPrepared(Judge):
    """The windows of the transaction that the restored checkpoint has prepared are lost."""

    loses = True

    def predicted(self, look: Look) -> Predicted:
        """As many as were written and not committed."""
        return Predicted(lost=look.remembered(InTransaction()))


@dataclass(frozen=True)
class LosesOpen(Judge):
    """The windows that are open in the restored checkpoint are lost."""

    loses = True

    def predicted(self, look: Look) -> Predicted:
        """Count them."""
        states = [state for each in _restored(look) if each["uid"] == _WINDOWS for state in each["state"]]
        lost = sum(window["keys"] for state in states if state["kind"] == "value" for window in state["windows"])
        return Predicted(lost=lost, partial=True)


@dataclass(frozen=True)
class SetsAside(Judge):
    """The load or the fault adds visits that are late or rejected, and more come after the fault."""

    names: tuple[str, ...]

    def at_fault(self, look: Look) -> None:
        """Remember how many there are: another row on the same stack may have sent some."""
        look.remember(self, {name: _set_aside(look, name) for name in self.names})

    def verdict(self, look: Look, found: Verdicts) -> list[Check]:
        """Look at the verdict's counts."""
        flink, before = found.by_pipeline["flink"], look.remembered(self)
        return [
            Check(f"more visits are {name} than at the fault", str(flink.counts[name] > before[name]), "True")
            for name in self.names
        ]


@dataclass(frozen=True)
class StaysOnTime(Judge):
    """No visit becomes late: a partition that has no leader for some seconds is not idle."""

    def at_fault(self, look: Look) -> None:
        """Remember how many are late: another row on the same stack may have sent some."""
        look.remember(self, _set_aside(look, "late"))

    def verdict(self, look: Look, found: Verdicts) -> list[Check]:
        """Look at the verdict's count."""
        late = found.by_pipeline["flink"].counts["late"]
        return [Check("visits that are late since the fault", str(late - look.remembered(self)), "0")]


def _set_aside(look: Look, name: str) -> int:
    topic = look.scene.stack.settings.values[f"VISITS_{name.upper()}_TOPIC"]
    return len(look.scene.probe("read_topic", topic, "--last", "0").splitlines())


def _stable_offsets(look: Look) -> list[str]:
    topic = look.scene.stack.settings.values["VISIT_WINDOWS_TOPIC"]
    found = json.loads(look.scene.probe("open_transactions", topic, codes=(0, 1)))
    return [f"{each['partition']}:{each['stable']}" for each in found["partitions"]]


def _windows_after(look: Look, watermark: int, ends: list[str]) -> int:
    return int(look.scene.probe("windows_after", str(watermark), *ends))


def _restored(look: Look) -> list[dict[str, Any]]:
    """The operators in the checkpoint that the job was restored from."""
    path = look.scene.stack.backend.path_outside(flink_name(look.job["restored_from"]))
    return list(json.loads(look.scene.inspect(path, "--json", environment="flink"))["operators"])
