"""Ports on the stack's address: which are taken, which are free. Standard library, Python 3.9."""

from __future__ import annotations

import itertools
import random
import socket

_ANSWER_SECONDS = 2.0
FREE_PORTS = range(20_000, 32_000)
"""Ports that `free_ports` tries: below the ports of outgoing connections."""
_given: set[int] = set()
"""Ports that this program was given: a stack does not listen on its ports at once."""


def answers(address: str, port: int) -> bool:
    """Return whether something accepts connections there."""
    return not silence(address, port)


def silence(address: str, port: int) -> str:
    """Return why nothing accepts connections there, in the system's words; empty when something does."""
    try:
        with socket.create_connection((address, port), timeout=_ANSWER_SECONDS):
            return ""
    except (OSError, OverflowError) as error:
        return str(getattr(error, "strerror", None) or error)


def says_ok(address: str, port: int, path: str) -> bool:
    """Return whether a web server there answers a request for a path, and says that all is well."""
    # With its parsers of mail it takes as long to import as most programs here need for all else.
    import http.client  # noqa: PLC0415

    connection = http.client.HTTPConnection(address, port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def refusal(address: str, port: int) -> str:
    """Return why no server could listen there now, in the system's words; empty when one could."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        # Like a server: connections of an earlier server that are still closing do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.strerror or str(error)
    return ""


def free_ports(address: str, count: int) -> list[int]:
    """Return ports that nothing listens on now and that no call in this program has returned; no two the same.

    They are below those that systems give to outgoing connections, one of which could take a port before its server.
    """
    candidates = random.SystemRandom().sample(FREE_PORTS, len(FREE_PORTS))
    free = (port for port in candidates if port not in _given and not refusal(address, port))
    found = list(itertools.islice(free, count))
    _given.update(found)
    return found
