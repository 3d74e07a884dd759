"""Ports on the stack's address: which are taken, which are free."""

from __future__ import annotations

import socket

_ANSWER_SECONDS = 2.0


def answers(address: str, port: int) -> bool:
    """Return whether something accepts connections there."""
    try:
        with socket.create_connection((address, port), timeout=_ANSWER_SECONDS):
            return True
    except OSError:
        return False


def can_bind(address: str, port: int) -> bool:
    """Return whether a server could listen there now."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        # Like a server: connections of an earlier server that are still closing do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def free_ports(address: str, count: int) -> list[int]:
    """Return ports that nothing listens on now; all are kept open until the last is found, so no two are the same."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((address, 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
