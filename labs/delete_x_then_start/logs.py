"""Cases: the checkpoint's own logs."""

from __future__ import annotations

from labs.delete_x_then_start.case import Case, Group
from labs.delete_x_then_start.damage import cut_off, delete, empty, nothing
from labs.frame.pipeline import APPEND, FILE_SINK

GROUP = Group(
    "The checkpoint's logs",
    "The source is a Kafka topic, but for the two cases that say otherwise.",
    [
        Case("control", "nothing: stopped and started", "Nothing to do.", nothing),
        Case(
            "latest-commit",
            "latest commit: `commits/3`",
            "The same happens at every crash inside a batch. Write to a sink that knows the batch: the file sink, "
            "Delta with `txnAppId` and `txnVersion`, or a folder or key per batch id.",
            delete("commits/3"),
        ),
        Case(
            "latest-commit-and-offset",
            "latest commit and offset: `commits/3`, `offsets/3`",
            "Do not: the batch is planned again, up to the newest offsets, under an old number. A sink that skips "
            "numbers it has seen then skips new rows. To read again, use a new checkpoint and a new output.",
            delete("commits/3", "offsets/3"),
        ),
        Case(
            "latest-offset",
            "latest offset, its commit kept: `offsets/3`",
            "Put the file back from a backup; else delete `commits/3` too and see the row above.",
            delete("offsets/3"),
        ),
        Case(
            "middle-offset",
            "a middle offset: `offsets/1`",
            "Nothing to do: Spark reads the newest two only. The history is gone for people and for the inspector.",
            delete("offsets/1"),
            sinks=(FILE_SINK,),
        ),
        Case(
            "offset-before-latest",
            "the offset before the latest: `offsets/2`",
            "Put it back from a backup. Else start a new checkpoint with `startingOffsets` from `offsets/3`.",
            delete("offsets/2"),
            sinks=(FILE_SINK,),
        ),
        Case(
            "truncated-offset",
            "latest offset cut off, its last 20 bytes: `offsets/3`",
            "Put it back from a backup. Else start a new checkpoint with `startingOffsets` from `offsets/2`, "
            "into a sink that can take batch 3 twice.",
            cut_off("offsets/3", 20),
            sinks=(FILE_SINK,),
        ),
        Case(
            "empty-offset",
            "latest offset empty: `offsets/3` of 0 bytes",
            "As above. A full disk or an object store without atomic rename leaves such files.",
            empty("offsets/3"),
            sinks=(FILE_SINK,),
        ),
        Case(
            "empty-commit",
            "latest commit empty: `commits/3` of 0 bytes",
            "Delete the empty file: this is then the case of the latest commit.",
            empty("commits/3"),
            sinks=(FILE_SINK,),
        ),
        Case(
            "metadata",
            "`metadata`",
            "From 4.2 on, put it back from a backup, or set "
            "`spark.sql.streaming.checkpoint.verifyMetadataExists.enabled=false`. Nothing is lost then, nor before "
            "4.2, but the query has a new id. What goes by the "
            "id, such as a `txnAppId` made of it or a dashboard, takes it for another query: set such names yourself.",
            delete("metadata"),
        ),
        Case(
            "source-log-kafka",
            "source log, Kafka: `sources/0/0`",
            "Nothing to do: it holds the offsets that batch 0 began with, and is read for batch 0 only.",
            delete("sources/0/0"),
            sinks=(FILE_SINK,),
        ),
        Case(
            "source-log-latest",
            "source log, file source, latest: `sources/0/3`",
            "Put it back from a backup. The log is the only record of which files were read: a new checkpoint reads "
            "all of them again, so move those that are done away first.",
            delete("sources/0/3"),
            sinks=(FILE_SINK,),
            files=True,
        ),
        Case(
            "source-log-middle",
            "source log, file source, middle: `sources/0/1`",
            "As above.",
            delete("sources/0/1"),
            sinks=(FILE_SINK,),
            files=True,
        ),
        Case(
            "whole-checkpoint",
            "the whole checkpoint, the output kept",
            "Never one without the other. To read all again: new checkpoint and new output. To go on: new checkpoint "
            "with `startingOffsets` (walkthrough 16).",
            lambda bench: bench.folder.delete(bench.checkpoint),
            sinks=(APPEND, FILE_SINK),
        ),
    ],
)
