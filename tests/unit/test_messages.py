"""Messages go to stderr, or to whoever collects them, with those of the commands that run meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from faultline.messages import heard, listening, say
from faultline.stack.children import STDERR, run_child

TALKS = (sys.executable, "-c", "import sys; print('a result'); print('a word', file=sys.stderr); sys.exit(3)")


def test_what_is_said_is_collected_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with heard() as said:
        assert listening()
        say("two\nlines")
        done = run_child(TALKS, os.environ, stdout=subprocess.PIPE)
        assert run_child(TALKS, os.environ, stdout=STDERR).stdout == ""
    assert (done.returncode, done.stdout) == (3, "a result\n")
    assert said[:3] == ["two", "lines", "a word"]
    assert sorted(said[3:]) == ["a result", "a word"]
    assert capfd.readouterr() == ("", "")
    assert not listening()


def test_otherwise_it_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    say("a message")
    run_child(TALKS, os.environ)
    assert capfd.readouterr() == ("a result\n", "a message\na word\n")
