"""Make the bucket of the stack's data in its object store, and check that the store takes an object.

Usage: python -m faultline.services.store.bucket [--wait-seconds N]

Exit codes: 0 the bucket is there, and an object was written and removed; 2 not.
"""

from __future__ import annotations

import argparse
import sys

from faultline.command import quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.settings import Settings, SettingsError
from faultline.storage.data import data_store
from faultline.storage.objects import make_bucket, object_location
from faultline.waiting import attempts


def wait_for_bucket(settings: Settings, wait_seconds: float) -> str:
    """Return the bucket's name, once it is there and takes an object. Raises OSError and SettingsError."""
    store = data_store(settings)
    if store is None:
        raise SettingsError("the stack's data is on a disk (setting DATA is empty), so there is no bucket to make")
    bucket = object_location(settings.data, settings).bucket
    for _ in attempts(wait_seconds, 0.5):
        try:
            make_bucket(store, bucket)
            return bucket
        except OSError as error:
            refused = error
            # Another key is not found by waiting.
            if isinstance(error, PermissionError):
                break
    raise refused


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="bucket", description="Make the bucket of the stack's data.")
    parser.add_argument("--wait-seconds", type=float, default=30, help="how long to try (default: %(default)g)")
    chosen = parser.parse_args()
    try:
        bucket = wait_for_bucket(Settings(), chosen.wait_seconds)
    except OSError as error:
        # A full store fails each write, and says why in its log only.
        print(
            f"bucket: {error.filename}: {error.strerror}; scripts/logs.sh store says why, or that it is full "
            "(STORE_VOLUMES)",
            file=sys.stderr,
        )
        return 2
    print(f"bucket: {bucket} is there and takes objects", file=sys.stderr)
    return 0


if __name__ == "__main__":
    run("bucket", main)
