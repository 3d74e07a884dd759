"""How far each pipeline is behind the source: one JSON object, one member per pipeline.

Usage: python -m faultline.verdict.behind

Each member is null (it has committed everything), {"offsets": N, "seconds": S, "text": "..."}, or {"unknown": "..."}.
`seconds`: how long the source takes at present to grow by so many offsets; null while it does not grow.
"""

from __future__ import annotations

import json
import sys
import time

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.settings import Settings, SettingsError
from faultline.verdict.checker import Options
from faultline.verdict.checkers import CHECKERS, PIPELINES
from faultline.verdict.cluster import Cluster
from faultline.verdict.model import Unknown

_GROWTH_SECONDS = 1.0
"""The minimum time between two looks at the end of the source."""


def behind(name: str, settings: Settings, cluster: Cluster) -> dict[str, object] | None:
    """Return the answer of one pipeline's checker, without `seconds`."""
    try:
        found = CHECKERS[name](settings, cluster, Options()).behind()
    except Unknown as reason:
        return {"unknown": str(reason)}
    return None if found is None else {"offsets": found.offsets, "text": found.text}


def answer(settings: Settings, cluster: Cluster) -> dict[str, dict[str, object] | None]:
    """Return the answers of all pipelines. Raises Unknown when the source cannot be read."""
    topic = settings.text("VISITS_TOPIC")

    def end() -> int:
        return sum(span.end for span in cluster.spans(topic, committed=False).values())

    first, begin = end(), time.monotonic()
    found = {name: behind(name, settings, cluster) for name in PIPELINES}
    time.sleep(max(0.0, begin + _GROWTH_SECONDS - time.monotonic()))
    per_second = (end() - first) / (time.monotonic() - begin)
    for each in found.values():
        if each is not None and isinstance(each.get("offsets"), int):
            each["seconds"] = round(int(str(each["offsets"])) / per_second, 1) if per_second > 0 else None
    return found


def main() -> int:
    """Print the answer; returns the exit code."""
    try:
        settings = Settings()
        cluster = Cluster(settings.bootstrap)
        print(json.dumps(answer(settings, cluster)))
    except (SettingsError, Unknown) as error:
        print(f"behind: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    run("behind", main)
