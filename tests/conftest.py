"""Settings of every test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from faultline import ports
from faultline.settings import ROOT
from tests.tiers import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_report_header,
    pytest_xdist_make_scheduler,
)

__all__ = [
    "pytest_addoption", "pytest_collection_modifyitems", "pytest_configure", "pytest_report_header",
    "pytest_xdist_make_scheduler",
]  # fmt: skip

# A shell that starts the tests in the background makes them ignore Ctrl-C, and a program that a test starts would
# inherit that. The handler is Python's own.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# A cancelled CI job gets SIGTERM: treated like Ctrl-C, so that the tests stop what they have started.
signal.signal(signal.SIGTERM, signal.default_int_handler)
# Each process of a run chooses its ports from another thousand: two could choose the same one before either listens.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 12
ports.FREE_PORTS = range(20_000 + 1000 * _WORKER, 21_000 + 1000 * _WORKER)


def _folders_of_a_stack() -> set[str]:
    return {name for name in (".stack", "ledger", "output") if (ROOT / name).exists()}


@pytest.fixture(scope="session", autouse=True)
def _tests_leave_the_clone_alone() -> Iterator[None]:
    """Fail when a test has written into the clone's own stack, which `scripts/up.sh` then refuses."""
    before = _folders_of_a_stack()
    yield
    assert _folders_of_a_stack() <= before, "a test has written into the clone: give it a home of its own (STACK_HOME)"
