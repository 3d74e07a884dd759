"""A separate stack for a benchmark: local backend, a temporary home, free ports; removed at the end."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from faultline.command import run
from faultline.ports import free_ports
from faultline.settings import DISK, store_of_data
from faultline.stack.backends.local import LocalBackend
from faultline.stack.errors import StackError
from faultline.stack.home import Home, Topics
from faultline.stack.services import COUNTS, LOCAL_PORTS, TABLE, Service, copies, service
from faultline.stack.settings import load
from faultline.stop import interrupt_once
from faultline.verbs.arguments import count
from faultline.waiting import wait_until

_ADDRESS = "127.0.0.1"
_START_SECONDS = 90.0


class OwnStack:
    """Services of a stack, started one by one."""

    def __init__(self, home: Path, settings: Mapping[str, str]) -> None:
        ports = dict(zip(LOCAL_PORTS, map(str, free_ports(_ADDRESS, len(LOCAL_PORTS))), strict=True))
        # The script's own environment names the broker, the JobManager and the data of the user's stack.
        reach = {"KAFKA_BOOTSTRAP": "", "FLINK_REST": "", "DATA": DISK, "PROFILE": ""}
        usual = {name: str(numbers[0]) for name, numbers in COUNTS.items()}
        self._chosen = {
            **ports,
            **reach,
            **usual,
            **settings,
            "BIND_ADDRESS": _ADDRESS,
            "HOME": str(home),
            "BACKEND": "local",
        }
        self.home = Home(home)
        self._use({})
        values = self.settings.values
        self.home.claim(Topics("local", len(copies("kafka", values)), store_of_data(values)))

    def _use(self, settings: Mapping[str, str]) -> None:
        self.settings = load(os.environ, {**self._chosen, **settings}, {})
        self.backend = LocalBackend(self.settings, self.home)

    @property
    def mark(self) -> str:
        """The mark that the processes of this stack carry in their environment."""
        marker = self.home.marker()
        assert marker is not None
        return marker.stack

    def service(self, name: str) -> Service:
        """Find a service by its name."""
        return service(name, self.settings.values)

    def changed(self, settings: Mapping[str, str]) -> OwnStack:
        """The same services, for programs that are to run with other settings."""
        other = copy.copy(self)
        other._use(settings)
        return other

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


@contextlib.contextmanager
def own_stack(settings: Mapping[str, str] | None = None) -> Iterator[OwnStack]:
    """Make a stack without services; at the end all of its services are stopped and its files removed."""
    with tempfile.TemporaryDirectory(prefix="faultline-benchmark-") as folder:
        stack = OwnStack(Path(folder), settings or {})
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


def row(widths: str, *cells: object) -> None:
    """Print a line of a table; `widths` is a format such as `{:<30} {:>10}`."""
    print(widths.format(*map(str, cells)), flush=True)
