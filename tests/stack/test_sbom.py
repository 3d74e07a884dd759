"""The bill of materials of the artifacts that the stack runs on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from faultline.locks import locked_packages, normalized
from faultline.packages.sbom import environments_in, jars_in, maven_purl
from faultline.settings import ROOT, artifacts

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    """The output of scripts/sbom.sh, which has validated it against CycloneDX's schema."""
    done = subprocess.run([str(ROOT / "scripts" / "sbom.sh")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def all_components(components: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for component in components:
        yield component
        yield from all_components(component.get("components", []))


def test_every_line_of_the_locks_is_in_the_bill_and_nothing_else(bill: dict[str, Any]) -> None:
    python = {
        f"pkg:pypi/{name}@{version}"
        for each in environments_in(artifacts())
        for name, version in locked_packages(each).items()
    }
    jars = {maven_purl(jar.organisation, jar.name, jar.version) for jar in jars_in(artifacts())}
    listed = {component["purl"] for component in bill["components"]}
    # A name may be written with "." or "_" in one place and with "-" in the other.
    assert {normalized(purl) for purl in listed} == {normalized(purl) for purl in python | jars}


def test_jars_have_their_locked_hashes(bill: dict[str, Any]) -> None:
    hashes = {each["content"] for component in bill["components"] for each in component.get("hashes", [])}
    assert {jar.sha256 for jar in jars_in(artifacts())} <= hashes


def test_jars_inside_python_packages_are_listed(bill: dict[str, Any]) -> None:
    everything = list(all_components(bill["components"]))
    names = {component["name"] for component in everything}
    assert {"spark-sql_2.13", "flink-dist", "ivy"} <= names
    references = [component["bom-ref"] for component in everything]
    assert len(references) == len(set(references))
