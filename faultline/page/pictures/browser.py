"""A headless browser that saves pages as PNG files."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from faultline.command import CommandError
from faultline.waiting import wait_until

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_DRIVER = "chromedriver"
_WAIT_SECONDS = 60.0
# Nothing but the page: no updates, no accounts, no look-ups of hosts.
_FLAGS = (
    "--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--force-color-profile=srgb",
)  # fmt: skip


class PictureError(CommandError):
    """No browser, or a page without what is to be seen; the message names it and the next step."""


class Browser:
    """One window of a browser."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self._driver = driver

    def save(self, address: str, wanted: str, file: Path, *, height: int) -> None:
        """Open a page, wait until it shows the text `wanted`, and save it. Raises TimedOut when it never does."""
        self.size(1280, height)
        self.open(address)
        wait_until(
            lambda: wanted in self.text(),
            f"the words '{wanted}' of {address}",
            seconds=_WAIT_SECONDS,
            explain=lambda: "does the job run? see scripts/status.sh",
        )
        # The page animates its drawings.
        time.sleep(2)
        self.picture(file)

    def size(self, width: int, height: int) -> None:
        """Give the page this size, in pixels; a window could not be as narrow as a phone."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def prefer(self, **features: str) -> None:
        """Set what a user prefers: prefers_color_scheme="dark", prefers_reduced_motion="reduce"."""
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})

    def open(self, address: str) -> None:
        """Open a page. Raises PictureError when nothing answers."""
        try:
            if "#" in address:
                # A change behind it alone would not load the page again.
                self._driver.get("about:blank")
            self._driver.get(address)
        except WebDriverException as error:
            raise PictureError(f"{address} cannot be opened: {_first_line(error)}; see scripts/status.sh") from None

    def picture(self, file: Path) -> None:
        """Save what is seen."""
        file.parent.mkdir(parents=True, exist_ok=True)
        self._driver.save_screenshot(str(file))

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script in the page, and return what it returns."""
        return self._driver.execute_script(script, *arguments)

    def press(self, *keys: str) -> None:
        """Press keys, as a person does."""
        ActionChains(self._driver).send_keys(*keys).perform()

    def complaints(self) -> list[str]:
        """Return the messages of the browser's console since the last call: errors, and refusals by a policy."""
        return [str(entry["message"]) for entry in self._driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def part(self, name: str) -> str:
        """The text that is seen of the element with this id."""
        return str(self.run("return document.getElementById(arguments[0]).innerText", name))

    def text(self) -> str:
        """The text that is seen."""
        try:
            return str(self._driver.execute_script("return document.body ? document.body.innerText : ''"))
        except WebDriverException:
            # The window is between two pages.
            return ""


def _first_line(error: WebDriverException) -> str:
    return (error.msg or type(error).__name__).splitlines()[0]


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser and end it. Raises PictureError when there is none, or when it does not start."""
    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = shutil.which(_DRIVER)
    if program is None or driver is None:
        raise PictureError(
            f"no browser: {' or '.join(_BROWSERS)}, and {_DRIVER}, must be on PATH (Debian: chromium, chromium-driver)"
        )
    options = Options()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])):
        options.add_argument(flag)
    with tempfile.TemporaryDirectory(prefix="pictures-") as profile:
        options.add_argument(f"--user-data-dir={profile}")
        try:
            window = webdriver.Chrome(options=options, service=Service(driver))
        except WebDriverException as error:
            raise PictureError(
                f"{program} does not start with {driver}: {_first_line(error)}; both must be of one version"
            ) from None
        try:
            yield Browser(window)
        finally:
            window.quit()
