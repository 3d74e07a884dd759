"""Programs that need no services: labs, notebook, checks and tests. They run on this machine, whatever the backend."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from faultline.messages import say
from faultline.settings import DISK, PREFIX, ROOT, STORE_JARS
from faultline.stack.backends.containers import engine_problem
from faultline.stack.backends.local import LocalBackend
from faultline.stack.errors import StackError
from faultline.stack.preflight import check_ports
from faultline.stack.stack import Stack
from faultline.verbs.arguments import flags_in, parse_none

LABS = {
    "micro_batch_restart": ("kafka", "spark"),
    "devices_from_files": ("spark",),
    "failure_before_the_commit": ("spark",),
    "what_a_checkpoint_holds": ("spark",),
    "delete_x_then_start": ("kafka", "spark"),
    "good_practice": ("kafka", "spark"),
}
"""Modules of labs/ and the groups of jars that they need."""
_NOTEBOOK = "spark_checkpoint_deep_dive.ipynb"
TIERS = ("quick", "ci", "full")
_WITHOUT_JVM = ("tests/unit", "tests/judge")
"""Folders of tests that need no engine."""


def lab(stack: Stack, words: Sequence[str]) -> int:
    """Run a lab in the project's folder: it prints paths relative to it."""
    name = words[0]
    _become(_with_tools(stack, *LABS[name]), ["python", "-m", f"labs.{name}", *words[1:]], folder=ROOT)


def devices(stack: Stack, words: Sequence[str]) -> int:
    """Run the query of walkthroughs 12 and 13."""
    _become(
        _with_tools(stack, "spark"), ["python", "-P", "-m", "spark_job.devices_file_stream", *words], folder=Path.cwd()
    )


def notebook(stack: Stack, words: Sequence[str]) -> int:
    """Open the deep dive into a Spark checkpoint as a notebook, in the browser."""
    fresh = flags_in("notebook", words, "--fresh")
    check_ports(stack.address, ["NOTEBOOK_PORT"], stack.settings.ports())
    local = _with_tools(stack, "spark")
    local.artifacts.add_to_tools("notebook")
    folder = stack.home.root / "output" / "notebooks"
    copy = folder / _NOTEBOOK
    folder.mkdir(parents=True, exist_ok=True)
    if copy.exists() and not fresh:
        say(f"continuing with your copy, {copy}; --fresh starts again from the repository's")
    else:
        shutil.copyfile(ROOT / "labs" / _NOTEBOOK, copy)
    # Jupyter's other files go to the stack's state folder, not to the user's home.
    jupyter = stack.home.state / "jupyter"
    places = {f"JUPYTER_{name}_DIR": str(jupyter / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    # In the environment, not as a flag, which every user of the machine could read.
    token = secrets.token_hex(16)
    environ = {**places, "IPYTHONDIR": str(jupyter / "ipython"), "JUPYTER_TOKEN": token}
    port = stack.settings.values["NOTEBOOK_PORT"]
    sys.stdout.write(f"http://{stack.address}:{port}/notebooks/{_NOTEBOOK}?token={token}\n")
    sys.stdout.flush()
    flags = [
        f"--ServerApp.ip={stack.address}", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={folder}", "--ServerApp.open_browser=False", "--Application.log_level=ERROR",
    ]  # fmt: skip
    # In containers the only user is root; the server is still on loopback and still asks for the token.
    flags += ["--allow-root"] if os.geteuid() == 0 else []
    # -P: the modules are those of the environment, and none of the user's folder.
    _become(local, ["python", "-P", "-m", "notebook", *flags], folder=Path.cwd(), more=environ)


def benchmark(stack: Stack, words: Sequence[str]) -> int:
    """Run a benchmark."""
    local = _local(stack)
    local.prepare()
    _become(local, ["python", "-m", f"benchmarks.{words[0]}", *words[1:]], folder=ROOT)


def faults(stack: Stack, words: Sequence[str]) -> int:
    """Run the fault matrix, with this Python."""
    return _by_scripts(stack, ["faultline.faults", *words])


def soak(stack: Stack, words: Sequence[str]) -> int:
    """Run random faults."""
    return _by_scripts(stack, ["faultline.faults.soak", *words])


def pipeline(stack: Stack, words: Sequence[str]) -> int:
    """Check, run, judge or break a pipeline of the user's, with the environment `pipeline`."""
    local = _local(stack)
    local.artifacts.make_environment("pipeline")
    # The program's folder is the project's: a relative path is one of the caller's folder.
    named = [str(Path(word).resolve()) if word.endswith(".toml") else word for word in words]
    return _by_scripts(stack, ["faultline.pipelines", *named], local.artifacts.interpreter("pipeline"))


def page(stack: Stack, words: Sequence[str]) -> int:
    """Serve the live page with buttons; or make the files that play recorded runs, which needs this Python only."""
    if words and words[0] == "--replay":
        if len(words) == 1:
            raise StackError("which recorded run? e.g. scripts/page.sh --replay results/20260101T000000Z")
        return _by_scripts(stack, ["faultline.player.replay", *(str(Path(word).resolve()) for word in words[1:])])
    parse_none("page", words)
    check_ports(stack.address, ["PAGE_BUTTONS_PORT"], stack.settings.ports())
    local = _local(stack)
    local.artifacts.make_environment("page")
    say("Ctrl-C ends the page; the stack goes on")
    return _by_scripts(stack, ["faultline.page.server", "--buttons"], local.artifacts.interpreter("page"))


def _by_scripts(stack: Stack, words: list[str], python: Path = Path(sys.executable)) -> NoReturn:
    """Become a program that calls the scripts, on the backend and with the profile that were chosen for this call."""
    environ = {**stack.environ, f"{PREFIX}BACKEND": stack.backend.name}
    if stack.profile:
        environ[f"{PREFIX}PROFILE"] = stack.profile
    os.chdir(ROOT)
    os.execve(python, [str(python), "-m", *words], environ)


def sbom(stack: Stack, words: Sequence[str]) -> int:
    """Print a bill of materials of the installed packages."""
    parse_none("sbom", words)
    local = _local(stack)
    local.prepare()
    local.artifacts.make_environment("sbom")
    python = str(local.artifacts.interpreter("sbom"))
    _become(local, [python, "-m", "faultline.packages.sbom", str(local.artifacts.folder)], folder=ROOT)


def deploy(stack: Stack, words: Sequence[str]) -> int:
    """Write the manifests for Kubernetes, or print how large a cluster must be."""
    local = _local(stack)
    local.artifacts.make_tools()
    os.chdir(ROOT)
    os.execvpe("python", ["python", "-m", "deploy", *words], local.plain_environment("tools"))


def pictures(stack: Stack, words: Sequence[str]) -> int:
    """Make pictures of the web pages of a running stack."""
    local = _local(stack)
    local.artifacts.make_environment("pictures")
    _become(local, [str(local.artifacts.interpreter("pictures")), "-m", "faultline.page.pictures", *words], folder=ROOT)


def check(stack: Stack, words: Sequence[str]) -> int:
    """Run a contributor's checks."""
    parse_none("check", words)
    local = _local(stack)
    local.artifacts.make_tools()
    local.artifacts.add_to_tools("dev")
    environ = {**local.plain_environment("tools"), "HOME": stack.environ.get("HOME", "/")}
    listed = subprocess.run(
        ["git", "ls-files", "*.sh", ".ci/run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    shell = listed.stdout.split()
    steps = (
        (f"shellcheck: {len(shell)} files", ["shellcheck", *shell]),
        ("shfmt", ["shfmt", "--indent", "2", "--case-indent", "--diff", *shell]),
        ("ruff", ["ruff", "check", "--quiet", "."]),
        ("ruff format", ["ruff", "format", "--quiet", "--check", "."]),
        ("mypy", ["mypy", "--no-error-summary"]),
    )
    failed = False
    for title, command in steps:
        say(title)
        failed |= subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode != 0
    return 1 if failed else 0


def test(stack: Stack, words: Sequence[str]) -> int:
    """Set up what a tier of tests needs, and run it; without a tier and a path, the checks too."""
    tier, flags = (words[0], list(words[1:])) if words and words[0] in TIERS else (TIERS[0], list(words))
    paths = [word for word in flags if (ROOT / word.partition("::")[0]).exists()]
    if not paths and flags and not flags[0].startswith("-"):
        raise StackError(f"unknown tier or path '{flags[0]}'; see scripts/test.sh --help")
    local = _local(stack)
    if paths and all(path.startswith(_WITHOUT_JVM) for path in paths):
        local.artifacts.make_tools()
    else:
        if tier != "quick" and not paths and (problem := engine_problem()):
            raise StackError(f"no container engine answers ({problem}), and {tier} needs one: .ci/engine.sh start")
        local.prepare()
        local.artifacts.add_to_tools("notebook")
        for name in ("store",) if tier == TIERS[0] else ("store", "pipeline"):
            local.artifacts.make_environment(name)
        local.artifacts.make_tools(*STORE_JARS.values())
    local.artifacts.add_to_tools("dev")
    # Tests of every tier start the page's server.
    local.artifacts.make_environment("page")
    failed = tier == "quick" and not paths and check(stack, []) != 0
    # Tests choose their own homes and ports.
    environ = {
        name: value
        for name, value in local.plain_environment("tools").items()
        if not name.startswith(PREFIX) or name in (f"{PREFIX}ARTIFACTS", f"{PREFIX}BASE_IMAGE")
    }
    command = ["python", "-m", "pytest", "--tier", tier, *(["--record"] if tier == "full" else [])]
    # They mostly wait: two units of tests at a time; more would not fit into a laptop's memory.
    command += ["--numprocesses", "2", *flags]
    failed |= subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode != 0
    return 1 if failed else 0


def _local(stack: Stack) -> LocalBackend:
    return LocalBackend(stack.settings, stack.home)


def _with_tools(stack: Stack, *jars: str) -> LocalBackend:
    local = _local(stack)
    local.check_machine()
    local.artifacts.make_tools(*jars)
    return local


def _become(local: LocalBackend, command: list[str], *, folder: Path, more: dict[str, str] | None = None) -> NoReturn:
    """Replace this program by another (exec), so that the other receives every signal.

    Its data is on the disk, wherever the stack's is.
    """
    environ = {**local.environment("tools"), f"{PREFIX}DATA": DISK, **(more or {})}
    os.chdir(folder)
    os.execvpe(command[0], command, environ)
