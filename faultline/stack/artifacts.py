"""The files that the local backend runs: two virtual environments and the jars, fetched once per lock file."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable

from faultline.locks import BUILDING, LOCKS
from faultline.messages import say
from faultline.settings import ROOT, STORE_JARS
from faultline.stack.errors import StackError
from faultline.stack.lock import exclusive

_GUARD = ROOT / "faultline" / "services" / "web_guard"
_JARS = ROOT / "faultline" / "packages" / "jars.py"
JAR_GROUPS = ("kafka", "spark", "flink", "zookeeper")
BUILD = "build"
ENVIRONMENTS = ("tools", "flink", "page")
ON_REQUEST = ("store",)
"""Environments of parts that not every stack has: they are fetched when such a part is used."""
GUARDED = ("spark", "flink")
"""Engines whose web pages have a guard."""
ADDITIONS = {"dev": "the test tools", "notebook": "Jupyter"}
"""Locks that are installed into the tools environment, and their names in messages."""


class Artifacts:
    """The folder of environments and jars, shared by all stacks of a clone.

    With `store` also the engines' jars for data in an object store, with `own_store` also the store itself.
    """

    def __init__(
        self,
        folder: Path,
        python: Callable[[], Path],
        java: Callable[[], Path],
        environ: Mapping[str, str],
        *,
        store: bool,
        own_store: bool,
    ) -> None:
        self.folder = folder
        self._environments = (*ENVIRONMENTS, *ON_REQUEST) if own_store else ENVIRONMENTS
        self._groups = (*JAR_GROUPS, *STORE_JARS.values()) if store else JAR_GROUPS
        self._python, self._java = python, java
        # pip's configuration is the user's: an index, a proxy, a certificate.
        self._environ = {**BUILDING, **environ}
        self._commands: list[subprocess.Popen[bytes]] = []
        self._is_ending = False

    def environment(self, name: str) -> Path:
        """Folder of a virtual environment."""
        return self.folder / f"venv-{name}"

    def interpreter(self, name: str) -> Path:
        """Python of a virtual environment."""
        return self.environment(name) / "bin" / "python"

    def complete(self) -> bool:
        """Return whether everything that the stack needs is made."""
        return self.usable() and self._has_class_archive()

    def usable(self) -> bool:
        """Return whether everything is made without which a program would fail."""
        environments = all(map(self._has_environment, self._environments))
        return environments and not self._missing_jars(self._groups) and all(map(self._has_guard, GUARDED))

    def make_all(self) -> None:
        """Make everything that the stack needs; what does not need each other is made side by side."""
        if self.complete():
            return
        with self._locked(), ThreadPoolExecutor() as side, self._ending_together():
            beside = [side.submit(self._make_environment, name) for name in self._environments if name != "tools"]
            self._make_environment("tools")
            of_spark = [group for group in self._groups if group.startswith("spark")]
            beside.append(side.submit(self._fetch_jars, [group for group in self._groups if group not in of_spark]))
            self._fetch_jars(of_spark)
            self._make_guard("spark")
            self._make_class_archive()
            for each in beside:
                each.result()
            self._link_connector()
            for engine in GUARDED:
                self._make_guard(engine)

    def make_tools(self, *jars: str) -> None:
        """Make the tools environment, and fetch these groups of jars."""
        guarded = "spark" not in jars or self._has_guard("spark")
        if self._has_environment("tools") and not self._missing_jars(jars) and guarded:
            return
        with self._locked():
            self._make_environment("tools")
            self._fetch_jars(jars)
            if "spark" in jars:
                self._make_guard("spark")

    def add_to_tools(self, name: str) -> None:
        """Install a lock of ADDITIONS into the tools environment."""
        files = _locks(BUILD, "tools", name)
        if self._is_made(name, files):
            return
        with self._locked():
            self._make_environment("tools")
            say(f"fetching {ADDITIONS[name]} ...")
            self._pip("tools", "--requirement", str(LOCKS / f"{name}.lock"))
            self._made(name, files)

    def make_environment(self, name: str) -> None:
        """Make one virtual environment."""
        if not self._has_environment(name):
            with self._locked():
                self._make_environment(name)

    def fetch_single_jars(self, group: str) -> None:
        """Fetch a group of the jars that pipelines of users need, and no stack."""
        listed = LOCKS / "pipelines.jars"
        if self._is_made(f"jars-{group}", [listed]):
            return
        self.make_tools()
        with self._locked():
            say(f"fetching the jars of {group} ...")
            command = [str(self.interpreter("tools")), str(_JARS), "fetch", group, str(self.folder / "jars" / group)]
            self._run([*command, "--lock", str(listed)])
            self._made(f"jars-{group}", [listed])

    def _has_environment(self, name: str) -> bool:
        return self._is_made(f"venv-{name}", _locks(BUILD, name)) and self.interpreter(name).exists()

    def _missing_jars(self, groups: Iterable[str]) -> list[str]:
        return [group for group in groups if not self._is_made(f"jars-{group}", _locks("jars"))]

    def _make_environment(self, name: str) -> None:
        if self._has_environment(name):
            return
        folder = self.environment(name)
        _require_unused(folder)
        say(f"fetching the Python environment '{name}' ...")
        # The additions go with it. The stamps go first: a removal may be interrupted.
        for stamp in (f"venv-{name}", *(ADDITIONS if name == "tools" else ())):
            self._stamp(stamp).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        self._run([str(self._python()), "-m", "venv", str(folder)])
        self._pip(name, "--requirement", str(LOCKS / f"{BUILD}.lock"))
        # Source distributions are built with the hashed tools just installed, not with unchecked ones.
        self._pip(name, "--no-build-isolation", "--requirement", str(LOCKS / f"{name}.lock"))
        self._made(f"venv-{name}", _locks(BUILD, name))

    def _fetch_jars(self, groups: Iterable[str]) -> None:
        """Fetch groups side by side: each mostly waits for answers about many small files."""
        with ThreadPoolExecutor() as side, self._ending_together():
            for _ in side.map(self._fetch_group, self._missing_jars(groups)):
                pass

    def _fetch_group(self, group: str) -> None:
        target = self.folder / "jars" / group
        _require_unused(target)
        say(f"fetching the jars of {group} ...")
        self._stamp(f"jars-{group}").unlink(missing_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        self._run([str(self.interpreter("tools")), str(_JARS), "fetch", group, str(target)])
        self._made(f"jars-{group}", _locks("jars"))

    def _has_guard(self, engine: str) -> bool:
        return self._is_made(f"web-guard-{engine}", _guard_sources())

    def _make_guard(self, engine: str) -> None:
        """Compile the web guard (web_guard/) against the classes of Spark or Flink."""
        if self._has_guard(engine):
            return
        folders = [*self.environment("tools").glob("lib/python*/site-packages/pyspark/jars")]
        if engine == "flink":
            folders += self.environment("flink").glob("lib/python*/site-packages/pyflink/lib")
        jar = self.folder / "jars" / "web_guard" / f"web-guard-{engine}.jar"
        _require_unused(jar)
        command = [str(self.interpreter("tools")), "-m", "faultline.services.web_guard.build", engine, str(jar)]
        self._run([*command, *map(str, folders)])
        self._made(f"web-guard-{engine}", _guard_sources())

    def _class_archive_sources(self) -> list[Path]:
        # Another Java could not use it; Java's installation has a file that names its version.
        release = self._java().resolve().parent.parent / "release"
        program = ROOT / "spark_job" / "class_archive.py"
        return [program, *_locks("tools", "jars"), *([release] if release.is_file() else [])]

    def _has_class_archive(self) -> bool:
        return self._is_made("class-archive-spark", self._class_archive_sources())

    def _make_class_archive(self) -> None:
        """Write the archive of classes with which Spark starts in half the time."""
        if self._has_class_archive():
            return
        say("writing Spark's class archive, so that Spark starts faster ...")
        target = self.folder / "class-archives" / "spark.jsa"
        _require_unused(target)
        self._run([str(self.interpreter("tools")), "-m", "spark_job.class_archive", str(target)])
        self._made("class-archive-spark", self._class_archive_sources())

    def _link_connector(self) -> None:
        """Link the connector into Flink's jar folder, where Python programs that start Flink look for it."""
        for library in self.environment("flink").glob("lib/python*/site-packages/pyflink/lib"):
            for jar in sorted((self.folder / "jars" / "flink").glob("*.jar")):
                link = library / jar.name
                link.unlink(missing_ok=True)
                # Relative: the folder may be moved.
                link.symlink_to(os.path.relpath(jar, library))

    def _pip(self, name: str, *arguments: str) -> None:
        # As a module: the first line of bin/pip names a path that a moved clone does not have.
        command = [str(self.interpreter(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # Most modules are never imported: Python compiles one when it is.
        self._run([*command, "--no-compile", "--require-hashes", *arguments])

    @contextlib.contextmanager
    def _ending_together(self) -> Iterator[None]:
        """End the commands that run side by side when the block fails or is interrupted."""
        try:
            yield
        except BaseException:
            self._is_ending = True
            for each in list(self._commands):
                each.terminate()
            raise

    def _run(self, command: list[str]) -> None:
        if self._is_ending:
            raise StackError("interrupted")
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=dict(self._environ), cwd=ROOT) as program:
            self._commands.append(program)
            printed, _ = program.communicate()
            self._commands.remove(program)
        if program.returncode and not self._is_ending:
            # Debian says on stdout that python3-venv is missing.
            sys.stderr.write(printed.decode(errors="replace"))
        if program.returncode:
            raise StackError(f"{' '.join(command[:4])} ... failed, see the lines above; then run again")

    def _stamp(self, name: str) -> Path:
        return self.folder / f"{name}.made-from"

    def _is_made(self, name: str, files: list[Path]) -> bool:
        try:
            return self._stamp(name).read_text(encoding="ascii").strip() == _digest(files)
        except OSError:
            return False

    def _made(self, name: str, files: list[Path]) -> None:
        self._stamp(name).write_text(_digest(files) + "\n", encoding="ascii")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Let only one program make the artifacts at a time."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with exclusive(self.folder / "lock", "another program fetches what is needed; waiting for it ..."):
            yield


def _require_unused(path: Path) -> None:
    """Raise StackError when a process of any stack runs on a file or folder that is to be made again."""
    if not path.exists():
        return
    named = re.compile(re.escape(str(path)) + r"(?![\w.-])")
    listed = subprocess.run(["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        pid, _, command = line.strip().partition(" ")
        if named.search(command) and int(pid) != os.getpid():
            raise StackError(
                f"{path} has to be made again for this commit or these settings, and process {pid} runs on it; "
                "end it (scripts/down.sh ends a stack), then run again"
            )


def _locks(*names: str) -> list[Path]:
    return [LOCKS / f"{name}.lock" for name in names]


def _guard_sources() -> list[Path]:
    return [*sorted(_GUARD.rglob("*.java")), _GUARD / "build.py", *_locks("tools", "flink")]


def _digest(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
