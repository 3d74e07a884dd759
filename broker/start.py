"""Run the Kafka broker (KRaft, one node) in the foreground: write its configuration, format its storage, exec it.

Usage: python -m broker.start [DATA_FOLDER]

Standard library only: the image of the broker has no other packages.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import NoReturn

from contract.settings import ROOT, Settings, SettingsError

_BIN = ROOT / "broker" / "bin"
_TEMPLATE = ROOT / "broker" / "conf" / "server.properties"
_HEAP = "-Xms256m -Xmx384m"


def configuration(settings: Settings, data: Path) -> str:
    """Fill in the template; every value comes from the settings."""
    address = settings.text("BIND_ADDRESS")
    container_host = settings.values.get("KAFKA_CONTAINER_HOST") or address
    host_port, container_port = settings.text("KAFKA_PORT"), settings.text("KAFKA_CONTAINER_PORT")
    values = {
        "BIND_HOST": settings.bind_host("kafka"),
        # The addresses that host clients and containers use after the first connection.
        "HOST_LISTENER": f"{address}:{host_port}",
        "CONTAINER_LISTENER": f"{container_host}:{container_port}",
        "HOST_PORT": host_port,
        "CONTAINER_PORT": container_port,
        "CONTROLLER_PORT": settings.text("KAFKA_CONTROLLER_PORT"),
        # In a properties file a backslash is an escape.
        "DATA": str(data).replace("\\", "\\\\"),
        "PARTITIONS": settings.text("TOPIC_PARTITIONS"),
        "RETENTION_MS": settings.text("TOPIC_RETENTION_MS"),
        "TRANSACTION_MAX_TIMEOUT_MS": settings.text("KAFKA_TRANSACTION_MAX_TIMEOUT_MS"),
    }
    text = _TEMPLATE.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def format_storage(data: Path, config: Path) -> int:
    """Format an empty data folder; a formatted one is left unchanged."""
    if (data / "logs" / "meta.properties").exists():
        return 0
    # Same form as kafka-storage.sh random-uuid, without starting a JVM: 22 characters, the first is not a dash.
    cluster = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii")[1:22]
    command = [str(_BIN / "kafka-storage.sh"), "format", "--standalone", "--ignore-formatted"]
    done = subprocess.run([*command, "--cluster-id", cluster, "--config", str(config)], stdout=2, check=False)
    return done.returncode


def main() -> NoReturn:
    """Run the command line: exec the broker, or exit with the code of the failed step."""
    try:
        settings = Settings()
        data = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else settings.state / "kafka"
        data.mkdir(parents=True, exist_ok=True)
        config = data / "server.properties"
        config.write_text(configuration(settings, data), encoding="utf-8")
        code = format_storage(data, config)
        if code:
            sys.exit(code)
        os.environ.setdefault("KAFKA_HEAP_OPTS", f"{_HEAP} {settings.text('JVM_FLAGS')}")
    except (SettingsError, OSError) as error:
        print(f"kafka: {error}", file=sys.stderr)
        sys.exit(2)
    program = str(_BIN / "kafka-server-start.sh")
    os.execv(program, [program, str(config)])


if __name__ == "__main__":
    main()
