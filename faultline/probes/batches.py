"""The newest batches of a synchronizer's checkpoint: committed, planned, and taken up again by a new run of the query.

A batch is planned when `offsets/N` is there, and committed when `commits/N` is. Each run of the query claims the
checkpoint first (spark_job/checkpoint.py): the time of the file with its settings is that of the newest run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from faultline.storage.batches import newest_batch
from faultline.storage.location import Location
from faultline.verdict.model import Unknown


def newest_batches(checkpoint: Location, run_file: Path) -> dict[str, Any]:
    """Return `batch`, `committed_at`, `offsets` (its end, by partition), `planned` and `again`.

    `planned` and `again` are None or have `batch`, `begin` and `end` (offsets by partition) and `visits` between them;
    `again` has `restored_at`, the begin of the run, too. Times are in seconds since the epoch. Without a file with the
    settings of a run, `again` is None. Raises Unknown before the first commit.
    """
    try:
        committed = newest_batch(checkpoint / "commits")
        newest = newest_batch(checkpoint / "offsets")
        if committed is None or newest is None:
            raise Unknown(f"no committed batch in {checkpoint}")
        is_planned = newest > committed
        return {
            "batch": committed,
            "committed_at": (checkpoint / "commits" / str(committed)).stat().st_mtime,
            "offsets": _end(checkpoint, committed),
            "planned": batch_range(checkpoint, newest) if is_planned else None,
            "again": _again(checkpoint, newest, run_file, is_planned),
        }
    except (OSError, ValueError) as error:
        # Spark removes old batches meanwhile.
        raise Unknown(f"the newest batch in {checkpoint} cannot be read: {error}") from None


def _end(checkpoint: Location, batch: int) -> dict[str, int]:
    *_, last = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    [offsets] = json.loads(last).values()
    return dict(offsets)


def batch_range(checkpoint: Location, batch: int) -> dict[str, Any]:
    """Return `batch`, `begin` and `end` (offsets by partition), and `visits` between them.

    Raises OSError or ValueError when it cannot be read.
    """
    end = _end(checkpoint, batch)
    begin = _end(checkpoint, batch - 1) if batch else dict.fromkeys(end, 0)
    visits = sum(offset - begin.get(partition, 0) for partition, offset in end.items())
    return {"batch": batch, "begin": begin, "end": end, "visits": visits}


def _again(checkpoint: Location, batch: int, run_file: Path, is_planned: bool) -> dict[str, Any] | None:
    """Return the batch if an earlier run of the query had planned it, and had not committed it."""
    try:
        began = run_file.stat().st_mtime
    except FileNotFoundError:
        return None
    if (checkpoint / "offsets" / str(batch)).stat().st_mtime >= began:
        return None
    if not is_planned and (checkpoint / "commits" / str(batch)).stat().st_mtime <= began:
        return None
    return {**batch_range(checkpoint, batch), "restored_at": began}
