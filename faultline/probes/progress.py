"""Progress of the pipelines, for the status of a stack: one JSON object.

Usage: python -m faultline.probes.progress [--without broker] [--without store]

`synchronizer`: the newest committed batch of the default query, with `query`, `batch` and `age_seconds`; null before
the first one. `refused`: why an object store cannot be read, or takes no object; empty when all is well.
`behind`: how far each pipeline is behind the source: null (it has committed everything), {"offsets": N, "seconds": S,
"text": "..."} or {"unknown": "..."}; `seconds` is how long the source takes at present to grow by so many offsets, null
while it does not grow. `behind` is null as a whole when the source cannot be read.
`--without`: a service that does not run is not asked; the question would only cost time.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from faultline.command import Flags, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.settings import Settings
from faultline.storage.batches import newest_batch
from faultline.storage.data import spark_checkpoints
from faultline.storage.words import location_of
from faultline.storage.writing import require_writable
from faultline.verdict.checker import Options
from faultline.verdict.checkers import CHECKERS, PIPELINES
from faultline.verdict.cluster import Cluster
from faultline.verdict.model import Unknown
from faultline.waiting import attempts

BROKER, STORE = "broker", "store"
_GROWTH_RECORDS, _GROWTH_SECONDS = 5, 1.0
"""The rate of the source is taken over so many records, or over this time if fewer come."""


def synchronizer(settings: Settings) -> dict[str, Any] | None:
    """Return the newest batch and the seconds since its commit; None before the first one. Raises OSError."""
    commits = spark_checkpoints(settings) / settings.query() / "commits"
    newest = newest_batch(commits)
    if newest is None:
        return None
    age = round(time.time() - (commits / str(newest)).stat().st_mtime, 1)
    return {"query": settings.query(), "batch": newest, "age_seconds": age}


def data(settings: Settings) -> dict[str, Any]:
    """Return `synchronizer` and `refused`. Raises SettingsError."""
    found = None
    try:
        found = synchronizer(settings)
        if settings.has_store:
            require_writable(location_of(settings.data, settings), 1)
    except OSError as error:
        return {"synchronizer": found, "refused": str(error.strerror) if settings.has_store else ""}
    return {"synchronizer": found, "refused": ""}


def behind(settings: Settings) -> dict[str, dict[str, Any] | None]:
    """Return how far each pipeline is behind. Raises Unknown when the source cannot be read, and SettingsError."""
    cluster, topic = Cluster(settings.bootstrap), settings.text("VISITS_TOPIC")

    def end() -> int:
        return sum(span.end for span in cluster.spans(topic, committed=False).values())

    first, begin = end(), time.monotonic()
    found = {name: _behind(name, settings, cluster) for name in PIPELINES}
    for _ in attempts(max(0.0, begin + _GROWTH_SECONDS - time.monotonic())):
        if (grown := end() - first) >= _GROWTH_RECORDS:
            break
    per_second = grown / (time.monotonic() - begin)
    for each in found.values():
        if each is not None and "offsets" in each:
            each["seconds"] = round(each["offsets"] / per_second, 1) if per_second > 0 else None
    return found


def _behind(name: str, settings: Settings, cluster: Cluster) -> dict[str, Any] | None:
    try:
        found = CHECKERS[name](settings, cluster, Options()).behind()
    except Unknown as reason:
        return {"unknown": str(reason)}
    return None if found is None else {"offsets": found.offsets, "text": found.text}


def main() -> int:
    """Print the answer; returns the exit code."""
    parser = Flags("progress", prog="progress", description="How far the pipelines are.")
    parser.add_argument("--without", action="append", choices=(BROKER, STORE), default=[])
    without = parser.parse_args().without
    answer: dict[str, Any] = {"synchronizer": None, "refused": "", "behind": None}
    settings = Settings()
    try:
        if STORE not in without:
            answer |= data(settings)
        if BROKER not in without:
            answer["behind"] = behind(settings)
    except Unknown as error:
        print(f"progress: {error}", file=sys.stderr)
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    run("progress", main)
