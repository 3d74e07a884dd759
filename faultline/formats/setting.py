"""Print a setting as programs read it where this one runs, for the walkthroughs.

Usage: python -m faultline.formats.setting NAME

KAFKA_BOOTSTRAP are the brokers' addresses there; DATA is the URI of the folder of all data.
"""

from __future__ import annotations

import sys

from faultline.command import run
from faultline.settings import Settings


def main(name: str) -> int:
    """Print it; returns the exit code. Raises SettingsError."""
    settings = Settings()
    derived = {"KAFKA_BOOTSTRAP": settings.bootstrap, "DATA": settings.data}
    print(derived.get(name) or settings.text(name))
    return 0


if __name__ == "__main__":
    run("setting", lambda: main(sys.argv[1]))
