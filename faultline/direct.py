"""Requests to the stack's own web servers: on this machine or in its containers, without a proxy."""

from __future__ import annotations

import urllib.error
import urllib.request
from http.client import HTTPResponse

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def open_direct(request: urllib.request.Request | str, seconds: float) -> HTTPResponse:
    """Send a request, whatever proxy the environment names.

    Raises OSError, and HTTPError for a status above 399: its connection is closed, its code and reason are there.
    """
    try:
        answer: HTTPResponse = _OPENER.open(request, timeout=seconds)
    except urllib.error.HTTPError as error:
        error.close()
        raise
    return answer
