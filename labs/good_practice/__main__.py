"""Walkthrough 16: changes, moves and reprocessing, each with its own topic, checkpoint and output."""

from __future__ import annotations

import sys

from labs.frame.broker import running_broker
from labs.frame.feeds import KafkaFeed
from labs.frame.run import Lab, run
from labs.frame.session import spark_session
from labs.good_practice.changes import CHANGES
from labs.good_practice.moves import MOVES

_PARTITIONS = 2


def experiment(lab: Lab) -> None:
    """Show each practice; all share one broker and one Spark."""
    # Refusals are shown as one line each; their stack traces do not help.
    quiet = {"spark.log.level": "OFF"}
    with (
        running_broker(lab.folder / "kafka", lab.settings) as broker,
        spark_session(lab.settings, lab.folder / "spark", more=quiet) as spark,
    ):

        def make_feed(topic: str) -> KafkaFeed:
            broker.create_topic(topic, _PARTITIONS)
            return KafkaFeed(broker.bootstrap, topic, _PARTITIONS)

        for show in (*CHANGES, *MOVES):
            show(lab.story, spark, lab.folder / show.__name__, make_feed)


if __name__ == "__main__":
    sys.exit(run("16_good_practice", experiment, sys.argv[1:]))
