"""Turns samples into what the page draws, one item after the other: the same for a running stack and a recorded run.

An item is a JSON object with `kind` and `at`, in seconds since the epoch:

    log        visits, windows, stable, group: offsets by partition, as faultline/probes/watch.py samples them
    flink      job, state, running, tasks, restarts, position (by partition), restored (`<job id>/<name>` or null)
    spark      batch, offsets (its end), planned (a range, or null)
    retained   checkpoints of Flink: name, at, bytes, offsets or unknown, path
    done       a checkpoint or batch was completed: engine, name, milliseconds, bytes (both null for a batch)
    again      what is read again: engine, name, begin, end, visits, at_least; for Flink the checkpoint's job
    windows    count: committed windows that a reader got; total: with those before
    services   states: service to state; processes: whether they are states of processes, or only what answers
    event      what, text: phase, command, done (an action of the page has ended), broken, note, recovered
    unknown    source, text: what does not answer, and why
    verdict    verdict: as scripts/verdict.sh --json; as_is: whether of a running stack
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from faultline.probes.replayed import Restores

Item = dict[str, Any]
Sample = dict[str, Any]

_WINDOWS_SECONDS = 0.5
_PAUSE_SECONDS = 15.0
"""Longer than this between two samples, and nobody has looked meanwhile."""
_LOG = ("visits", "windows", "stable", "group")


class Items:
    """Makes items of samples that come in the order of their times."""

    def __init__(self) -> None:
        self._restores = Restores()
        self._last: dict[str, Item] = {}
        self._done: set[tuple[str, str]] = set()
        self._again: set[tuple[str, str, str]] = set()
        self._ran = False
        self._down_at: float | None = None
        self._silent_at: float | None = None
        self._sampled_at = math.inf
        self._windows = 0
        self._ends: dict[Any, int] = {}
        self._takers: dict[str, Callable[[Sample], Iterator[Item]]] = {
            "kafka": self._kafka, "flink": self._flink, "spark": self._spark, "seen": self._seen,
            "checkpoints": self._checkpoints, "events": self._event, "services": self._services,
        }  # fmt: skip

    def take(self, source: str, sample: Sample) -> list[Item]:
        """Return the items of one sample; none when it says what the last one said."""
        if source == "flink":
            if sample["at"] - self._sampled_at > _PAUSE_SECONDS:
                # Nobody knows how long it took to recover.
                self._silent_at = self._down_at = None
            self._sampled_at = sample["at"]
        if "unknown" in sample:
            if source == "flink" and self._ran and self._silent_at is None:
                self._silent_at = sample["at"]
            return self._changed(source, {"kind": "unknown", "source": source, "text": sample["unknown"]}, sample["at"])
        return list(self._takers[source](sample))

    def is_unknown(self, source: str) -> bool:
        """Return whether the last sample of a source was none."""
        return self._last.get(source, {}).get("kind") == "unknown"

    def is_another_log(self, source: str, sample: Sample) -> bool:
        """Return whether the log ends before its earlier end: the topic was recreated, and earlier items are void."""
        if source != "kafka" or "visits" not in sample or not self._ends:
            return False
        return any(sample["visits"].get(partition, 0) < end for partition, end in self._ends.items())

    def _changed(self, name: str, item: Item, at: float) -> list[Item]:
        if self._last.get(name) == item:
            return []
        self._last[name] = item
        return [{"at": at, **item}]

    def _kafka(self, sample: Sample) -> Iterator[Item]:
        yield from self._changed("kafka", {"kind": "log", **{name: sample[name] for name in _LOG}}, sample["at"])
        self._ends = sample["visits"]

    def _flink(self, sample: Sample) -> Iterator[Item]:
        item = {
            "kind": "flink", "job": sample["job_id"], "state": sample["state"], "running": sample["running_tasks"],
            "tasks": sample["tasks"], "restarts": sample["restarts"], "position": sample.get("position", {}),
            "restored": _name(sample["restored_from"]),
        }  # fmt: skip
        yield from self._changed("flink", item, sample["at"])
        if self._silent_at is not None:
            yield _recovered("the state of the Flink job is known again", self._silent_at, sample["at"])
            self._silent_at = None
        if sample["state"] == "RUNNING" and sample["running_tasks"] == sample["tasks"]:
            yield from self._runs(sample["at"])
        elif self._ran and self._down_at is None:
            self._down_at = sample["at"]
        for each in sample["checkpoints"] if "checkpoints" in sample else _newest(sample):
            key = (str(sample["job_id"]), f"chk-{each['id']}")
            if key not in self._done:
                self._done.add(key)
                yield {
                    "kind": "done", "at": each["at"] / 1000, "engine": "flink", "job": key[0], "name": key[1],
                    "milliseconds": each.get("milliseconds"), "bytes": each.get("bytes"),
                }  # fmt: skip
        yield from self._read_again(self._restores.flink(sample), sample["at"])

    def _runs(self, at: float) -> Iterator[Item]:
        if self._down_at is not None:
            yield _recovered("all tasks of the Flink job run again", self._down_at, at)
        self._ran, self._down_at = True, None

    def _checkpoints(self, sample: Sample) -> Iterator[Item]:
        yield from self._changed(
            "checkpoints", {"kind": "retained", "checkpoints": sample["checkpoints"]}, sample["at"]
        )
        yield from self._read_again(self._restores.checkpoints(sample), sample["at"])

    def _spark(self, sample: Sample) -> Iterator[Item]:
        planned = sample.get("planned")
        item = {"kind": "spark", "batch": sample["batch"], "offsets": sample["offsets"], "planned": planned}
        yield from self._changed("spark", item, sample["at"])
        key = ("spark", f"batch {sample['batch']}")
        if key not in self._done:
            self._done.add(key)
            yield {
                "kind": "done", "at": sample["at"], "engine": "spark", "name": key[1], "milliseconds": None,
                "bytes": None,
            }  # fmt: skip
        if sample.get("again"):
            found = sample["again"]
            name = f"batch {found['batch']}"
            yield from self._read_again([{**found, "engine": "spark", "name": name, "at_least": False}], sample["at"])

    def _read_again(self, found: Iterable[dict[str, Any]], at: float) -> Iterator[Item]:
        for each in found:
            key = (each["engine"], each["name"], str(each.get("restored_at", "")))
            if key not in self._again:
                self._again.add(key)
                yield {"kind": "again", "at": at, **each}

    def _seen(self, sample: Sample) -> Iterator[Item]:
        count = sample.get("count", 1)
        self._windows += count
        if count:
            yield {"kind": "windows", "at": sample["at"], "count": count, "total": self._windows}

    def _services(self, sample: Sample) -> Iterator[Item]:
        found = {"states": sample["states"], "processes": sample.get("processes", True)}
        yield from self._changed("services", {"kind": "services", **found}, sample["at"])

    def _event(self, sample: Sample) -> Iterator[Item]:
        yield {"kind": "event", "at": sample["at"], "what": sample["kind"], "text": sample["text"]}


def _name(path: str | None) -> str | None:
    return "/".join(path.rstrip("/").split("/")[-2:]) if path else None


def _recovered(what: str, since: float, at: float) -> Item:
    return {"kind": "event", "at": at, "what": "recovered", "text": f"{what}, after {at - since:.1f} s"}


def _newest(sample: Sample) -> list[dict[str, Any]]:
    """The newest checkpoint, where a recording has no list of them."""
    if sample.get("latest_checkpoint") is None:
        return []
    return [{"id": sample["latest_checkpoint"], "at": sample["latest_at"]}]


def of_timeline(timeline: dict[str, list[Sample]]) -> list[Item]:
    """Return the items of a recorded run, in the order of their times."""
    items = Items()
    samples = [(source, sample) for source, found in timeline.items() for sample in found]
    samples.sort(key=lambda each: float(each[1]["at"]))
    made = [item for source, sample in samples for item in items.take(source, sample)]
    return sorted(_together(made), key=lambda item: float(item["at"]))


def _together(items: Iterable[Item]) -> Iterator[Item]:
    """Count windows that came within half a second together: a checkpoint commits hundreds at once."""
    open_item: Item | None = None
    for item in items:
        if item["kind"] != "windows":
            yield item
        elif open_item is not None and item["at"] - open_item["at"] < _WINDOWS_SECONDS:
            open_item["count"] += item["count"]
            open_item["total"] = item["total"]
        else:
            open_item = item
            yield item
