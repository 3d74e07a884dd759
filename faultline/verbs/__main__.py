"""python -m faultline.verbs VERB ...: what the scripts call. Help is the header of the script."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Callable

from faultline.command import quiet_imports
from faultline.command import run as run_program

if __name__ == "__main__":
    quiet_imports()

from faultline.stack.backend import STOP
from faultline.stack.stack import Stack, open_stack
from faultline.stop import interrupt_once
from faultline.verbs import flink, help, judge, kafka, lifecycle, programs, services, status, tools
from faultline.verbs.arguments import split_flags
from faultline.verbs.header import header

Verb = Callable[[Stack, Sequence[str]], int]

VERBS: dict[str, Verb] = {
    "up": lifecycle.up,
    "down": lifecycle.down,
    "reset": lifecycle.reset,
    "fetch": lifecycle.fetch,
    "status": status.status,
    **services.BY_ACT,
    "logs": services.logs,
    "exec": services.execute,
    "generator_start": lambda stack, words: services.start(stack, ["generator", *words]),
    "generator_stop": lambda stack, words: services.BY_ACT[STOP](stack, ["generator", *words]),
    "spark_start": lambda stack, words: services.start(stack, ["spark", *words]),
    "spark_stop": lambda stack, words: services.BY_ACT[STOP](stack, ["spark", *words]),
    "flink_submit": flink.submit,
    "flink_cancel": flink.cancel,
    "flink_restore": flink.restore,
    "flink_status": flink.status,
    "flink_checkpoints": flink.checkpoints,
    "consume": kafka.consume,
    "verdict": judge.verdict,
    "settle": judge.settle,
    "open_transactions": judge.open_transactions,
    "transactions": judge.transactions,
    "window_latency": judge.window_latency,
    "inspect": judge.inspect,
    "files": judge.files,
    "lab": programs.lab,
    "devices_file_stream": programs.devices,
    "notebook": programs.notebook,
    "deploy": programs.deploy,
    "sbom": programs.sbom,
    "pictures": programs.pictures,
    "benchmark": programs.benchmark,
    "faults": programs.faults,
    "soak": programs.soak,
    "pipeline": programs.pipeline,
    "page": programs.page,
    "check": programs.check,
    "test": programs.test,
}
"""The function of each script; most scripts are called scripts/<verb>.sh."""
STARTS = ("up", "fetch", "soak")
"""Those that take --profile."""
WITHOUT_A_STACK: dict[str, Callable[[Sequence[str]], int]] = {"help": help.show, "walkthroughs": help.walkthroughs}


def run(script: str, verb: str, words: Sequence[str]) -> int:
    """Run a verb. Raises StackError and SettingsError."""
    # What follows is for another program: `exec jobmanager flink --help`.
    own = words[:1] if verb == "exec" else words
    if "--help" in own or "-h" in own:
        sys.stdout.write("\n".join(header(script)) + "\n")
        if verb in tools.MODULES:
            flags, _ = split_flags([word for word in words if word not in ("--help", "-h")])
            sys.stdout.write(f"\n{tools.flags_of(open_stack(flags), verb)}\n")
        return 0
    if verb in WITHOUT_A_STACK:
        return WITHOUT_A_STACK[verb](words)
    flags, left = split_flags(words, starts=verb in STARTS)
    return VERBS[verb](open_stack(flags), left)


def main(arguments: Sequence[str]) -> int:
    """Run `SCRIPT VERB WORD...`; returns the exit code."""
    script, verb, *words = arguments
    # A walkthrough that cleans up ignores them, and so do the scripts that it calls then.
    interrupt_once()
    return run(script, verb, words)


if __name__ == "__main__":
    run_program(sys.argv[1].rpartition("/")[2], lambda: main(sys.argv[1:]))
