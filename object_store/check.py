"""See that an object store which is there already takes the stack's data, before anything of the stack starts.

Usage: python -m object_store.check

Exit codes: 0 it has the bucket, and an object was written and removed; 2 not.
"""

from __future__ import annotations

import sys

from contract.settings import Settings, SettingsError
from places.objects import object_place


def check(settings: Settings) -> None:
    """Write an object below the stack's data, and remove it. Raises OSError and SettingsError."""
    place = object_place(settings.data, settings)
    # Of a bucket that is not there, a failed write says less.
    place.exists()
    place.probe(1)


def main() -> int:
    """Run the command line; returns the exit code."""
    try:
        check(Settings())
    except SettingsError as error:
        print(f"up.sh: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(
            f"up.sh: {error.filename}: {error.strerror}; correct STACK_STORE_ENDPOINT, STACK_DATA or the file in "
            "AWS_SHARED_CREDENTIALS_FILE",
            file=sys.stderr,
        )
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
