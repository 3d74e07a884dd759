"""Imports go one way; settings are defined once; nothing of one machine or one registry is in the tree."""

from __future__ import annotations

import ast
import lzma
import re
import subprocess
from pathlib import Path

import pytest

from contract.settings import Settings, read_env_file

ROOT = Path(__file__).resolve().parents[2]
# Each room and the rooms that it may import.
BASE = {"contract"}
JOBS = {"contract"}
ALLOWED = {
    "contract": set(),
    "broker": BASE,
    "generator": BASE,
    "spark_job": {"contract", "places"},
    "flink_job": {"contract", "places"},
    "web_guard": set(),
    "object_store": {"contract", "places"},
    "places": BASE,
    "inspector": {"contract", "places"},
    "verdict": {"contract", "places"},
    "pictures": {"contract", "page"},
    "transactions": {"contract", "flink_job", "inspector", "places"},
    "measure": {"contract", "places", "flink_job", "verdict"},
    "page": {"contract", "measure", "stack", "faults"},
    "stack": BASE,
    "labs": {"contract", "spark_job", "inspector", "stack"},
    "faults": {"contract", "places", "flink_job", "stack"},
    # The same settings and guarantees as the local stack, from where it takes them.
    "deploy": {"contract", "broker", "flink_job", "places", "spark_job"},
    # Their baselines are variants of the windowing job.
    "benchmarks": {
        "contract",
        "places",
        "flink_job",
        "generator",
        "inspector",
        "verdict",
        "stack",
        "faults",
        "pictures",
    },
}
MODULES = sorted(path for room in ALLOWED for path in (ROOT / room).rglob("*.py"))


def tracked() -> list[str]:
    """Files of the repository, those to be committed among them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [name for name in names if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(module: Path) -> None:
    room = module.relative_to(ROOT).parts[0]
    imported = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imported.add(node.module.split(".")[0])
    assert (imported & ALLOWED.keys()) - {room} <= ALLOWED[room]


# What these import runs on the host's Python, whose least version the README names.
ON_THE_HOST = {"stack", "faults"}


def test_what_the_host_runs_imports_nothing_of_a_newer_python() -> None:
    """Some names are newer than that version; each of these modules is found from stack/ and faults/ by its imports."""
    newer = {("datetime", "UTC"), ("enum", "StrEnum"), ("asyncio", "timeout"), ("itertools", "batched")}
    asked = [path for path in MODULES if path.relative_to(ROOT).parts[0] in ON_THE_HOST]
    seen: set[Path] = set()
    found = []
    while asked:
        module = asked.pop()
        if module in seen:
            continue
        seen.add(module)
        # Imports inside a function are for programs that run elsewhere.
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module:
                names = {(node.module, alias.name) for alias in node.names}
                found += [f"{module.relative_to(ROOT)}: {name}" for name in names & newer]
                for place in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    folder = ROOT / place.replace(".", "/")
                    asked += [file for file in (folder.with_suffix(".py"), folder / "__init__.py") if file.is_file()]
    assert len(seen) > len(ON_THE_HOST)
    assert found == []


def test_ports_and_topics_stand_in_one_place() -> None:
    settings = read_env_file(ROOT / ".env")
    ports = {value for name, value in settings.items() if name.endswith("_PORT")}
    assert len(ports) == sum(name.endswith("_PORT") for name in settings)
    words = re.compile(rf"(?<![\w.])({'|'.join(sorted(ports))})(?![\w.])")
    found = {
        name
        for name in tracked()
        if name.endswith((".py", ".sh", ".yaml", ".properties"))
        # Those of deploy/ are written from the settings.
        and not name.startswith(("tests/", "deploy/"))
        and words.search((ROOT / name).read_text(encoding="utf-8"))
    }
    assert not found


def content_of(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def test_tree_names_no_machine_and_no_registry() -> None:
    # In parts, so that this file does not name what it looks for.
    words = [
        "/wo" + "rk/",
        "/ro" + "ot/",
        "pypi" + ".org",
        "pythonhosted" + ".org",
        "repo1" + ".maven",
        "maven" + ".org",
    ]
    words += ["deb.debian" + ".org", "registry.npmjs" + ".org", "docker" + ".io/library"]
    found = {
        f"{name}: {word}"
        for name in tracked()
        if not name.endswith(".png")
        for content in [content_of(ROOT / name)]
        for word in words
        if word.encode() in content
    }
    assert not found


def test_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("VISITS_TOPIC=visits\nTOPIC_PARTITIONS=2\n# comment=1\n")
    settings = Settings({"STACK_TOPIC_PARTITIONS": "3", "STACK_VISITS_TOPIC": ""}, file)
    assert settings.number("TOPIC_PARTITIONS") == 3
    assert settings.text("VISITS_TOPIC") == "visits"
