"""Become the JVM of a JobManager or a TaskManager, as Flink's scripts do.

Usage: python -m flink_job.start jobmanager|jobmanager-2|taskmanager[-N]

The scripts (bin/jobmanager.sh, bin/taskmanager.sh) read the configuration twice, with two JVMs each time, and ask a
fifth one how much memory the service gets: two of the six seconds until a TaskManager has registered. Only the last
question is needed, once for each configuration. The flags of the JVM are those of the configuration, `env.java.opts.*`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

from faultline.command import run
from faultline.files import replace_text
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


def memory(java: Path, environ: dict[str, str], flags: list[str], question: str) -> tuple[list[str], list[str]]:
    """Ask Flink for the JVM's flags of memory, and the arguments that say the same to the service.

    Raises ConfigurationError when the sizes in the configuration contradict each other.
    """
    library = Path(environ["FLINK_LIB_DIR"])
    jars = [Path(environ["FLINK_HOME"]) / "bin" / "bash-java-utils.jar", *library.glob("flink-dist-*.jar")]
    command = [
        str(java),
        *flags,
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


def memory_of(
    configuration: str, java: Path, environ: dict[str, str], flags: list[str], question: str
) -> tuple[list[str], list[str]]:
    """Return what `memory` answers, which is kept: the answer is the same until the configuration or Flink changes."""
    file = Path(environ["FLINK_CONF_DIR"]).with_name("memory.json")
    asked = sha256("\n".join((question, configuration, str(java), environ["FLINK_HOME"], *flags)).encode()).hexdigest()
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["asked"] == asked:
            return kept["sizes"], kept["arguments"]
    sizes, arguments = memory(java, environ, flags, question)
    replace_text(file, json.dumps({"asked": asked, "sizes": sizes, "arguments": arguments}))
    return sizes, arguments


def flags_of(configuration: str, name: str) -> list[str]:
    """Read `env.java.opts.NAME` of a rendered config.yaml."""
    option = f"env.java.opts.{name}: "
    return [
        word for line in configuration.splitlines() if line.startswith(option) for word in line[len(option) :].split()
    ]


def class_path(library: Path) -> str:
    """All jars of a folder; the distribution comes last, as in Flink's scripts."""
    jars = sorted(library.glob("*.jar"), key=lambda jar: (jar.name.startswith("flink-dist-"), jar.name))
    return os.pathsep.join(map(str, jars))


def become(service: str) -> NoReturn:
    """Start the JVM in the place of this program. Raises ConfigurationError and SettingsError."""
    environ = os.environ | prepare(Settings(), service)
    kind = "jobmanager" if service in (LEADER, STANDBY) else "taskmanager"
    question, entry_point = _KINDS[kind]
    try:
        java = find_java(environ)
    except NoJavaError as error:
        raise ConfigurationError(str(error)) from None
    conf = Path(environ["FLINK_CONF_DIR"])
    configuration = (conf / "config.yaml").read_text(encoding="utf-8")
    common = ["-XX:+IgnoreUnrecognizedVMOptions", *flags_of(configuration, "all")]
    short = [*common, *flags_of(configuration, "client")]
    sizes, arguments = memory_of(configuration, java, environ, short, question)
    logging = f"file:{conf / 'log4j-console.properties'}"
    command = [
        str(java),
        *sizes,
        *common,
        *flags_of(configuration, kind),
        # Flink warns without it. Nothing is written there: the service logs to its console.
        f"-Dlog.file={environ['FLINK_LOG_DIR']}/{service}.log",
        f"-Dlog4j.configuration={logging}",
        f"-Dlog4j.configurationFile={logging}",
        "-cp",
        class_path(Path(environ["FLINK_LIB_DIR"])),
        entry_point,
        *arguments,
        "--configDir",
        str(conf),
    ]
    os.execve(java, command, environ)


if __name__ == "__main__":
    run("flink", lambda: become(sys.argv[1]))
