"""A separate stack for a benchmark: local backend, a temporary home, free ports; removed at the end."""

from __future__ import annotations

import contextlib
import functools
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from faultline.command import run
from faultline.settings import DISK, ROOT
from faultline.stack.backends.local import LocalBackend
from faultline.stack.errors import StackError
from faultline.stack.own import own_environment
from faultline.stack.processes import Program
from faultline.stack.services import COUNTS, TABLE, Service
from faultline.stack.stack import Stack, open_stack
from faultline.stop import interrupt_once
from faultline.verbs.arguments import count
from faultline.waiting import wait_until

_START_SECONDS = 90.0


class Judged(NamedTuple):
    """A line of benchmarks/judge.py: seconds of the whole, of reading and of judging, and memory in MiB."""

    outcome: str
    expected: int
    observed: int
    seconds: str
    reading: str
    judging: str
    mebibytes: str


class OwnStack:
    """Services of a stack, started one by one."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.settings, self.home = stack.settings, stack.home
        self.backend = LocalBackend(stack.settings, stack.home)

    @property
    def mark(self) -> str:
        """The mark that the processes of this stack carry in their environment."""
        return self.home.require_marker().stack

    def service(self, name: str) -> Service:
        """Find a service by its name."""
        return self.stack.service(name)

    def changed(self, settings: Mapping[str, str]) -> OwnStack:
        """The same services, for programs that are to run with other settings."""
        return OwnStack(self.stack.having(settings))

    def start(self, *names: str, arguments: Sequence[str] = ()) -> None:
        """Start services, with these arguments, and wait until they answer."""
        for name in names:
            self.backend.start(self.service(name), arguments)
        for name in names:
            answers = functools.partial(self.backend.answers, self.service(name))
            wait_until(answers, f"{name} to answer", seconds=_START_SECONDS)

    def stop(self, *names: str) -> None:
        """Stop services."""
        for name in names:
            self.backend.stop(self.service(name))

    def ask(self, row: Service, *command: str) -> str:
        """Run a command in a service's environment and return its output. Raises StackError when it fails."""
        return self.backend.execute(row, command, capture=True).stdout

    def tool(self, *command: str) -> str:
        """Run a module of the tools and return its output. Raises StackError when it fails."""
        done = self.backend.tool(["python", "-m", *command], capture=True)
        if done.returncode:
            raise StackError(f"python -m {command[0]} ended with exit code {done.returncode}", done.returncode)
        return done.stdout

    def topics(self) -> None:
        """Create the topics."""
        self.tool("faultline.services.kafka.topics")

    def fill(self, records: int) -> None:
        """Create the topics, and fill that of the visits. Raises StackError when not all were acknowledged."""
        self.topics()
        self.tool("benchmarks.fill", str(records))

    def filling(self, records: int, rate: int) -> Program:
        """Send visits at a rate, beside what is done in the block of a `with`; the last line is their number."""
        command = ["python", "-m", "benchmarks.fill", str(records), str(rate)]
        return Program(command, self.backend.environment("tools"), self.home.root / "fill.log", ROOT)

    def judge(self, pipeline: str, *flags: str) -> Judged:
        """Judge a pipeline. Raises StackError when there is no report."""
        outcome, expected, observed, *costs = self.tool("benchmarks.judge", pipeline, *flags).split()
        return Judged(outcome, int(expected), int(observed), *costs)

    def require_right(self, pipeline: str, *flags: str, written: int | None = None) -> Judged:
        """Judge a pipeline. Raises StackError unless the verdict holds, of so many records if their number is known."""
        found = self.judge(pipeline, *flags)
        if found.outcome != "holds" or written not in (None, found.observed):
            # Its own words say which records.
            self.backend.tool(["python", "-m", "faultline.verdict", pipeline, *flags])
            raise StackError(
                f"the verdict on {pipeline} is {found.outcome}, with {found.observed} records"
                f"{'' if written is None else f' of {written}'}: not a valid measurement",
                1,
            )
        return found


def claimed(home: Path, settings: Mapping[str, str]) -> OwnStack:
    """Claim a home for a stack with these settings, on free ports; nothing runs yet."""
    # The script's own environment names the broker, the JobManager and the data of the user's stack.
    reach = {"KAFKA_BOOTSTRAP": "", "FLINK_REST": "", "DATA": DISK, "PROFILE": ""}
    usual = {name: str(numbers[0]) for name, numbers in COUNTS.items()}
    chosen = {**reach, **usual, **settings, "BIND_ADDRESS": "127.0.0.1", "BACKEND": "local"}
    stack = open_stack({}, own_environment(home, chosen))
    stack.home.claim(stack.topics)
    return OwnStack(stack)


@contextlib.contextmanager
def own_stack(settings: Mapping[str, str] | None = None) -> Iterator[OwnStack]:
    """Make a stack without services; at the end all of its services are stopped and its files removed."""
    with tempfile.TemporaryDirectory(prefix="faultline-benchmark-") as folder:
        stack = claimed(Path(folder), settings or {})
        try:
            yield stack
        finally:
            for row in TABLE:
                stack.backend.kill(row)
            stack.backend.down(wipe=True)


def run_benchmark(script: str, measure: Callable[..., int | None], **defaults: str) -> NoReturn:
    """Run a benchmark with the numbers of its command line, and end with the exit code that it returns, if any.

    `defaults`: by the name of each argument, the number where the command line has none.
    """

    def main() -> int:
        # Its stack is stopped then.
        interrupt_once()
        words = sys.argv[1:]
        if len(words) > len(defaults):
            raise StackError(f"'{words[len(defaults)]}' is one argument too many; --help lists them")
        chosen = {**defaults, **dict(zip(defaults, words, strict=False))}
        return measure(*(count(text, name) for name, text in chosen.items())) or 0

    run(script, main)
