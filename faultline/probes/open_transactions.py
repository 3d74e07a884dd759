"""Records at the end of a topic that are written and not committed: those of open transactions, and all behind them.

Prints one line of JSON: {"open": 11, "partitions": [{"partition": 0, "stable": 120, "end": 131}, ...]}. A reader of
committed records stops at `stable`, the last stable offset; `end` is the offset of the next record; `open` counts the
offsets between them, in all partitions. Exit codes: 0 there are some, 1 there are none, 2 it cannot be known.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from faultline.command import Flags, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.settings import Settings
from faultline.verdict.cluster import Cluster
from faultline.waiting import attempts


def positions(cluster: Cluster, topic: str) -> list[dict[str, int]]:
    """Return `partition`, `stable` and `end` of each partition. Raises Unknown when the broker does not answer."""
    # Stable offsets first: a commit in between then shows records as open, never the other way round.
    stable = cluster.spans(topic, committed=True)
    ends = cluster.spans(topic, committed=False)
    return [{"partition": each, "stable": stable[each].end, "end": ends[each].end} for each in sorted(stable)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Look until there are some, at most `--wait` seconds; returns the exit code."""
    parser = Flags("open_transactions.sh", prog="scripts/open_transactions.sh", description=__doc__)
    parser.add_argument("topic", help="the topic")
    parser.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="how long to wait for some (default: %(default)g)"
    )
    chosen = parser.parse_args(arguments)
    cluster = Cluster(Settings().bootstrap)
    for _ in attempts(chosen.wait, 0.1):
        found = positions(cluster, chosen.topic)
        number = sum(each["end"] - each["stable"] for each in found)
        if number:
            break
    print(json.dumps({"open": number, "partitions": found}))
    return 0 if number else 1


if __name__ == "__main__":
    run("open_transactions.sh", main)
