"""Cases: the topic is no longer what the checkpoint remembers."""

from __future__ import annotations

from collections.abc import Callable

from labs.delete_x_then_start.case import Bench, Case, Group
from labs.delete_x_then_start.damage import add_partitions, age_out, create_again, delete_topic
from labs.frame.pipeline import FILE_SINK


def _both(
    name: str, what: str, damage: Callable[[Bench], object], loud: str, quiet: str, *, arriving: int = 10
) -> list[Case]:
    """The same damage with failOnDataLoss true and false, and what to do for each."""
    return [
        Case(
            f"{name}-{str(fail).lower()}",
            f"{what}; `failOnDataLoss={str(fail).lower()}`",
            production,
            damage,
            sinks=(FILE_SINK,),
            fail_on_data_loss=fail,
            arriving=arriving,
        )
        for fail, production in ((True, loud), (False, quiet))
    ]


GROUP = Group(
    "The topic",
    "A topic of two partitions; the checkpoint has 20 as the next offset of each.",
    [
        *_both(
            "again-shorter",
            "topic deleted and created again, 6 rows in it",
            create_again(6),
            "The stop is the warning: keep `true`. A new topic needs a new checkpoint.",
            "Rows of the new topic were never read, and no error says so. Keep `true`.",
            arriving=0,
        ),
        *_both(
            "again-longer",
            "topic deleted and created again, already 60 rows in it",
            create_again(60),
            "The option does not see it: offsets are numbers, and 20 exists in the new topic too. Never reuse a "
            "topic's name under a running query; a new topic needs a new checkpoint.",
            "As above.",
            arriving=0,
        ),
        *_both(
            "gone",
            "topic deleted",
            delete_topic,
            "Create it under a new name and start a new checkpoint.",
            "As above: the option is about offsets, not about topics.",
            arriving=0,
        ),
        *_both(
            "partitions",
            "two partitions added",
            add_partitions(4),
            "Nothing to do: new partitions are read from their beginning, whatever `startingOffsets` says.",
            "As above.",
        ),
        *_both(
            "aged-out",
            "20 rows arrived, the oldest 12 of them aged out",
            age_out(20, 8),
            "Decide once: what is gone from Kafka is gone. Restore it from elsewhere, then start once with `false`, "
            "and go back to `true`. Give the topic a retention longer than the longest time that a query is down.",
            "Keep `true`: with `false` this loss is one line in a log.",
        ),
    ],
)
