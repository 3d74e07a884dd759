"""Wait until both pipelines have committed everything in the source; print how long it took.

Exit code 0: they have, 2: they have not within the wait, or it cannot be known.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from faultline.command import run
from faultline.settings import Settings
from faultline.stop import end_at_once
from faultline.verdict.checker import Options, await_caught_up
from faultline.verdict.checkers import CHECKERS, PIPELINES
from faultline.verdict.cluster import Cluster
from faultline.verdict.model import Unknown
from faultline.verdict.sources import Quiescence


def main(arguments: Sequence[str] | None = None) -> int:
    """Wait, print one line, and return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/settle.sh", description=__doc__, allow_abbrev=False)
    parser.add_argument("--wait", type=float, default=120.0, metavar="SECONDS", help="how long (default: %(default)g)")
    chosen = parser.parse_args(arguments)
    begin = time.monotonic()
    settings = Settings()
    cluster = Cluster(settings.bootstrap)
    for name in PIPELINES:
        checker = CHECKERS[name](settings, cluster, Options())
        quiescence = Quiescence(cluster, checker.source)
        behind = await_caught_up(checker, quiescence, begin + chosen.wait)
        if behind is not None:
            raise Unknown(f"{name}: {behind.text}")
    print(f"settled: {' and '.join(PIPELINES)} have committed everything, after {time.monotonic() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    end_at_once("settle")
    run("settle", main)
