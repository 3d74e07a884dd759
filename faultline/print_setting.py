"""Print a setting as programs read it where this one runs, for the walkthroughs.

Usage: python -m faultline.print_setting NAME

KAFKA_BOOTSTRAP has the brokers' addresses there; DATA is the URI of the folder of all data.
"""

from __future__ import annotations

from faultline.command import Flags, run
from faultline.settings import Settings


def main() -> int:
    """Print it; returns the exit code. Raises SettingsError."""
    parser = Flags("print_setting", description="Print a setting.")
    parser.add_argument("name")
    settings, name = Settings(), parser.parse_args().name
    derived = {"KAFKA_BOOTSTRAP": settings.bootstrap, "DATA": settings.data}
    print(derived.get(name) or settings.text(name))
    return 0


if __name__ == "__main__":
    run("print_setting", main)
