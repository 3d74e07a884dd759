"""Measurements, in a file for each release of Spark beside this one: `measured/spark-4.0.json`."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyspark.version import __version__ as spark_version

from faultline.packages.release import THIS_RELEASE
from faultline.settings import artifacts
from labs.delete_x_then_start.case import Measured

FOLDER = Path(__file__).with_name("measured")


@dataclass(frozen=True)
class Cell:
    """The behaviour of Spark in one case with one sink, as Spark reported it, and the counts of rows."""

    does: str
    lost: int
    waiting: int
    duplicated: int

    @property
    def gist(self) -> tuple[str, int, int, int]:
        """The cell without the error's text: which batches ran, whether it stopped, the counts."""
        return (re.sub(r"(stops|the output): `.*", r"\1", self.does), self.lost, self.waiting, self.duplicated)


@dataclass
class Column:
    """One release: the version that was measured, that of its Kafka source, and the cells by `case, sink`."""

    release: str
    spark: str
    kafka: str
    cells: dict[str, Cell] = field(default_factory=dict)

    def cell(self, case: str, sink: str) -> Cell | None:
        """Return one cell; None where it was not measured."""
        return self.cells.get(f"{case}, {sink}")

    def write(self, folder: Path = FOLDER) -> Path:
        """Write the release's file, a line a cell."""
        folder.mkdir(exist_ok=True)
        path = folder / f"spark-{self.release}.json"
        head = json.dumps({"release": self.release, "spark": self.spark, "kafka": self.kafka, "cells": {}})
        cells = [f"{json.dumps(name)}: {json.dumps(asdict(cell))}" for name, cell in self.cells.items()]
        path.write_text("\n".join([head[:-2], ",\n".join(cells), "}}", ""]), encoding="utf-8")
        return path


def read_columns(folder: Path = FOLDER) -> list[Column]:
    """Read every release that was measured, the oldest first."""
    found = []
    for path in sorted(folder.glob("spark-*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        cells = {name: Cell(**cell) for name, cell in document.pop("cells").items()}
        found.append(Column(cells=cells, **document))
    return found


def column_of(rows: list[Measured]) -> Column:
    """Return what this environment's Spark did."""
    jars = sorted((artifacts() / "jars" / "spark").glob("spark-sql-kafka-*.jar"))
    kafka = jars[0].stem.rpartition("-")[2] if jars else "none"
    cells = {}
    for row in rows:
        reader = f". Spark cannot read the output: {row.reader}" if row.reader else ""
        cells[f"{row.case.name}, {row.sink}"] = Cell(f"{row.outcome}{reader}", row.lost, row.waiting, row.duplicated)
    return Column(THIS_RELEASE, spark_version, kafka, cells)
