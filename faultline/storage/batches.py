"""The files of Spark's logs, which are named by the number of a batch."""

from __future__ import annotations

from faultline.storage.location import Location
from faultline.storage.reading import names

SINK_LOG = "_spark_metadata"
"""The folder of the file sink's log, in the output folder."""


def newest_batch(folder: Location) -> int | None:
    """Return the largest batch in a log: `12`, and `9.compact` in that of the file sink; None when it is empty.

    Raises OSError when a folder that exists cannot be read.
    """
    try:
        numbers = [name.removesuffix(".compact") for name in names(folder)]
    except FileNotFoundError:
        return None
    return max((int(number) for number in numbers if number.isdecimal()), default=None)
