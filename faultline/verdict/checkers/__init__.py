"""One checker per pipeline: to add a pipeline, add a file here, a line below, and its name in formats/verdict.py."""

from __future__ import annotations

from faultline.verdict.checker import Build
from faultline.verdict.checkers.classic import classic
from faultline.verdict.checkers.flink import flink
from faultline.verdict.checkers.source import source
from faultline.verdict.checkers.spark import spark

CHECKERS: dict[str, Build] = {"source": source, "spark": spark, "flink": flink, "classic": classic}
"""Every checker by its name on the command line, in data-flow order."""
PIPELINES = ("spark", "flink")
"""The pipelines, which read the source; the source itself is judged with each of them."""
