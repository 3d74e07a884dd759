"""The locks of the Python environments: a file each, with the version and the hashes of every package."""

from __future__ import annotations

import re

from faultline.settings import ROOT

LOCKS = ROOT / "docker" / "requirements"
BUILDING = {"DIST_EXTRA_CONFIG": str(LOCKS / "build.cfg")}
"""Variables for pip: setuptools builds as that file says."""
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;]+)", re.MULTILINE)


def normalized(name: str) -> str:
    """A package's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked_packages(environment: str) -> dict[str, str]:
    """Version of each package that docker/requirements/ENVIRONMENT.lock names."""
    text = (LOCKS / f"{environment}.lock").read_text(encoding="utf-8")
    return {normalized(name): version for name, version in _LOCKED.findall(text)}


def spark_releases() -> list[str]:
    """Return the other releases of Spark that have a lock, as `spark-4.3`."""
    return sorted(path.stem for path in LOCKS.glob("spark-*.lock"))
