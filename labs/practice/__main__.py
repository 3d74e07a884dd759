"""Lab 06: changes, moves and reprocessing, each with its own topic, checkpoint and output."""

from __future__ import annotations

import sys

from labs.broker import running_broker
from labs.feeds import KafkaFeed
from labs.practice.changes import CHANGES
from labs.practice.moves import MOVES
from labs.run import Lab, run
from labs.session import spark_session

_PARTITIONS = 2


def experiment(lab: Lab) -> None:
    """Show each practice; all share one broker and one Spark."""
    # Refusals are shown as one line each; their stack traces do not help.
    quiet = {"spark.log.level": "OFF"}
    with (
        running_broker(lab.folder / "kafka", lab.settings) as broker,
        spark_session(lab.settings, lab.folder / "spark", kafka=True, more=quiet) as spark,
    ):

        def make_feed(topic: str) -> KafkaFeed:
            broker.create_topic(topic, _PARTITIONS)
            return KafkaFeed(broker.bootstrap, topic, _PARTITIONS)

        for show in (*CHANGES, *MOVES):
            show(lab.story, spark, lab.folder / show.__name__, make_feed)


if __name__ == "__main__":
    sys.exit(run("06_good_practice", experiment, sys.argv[1:]))
