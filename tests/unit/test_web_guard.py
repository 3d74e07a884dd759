"""Making of the guard's jar, without a JVM; tests/stack/test_web_guard.py has the guard refuse real requests."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from faultline.services.web_guard import build


def folder(path: Path, *names: str) -> Path:
    path.mkdir()
    for name in names:
        (path / name).touch()
    return path


@pytest.mark.parametrize("names", [[], ["janino-3.1.9.jar", "janino-3.1.10.jar"]])
def test_a_jar_that_is_missing_or_there_twice_is_one_line(tmp_path: Path, names: list[str]) -> None:
    spark = folder(tmp_path / "spark", *names)
    with pytest.raises(build.BuildError, match=rf"^{len(names)} files janino-\*\.jar in .*spark; name the jar folders"):
        build.find_jars([spark], ("janino-*.jar",))


def test_no_java_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    guard = build.GUARDS["flink"]
    jars = folder(tmp_path / "jars", *(pattern.replace("*", "1") for pattern in (*build.COMPILER, *guard.apis)))
    with pytest.raises(build.BuildError, match=r"JAVA_HOME=.* has no bin/java; install it or set JAVA_HOME"):
        build.build(guard, tmp_path / "guard.jar", [jars])
    assert not (tmp_path / "guard.jar").exists()


def test_the_jar_depends_on_the_class_files_alone(tmp_path: Path) -> None:
    jars = []
    for name in ("first", "second"):
        classes = tmp_path / name
        (classes / "faultline").mkdir(parents=True)
        # In another order, and later.
        for file in sorted(("A.class", "B.class"), reverse=name == "second"):
            (classes / "faultline" / file).write_bytes(file.encode())
        (classes / "faultline" / "notes.txt").touch()
        jar = tmp_path / f"{name}.jar"
        build.pack(jar, classes, {"META-INF/services/looked.for": "A"})
        jars.append(jar.read_bytes())
    assert jars[0] == jars[1]
    with zipfile.ZipFile(tmp_path / "first.jar") as archive:
        assert archive.namelist() == ["META-INF/services/looked.for", "faultline/A.class", "faultline/B.class"]


def test_every_source_is_compiled() -> None:
    compiled = {build.source(name) for guard in build.GUARDS.values() for name in guard.classes}
    assert compiled == set(build.SOURCES.rglob("*.java"))
