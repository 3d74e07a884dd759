"""A real browser, when the machine has one; CI must have one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from faultline.page.pictures.browser import Browser, PictureError, browser


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    """A window of a headless Chromium; without one the test is skipped, or fails if CI=true."""
    with pytest.MonkeyPatch.context() as environ:
        # The driver reaches the browser on loopback.
        environ.setenv("no_proxy", "127.0.0.1,localhost")
        found = browser()
        try:
            opened = found.__enter__()
        except PictureError as error:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(f"{error}; .ci/browser.sh installs them")
        try:
            yield opened
        finally:
            found.__exit__(None, None, None)
