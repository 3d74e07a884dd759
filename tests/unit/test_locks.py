"""Rules for a lock: every package and jar at one version, with its hashes, and from no address."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faultline.packages.jars import LOCK, LOCKS, ROOTS, JarError, fetch, read_jars
from tests.tree import require_none

SINGLE_JARS = sorted(path.name for path in LOCKS.glob("*.jars"))
PYTHON_LOCKS = sorted(path.name for path in LOCKS.glob("*.lock") if path != LOCK)


def test_every_package_of_a_lock_has_its_version_and_hashes_and_no_address() -> None:
    found = []
    assert PYTHON_LOCKS
    for name in PYTHON_LOCKS:
        text = (LOCKS / name).read_text(encoding="utf-8")
        entries = [entry for entry in re.split(r"\n(?=[a-zA-Z0-9])", text) if not entry.startswith("#")]
        found += [] if entries else [f"{name}: no package"]
        for entry in entries:
            if not re.match(r"[\w.-]+(\[[\w,-]+\])?==\S+ ", entry):
                found.append(f"{name}: no version: {entry}")
            if not re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry):
                found.append(f"{name}: no hash: {entry}")
        addresses = re.findall(r".*(?:://|(?<!--no-emit-)index-url).*", text)
        found += [f"{name}: an address: {line}" for line in addresses]
    require_none(found)


def test_every_jar_has_its_hash_and_those_of_jars_in_have_the_version_named_there() -> None:
    locked = {(jar.group, jar.organisation, jar.name): jar for jar in read_jars(LOCK)}
    assert len(locked) == len(read_jars(LOCK)), "one version of each in a group"
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in locked.values())
    for root in read_jars(ROOTS):
        assert locked[root.group, root.organisation, root.name].version == root.version


def test_every_single_jar_has_its_hash() -> None:
    jars = {name: read_jars(LOCKS / name) for name in SINGLE_JARS}
    assert jars
    assert all(jars.values())
    require_none(
        f"{name}: {jar.name} {jar.version}: no hash"
        for name, listed in jars.items()
        for jar in listed
        if not re.fullmatch("[0-9a-f]{64}", jar.sha256)
    )


def test_a_jar_without_a_hash_is_not_fetched(tmp_path: Path) -> None:
    listed = tmp_path / "some.jars"
    listed.write_text("some org.x:y:1\n")
    with pytest.raises(
        JarError, match=r"org\.x:y:1: no hash; python faultline/packages/jars\.py pin .*some\.jars writes it"
    ):
        fetch("some", tmp_path / "jars", listed)
    with pytest.raises(JarError, match=r"some\.jars has no group 'other'; it has \['some'\]"):
        fetch("other", tmp_path / "jars", listed)
