"""Readers of what a pipeline wrote: each makes the table `output`, with all columns as the sink has them.

A new reader is a module with the functions of `Reader`, an entry here, and its keys in faultline/pipelines/spec.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from faultline.pipelines.spec import Output
from faultline.verdict.store import Store

_MODULES = {"kafka": "topic", "json": "files", "csv": "files", "parquet": "files"}
"""The module of each reader that has not its own name."""


class Reader(Protocol):
    """The functions of a reader's module."""

    def load(self, store: Store, output: Output, columns: dict[str, str]) -> list[str]:
        """Make the table `output`; returns notes on what was left out.

        `columns`: name and type of each column of the query. Raises Unknown when it cannot be read.
        """
        ...

    def mark(self, output: Output) -> object:
        """Return something that changes whenever the output has grown, at little cost; None without an output."""
        ...

    def reach(self, output: Output) -> None:
        """Raise Unknown when the sink does not answer; a sink that is empty yet is well."""
        ...


def reader_of(output: Output) -> Reader:
    """Return the reader of an output. Clients of databases are imported only where one is read."""
    name = _MODULES.get(output.reader, output.reader)
    return cast(Reader, import_module(f"faultline.pipelines.readers.{name}"))
