"""Run the object store in the foreground: write its keys, exec SeaweedFS.

Usage: python -m faultline.services.store.start [--data FOLDER] [--metrics-port PORT]

One process has SeaweedFS's four servers. Clients talk to S3, the other three are on loopback, for each other. After
SIGTERM it waits 15 s for its own connections; a SIGKILL loses nothing. A killed store leaves empty sockets in /tmp;
SeaweedFS has no setting for them. Standard library only: the environment of the store has no other packages.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from faultline.services.store.keys import USERS, write_keys
from faultline.settings import Settings, SettingsError, artifacts

_INNER_HOST = "127.0.0.1"
_SERVERS = {"master": "STORE_MASTER", "volume": "STORE_VOLUME", "filer": "STORE_FILER", "s3": "STORE"}
"""The servers, and the settings of their ports."""
_FOREIGN = ("WEED_", "AWS_")
"""Variables that SeaweedFS takes for its own configuration, or for further keys."""


def program() -> Path:
    """The program. Raises SettingsError when it is missing."""
    weed = artifacts() / "venv-store" / "bin" / "weed"
    if not os.access(weed, os.X_OK):
        raise SettingsError(f"{weed} is missing; scripts/up.sh fetches it for a stack with an object store")
    return weed


def command(settings: Settings, weed: Path, folder: Path, metrics_port: int | None = None) -> list[str]:
    """SeaweedFS with everything that it keeps in a folder. Raises SettingsError."""
    ports = [
        f"-{server}.{flag}={settings.number(f'{prefix}_{setting}')}"
        for server, prefix in _SERVERS.items()
        for flag, setting in (("port", "PORT"), ("port.grpc", "GRPC_PORT"))
    ]
    return [
        str(weed),
        # One log, which whoever started this keeps.
        "-logtostderr",
        f"-config_dir={folder}",
        "server",
        f"-dir={folder / 'data'}",
        f"-ip={_INNER_HOST}",
        f"-ip.bind={_INNER_HOST}",
        f"-s3.ip.bind={settings.bind_host('store')}",
        "-filer",
        "-s3",
        *ports,
        # The path of the key, not the key.
        f"-s3.config={folder / USERS}",
        # A wrong name of a bucket is an error.
        "-s3.autoCreateBucket=false",
        # No further interfaces.
        "-s3.iam=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        # By default it reports to its makers.
        "-master.telemetry=false",
        # With its own limits a restarted store refuses writes for 11 s: its only master has to elect itself.
        "-master.electionTimeout=1s",
        "-master.heartbeatInterval=100ms",
        "-volume.preStopSeconds=0",
        # A bucket takes seven volumes at its first write.
        f"-volume.max={settings.number('STORE_VOLUMES')}",
        f"-master.volumeSizeLimitMB={settings.number('STORE_VOLUME_MB')}",
        # Engines remove old checkpoints all the time; only this gives their room back.
        "-master.vacuumIntervalSeconds=120",
        # In its working folder: the whole path of a socket may be 107 bytes long, and a home's may be longer.
        "-filer.localSocket=filer.sock",
        "-s3.localSocket=s3.sock",
        # How many requests of each kind it had, on loopback: only for a benchmark.
        *([f"-metricsPort={metrics_port}"] if metrics_port else []),
    ]


def environment(environ: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Its variables: limits of memory and CPU, and no configuration but that of this folder."""
    inherited = {name: value for name, value in environ.items() if not name.startswith(_FOREIGN)}
    return {**inherited, "HOME": str(folder), "GOMEMLIMIT": "192MiB", "GOMAXPROCS": "2"}


def main() -> NoReturn:
    """Run the command line: exec the store, or exit with code 2."""
    parser = argparse.ArgumentParser(prog="store", description="Run the object store.", allow_abbrev=False)
    parser.add_argument("--data", type=Path, help="folder of its data and its key (default: the stack's)")
    parser.add_argument("--metrics-port", type=int, help="answer on this port what it has done (default: on none)")
    chosen = parser.parse_args()
    try:
        settings = Settings()
        folder = (chosen.data or settings.store_folder).resolve()
        (folder / "data").mkdir(parents=True, exist_ok=True)
        weed = program()
        words = command(settings, weed, folder, chosen.metrics_port)
        write_keys(folder)
        # Where its sockets are, and where it looks for configuration, too.
        os.chdir(folder)
        os.execve(weed, words, environment(os.environ, folder))
    except (SettingsError, OSError) as error:
        print(f"store: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
