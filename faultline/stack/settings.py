"""Settings of a stack, by precedence: a flag, a STACK_ variable, those of the running stack, its profile, `.env`.

An environment variable without the prefix is never used, since KAFKA_PORT and others may belong to another
program; when one differs, a warning says so. PORT_OFFSET moves every port, so that two stacks run side by side.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from faultline.settings import PREFIX, ROOT, Settings, as_environment, own_store, read_env_file, read_environment
from faultline.stack.errors import StackError
from faultline.stack.services import require_counts

ENV_FILE = ROOT / ".env"

SHOW_COMMANDS = "SHOW_COMMANDS"
"""Not empty: scripts also print the command of Kafka, Flink, Docker or the shell that they stand for."""

EXTRAS = frozenset(
    {
        "HOME", "ARTIFACTS", "KAFKA_BOOTSTRAP", "FLINK_REST", "STORE_ENDPOINT", "GENERATOR_ARGS", "SPARK_ARGS",
        "ALLOW_REMOTE", SHOW_COMMANDS,
    }
)  # fmt: skip
"""Settings that `.env` does not have."""

OFFSET = "PORT_OFFSET"
"""Also read without the prefix: no other program has such a variable."""

OF_ONE_CALL = ("HOME", SHOW_COMMANDS)
"""A running stack does not keep these for the next call."""
OF_THE_HOST = (
    *OF_ONE_CALL, "BACKEND", "ARTIFACTS", OFFSET, "ALLOW_REMOTE", "KAFKA_BOOTSTRAP", "FLINK_REST", "STORE_ENDPOINT",
)  # fmt: skip
"""Settings that no running service depends on, or that are not the same inside a container."""
_OF_CONTAINERS = ("PROFILE", "BIND_ADDRESS", "COMPOSE_PROJECT_NAME")
"""Settings that decide which containers there are, and where: a container keeps its own."""

_HOST_VARIABLES = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR", "JAVA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "XDG_RUNTIME_DIR", "CI", "COLUMNS", "NO_COLOR",
)  # fmt: skip
_OF_NAMED_STORE = ("AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE", "AWS_REGION")
"""Variables that locate the key of an object store other than the stack's own; no variable with a key is passed on."""
_HOST_PREFIXES = ("LC_", "PIP_", "NSS_WRAPPER_")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_LAST_PORT = 65_535
_PROFILE = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class StackSettings:
    """Resolved settings. `explicit`: those that were chosen for this stack; `warnings`: variables that are not used.

    `running`: the choice when the stack came up; `host`: the environment of the caller, of which services get a part.
    """

    values: Mapping[str, str]
    explicit: Mapping[str, str]
    warnings: tuple[str, ...]
    running: Mapping[str, str]
    host: Mapping[str, str] = field(repr=False)

    @property
    def typed(self) -> Settings:
        """The settings in the form that the programs read."""
        return Settings(as_environment(self.values), ENV_FILE)

    @property
    def chosen(self) -> dict[str, str]:
        """Explicit settings that a running stack keeps: those of one call are left out."""
        return {name: value for name, value in self.explicit.items() if name not in OF_ONE_CALL}

    @property
    def of_commands(self) -> dict[str, str]:
        """Chosen settings that a command in a running container follows; ports and addresses stay the container's."""
        kept = {*OF_THE_HOST, *_OF_CONTAINERS}
        chosen = self.chosen.items()
        return {name: value for name, value in chosen if name not in kept and not name.endswith(("_PORT", "_HOST"))}

    @property
    def of_this_call(self) -> dict[str, str]:
        """Those of them that the stack was not started with, in the form of variables."""
        own = {name: value for name, value in self.of_commands.items() if self.running.get(name) != value}
        return as_environment(own)

    def ports(self) -> dict[str, int]:
        """Every port setting."""
        return {name: int(value) for name, value in self.values.items() if name.endswith("_PORT")}

    def environment(self) -> dict[str, str]:
        """Build the environment of a program: the variables that every program of this host gets, and the settings."""
        names = _HOST_VARIABLES if own_store(self.values) else (*_HOST_VARIABLES, *_OF_NAMED_STORE)
        host = self.host.items()
        inherited = {name: value for name, value in host if name in names or name.startswith(_HOST_PREFIXES)}
        # Services of this machine are reached directly, whatever proxy downloads need.
        for name in ("no_proxy", "NO_PROXY"):
            inherited[name] = ",".join(filter(None, (inherited.get(name), *_LOOPBACK, self.values["BIND_ADDRESS"])))
        # UTC everywhere: engines and tools format times in the time zone of their process.
        return {**inherited, "TZ": "UTC", "PYTHONPATH": str(ROOT), **as_environment(self.values)}


def load(
    environ: Mapping[str, str], flags: Mapping[str, str], running: Mapping[str, str], env_file: Path = ENV_FILE
) -> StackSettings:
    """Resolve the settings. `flags`: given on the command line; `running`: chosen when the stack came up.

    Raises StackError for an invalid value, and for an address beyond this machine without permission.
    """
    defaults = read_env_file(env_file)
    # The variables of Docker's user and of the backend have other names, see faultline/stack/backends.
    prefixed = {name: value for name, value in read_environment(environ).items() if name in {*defaults, *EXTRAS}}
    if environ.get(OFFSET) and OFFSET not in prefixed:
        prefixed[OFFSET] = environ[OFFSET]
    explicit = {**running, **prefixed, **flags}
    profile = explicit.get("PROFILE") or defaults.get("PROFILE", "")
    # A stack whose profile is gone can still be stopped and removed.
    asked = profile in {defaults.get("PROFILE", ""), prefixed.get("PROFILE"), flags.get("PROFILE")}
    values = {**defaults, **_of_profile(profile, env_file, defaults, asked=asked), **explicit}
    _shift_ports(values, explicit)
    values["HOME"] = str(Path(values.get("HOME") or ROOT).resolve())
    values["ARTIFACTS"] = str(Path(values.get("ARTIFACTS") or ROOT / ".artifacts").resolve())
    require_counts(values)
    typed = Settings(as_environment(values), env_file)
    values["KAFKA_BOOTSTRAP"] = typed.bootstrap
    # Another word than s3://BUCKET, or than the name of a state backend, is refused before anything starts.
    _ = typed.data, typed.flink_managed_megabytes, typed.flink_unaligned
    _require_this_machine(values)
    return StackSettings(values, explicit, _foreign(environ, values, defaults), running, environ)


def _of_profile(name: str, env_file: Path, known: Mapping[str, str], *, asked: bool) -> dict[str, str]:
    """Read the settings of a profile: the file `.env.NAME` beside `.env`; none without a name.

    Raises StackError when there is none of that name, and it was asked for.
    """
    if not name:
        return {}
    # Files of editors, `.env.bak~`, are no profiles.
    files = {file.name[len(env_file.name) + 1 :]: file for file in sorted(env_file.parent.glob(f"{env_file.name}.*"))}
    profiles = {each: file for each, file in files.items() if _PROFILE.fullmatch(each)}
    if name not in profiles:
        if not asked:
            return {}
        raise StackError(f"there is no profile '{name}'; the profiles are: {', '.join(profiles) or 'none'}")
    settings = read_env_file(profiles[name])
    for each in settings:
        if each not in known:
            raise StackError(f"{profiles[name]}: {each} is no setting of {env_file.name}; correct it")
    return settings


def unknown_variables(environ: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    """Return the STACK_ variables that set nothing: most of them are misspelt."""
    return sorted(PREFIX + name for name in read_environment(environ) if name not in {*known, *EXTRAS, OFFSET})


def _shift_ports(values: dict[str, str], explicit: Mapping[str, str]) -> None:
    offset = _number(OFFSET, values.get(OFFSET) or "0", -_LAST_PORT)
    for name in sorted(values):
        if name.endswith("_PORT"):
            # A port that was chosen explicitly is not moved.
            port = _number(name, values[name], 0) + (0 if name in explicit else offset)
            if not 0 <= port <= _LAST_PORT:
                raise StackError(f"{OFFSET}={offset} moves {name} to {port}, and ports are 1 to {_LAST_PORT}")
            values[name] = str(port)
    values[OFFSET] = "0"


def _number(name: str, value: str, least: int) -> int:
    try:
        number = int(value)
    except ValueError:
        raise StackError(f"{name}={value} is not a whole number; correct it ({PREFIX}{name} or .env)") from None
    if not least <= number <= _LAST_PORT:
        raise StackError(f"{name}={value} is not a port; choose one from 1 to {_LAST_PORT}")
    return number


def _require_this_machine(values: Mapping[str, str]) -> None:
    """Refuse addresses beyond this machine: topics would be created and visits sent there."""
    if values.get("ALLOW_REMOTE"):
        return
    for name, value in (("BIND_ADDRESS", values["BIND_ADDRESS"]), ("KAFKA_BOOTSTRAP", values["KAFKA_BOOTSTRAP"])):
        for address in value.split(","):
            host = address if name == "BIND_ADDRESS" else address.rpartition(":")[0]
            if not is_loopback(host):
                raise StackError(
                    f"{name}={value} is not on this machine; if that is intended, add --allow-remote "
                    f"(or set {PREFIX}ALLOW_REMOTE=yes)"
                )


def is_loopback(host: str) -> bool:
    """Return whether an address or a name is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _foreign(environ: Mapping[str, str], values: Mapping[str, str], defaults: Mapping[str, str]) -> tuple[str, ...]:
    found = []
    for name in sorted({*defaults, *EXTRAS} - {"HOME", OFFSET}):
        theirs = environ.get(name)
        if theirs and theirs != values.get(name, ""):
            found.append(f"the variable {name}={theirs} is not used; to change the setting use {PREFIX}{name}")
    return tuple(found)
