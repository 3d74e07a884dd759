"""Flink's home for one service: configuration, classpath and folders, recreated at each start.

The pip package of Flink is a whole distribution. It is not changed: its scripts read the folders of
configuration, jars, logs and pid files from the environment, so each service has its own.
"""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from contract.settings import Settings, artifacts, guard_jar

TEMPLATES = Path(__file__).parent / "conf"


class HomeError(Exception):
    """The distribution or the connector is missing; the message names it and the next step."""


def distribution() -> Path:
    """Folder of the installed Flink distribution, which has bin/, lib/ and opt/. Raises HomeError."""
    spec = importlib.util.find_spec("pyflink")
    for folder in (spec and spec.submodule_search_locations) or []:
        if (Path(folder) / "bin" / "flink").is_file():
            return Path(folder)
    raise HomeError(f"{sys.executable} has no apache-flink; run this with the Flink environment's python")


def connector_jars(artifacts: Path) -> list[Path]:
    """The jars that Flink needs besides its own. Raises HomeError when there is none."""
    jars = sorted((artifacts / "jars" / "flink").glob("*.jar"))
    if not jars:
        raise HomeError(f"no connector jar in {artifacts / 'jars' / 'flink'}; scripts/up.sh --backend local fetches it")
    return jars


def web_guard() -> Path:
    """The jar that keeps foreign web pages out. Raises HomeError when it is missing: Flink would start without it."""
    jar = guard_jar("flink")
    if not jar.is_file():
        raise HomeError(f"the web guard {jar} is missing; scripts/up.sh --backend local makes it")
    return jar


def java_options(distribution_config: str) -> str:
    """The JVM flags in the distribution's own config.yaml: which packages Flink may open on this Java."""
    for line in distribution_config.splitlines():
        name, _, value = line.strip().partition(":")
        if name == "all":
            return value.strip()
    raise HomeError("the distribution's conf/config.yaml has no env.java.opts.all; is it apache-flink 2.2?")


def render(template: str, values: Mapping[str, str]) -> str:
    """Replace each `@NAME@` by its value."""
    for name, value in values.items():
        template = template.replace(f"@{name}@", value)
    return template


def configuration_values(settings: Settings, state: Path, flink: Path) -> dict[str, str]:
    """Values of the placeholders in config.yaml, by name.

    On a host everything stays on BIND_ADDRESS. In a container FLINK_BIND_HOST is 0.0.0.0, and the TaskManager
    detects by itself under which of its addresses the JobManager reaches it.
    """
    host, bind = settings.jobmanager_host, settings.bind_host("flink")
    return {
        "JOBMANAGER_HOST": host,
        "FLINK_BIND_HOST": bind,
        "TASKMANAGER_HOST_LINE": "" if bind == "0.0.0.0" else f"taskmanager.host: {bind}",
        "FLINK_RPC_PORT": settings.text("FLINK_RPC_PORT"),
        "FLINK_UI_PORT": settings.text("FLINK_UI_PORT"),
        "FLINK_CHECKPOINTS_RETAINED": settings.text("FLINK_CHECKPOINTS_RETAINED"),
        "WEB_NAMES": ",".join(settings.web_names),
        "WEB_ORIGIN": f"http://{settings.text('BIND_ADDRESS')}:{settings.text('FLINK_UI_PORT')}",
        "TMP": str(state / "tmp"),
        "JVM_FLAGS": settings.text("JVM_FLAGS"),
        "JVM_FLAGS_SHORT": settings.text("JVM_FLAGS_SHORT"),
        "JAVA_OPTS": java_options((flink / "conf" / "config.yaml").read_text(encoding="utf-8")),
    }


def prepare(settings: Settings, service: str) -> dict[str, str]:
    """Make the service's folders and return the environment variables that point Flink's scripts to them."""
    flink = distribution()
    state = settings.state / f"flink-{service}"
    folders = {name: state / name for name in ("conf", "lib", "log", "pid", "tmp")}
    # Files of an earlier run in tmp are useless, and nothing else removes them after a kill.
    shutil.rmtree(folders["tmp"], ignore_errors=True)
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    values = configuration_values(settings, state, flink)
    for template in TEMPLATES.iterdir():
        text = render(template.read_text(encoding="utf-8"), values)
        (folders["conf"] / template.name).write_text(text, encoding="utf-8")
    for jar in folders["lib"].iterdir():
        jar.unlink()
    for jar in [*(flink / "lib").glob("*.jar"), *connector_jars(artifacts()), web_guard()]:
        link = folders["lib"] / jar.name
        if not link.exists():
            link.symlink_to(jar.resolve())
    return {
        "FLINK_HOME": str(flink),
        "FLINK_CONF_DIR": str(folders["conf"]),
        "FLINK_LIB_DIR": str(folders["lib"]),
        "FLINK_OPT_DIR": str(flink / "opt"),
        "FLINK_PLUGINS_DIR": str(flink / "plugins"),
        "FLINK_LOG_DIR": str(folders["log"]),
        "FLINK_PID_DIR": str(folders["pid"]),
    }


def main() -> int:
    """Print `export NAME=VALUE` lines for the service named on the command line."""
    try:
        for name, value in prepare(Settings(), sys.argv[1]).items():
            print(f"export {name}={shlex.quote(value)}")
    except HomeError as error:
        print(f"flink: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
