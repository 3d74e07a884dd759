"""Refuses what does not come from the page itself: foreign web pages, foreign names of this address, large bodies.

The rule is that of faultline/services/web_guard/ in front of Flink's and Spark's servers: see docs/security.md.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN_HEADER = "x-faultline-token"
READS = ("GET", "HEAD")
LARGEST_BODY = 4096
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


def refusal(method: str, path: str, headers: Headers, hosts: Sequence[str], token: str) -> tuple[int, str] | None:
    """Return why a request is refused, as status and sentence; None when the request may pass.

    `hosts`: the names of this server, each with its port. `token`: the token of a request that changes something; empty
    when nothing can be changed.
    """
    origins = headers.getlist("origin")
    rules = [
        (
            headers.getlist("host") not in [[host] for host in hosts],
            403, "the Host is not a name of this server; open the address that was printed",
        ),
        (
            bool(origins) and origins not in [[f"http://{host}"] for host in hosts],
            403, "the request comes from another page",
        ),
        (
            headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and not _opens(method, path, headers),
            403, "the request comes from another page",
        ),
        (method not in (*READS, "POST"), 405, f"{method} is not known here"),
    ]  # fmt: skip
    if method == "POST":
        length = headers.get("content-length", "")
        rules += [
            (not token, 403, "this page is read-only; run scripts/page.sh, and open the address that it prints"),
            (not origins, 403, "the request has no Origin; use the page"),
            (
                not hmac.compare_digest(headers.get(TOKEN_HEADER, "").encode(), token.encode()),
                403, "the token is missing or wrong; open the address that scripts/page.sh printed",
            ),
            (
                not length.isdecimal() or int(length) > LARGEST_BODY,
                413, f"a request has at most {LARGEST_BODY} bytes",
            ),
        ]  # fmt: skip
    return next(((status, why) for refused, status, why in rules if refused), None)


def _opens(method: str, path: str, headers: Headers) -> bool:
    """Return whether a link on another page opens this page as a whole: nothing changes, and nothing is read."""
    return (method, path, headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == (
        "GET", "/", "navigate", "document",
    )  # fmt: skip


class Guard:
    """Stands before the application; answers of both get the headers that keep a browser from more than is meant."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str], token: str) -> None:
        self._app, self._hosts, self._token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # A WebSocket: nothing here speaks it.
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in more if each[0] not in names)]
            await send(message)

        why = refusal(scope["method"], scope["path"], Headers(scope=scope), self._hosts, self._token)
        answer = self._app if why is None else PlainTextResponse(f"{why[1]}\n", status_code=why[0])
        await answer(scope, receive, send_guarded)
