"""Write the Kubernetes manifests, or print how large a cluster must be.

Usage: python -m deploy write | size [--visits-per-second N ...]

Exit codes: 0 done, 2 a wrong setting or flag.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from faultline.command import CommandError, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from deploy import flink, kafka, spark
from deploy.measured import measured
from deploy.settings import HERE, cluster_settings
from deploy.size_table import table
from deploy.sizing import Load
from faultline.command import Flags
from faultline.settings import ROOT

MANIFESTS = (kafka.manifest, flink.manifest, spark.manifest)


def write(folder: Path) -> list[Path]:
    """Write each manifest into the folder; returns the files."""
    settings = cluster_settings()
    files = []
    for manifest in MANIFESTS:
        made = manifest(settings)
        file = folder / made.file
        file.write_text(made.text(), encoding="utf-8")
        files.append(file)
    return files


class _Command(Flags):
    """The flags of one command."""

    def __init__(self, **settings: Any) -> None:
        super().__init__("deploy", **settings)


def _number(text: str, limit: float, words: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 < value < limit:
        raise argparse.ArgumentTypeError(f"{text!r} is not {words}")
    return value


def _share(text: str) -> float:
    return _number(text, 1, "a share between 0 and 1")


def _positive(text: str) -> float:
    return _number(text, 1e12, "a number above 0")


def _flags() -> argparse.ArgumentParser:
    parser = _Command(prog="scripts/deploy.sh", description="Manifests for Kubernetes; a cluster's size.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Command)
    commands.add_parser("write", help="write deploy/*.yaml from .env and deploy/kubernetes.env")
    size = commands.add_parser("size", help="print how large a cluster must be, each line with its arithmetic")
    size.add_argument(
        "--visits-per-second", type=_positive, default=1e6, metavar="N", help="the load (default: 1000000)"
    )
    size.add_argument(
        "--busy",
        type=_share,
        default=0.5,
        metavar="SHARE",
        help="share of a core that a task uses in normal operation; with the rest it catches up (default: %(default)s)",
    )
    size.add_argument(
        "--price-writes", type=_positive, metavar="P", help="your store's price of 1,000 writes and listings"
    )
    size.add_argument("--price-reads", type=_positive, metavar="P", help="your store's price of 1,000 reads")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    chosen = _flags().parse_args(arguments)
    if chosen.command == "write":
        try:
            for file in write(HERE):
                print(file.relative_to(ROOT))
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from None
    else:
        load = Load(chosen.visits_per_second, chosen.busy, chosen.price_writes, chosen.price_reads)
        sys.stdout.write(table(load, cluster_settings(), measured()))
    return 0


if __name__ == "__main__":
    run("deploy", main)
