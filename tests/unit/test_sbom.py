"""The bill of materials: what it takes from jars, locks and the list of an environment. scripts/sbom.sh as a whole is
in the tier stack."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from faultline import locks
from faultline.packages import sbom
from faultline.packages.jars import Jar
from faultline.packages.sbom import (
    BillError,
    environment_parts,
    environments_in,
    jar_component,
    jars_in,
)


def make_jar(path: Path, *coordinates: str, notice: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for text in coordinates:
            organisation, name, version = text.split(":")
            archive.writestr(
                f"META-INF/maven/{organisation}/{name}/pom.properties",
                f"#Created by Maven\ngroupId={organisation}\nartifactId={name}\nversion = {version}\n",
            )
        archive.writestr("META-INF/NOTICE", notice)
    return path


def test_a_jar_is_named_by_its_file_and_lists_what_is_packed_into_it(tmp_path: Path) -> None:
    notice = "This project bundles the following dependencies\n\n- org.x:packed:1.0-rc1\n- not a coordinate: 1\n"
    path = make_jar(tmp_path / "lib_2.13-4.0.jar", "org.a:lib_2.13:4.0", "org.b:other:2", notice=notice)
    component = jar_component(path, "jars/spark")
    assert component["purl"] == "pkg:maven/org.a/lib_2.13@4.0?type=jar"
    assert component["hashes"][1] == {"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}
    assert [each["purl"] for each in component["components"]] == [
        "pkg:maven/org.b/other@2?type=jar",
        "pkg:maven/org.x/packed@1.0-rc1?type=jar",
    ]


@pytest.mark.parametrize(
    ("file", "name", "version"),
    [
        ("lz4-java-1.8.0.jar", "lz4-java", "1.8.0"),
        ("json4s-ast_2.13-4.0.7.jar", "json4s-ast_2.13", "4.0.7"),
        ("netty-transport-4.1.118.Final-linux-x86_64.jar", "netty-transport", "4.1.118.Final-linux-x86_64"),
        ("bash-java-utils.jar", "bash-java-utils", None),
    ],
)
def test_a_jar_that_does_not_say_what_it_is_has_no_package_url(
    tmp_path: Path, file: str, name: str, version: str | None
) -> None:
    component = jar_component(make_jar(tmp_path / file), "python/tools/pyspark")
    assert (component["name"], component.get("version")) == (name, version)
    assert "purl" not in component


def test_a_jar_that_is_not_the_locked_one_is_refused(tmp_path: Path) -> None:
    path = make_jar(tmp_path / "lib-1.jar", "org.a:lib:1")
    right = Jar("spark", "org.a", "lib", "1", hashlib.sha256(path.read_bytes()).hexdigest())
    assert jar_component(path, "jars/spark", right)["group"] == "org.a"
    with pytest.raises(BillError, match="is not the jar that"):
        jar_component(path, "jars/spark", Jar("spark", "org.a", "lib", "1", "0" * 64))


def component(name: str, version: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": f"{name}=={version}", "name": name, "version": version}


def test_an_environment_that_is_not_its_lock_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tools.lock").write_text("other==2 \\\n    --hash=sha256:00\n")
    monkeypatch.setattr(locks, "LOCKS", tmp_path)
    with pytest.raises(BillError, match="not its lock"):
        environment_parts({"components": [component("other", "3")]}, "tools", tmp_path)


def test_an_environment_on_request_is_listed_once_it_was_fetched(tmp_path: Path) -> None:
    assert "store" not in environments_in(tmp_path)
    (tmp_path / "venv-store").mkdir()
    assert environments_in(tmp_path)[-1] == "store"


def test_jars_for_a_store_are_listed_once_they_were_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "jars.lock"
    lock.write_text("flink org.a:a:1 00\nflink-s3 org.b:b:2 00\n", encoding="utf-8")
    monkeypatch.setattr(sbom, "LOCK", lock)
    assert [jar.name for jar in jars_in(tmp_path)] == ["a"]
    (tmp_path / "jars" / "flink-s3").mkdir(parents=True)
    assert [jar.name for jar in jars_in(tmp_path)] == ["a", "b"]
