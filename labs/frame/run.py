"""Run one lab: flags, its folder, its exit code."""

from __future__ import annotations

import signal
import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from faultline.command import CommandError, Flags, fail
from faultline.settings import Settings
from labs.frame.folder import LabFolder
from labs.frame.story import Story


@dataclass(frozen=True)
class Lab:
    """The context of an experiment: its name, the stack's settings, its own folder, and its story."""

    name: str
    settings: Settings
    folder: LabFolder
    story: Story


def flags_of(name: str) -> Flags:
    """The flags of every lab."""
    parser = Flags(name, prog=name)
    parser.add_argument("--pause", action="store_true", help="wait for Enter before each step, for a class")
    parser.add_argument("--clean", action="store_true", help="first remove the files of an earlier run")
    return parser


def run(name: str, experiment: Callable[[Lab], None], arguments: list[str] | None = None) -> int:
    """Run the experiment of the lab `name` with these flags; returns the exit code."""
    return run_chosen(name, experiment, flags_of(name).parse_args(arguments))


def run_chosen(name: str, experiment: Callable[[Lab], None], chosen: Namespace) -> int:
    """Run the experiment of the lab `name`, whose flags are parsed; returns the exit code.

    0 every sentence is proven, 1 one is not, 2 the lab could not run, 130 or 143 interrupted.
    """
    signals: list[int] = []

    def on_signal(number: int, _frame: object) -> NoReturn:
        signals.append(number)
        raise KeyboardInterrupt

    # Ctrl-C and SIGTERM must not leave a broker or a JVM running: they end the blocks that own them.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    try:
        if chosen.pause and not sys.stdin.isatty():
            raise CommandError("--pause waits for Enter, and there is no terminal to read it from")
        settings = Settings()
        lab = Lab(name, settings, LabFolder.of(settings, name), Story(name, pause=chosen.pause))
        with lab.folder.claimed(clean=chosen.clean, command=f"scripts/walkthroughs/{name}.sh"):
            experiment(lab)
        return lab.story.finish()
    except CommandError as error:
        fail(name, error)
    except KeyboardInterrupt:
        return _interrupted(name, signals)
    except Exception:
        if signals:
            # py4j turns an interrupt during a call into its own error.
            return _interrupted(name, signals)
        # Neither a result nor a user's mistake: show the trace; it must not count as "not proven".
        traceback.print_exc()
        return 2


def _interrupted(name: str, signals: list[int]) -> int:
    sys.stderr.write(f"\n{name}: interrupted; all of its processes have ended\n")
    return 128 + (signals[0] if signals else signal.SIGINT)
