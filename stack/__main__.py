"""python -m stack VERB ...: what the scripts call. Help is the header of the script."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence
from typing import Callable

from contract.settings import ROOT, SettingsError

from stack.arguments import split_flags
from stack.errors import StackError
from stack.messages import say
from stack.stack import Stack, open_stack
from stack.verbs import flink, judge, kafka, lifecycle, programs, services, status

Verb = Callable[[Stack, Sequence[str]], int]

VERBS: dict[str, Verb] = {
    "up": lifecycle.up,
    "down": lifecycle.down,
    "reset": lifecycle.reset,
    "fetch": lifecycle.fetch,
    "status": status.status,
    "start": services.start,
    "stop": services.stop,
    "kill": services.kill,
    "pause": services.pause,
    "resume": services.resume,
    "logs": services.logs,
    "exec": services.execute,
    "generator_start": lambda stack, words: services.start(stack, ["generator", *words]),
    "generator_stop": lambda stack, words: services.stop(stack, ["generator", *words]),
    "spark_start": lambda stack, words: services.start(stack, ["spark", *words]),
    "spark_stop": lambda stack, words: services.stop(stack, ["spark", *words]),
    "flink_submit": flink.submit,
    "flink_cancel": flink.cancel,
    "flink_restore": flink.restore,
    "flink_status": flink.status,
    "flink_checkpoints": flink.checkpoints,
    "consume": kafka.consume,
    "verdict": judge.verdict,
    "settle": judge.settle,
    "inspect": judge.inspect,
    "lab": programs.lab,
    "devices_file_stream": programs.devices,
    "notebook": programs.notebook,
    "sbom": programs.sbom,
    "benchmark": programs.benchmark,
    "check": programs.check,
    "test": programs.test,
}
"""Verbs in the order of help.sh; each is scripts/<verb>.sh."""

_HEADER = re.compile(r"^# ?(.*)$")


def header(script: str) -> list[str]:
    """Read the summary, usage and notes at the head of a script, without their `#`."""
    lines = []
    for line in (ROOT / script).read_text(encoding="utf-8").splitlines()[1:]:
        found = _HEADER.match(line)
        if found is None:
            break
        lines.append(found[1])
    return lines


def main(arguments: Sequence[str]) -> int:
    """Run `SCRIPT VERB WORD...`; returns the exit code."""
    script, verb, *words = arguments
    # Whatever follows is for another program: `exec jobmanager flink --help`.
    own = words[:1] if verb == "exec" else words
    if "--help" in own or "-h" in own:
        sys.stdout.write("\n".join(header(script)) + "\n")
        return 0
    try:
        flags, left = split_flags(words)
        return VERBS[verb](open_stack(flags), left)
    except StackError as error:
        if str(error):
            say(f"{script.rpartition('/')[2]}: {error}")
        return error.code
    except SettingsError as error:
        say(f"{script.rpartition('/')[2]}: {error}")
        return 2
    except BrokenPipeError:
        # Whoever reads the output has seen enough.
        sys.stderr.close()
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
