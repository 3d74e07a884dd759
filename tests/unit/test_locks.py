"""What a lock must be: every package and jar at one version, with its hashes, and from no address."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from requirements.jars import HERE, LOCK, ROOTS, JarError, fetch, read_jars

SINGLE_JARS = sorted(path.name for path in HERE.glob("*.jars"))
PYTHON_LOCKS = sorted(path.name for path in HERE.glob("*.lock") if path != LOCK)


@pytest.mark.parametrize("name", PYTHON_LOCKS)
def test_every_package_of_a_lock_has_its_version_and_hashes(name: str) -> None:
    text = (HERE / name).read_text(encoding="utf-8")
    entries = [entry for entry in re.split(r"\n(?=[a-zA-Z0-9])", text) if not entry.startswith("#")]
    assert entries
    for entry in entries:
        assert re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+ ", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry
    assert "://" not in text
    assert "index-url" not in text.replace("--no-emit-index-url", "")


def test_every_jar_has_its_hash_and_those_of_jars_in_have_the_version_named_there() -> None:
    locked = {(jar.group, jar.organisation, jar.name): jar for jar in read_jars(LOCK)}
    assert len(locked) == len(read_jars(LOCK)), "one version of each in a group"
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in locked.values())
    for root in read_jars(ROOTS):
        assert locked[root.group, root.organisation, root.name].version == root.version


@pytest.mark.parametrize("name", SINGLE_JARS)
def test_every_single_jar_has_its_hash(name: str) -> None:
    jars = read_jars(HERE / name)
    assert jars
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in jars)


def test_a_jar_without_a_hash_is_not_fetched(tmp_path: Path) -> None:
    listed = tmp_path / "some.jars"
    listed.write_text("some org.x:y:1\n")
    with pytest.raises(JarError, match=r"org\.x:y:1: no hash; python requirements/jars\.py pin .*some\.jars writes it"):
        fetch("some", tmp_path / "jars", listed)
    with pytest.raises(JarError, match=r"some\.jars has no group 'other'; it has \['some'\]"):
        fetch("other", tmp_path / "jars", listed)
