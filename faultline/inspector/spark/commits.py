"""`commits/N`: batch N has run, and its sink has its output (Spark's CommitLog).

Version 1 has the watermark for the next batch, version 2 also the ids of the state files, version 3 also the sinks by
name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from faultline.inspector.spark.log import LogError, LogFolder, LogGone, UnknownVersion, misnamed, parse, read_versioned
from faultline.inspector.words import count

NEWEST = 3
"""The highest version of a commit file that is known here."""


@dataclass(slots=True)
class Commit:
    """One commit file. `state_ids`: by operator, partition and store; `sinks`: what is on record of each, by name."""

    version: int
    state_ids: dict[str, list[list[str]]] = field(default_factory=dict)
    sinks: dict[str, dict[str, Any]] = field(default_factory=dict)

    def facts(self) -> dict[str, str]:
        """Say what else than the watermark a commit of version 2 or 3 has."""
        found = {}
        if self.state_ids:
            stores = sum(len(ids) for partitions in self.state_ids.values() for ids in partitions)
            found["state ids"] = (
                f"the commit names the state files of {count(stores, 'store')} by id"
                f" (operator {', '.join(sorted(self.state_ids))})"
            )
        for name, sink in sorted(self.sinks.items()):
            provider = str(sink.get("providerName", "of an unknown kind")).rpartition(".")[2]
            active = "" if sink.get("isActive", True) else ", no longer written to"
            found[f"sink {name}"] = f"{provider}{active}"
        return found


@dataclass
class Commits:
    """The commits log: commits by number, what is wrong with those that cannot be read, versions not known here."""

    commits: dict[int, Commit] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    unknown: dict[int, str] = field(default_factory=dict)


def read_commits(folder: LogFolder) -> Commits:
    """Read every commit file. A field that is not there has Spark's default, and the JSON line may be missing."""
    found = Commits()
    for number in list(folder.numbers):
        try:
            version, lines = read_versioned(folder.path, str(number), NEWEST, trims=True)
            document = parse(lines[0]) if lines else {}
            _check_watermark(document)
            found.commits[number] = Commit(
                version,
                {
                    str(operator): [[str(each) for each in ids] for ids in partitions]
                    for operator, partitions in (document.get("stateUniqueIds") or {}).items()
                },
                {str(name): dict(sink) for name, sink in (document.get("sinkMetadataMap") or {}).items()},
            )
        except LogGone:
            # A running query deleted it meanwhile, because it is old.
            folder.numbers.remove(number)
        except UnknownVersion as error:
            found.unknown[number] = str(error)
        except LogError as error:
            found.errors[number] = str(error)
        except (AttributeError, TypeError, ValueError, OverflowError):
            found.errors[number] = (
                "its line is not a table with nextBatchWatermarkMs, nor with ids and sinks of version 2 and 3"
            )
    found.errors |= misnamed(folder)
    return found


def _check_watermark(document: dict[str, Any]) -> None:
    value = document.get("nextBatchWatermarkMs") or 0
    if isinstance(value, str):
        raise TypeError
    int(value)
