"""The class path of the inspector's JVM, without a JVM."""

from __future__ import annotations

import os
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from faultline.inspector.errors import InspectorError
from faultline.inspector.flink import jvm
from faultline.settings import STORE_JARS
from faultline.storage.objects import ObjectLocation, ObjectStore, store_among


@pytest.fixture
def artifacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of jars beside something that looks like the installed distribution."""
    home = tmp_path / "pyflink"
    for name in ("lib/flink-dist.jar", "opt/flink-python-2.jar"):
        (home / name).parent.mkdir(parents=True)
        (home / name).touch()
    connector = tmp_path / "jars" / "flink" / "connector.jar"
    connector.parent.mkdir(parents=True)
    connector.touch()
    monkeypatch.setattr(jvm, "find_spec", lambda name: ModuleSpec(name, None, origin=str(home / "__init__.py")))
    monkeypatch.delenv("FLINK_HOME", raising=False)
    monkeypatch.setenv("STACK_ARTIFACTS", str(tmp_path))
    return tmp_path


def names(class_path: str) -> list[str]:
    return [Path(each).name for each in class_path.split(os.pathsep)]


def test_flinks_file_system_is_there_for_places_in_a_store_alone(artifacts: Path) -> None:
    store = ObjectStore("http://127.0.0.1:1", "us-east-1", artifacts / "key")
    usual = ["flink-dist.jar", "flink-python-2.jar", "connector.jar"]
    assert store_among([artifacts]) is None
    assert names(jvm.class_path(None)) == usual
    assert store_among([artifacts, ObjectLocation(store, "bucket", "x")]) == store
    with pytest.raises(
        InspectorError, match=f"no jar of Flink's file system for s3:// in {artifacts}/jars/{STORE_JARS['flink']}"
    ):
        jvm.class_path(store)
    (artifacts / "jars" / STORE_JARS["flink"]).mkdir()
    (artifacts / "jars" / STORE_JARS["flink"] / "s3.jar").touch()
    assert names(jvm.class_path(store)) == [*usual, "s3.jar"]
    assert names(jvm.class_path(None)) == usual
