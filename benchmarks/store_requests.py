"""Requests that the object store has answered, by what stores charge for, from SeaweedFS's own counters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from faultline.direct import open_direct
from faultline.stack.errors import StackError

_COUNTER = re.compile(r"^SeaweedFS_s3_request_total\{([^}]*)\} ([0-9.e+]+)$", re.MULTILINE)
_KIND = re.compile(r'type="([^"]*)"')
_WRITES = frozenset({"PUT", "POST", "COPY", "LIST"})
_READS = frozenset({"GET"})
"""SeaweedFS counts HEAD as GET."""
_FREE = frozenset({"DELETE"})
_ANSWER_SECONDS = 10


@dataclass(frozen=True)
class Requests:
    """Numbers of requests: stores charge writes and listings at one price, reads at another, and deletes at none."""

    writes: int
    reads: int

    def __sub__(self, earlier: Requests) -> Requests:
        return Requests(self.writes - earlier.writes, self.reads - earlier.reads)


def parse(metrics: str) -> Requests:
    """Read SeaweedFS's metrics, as Prometheus reads them. Raises StackError for a kind that is in no group."""
    writes = reads = 0
    for labels, number in _COUNTER.findall(metrics):
        found = _KIND.search(labels)
        kind = found[1] if found else ""
        if kind in _WRITES:
            writes += int(float(number))
        elif kind in _READS:
            reads += int(float(number))
        elif kind not in _FREE:
            raise StackError(f"the object store counts requests of the kind '{kind}': neither read nor write", 1)
    return Requests(writes, reads)


def requests(port: int) -> Requests:
    """Ask the store; the question itself is not counted. Raises StackError when it does not answer."""
    try:
        with open_direct(f"http://127.0.0.1:{port}/metrics", _ANSWER_SECONDS) as response:
            return parse(response.read().decode())
    except OSError as error:
        raise StackError(f"the object store's metrics on port {port} cannot be read: {error}", 1) from None
