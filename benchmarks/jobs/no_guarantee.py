"""The windowing job without a guarantee: no checkpoints, and sinks that promise nothing. A baseline for benchmarks."""

from __future__ import annotations

from faultline.settings import Settings
from flink_job.guarantees import NONE
from flink_job.stateful_flink_consumer import run

if __name__ == "__main__":
    run(Settings(), NONE)
