"""Checks, before a job starts, that its settings and checkpoints can be written."""

from __future__ import annotations

from faultline.settings import Settings
from faultline.storage.data import flink_checkpoints
from faultline.storage.location import Location
from faultline.storage.writing import require_writable
from flink_job.rest import FlinkError

_PROBE_BYTES = 64 * 1024
"""More than the settings of a run have."""


def require_writable_checkpoints(settings: Settings) -> None:
    """Raise FlinkError when the settings of a run or its checkpoints could not be written: its job must not start.

    Raises SettingsError when these settings do not lead to the object store of its checkpoints.
    """
    locations: tuple[Location, ...] = (settings.flink_notes, flink_checkpoints(settings))
    # On a disk both are the same folder.
    for location in dict.fromkeys(locations):
        try:
            require_writable(location, _PROBE_BYTES)
        except OSError as error:
            raise FlinkError(
                f"{location} cannot be written ({error.strerror}), and the job keeps its settings and its checkpoints "
                "there; make room or mend it, then try again"
            ) from None
