"""Imports go one way; settings are defined once; nothing of one machine or one registry is in the tree."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from faultline.settings import ROOT, Settings, read_env_file
from tests.tree import files, places, require_none, text_of

# Each part and those that it may import. `base`: the modules directly in faultline/.
BASE = {"base", "formats"}
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "formats": {"base"},
    "storage": BASE,
    # A restore reads the checkpoint and submits the job, where the JobManager runs.
    "services": {"base", "formats", "storage", "inspector", "flink_job"},
    "stack": BASE,
    "packages": BASE | {"stack"},
    "generator": BASE,
    "spark_job": BASE | {"storage"},
    "flink_job": BASE | {"storage"},
    "inspector": BASE | {"storage", "flink_job"},
    # The JobManager tells if the newest checkpoint holds records in flight.
    "verdict": BASE | {"storage", "flink_job"},
    "probes": BASE | {"storage", "flink_job", "verdict"},
    "player": BASE | {"probes"},
    "faults": BASE | {"storage", "flink_job", "stack", "player"},
    # Golden data is the example of its pictures, and that of a benchmark.
    "page": BASE | {"probes", "player", "stack", "faults", "tests"},
    "pipelines": BASE | {"storage", "stack", "verdict", "faults"},
    "verbs": BASE | {"stack", "storage"},
    "labs": BASE | {"spark_job", "inspector", "storage", "stack", "packages"},
    # The same settings and guarantees as the local stack, from where it takes them.
    "deploy": BASE | {"services", "flink_job", "storage", "packages", "spark_job"},
    # Their baselines are variants of the windowing job.
    "benchmarks": BASE
    | {
        "storage",
        "flink_job",
        "generator",
        "inspector",
        "verdict",
        "probes",
        "stack",
        "faults",
        "player",
        "page",
        "verbs",
    }
    | {"tests"},
}
MODULES = [name for name in files() if name.endswith(".py") and not name.startswith("tests/")]


def part_of(names: list[str]) -> str:
    """The part of a module, by the names in its path."""
    if names[0] != "faultline":
        return names[0]
    return names[1] if len(names) > 1 and (ROOT / "faultline" / names[1]).is_dir() else "base"


def imports(module: str) -> list[tuple[int, str]]:
    """Line and part of everything that a module imports."""
    found = []
    for node in ast.walk(ast.parse(text_of(module))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, part_of(alias.name.split("."))) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "faultline" else []
            found += [(node.lineno, part_of(name.split("."))) for name in names or [node.module]]
    return found


def test_imports_go_one_way() -> None:
    parts = {part_of(module.removesuffix(".py").split("/")) for module in MODULES}
    assert parts == ALLOWED.keys()
    require_none(
        f"{module}:{line}: {part} imports {imported}"
        for module in MODULES
        for part in [part_of(module.removesuffix(".py").split("/"))]
        for line, imported in imports(module)
        if imported in parts | {"tests"} and imported not in ALLOWED[part] | {part}
    )


# The parts whose programs a part may start, besides those that it may import and its own. Whoever starts a program is
# above it: scripts call verbs, verbs act on a stack, and a stack starts the programs of its services and its tools.
STARTED = {
    "stack": {"services", "generator", "flink_job", "spark_job", "inspector", "verdict", "probes"},
    "faults": {"services", "generator", "spark_job", "inspector", "verdict", "probes"},
    "page": {"inspector"},
    "verbs": {"storage", "spark_job", "inspector", "verdict", "probes", "packages", "faults", "player", "page", "labs"}
    | {"generator", "flink_job", "benchmarks", "pipelines", "deploy"},
    "pipelines": {"packages"},
    "labs": {"generator"},
    "benchmarks": {"services", "spark_job"},
}


def programs(module: str) -> list[tuple[int, str]]:
    """Line and name of each program that a module starts: `-m NAME`, as words or in a line, `tool` or `Probe` of it."""
    found = []
    tree = ast.parse(text_of(module))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("tool", "Probe"):
            found += [(node.lineno, str(each.value)) for each in node.args[:1] if isinstance(each, ast.Constant)]
        elif isinstance(node, (ast.List, ast.Tuple)):
            words = [each.value if isinstance(each, ast.Constant) else "" for each in node.elts]
            found += [(node.lineno, str(after)) for flag, after in itertools.pairwise(words) if flag == "-m"]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            found += [(node.lineno, name) for name in re.findall(r" -m ([a-z_.]*[a-z_])", node.value)]
    return found


OF_PACKAGES = {"cyclonedx_py", "notebook", "pip", "pytest", "venv"}


def test_every_program_that_is_started_is_there() -> None:
    known = {each.removesuffix(".py").removesuffix("/__main__").replace("/", ".") for each in MODULES} | OF_PACKAGES
    require_none(
        f"{module}:{line}: there is no module {name}"
        for module in MODULES
        for line, name in programs(module)
        if name and name not in known
    )


def test_programs_of_walkthroughs_are_in_the_image_of_kafka() -> None:
    shell = [name for name in files() if name.startswith("scripts/") and name.endswith(".sh")]
    started = {each for name in shell for each in re.findall(r"exec\.sh kafka python3? -m ([\w.]+)", text_of(name))}
    assert started
    # Modules directly in faultline/, and those of the services.
    inside = re.compile(r"faultline\.(services\.[\w.]+|\w+)")
    require_none(f"{each} is not in the image" for each in started if not inside.fullmatch(each))


def test_commands_go_one_way_too() -> None:
    parts = ALLOWED.keys()
    started = [(module, line, name) for module in MODULES for line, name in programs(module)]
    assert len(started) > 30
    require_none(
        f"{module}:{line}: {part} starts {name}"
        for module, line, name in started
        for part, other in [(part_of(module.removesuffix(".py").split("/")), part_of(name.split(".")))]
        if other in parts and other not in ALLOWED[part] | STARTED.get(part, set()) | {part}
    )


# What these import runs on the host's Python, whose least version the README names.
ON_THE_HOST = ("faultline/stack/", "faultline/verbs/", "faultline/faults/")


def newer_than_the_host(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the lines of a module that Python 3.9 parses and cannot run."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "itertools.pairwise":
            yield node.lineno, "itertools.pairwise"
        elif isinstance(node, ast.Call):
            name, given = ast.unparse(node.func), {each.arg for each in node.keywords}
            if name == "isinstance" and isinstance(node.args[1], ast.BinOp):
                yield node.lineno, "isinstance with |"
            if (name == "zip" and "strict" in given) or (name == "dataclass" and given & {"slots", "kw_only"}):
                yield node.lineno, f"{name}({', '.join(sorted(map(str, given)))})"


def test_what_the_host_runs_needs_no_newer_python() -> None:
    """Some names are newer than that version; modules are found from faultline/stack/ and faults/ by imports."""
    newer = {
        ("itertools", "pairwise"),
        ("datetime", "UTC"),
        ("enum", "StrEnum"),
        ("asyncio", "timeout"),
        ("itertools", "batched"),
    }
    asked = [ROOT / module for module in MODULES if module.startswith(ON_THE_HOST)]
    seen: set[Path] = set()
    found = []
    while asked:
        module = asked.pop()
        if module in seen:
            continue
        seen.add(module)
        tree = ast.parse(module.read_text(encoding="utf-8"), feature_version=(3, 9))
        found += [f"{module.relative_to(ROOT)}:{line}: {what}" for line, what in newer_than_the_host(tree)]
        # Imports inside a function are for programs that run elsewhere.
        for node in tree.body:
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
