"""Programs whose flags a script passes on: their help follows the header of the script."""

from __future__ import annotations

from faultline.stack.stack import Stack

MODULES: dict[str, tuple[str, ...]] = {
    "generator_start": ("tools", "generator"),
    "spark_start": ("tools", "spark_job.visits_json_synchronizer"),
    "verdict": ("tools", "faultline.verdict"),
    "inspect": ("tools", "faultline.inspector"),
    "open_transactions": ("tools", "faultline.probes.open_transactions"),
    "transactions": ("flink", "faultline.inspector.transactions"),
    "window_latency": ("tools", "faultline.probes.window_latency"),
    "flink_submit": ("flink", "flink_job.submit"),
    "flink_cancel": ("flink", "flink_job.cancel"),
    "flink_restore": ("flink", "flink_job.submit"),
    "flink_status": ("flink", "flink_job.status"),
    "flink_checkpoints": ("flink", "faultline.inspector.flink", "list"),
    "devices_file_stream": ("tools", "spark_job.devices_file_stream"),
}
"""Verb -> environment, module, and subcommand if it has one."""


def flags_of(stack: Stack, verb: str) -> str:
    """Return the help of the program behind a verb; its environment must have been fetched."""
    environment, *module = MODULES[verb]
    if not stack.backend.is_prepared():
        return (
            f"Its flags are those of `python -m {' '.join(module)}`: scripts/fetch.sh, then --help again, shows them."
        )
    return f"Flags that are passed on:\n\n{stack.backend.help_of(module, environment).rstrip()}"
