"""Progress of the pipelines, for the status of a stack: one JSON object.

Usage: python -m faultline.probes.progress [--without broker] [--without store]

Its fields are those of `faultline.formats.status.Progress`; the query is the default one.
`--without`: a service that does not run is not asked; the question would only cost time.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace

from faultline.command import Flags, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.formats.status import Backlog, CommittedBatch, Progress
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
_GROWTH_RECORDS, _GROWTH_SECONDS = 3, 1.0
"""The rate of the source is taken over so many records, or over this time if fewer come."""


def synchronizer(settings: Settings) -> CommittedBatch | None:
    """Return the newest batch, None before the first one. Raises OSError."""
    commits = spark_checkpoints(settings) / settings.query() / "commits"
    newest = newest_batch(commits)
    if newest is None:
        return None
    age = round(time.time() - (commits / str(newest)).stat().st_mtime, 1)
    return CommittedBatch(settings.query(), newest, age)


def data(settings: Settings) -> Progress:
    """Return the newest batch, and whether the store works. Raises SettingsError."""
    found = None
    try:
        found = synchronizer(settings)
        if settings.has_store:
            require_writable(location_of(settings.data, settings), 1)
    except OSError as error:
        return Progress(found, str(error.strerror) if settings.has_store else "")
    return Progress(found)


def behind(settings: Settings) -> dict[str, Backlog | None]:
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
    if per_second <= 0:
        return found
    return {name: each and replace(each, seconds=round(each.offsets / per_second, 1)) for name, each in found.items()}


def _behind(name: str, settings: Settings, cluster: Cluster) -> Backlog | None:
    try:
        found = CHECKERS[name](settings, cluster, Options()).behind()
    except Unknown as reason:
        return Backlog(unknown=str(reason))
    return None if found is None else Backlog(found.offsets, found.text)


def main() -> int:
    """Print the answer; returns the exit code."""
    parser = Flags("progress", prog="progress", description="How far the pipelines are.")
    parser.add_argument("--without", action="append", choices=(BROKER, STORE), default=[])
    without = parser.parse_args().without
    answer = Progress()
    settings = Settings()
    try:
        if STORE not in without:
            answer = data(settings)
        if BROKER not in without:
            answer = replace(answer, behind=behind(settings))
    except Unknown as error:
        print(f"progress: {error}", file=sys.stderr)
    print(json.dumps(answer.as_json()))
    return 0


if __name__ == "__main__":
    run("progress", main)
