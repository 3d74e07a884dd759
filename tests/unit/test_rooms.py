"""Imports go one way; settings are defined once; nothing of one machine or one registry is in the tree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from faultline.settings import ROOT, Settings, read_env_file
from tests.tree import files, places, require_none, text_of

# Each room and the rooms that it may import.
BASE = {"contract"}
ALLOWED: dict[str, set[str]] = {
    "contract": set(),
    "requirements": {"contract", "stack"},
    "broker": BASE,
    "generator": BASE,
    "spark_job": {"contract", "places"},
    "flink_job": {"contract", "places"},
    "web_guard": set(),
    "object_store": {"contract", "places"},
    "places": BASE,
    "inspector": {"contract", "places"},
    "verdict": {"contract", "places"},
    # Its examples are golden data, and so are those of a benchmark.
    "pictures": {"contract", "page", "tests"},
    "transactions": {"contract", "flink_job", "inspector", "places"},
    "measure": {"contract", "places", "flink_job", "verdict"},
    "page": {"contract", "measure", "stack", "faults"},
    "stack": BASE,
    "labs": {"contract", "requirements", "spark_job", "inspector", "stack"},
    "faults": {"contract", "places", "flink_job", "stack"},
    # The same settings and guarantees as the local stack, from where it takes them.
    "deploy": {"contract", "broker", "flink_job", "places", "requirements", "spark_job"},
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
        "tests",
    },
}
MODULES = [name for name in files() if name.endswith(".py") and not name.startswith("tests/")]


def imports(module: str) -> list[tuple[int, str]]:
    """Line and first part of everything that a module imports."""
    found = []
    for node in ast.walk(ast.parse(text_of(module))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name.partition(".")[0]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node.lineno, node.module.partition(".")[0]))
    return found


def test_imports_go_one_way() -> None:
    rooms = {module.partition("/")[0] for module in MODULES}
    assert rooms == ALLOWED.keys()
    require_none(
        f"{module}:{line}: {room} imports {imported}"
        for module in MODULES
        for room in [module.partition("/")[0]]
        for line, imported in imports(module)
        if imported in rooms | {"tests"} and imported not in ALLOWED[room] | {room}
    )


# What these import runs on the host's Python, whose least version the README names.
ON_THE_HOST = {"stack", "faults"}


def test_what_the_host_runs_imports_nothing_of_a_newer_python() -> None:
    """Some names are newer than that version; each of these modules is found from faultline/stack/ and faultline/faults/ by its imports."""
    newer = {("datetime", "UTC"), ("enum", "StrEnum"), ("asyncio", "timeout"), ("itertools", "batched")}
    asked = [ROOT / module for module in MODULES if module.partition("/")[0] in ON_THE_HOST]
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
    require_none(found)


def test_ports_and_topics_stand_in_one_place() -> None:
    settings = read_env_file(ROOT / ".env")
    ports = {value for name, value in settings.items() if name.endswith("_PORT")}
    assert len(ports) == sum(name.endswith("_PORT") for name in settings)
    words = re.compile(rf"(?<![\w.])({'|'.join(sorted(ports))})(?![\w.])")
    # Those of deploy/ are written from the settings.
    asked = [name for name in files() if not name.startswith(("tests/", "deploy/"))]
    asked = [name for name in asked if name.endswith((".py", ".sh", ".yaml", ".properties"))]
    require_none(f"{place}: {port}" for place, port in places(words, asked))


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
    asked = [name for name in files() if not name.endswith((".png", ".tar.xz"))]
    require_none(f"{place}: {word}" for place, word in places(re.compile("|".join(map(re.escape, words))), asked))


def test_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("VISITS_TOPIC=visits\nTOPIC_PARTITIONS=2\n# comment=1\n")
    settings = Settings({"STACK_TOPIC_PARTITIONS": "3", "STACK_VISITS_TOPIC": ""}, file)
    assert settings.number("TOPIC_PARTITIONS") == 3
    assert settings.text("VISITS_TOPIC") == "visits"
