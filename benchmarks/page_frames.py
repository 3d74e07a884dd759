"""Open a page in a headless browser, and count the frames that it draws.

Usage: python -m benchmarks.page_frames ADDRESS SECONDS VISITS

Runs in the environment `pictures`. VISITS: how many the page shows in the end, at least; 0 for a page without a log.
Prints `ready` when the page is open, and in the end a line of JSON: `frames` per second, the `median`, `p99` and
`longest` time between two frames in milliseconds, and the `visits` that the page shows.
Exit codes: 0 measured, 2 no browser, or the page does not open.
"""

from __future__ import annotations

import json
import sys
import time

from faultline.command import run
from faultline.page.pictures.browser import Browser, browser
from faultline.waiting import attempts, wait_until

_OPEN_SECONDS = 60.0
_SHOWN_SECONDS = 30.0
_COUNT = """
window.gaps = [];
let before = performance.now();
const look = (now) => { window.gaps.push(now - before); before = now; requestAnimationFrame(look); };
requestAnimationFrame(look);
"""
_ENDS = "return [...document.querySelectorAll('#strips .end')].map((each) => each.textContent)"


def visits(window: Browser) -> int:
    """Return the sum of the end offsets that the page's strips show: the number of visits."""
    return sum(int(text.replace(",", "")) for text in window.run(_ENDS) if text)


def measure(window: Browser, address: str, seconds: float, wanted: int) -> dict[str, float]:
    """Open the page and count its frames. Raises TimedOut when it draws no strips."""
    window.size(1280, 1000)
    window.open(address)
    if not address.startswith("about:"):
        wait_until(lambda: window.run(_ENDS), f"a partition on {address}", seconds=_OPEN_SECONDS)
    print("ready", flush=True)
    window.run(_COUNT)
    time.sleep(seconds)
    gaps = sorted(window.run("return window.gaps"))
    for _ in attempts(_SHOWN_SECONDS):
        if visits(window) >= wanted:
            break
    return {
        "frames": len(gaps) / (sum(gaps) / 1000),
        "median": gaps[len(gaps) // 2],
        "p99": gaps[len(gaps) * 99 // 100],
        "longest": gaps[-1],
        "visits": visits(window),
    }


def main() -> int:
    """Run the command line; returns the exit code."""
    address, seconds, wanted = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    with browser() as window:
        print(json.dumps(measure(window, address, seconds, wanted)))
    return 0


if __name__ == "__main__":
    run("page_frames", main)
