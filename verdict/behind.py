"""How far each pipeline is behind the source: one JSON object, one member per pipeline.

Usage: python -m verdict.behind

Each member is null (it has committed everything), {"offsets": N, "text": "..."}, or {"unknown": "..."}.
"""

from __future__ import annotations

import json
import sys

from contract.settings import Settings, SettingsError
from verdict.checker import Options
from verdict.checkers import CHECKERS, PIPELINES
from verdict.cluster import Cluster
from verdict.model import Unknown


def behind(name: str, settings: Settings, cluster: Cluster) -> dict[str, object] | None:
    """Return the answer of one pipeline's checker."""
    try:
        found = CHECKERS[name](settings, cluster, Options()).behind()
    except Unknown as reason:
        return {"unknown": str(reason)}
    return None if found is None else {"offsets": found.offsets, "text": found.text}


def main() -> int:
    """Print the answer; returns the exit code."""
    try:
        settings = Settings()
        cluster = Cluster(settings.bootstrap)
        print(json.dumps({name: behind(name, settings, cluster) for name in PIPELINES}))
    except (SettingsError, Unknown) as error:
        print(f"behind: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
