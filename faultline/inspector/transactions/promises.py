"""The transactions that each complete checkpoint promises, read by Flink's own classes."""

from __future__ import annotations

from typing import Any

from faultline.inspector.errors import InspectorError
from faultline.inspector.flink.folder import list_folders
from faultline.inspector.flink.metadata import load_metadata, operators
from faultline.inspector.flink.sink import COMMITTER_STATE, prepared
from faultline.inspector.transactions.model import Promise
from faultline.storage.location import Location

Promises = dict[tuple[str, int, int], list[Promise]]
"""(transactional id, producer id, epoch) -> the checkpoints that hold it, the oldest first."""


def read_promises(jvm: Any, roots: list[Location]) -> tuple[Promises, list[str]]:
    """Read every complete checkpoint below the folders; also return a sentence for each that cannot be read."""
    promises: Promises = {}
    unreadable: list[str] = []
    for root in (each for each in roots if each.is_dir()):
        for folder in list_folders(root, unreadable):
            if folder.closed:
                unreadable.append(folder.closed)
            if not folder.complete:
                continue
            try:
                entries = operators(load_metadata(jvm, folder.path))
                held = [each for entry in entries if COMMITTER_STATE in entry.lists for each in prepared(jvm, entry)]
            except InspectorError as error:
                # Retention may have removed it meanwhile: a newer one is complete then.
                if folder.path.exists():
                    unreadable.append(str(error))
                continue
            for each in held:
                name = (each.transactional_id, each.producer_id, each.epoch)
                promises.setdefault(name, []).append(Promise(folder.job_id, each.checkpoint, str(folder.path)))
    return promises, unreadable
