"""Check that an existing object store takes the stack's data, before anything of the stack starts.

Usage: python -m faultline.services.store.check

Exit codes: 0 it has the bucket, and an object was written and removed; 2 not.
"""

from __future__ import annotations

from faultline.command import CommandError, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.settings import Settings
from faultline.storage.words import location_of
from faultline.storage.writing import require_writable


def main() -> int:
    """Run the command line; returns the exit code."""
    try:
        settings = Settings()
        require_writable(location_of(settings.data, settings), 1)
    except OSError as error:
        raise CommandError(
            f"{error.filename}: {error.strerror}; correct STACK_STORE_ENDPOINT, STACK_DATA or the file in "
            "AWS_SHARED_CREDENTIALS_FILE"
        ) from None
    return 0


if __name__ == "__main__":
    run("up.sh", main)
