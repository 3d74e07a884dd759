"""A new checkpoint on purpose: to continue without loss or repetition, or to read everything again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from faultline.command import CommandError
from faultline.inspector.spark.report import read_report
from labs.frame.count import compare
from labs.frame.pipeline import APPEND, Pipeline
from labs.frame.story import Fact, same
from labs.good_practice.changes import FIRST, LATER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from labs.frame.story import Story
    from labs.good_practice.changes import MakeFeed


def starting_offsets(checkpoint: Path) -> str:
    """Return the `startingOffsets` that continue from a checkpoint, as JSON.

    Raises CommandError when its newest batch is not committed: which of its rows are in the output is not known then.
    """
    restart = read_report(checkpoint, None, None).restart
    if restart is None or restart.action != "continue":
        raise CommandError(f"{checkpoint} has a batch that is planned and not committed; start the old query once more")
    offsets: dict[str, dict[str, int]] = {}
    for partition in restart.partitions:
        if partition.start is None:
            raise CommandError(f"{checkpoint} has no offset of {partition.topic}-{partition.partition}")
        offsets.setdefault(partition.topic, {})[str(partition.partition)] = partition.start
    return json.dumps(offsets)


def new_checkpoint(story: Story, spark: SparkSession, folder: Path, make_feed: MakeFeed) -> None:
    """Continue with a new checkpoint into the same output, with three choices of startingOffsets."""
    story.step("A new checkpoint, the same output")
    facts = []
    for name, lost, duplicated in (("earliest", 0, FIRST), ("latest", LATER, 0), ("from the old one", 0, 0)):
        feed = make_feed(f"move-{name.split()[0]}")
        own = folder / name.split()[0]
        old = Pipeline(spark, feed, own, APPEND)
        feed.send(FIRST)
        old.run()
        feed.send(LATER)
        feed.starting_offsets = starting_offsets(old.checkpoint) if name.startswith("from") else name
        moved = Pipeline(spark, feed, own, APPEND)
        moved.checkpoint = own / "checkpoint_v2"
        moved.run()
        difference = compare(feed.sent, moved.rows())
        story.say(f"startingOffsets {feed.starting_offsets}: {difference}")
        facts.append(
            same(
                f"startingOffsets {name}: lost, duplicated",
                (difference.lost.total(), difference.duplicated.total()),
                (lost, duplicated),
            )
        )
    story.prove("A new checkpoint that starts at the old one's offsets loses and repeats nothing.", *facts)


def reprocessing(story: Story, spark: SparkSession, folder: Path, make_feed: MakeFeed) -> None:
    """Read the whole source again under another name, with its own checkpoint and output; the old ones stay."""
    story.step("Read everything again, under another name")
    feed = make_feed("reprocessing")
    old = Pipeline(spark, feed, folder / "visits_v1", APPEND)
    feed.send(FIRST)
    old.run()
    new = Pipeline(spark, feed, folder / "visits_v2", APPEND)
    new.run()
    feed.send(LATER)
    facts = []
    for pipeline in (old, new):
        pipeline.run()
        difference = compare(feed.sent, pipeline.rows())
        facts.append(Fact(f"{pipeline.folder.name}: {difference}", difference.clean))
    story.prove(
        "A new name, with its own checkpoint and output, reads everything again and does not affect the old query.",
        *facts,
    )


MOVES = [new_checkpoint, reprocessing]
