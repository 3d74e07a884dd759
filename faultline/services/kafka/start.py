"""Run a Kafka broker in the foreground: write its configuration, format its storage, exec it.

Usage: python -m faultline.services.kafka.start [NAME] [--data FOLDER]

Each broker is a controller of the KRaft quorum too. Standard library only: the image of the broker has no other
packages.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from faultline.copies import name_of, setting_of
from faultline.settings import ROOT, Settings, SettingsError

_BIN = ROOT / "faultline" / "services" / "kafka" / "bin"
_TEMPLATE = ROOT / "faultline" / "services" / "kafka" / "conf" / "server.properties"
_QUORUM = "controllers"
"""A file in the data folder: the controllers for which it was formatted."""
_HEAP_ALONE, _HEAP_OF_SEVERAL = "-Xms256m -Xmx384m", "-Xms128m -Xmx256m"
_SEVERAL = (
    "# A majority goes on without a broker that is silent for this long (by default 9 s).",
    "broker.session.timeout.ms=6000",
    "# When all stop at once, each learns that it may before the controller stops too (by default after up to 2 s).",
    "broker.heartbeat.interval.ms=500",
)


def configuration(settings: Settings, broker: int, data: Path) -> str:
    """Fill in the template for a broker; every value comes from the settings."""
    address = settings.text("BIND_ADDRESS")
    host_port, container_port = (_port(settings, name, broker) for name in ("PORT", "CONTAINER_PORT"))
    host, port = _controller(settings, broker)
    values = {
        "NODE": str(broker),
        "QUORUM": quorum(settings),
        "BIND_HOST": settings.bind_host("kafka"),
        # The addresses that host clients and containers use after the first connection.
        "HOST_LISTENER": f"{address}:{host_port}",
        "CONTAINER_LISTENER": f"{settings.service_host(name_of('kafka', broker))}:{container_port}",
        "HOST_PORT": host_port,
        "CONTAINER_PORT": container_port,
        "CONTROLLER_BIND_HOST": "localhost" if host == "localhost" else settings.bind_host("kafka"),
        "CONTROLLER_LISTENER": f"{host}:{port}",
        "CONTROLLER_PORT": port,
        # In a properties file a backslash is an escape.
        "DATA": str(data).replace("\\", "\\\\"),
        "PARTITIONS": settings.text("TOPIC_PARTITIONS"),
        "RETENTION_MS": settings.text("TOPIC_RETENTION_MS"),
        "REPLICAS": str(settings.replicas),
        "LEAST_IN_SYNC": str(settings.least_in_sync),
        "TRANSACTION_MAX_TIMEOUT_MS": settings.text("KAFKA_TRANSACTION_MAX_TIMEOUT_MS"),
        "SEVERAL_LINES": "\n".join(_SEVERAL if settings.replicas > 1 else ()),
    }
    text = _TEMPLATE.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _port(settings: Settings, name: str, broker: int) -> str:
    return settings.text(setting_of("KAFKA", name, broker))


def _controller(settings: Settings, broker: int) -> tuple[str, str]:
    """Host and port of a controller: only in containers do controllers reach each other over a network."""
    apart = settings.in_container and settings.replicas > 1
    host = settings.service_host(name_of("kafka", broker)) if apart else "localhost"
    return host, _port(settings, "CONTROLLER_PORT", broker)


def identity(words: str) -> str:
    """An id as kafka-storage.sh random-uuid makes it, without a JVM; the same words give the same id."""
    digest = hashlib.sha256(words.encode("utf-8")).digest()[:16]
    # 22 characters, the first is not a dash.
    return "A" + base64.urlsafe_b64encode(digest).decode("ascii")[1:22]


def format_flags(settings: Settings, data: Path) -> list[str]:
    """The flags that say which cluster this is, and who votes in it: the same for each of its brokers.

    Brokers share no file, so the ids follow from the names of the stack and of the folder that has their data.
    """
    stack = f"{settings.text('COMPOSE_PROJECT_NAME')} {data.parent}"
    voters = []
    for broker in settings.brokers:
        host, port = _controller(settings, broker)
        voters.append(f"{broker}@{host}:{port}:{identity(f'{stack} {broker}')}")
    return ["--cluster-id", identity(stack), "--initial-controllers", ",".join(voters)]


def format_storage(settings: Settings, data: Path, config: Path) -> int:
    """Format an empty data folder; a formatted one is left unchanged."""
    if (data / "logs" / "meta.properties").exists():
        return 0
    command = [str(_BIN / "kafka-storage.sh"), "format", "--ignore-formatted", "--config", str(config)]
    code = subprocess.run([*command, *format_flags(settings, data)], stdout=2, check=False).returncode
    if code == 0:
        (data / _QUORUM).write_text(quorum(settings) + "\n", encoding="utf-8")
    return code


def quorum(settings: Settings) -> str:
    """`host:port` of each controller, with commas between them."""
    return ",".join(":".join(_controller(settings, broker)) for broker in settings.brokers)


def require_same_quorum(settings: Settings, data: Path) -> None:
    """Raise SettingsError when the data knows the other controllers at other addresses.

    They are part of what was formatted: with others no controller finds a majority. One that is alone needs none.
    """
    file = data / _QUORUM
    if settings.replicas == 1 or not file.exists():
        return
    known = file.read_text(encoding="utf-8").strip()
    if known != quorum(settings):
        raise SettingsError(
            f"the controllers of these topics are {known}, not {quorum(settings)}; start with the ports that they had "
            "(PORT_OFFSET, STACK_KAFKA_CONTROLLER_PORT), or start clean (scripts/down.sh --wipe)"
        )


def main() -> NoReturn:
    """Run the command line: exec the broker, or exit with the code of the failed step."""
    parser = argparse.ArgumentParser(prog="kafka", description="Run a Kafka broker.", allow_abbrev=False)
    parser.add_argument("name", nargs="?", default="kafka", help="its service (default: %(default)s)")
    parser.add_argument("--data", type=Path, help="folder of its data (default: one of the stack's)")
    chosen = parser.parse_args()
    try:
        settings = Settings()
        names = {name_of("kafka", broker): broker for broker in settings.brokers}
        if chosen.name not in names:
            raise SettingsError(f"there is no broker '{chosen.name}'; the brokers are: {', '.join(names)}")
        broker = names[chosen.name]
        data = (chosen.data or settings.state / chosen.name).resolve()
        data.mkdir(parents=True, exist_ok=True)
        require_same_quorum(settings, data)
        config = data / "server.properties"
        config.write_text(configuration(settings, broker, data), encoding="utf-8")
        code = format_storage(settings, data, config)
        if code:
            sys.exit(code)
        heap = _HEAP_ALONE if settings.replicas == 1 else _HEAP_OF_SEVERAL
        os.environ.setdefault("KAFKA_HEAP_OPTS", f"{heap} {settings.text('JVM_FLAGS')}")
    except (SettingsError, OSError) as error:
        print(f"{chosen.name}: {error}", file=sys.stderr)
        sys.exit(2)
    program = str(_BIN / "kafka-server-start.sh")
    os.execv(program, [program, str(config)])


if __name__ == "__main__":
    main()
