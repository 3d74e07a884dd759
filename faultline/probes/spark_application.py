"""The running application, by the REST API of Spark's own page.

Usage: python -m faultline.probes.spark_application [PART]       beside the driver

PART: such as `executors`; without it the application itself. Prints the answer, which is JSON. Exit codes: 0 done, 2
the page does not answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from faultline.command import CommandError, run
from faultline.direct import open_direct
from faultline.settings import Settings

_ANSWER_SECONDS = 30


def application(settings: Settings, *parts: str) -> Any:
    """Ask for the application or a part of it. Raises CommandError when the page does not answer."""
    host = settings.bind_host("spark").replace("0.0.0.0", "127.0.0.1")
    base = f"http://{host}:{settings.text('SPARK_UI_PORT')}/api/v1/applications"
    try:
        [found, *_] = _read(base)
        return _read("/".join([base, found["id"], *parts])) if parts else found
    except (OSError, ValueError) as error:
        raise CommandError(f"Spark does not answer at {base} ({error}); see scripts/status.sh") from None


def _read(address: str) -> Any:
    with open_direct(address, _ANSWER_SECONDS) as answer:
        return json.loads(answer.read())


def main(arguments: Sequence[str]) -> int:
    """Print the answer; returns the exit code."""
    print(json.dumps(application(Settings(), *arguments)))
    return 0


if __name__ == "__main__":
    run("spark_application", lambda: main(sys.argv[1:]))
