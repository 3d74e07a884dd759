"""The line to the pipeline's Postgres: a proxy on loopback that can be cut, and that can lose one answer."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator

_BYTES = 1 << 16
_COMMITTED = (b"COMMIT\0", b"INSERT 0 ", b"COPY ")
"""Tags of the server's message CommandComplete after which, outside a transaction, rows are in a table."""
_IDLE = b"Z\0\0\0\x05I"
"""The server's message ReadyForQuery: no transaction is open. PostgreSQL 18 documentation, 54.7, Message Formats."""


class Line:
    """Connections to a server, passed on byte by byte.

    `port`: where the proxy listens; set by `open_line`. `lost`: answers that were not delivered. `refused`: connections
    that ended or were not accepted because the line was cut.
    """

    def __init__(self, address: str, target: int) -> None:
        self._address, self._target = address, target
        self.port = self.lost = self.refused = 0
        self._is_cut = False
        self._loses: Callable[[], bool] | None = None
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()

    def cut(self) -> None:
        """End all connections, and accept no new one until `mend`."""
        with self._guard:
            self._is_cut = True
            self.refused += len(self._open)
            for each in self._open:
                _end(each)

    def mend(self) -> None:
        """Accept connections again."""
        with self._guard:
            self._is_cut = False

    def lose_answer(self, to: Callable[[], bool]) -> None:
        """Do not deliver the next answer that says that rows are committed, if `to()` is true then; end its connection.

        The server has committed, and its client does not hear of it.
        """
        self._loses = to

    def serve(self, client: socket.socket) -> None:
        """Pass on what a client and the server say, until one of them ends or the line is cut."""
        with socket.create_connection((self._address, self._target)) as server:
            with self._guard:
                if self._is_cut:
                    self.refused += 1
                    return
                self._open |= {client, server}
            asks = threading.Thread(target=_pass_on, args=(client, server), daemon=True)
            asks.start()
            try:
                self._answer(server, client)
            finally:
                with self._guard:
                    self._open -= {client, server}
                _end(client)
                _end(server)
                asks.join()

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        """Pass on what the server says."""
        said = b""
        with contextlib.suppress(OSError):
            while found := server.recv(_BYTES):
                said += found
                if said.endswith(_IDLE) and self._is_to_lose(said):
                    self.lost, self._loses = self.lost + 1, None
                    return
                client.sendall(found)
                # An answer ends with the server's readiness for the next question.
                said = b"" if said.endswith(_IDLE) else said[-_BYTES:]

    def _is_to_lose(self, said: bytes) -> bool:
        loses = self._loses
        return loses is not None and any(tag in said for tag in _COMMITTED) and loses()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


@contextlib.contextmanager
def open_line(address: str, target: int) -> Iterator[Line]:
    """Pass connections to a free port on to the port `target` of the same address, until the end of the block."""
    line = Line(address, target)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            line.serve(self.request)

    with _Server((address, 0), Handler) as server:
        line.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield line
        finally:
            server.shutdown()
            line.cut()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while found := source.recv(_BYTES):
            target.sendall(found)
    _end(target)


def _end(connection: socket.socket) -> None:
    # The other side may have ended it.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
