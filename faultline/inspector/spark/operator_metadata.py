"""Metadata of a stateful operator, which Spark writes to `state/N/_metadata`: name, stores, and state variables.

Version 1 is the file `metadata`; version 2 (transformWithState, since Spark 4.0) has a file for each batch that
changed the metadata, in `v2/`. Both are a line with the version and a line of JSON.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from faultline.storage.location import Location


class MetadataError(Exception):
    """The file is cut short or not JSON; the message names it."""


@dataclass(frozen=True)
class Variable:
    """A state variable of transformWithState. `kind`: ValueState, ListState, MapState or TimerState."""

    name: str
    kind: str

    @property
    def timers(self) -> bool:
        """True when it holds the timers, which have a name of Spark's own."""
        return self.kind == "TimerState"


@dataclass(frozen=True)
class OperatorMetadata:
    """One operator. `stores`: name and partitions.

    `variables` and `schemas` (paths of the schema files, as Spark writes them, absolute) are empty but for
    transformWithState.
    """

    name: str
    stores: tuple[tuple[str, int], ...]
    variables: tuple[Variable, ...] = ()
    schemas: tuple[str, ...] = ()


def read(folder: Location) -> OperatorMetadata | None:
    """Return what is in `folder`, a `state/N`; None when it has no metadata. Raises MetadataError."""
    file = folder / "_metadata" / "metadata"
    logged = logged_files(folder)
    if logged:
        file = logged[-1]
    try:
        document = json.loads(file.read_bytes().split(b"\n", 1)[1])
        return OperatorMetadata(
            str(document["operatorInfo"]["operatorName"]),
            tuple((str(store["storeName"]), int(store["numPartitions"])) for store in document["stateStoreInfo"]),
            tuple(_variables(json.loads(document.get("operatorPropertiesJson") or "{}"))),
            tuple(
                str(path) for store in document["stateStoreInfo"] for path in store.get("stateSchemaFilePaths") or ()
            ),
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MetadataError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        raise MetadataError(f"{file} is cut short or not JSON") from None


def logged_files(folder: Location) -> list[Location]:
    """List the files of version 2 in `folder`, a `state/N`, the newest last; empty for version 1."""
    logged = folder / "_metadata" / "v2"
    files = (
        [each for each in logged.iterdir() if each.name.isdecimal() and each.name.isascii()] if logged.is_dir() else []
    )
    return sorted(files, key=lambda file: int(file.name))


def _variables(properties: dict[str, Any]) -> list[Variable]:
    return [
        Variable(str(each["stateName"]), str(each["stateVariableType"]))
        for each in properties.get("stateVariables") or ()
    ]
