"""End every program of the project after a mistake by one line on stderr, no traceback, and its own exit code."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn


class CommandError(Exception):
    """A program cannot do what it was asked; the message names the thing, the cause and the next step."""

    code = 2
    """The exit code of the program."""


def open_streams() -> None:
    """Give a closed stdin, stdout or stderr to /dev/null, so that no file that is opened later takes its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))


def drop_output() -> None:
    """Throw away what is not printed yet: Python would try again at its end, and change the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run(name: str, main: Callable[[], int]) -> NoReturn:
    """Run a program, and end with its exit code; Ctrl-C and an output that its reader has closed end it in silence.

    A CommandError is printed as one line; without a message the reason has been printed before.
    """
    open_streams()
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        try:
            code = main()
        except CommandError as error:
            if str(error):
                sys.stderr.write(f"{name}: {error}\n")
            code = error.code
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        drop_output()
        # The number of the signal, if it was another than Ctrl-C (`faultline.stop.interrupt_once`).
        code = 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    except BrokenPipeError:
        drop_output()
        code = 128 + signal.SIGPIPE
    except OSError as error:
        drop_output()
        sys.stderr.write(f"{name}: {error.filename or 'the output'}: {error.strerror or error}\n")
        code = 2
    sys.exit(code)


def quiet_imports() -> None:
    """Let Ctrl-C just end the program until `run` listens: an import that is interrupted would print a stack trace.

    Call it before the imports that take long. What the program inherits as ignored stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def first_line(error: BaseException) -> str:
    """Return the first line of an error that is not empty; of an error of py4j, of its cause in Java."""
    cause = getattr(error, "java_exception", None)
    text = str(error) if cause is None else str(cause.toString())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


def seconds(text: str) -> float:
    """Read a flag's number of seconds, 0 or more. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number


def words_of(arguments: argparse.Namespace, *others: str) -> list[str]:
    """Return arguments as flags of their parser. `others`: names of those to leave out, such as positional ones."""
    words = []
    for name, value in vars(arguments).items():
        flag = f"--{name.replace('_', '-')}"
        if name in others or value is None or value is False:
            continue
        words.append(flag if value is True else f"{flag}={value}")
    return words


def fail(name: str, message: object) -> NoReturn:
    """End with `name: message` and exit code 2."""
    sys.stderr.write(f"{name}: {message}\n")
    sys.exit(2)


class Flags(argparse.ArgumentParser):
    """A parser whose errors are one line that begins with `name`, like the program's other messages.

    Flags are not abbreviated: a script that abbreviates breaks when a flag is added.
    """

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)
        self._name = name

    def error(self, message: str) -> NoReturn:
        """End with the message and a hint at --help."""
        fail(self._name, f"{message}; --help lists the flags")
