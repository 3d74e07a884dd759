"""Write a bill of materials of the locked packages and jars in the images, as CycloneDX JSON.

Usage, in the environment of sbom.lock (scripts/sbom.sh makes it):
    python -m faultline.packages.sbom ARTIFACTS

Python packages are listed by cyclonedx-py, as far as a lock names them. Jars are added by file, with their hashes:
those of jars.lock, and those that come inside Python packages, each with the libraries that it contains. Debian's
packages are not listed: they are those of the day of the build. Exit codes: 0 done, 1 the artifacts are not those of
the locks, or the bill does not fit CycloneDX's schema.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from faultline.command import CommandError, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from faultline.locks import locked_packages, normalized
from faultline.packages.jars import LOCK, Jar, read_jars
from faultline.settings import ROOT, STORE_JARS, read_env_file
from faultline.stack.artifacts import ENVIRONMENTS, ON_REQUEST

SPEC_VERSION = "1.6"
Component = dict[str, Any]
_JAR_NAME = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.+-]*)")
# How Flink's jars name what was packed into them under another package, in their META-INF/NOTICE.
_PACKED = re.compile(r"^\s*-\s*([\w.-]+):([\w.-]+):(\d[\w.-]*)\s*$", re.MULTILINE)


class BillError(CommandError):
    """The installed packages differ from the locks, or the bill is not valid; the message names the cause."""


def maven_purl(organisation: str, name: str, version: str) -> str:
    """The package URL of a Maven artifact."""
    return f"pkg:maven/{quote(organisation, safe='.')}/{quote(name, safe='')}@{quote(version, safe='')}?type=jar"


def artifacts_in(path: Path) -> list[tuple[str, str, str]]:
    """Coordinates of the artifact that a jar is, and of those that it contains."""
    found = set()
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            if entry == "META-INF/NOTICE":
                found |= set(_PACKED.findall(archive.read(entry).decode("utf-8", errors="replace")))
            elif re.fullmatch(r"META-INF/maven/.*/pom\.properties", entry):
                lines = archive.read(entry).decode("utf-8", errors="replace").splitlines()
                fields = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
                if {"groupId", "artifactId", "version"} <= fields.keys():
                    found.add((fields["groupId"], fields["artifactId"], fields["version"]))
    return sorted(found)


def jar_component(path: Path, part: str, locked: Jar | None = None) -> Component:
    """One jar file with its hashes and the libraries in it; `part`: where it is in the stack."""
    packed = artifacts_in(path)
    own = (locked.organisation, locked.name, locked.version) if locked else None
    if own is None:
        # The file's name separates the jar's own coordinates from those of the libraries in it.
        own = next((each for each in packed if path.stem == f"{each[1]}-{each[2]}"), None)
    reference = f"{part}/{path.name}"
    component: Component = {"type": "library", "bom-ref": reference}
    if own:
        component |= {"group": own[0], "name": own[1], "version": own[2], "purl": maven_purl(*own)}
    else:
        match = _JAR_NAME.fullmatch(path.stem)
        component |= {"name": match["name"], "version": match["version"]} if match else {"name": path.stem}
    # Scanners identify a jar without coordinates by its SHA-1.
    content = path.read_bytes()
    component["hashes"] = [
        {"alg": "SHA-1", "content": hashlib.sha1(content, usedforsecurity=False).hexdigest()},
        {"alg": "SHA-256", "content": hashlib.sha256(content).hexdigest()},
    ]
    if locked and component["hashes"][1]["content"] != locked.sha256:
        raise BillError(f"{path} is not the jar that jars.lock names")
    component["properties"] = [{"name": "faultline:part", "value": part}]
    within: list[Component] = [
        {
            "type": "library",
            "bom-ref": f"{reference}#{organisation}:{name}:{version}",
            "group": organisation,
            "name": name,
            "version": version,
            "purl": maven_purl(organisation, name, version),
        }
        for organisation, name, version in packed
        if (organisation, name, version) != own
    ]
    return component | ({"components": within} if within else {})


def jars_in(artifacts: Path) -> list[Jar]:
    """The jars of jars.lock that every stack needs, and those for an object store if they were fetched."""
    on_request = STORE_JARS.values()
    return [jar for jar in read_jars(LOCK) if jar.group not in on_request or (artifacts / "jars" / jar.group).is_dir()]


def locked_jars(artifacts: Path) -> Iterator[Component]:
    """A component for each of these jars. Raises BillError when one is missing."""
    for jar in jars_in(artifacts):
        path = artifacts / "jars" / jar.group / jar.file_name
        if not path.is_file():
            raise BillError(f"{path} is missing")
        yield jar_component(path, f"jars/{jar.group}", jar)


def jars_of_packages(site: Path) -> Iterator[tuple[str, Path]]:
    """(package, jar) for each jar inside a Python package, by the package's own record."""
    for record in sorted(site.glob("*.dist-info/RECORD")):
        package = normalized(record.parent.name.removesuffix(".dist-info").rpartition("-")[0])
        with record.open(encoding="utf-8", newline="") as stream:
            for row in csv.reader(stream):
                if row and row[0].endswith(".jar"):
                    yield package, (site / row[0]).resolve()


def environment_parts(document: dict[str, Any], environment: str, site: Path) -> tuple[list[Component], list[Any]]:
    """Components and dependencies of the locked packages, from cyclonedx-py's report of an environment.

    Raises BillError when a locked package is not there in the locked version.
    """
    locked = locked_packages(environment)
    part = f"python/{environment}"
    components = {
        normalized(component["name"]): component
        for component in document["components"]
        if normalized(component["name"]) in locked
    }
    found = {name: component["version"] for name, component in components.items()}
    if found != locked:
        raise BillError(f"environment '{environment}' is not its lock: {sorted(found.items() ^ locked.items())}")
    listed = {component["bom-ref"] for component in components.values()}
    for component in components.values():
        component["bom-ref"] = f"{part}/{component['bom-ref']}"
        component.setdefault("properties", []).append({"name": "faultline:part", "value": part})
    for package, path in jars_of_packages(site):
        if package in components:
            components[package].setdefault("components", []).append(jar_component(path, f"{part}/{package}"))
    dependencies = [
        {
            "ref": f"{part}/{entry['ref']}",
            "dependsOn": [f"{part}/{target}" for target in entry.get("dependsOn", []) if target in listed],
        }
        for entry in document.get("dependencies", [])
        if entry["ref"] in listed
    ]
    return list(components.values()), dependencies


def environments_in(artifacts: Path) -> list[str]:
    """The environments that every stack needs, and those that were fetched on request."""
    return [*ENVIRONMENTS, *(each for each in ON_REQUEST if (artifacts / f"venv-{each}").is_dir())]


def bill(artifacts: Path) -> dict[str, Any]:
    """The bill of materials of everything that the locks name.

    Raises BillError when the artifacts are not those of the locks.
    """
    version = read_env_file(ROOT / ".env")["IMAGE_TAG"]
    components, dependencies, tools = [], [], {}
    for environment in environments_in(artifacts):
        folder = artifacts / f"venv-{environment}"
        command = [sys.executable, "-m", "cyclonedx_py", "environment", "--sv", SPEC_VERSION, str(folder)]
        document = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        tools = document["metadata"]["tools"]
        parts = environment_parts(document, environment, next(folder.glob("lib/python3*/site-packages")))
        components += parts[0]
        dependencies += parts[1]
    components += locked_jars(artifacts)
    root = "faultline"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "tools": tools,
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": "faultline",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
        "dependencies": [{"ref": root, "dependsOn": [entry["bom-ref"] for entry in components]}, *dependencies],
        # Debian's packages are in the images too.
        "compositions": [{"aggregate": "incomplete", "assemblies": [root]}],
    }


def validate(text: str) -> None:
    """Validate a bill against CycloneDX's schema; raises BillError when it does not fit."""
    # Only the environment of sbom.lock has it; the rest of this module does not need it.
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415

    error = JsonStrictValidator(SchemaVersion.from_version(SPEC_VERSION)).validate_str(text)
    if error is not None:
        raise BillError(f"the bill does not fit the schema: {str(error.data)[:400]}")


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Write a bill of materials of what the images get from the locks.")
    parser.add_argument("artifacts", type=Path, help="the folder of the environments and jars")
    arguments = parser.parse_args()
    text = json.dumps(bill(arguments.artifacts), indent=2, ensure_ascii=False)
    validate(text)
    print(text)
    return 0


if __name__ == "__main__":
    run("sbom.sh", main)
