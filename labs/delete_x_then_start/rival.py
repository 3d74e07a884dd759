"""The second query on a checkpoint, in a separate process.

Usage: python -m labs.delete_x_then_start.rival HOME TOPIC BOOTSTRAP
"""

from __future__ import annotations

import sys
from pathlib import Path

from faultline.settings import Settings
from labs.delete_x_then_start.case import PARTITIONS, SPARK
from labs.frame.feeds import KafkaFeed
from labs.frame.pipeline import APPEND, Pipeline
from labs.frame.session import spark_session


def main(folder: Path, topic: str, bootstrap: str) -> int:
    """Read all there is on the checkpoint in `folder`; say what it did; returns the exit code."""
    with spark_session(Settings(), folder / "rival" / "spark", more=SPARK) as spark:
        outcome = Pipeline(spark, KafkaFeed(bootstrap, topic, PARTITIONS), folder, APPEND).run()
    print(outcome)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
