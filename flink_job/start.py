"""Become the JVM of a JobManager or a TaskManager, as Flink's scripts do; the command of its client.

Usage: python -m flink_job.start jobmanager|jobmanager-2|taskmanager[-N]

The scripts (bin/jobmanager.sh, bin/taskmanager.sh) read the configuration twice, with two JVMs each time, and ask a
fifth one how much memory the service gets: two of the six seconds until a TaskManager has registered. Only the last
question is needed. The flags of the JVM are those of the configuration, `env.java.opts.*`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from faultline.command import run
from faultline.java import NoJavaError, find_java
from faultline.settings import Settings
from flink_job.configuration import LEADER, STANDBY, ConfigurationError, prepare

_KINDS = {
    "jobmanager": (
        "GET_JM_RESOURCE_PARAMS",
        "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
    ),
    "taskmanager": ("GET_TM_RESOURCE_PARAMS", "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"),
}
"""The kinds of a service: the question for its memory, and its class."""
_ANSWER = "BASH_JAVA_UTILS_EXEC_RESULT:"
_SHOWN_LINES = 15


def memory(environ: Mapping[str, str], question: str) -> tuple[list[str], list[str]]:
    """Ask Flink for the JVM's flags of memory, and the arguments that say the same to the service.

    Raises ConfigurationError when the sizes in the configuration contradict each other.
    """
    library = Path(environ["FLINK_LIB_DIR"])
    jars = [Path(environ["FLINK_HOME"]) / "bin" / "bash-java-utils.jar", *library.glob("flink-dist-*.jar")]
    command = [
        str(java_of(environ)),
        *flags_of(environ, "all"),
        *flags_of(environ, "client"),
        "-cp",
        os.pathsep.join(map(str, jars)),
        "org.apache.flink.runtime.util.bash.BashJavaUtils",
    ]
    command += [question, "--configDir", environ["FLINK_CONF_DIR"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    lines = [line.partition(_ANSWER)[2] for line in done.stdout.splitlines() if line.startswith(_ANSWER)]
    if done.returncode or len(lines) != 2:
        words = "\n".join((done.stdout + done.stderr).splitlines()[-_SHOWN_LINES:])
        raise ConfigurationError(f"Flink cannot say how much memory its service gets; its last lines:\n{words}")
    return lines[0].split(), lines[1].split()


def flags_of(environ: Mapping[str, str], kind: str) -> list[str]:
    """The flags of `env.java.opts.KIND`; with those of `all`, the one that lets a JVM ignore what it does not know."""
    option = f"env.java.opts.{kind}: "
    lines = Path(environ["FLINK_CONF_DIR"], "config.yaml").read_text(encoding="utf-8").splitlines()
    found = [line[len(option) :] for line in lines if line.startswith(option)]
    return [*(["-XX:+IgnoreUnrecognizedVMOptions"] if kind == "all" else []), *" ".join(found).split()]


def class_path(library: Path) -> str:
    """All jars of a folder; the distribution comes last, as in Flink's scripts."""
    jars = sorted(library.glob("*.jar"), key=lambda jar: (jar.name.startswith("flink-dist-"), jar.name))
    return os.pathsep.join(map(str, jars))


def java_of(environ: Mapping[str, str]) -> Path:
    """Find Java. Raises ConfigurationError."""
    try:
        return find_java(environ)
    except NoJavaError as error:
        raise ConfigurationError(str(error)) from None


def jvm(environ: Mapping[str, str], kind: str, sizes: Sequence[str], log: str) -> list[str]:
    """The command of one of Flink's JVMs, up to its class. `kind`: of `env.java.opts.*`; `log`: its log4j file.

    Raises ConfigurationError.
    """
    conf = Path(environ["FLINK_CONF_DIR"])
    logging = f"file:{conf / log}"
    return [
        str(java_of(environ)),
        *sizes,
        *flags_of(environ, "all"),
        *flags_of(environ, kind),
        # Flink warns without it. Nothing is written there: Flink logs to its console.
        f"-Dlog.file={environ['FLINK_LOG_DIR']}/{kind}.log",
        f"-Dlog4j.configuration={logging}",
        f"-Dlog4j.configurationFile={logging}",
        "-cp",
        class_path(Path(environ["FLINK_LIB_DIR"])),
    ]


def client(environ: Mapping[str, str]) -> list[str]:
    """The command of Flink's client, as `bin/flink` begins it. Raises ConfigurationError."""
    return [*jvm(environ, "client", [], "log4j-cli.properties"), "org.apache.flink.client.cli.CliFrontend"]


def become(service: str) -> NoReturn:
    """Start the JVM in the place of this program. Raises ConfigurationError and SettingsError."""
    environ = os.environ | prepare(Settings(), service)
    kind = "jobmanager" if service in (LEADER, STANDBY) else "taskmanager"
    question, entry_point = _KINDS[kind]
    sizes, arguments = memory(environ, question)
    command = [
        *jvm(environ, kind, sizes, "log4j-console.properties"),
        entry_point,
        *arguments,
        "--configDir",
        environ["FLINK_CONF_DIR"],
    ]
    os.execve(command[0], command, environ)


if __name__ == "__main__":
    run("flink", lambda: become(sys.argv[1]))
