"""A private broker for labs and tests: the shipped configuration on free ports, stopped when the program ends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from faultline.ports import answers, free_ports
from faultline.settings import ROOT, as_environment
from faultline.stack.processes import Program

_START_SECONDS, _STOP_SECONDS = 180.0, 60.0
_PORTS = ("KAFKA_PORT", "KAFKA_CONTAINER_PORT", "KAFKA_CONTROLLER_PORT")


@dataclass(frozen=True)
class OwnBroker:
    """A running broker. `bootstrap`: `host:port`; `environ`: variables by which the project's programs reach it."""

    bootstrap: str
    environ: dict[str, str]
    log: Path


@contextlib.contextmanager
def own_broker(folder: Path, environ: Mapping[str, str], address: str) -> Iterator[OwnBroker]:
    """Start a broker that keeps everything in `folder`; it is stopped at the end, also after an error.

    Raises StackError when it ends, TimedOut when it does not answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ports = dict(zip(_PORTS, free_ports(address, len(_PORTS))))
    bootstrap = f"{address}:{ports['KAFKA_PORT']}"
    chosen = {name: str(port) for name, port in ports.items()}
    reach = as_environment({**chosen, "KAFKA_BROKERS": "1", "KAFKA_BOOTSTRAP": bootstrap, "BIND_ADDRESS": address})
    command = [str(ROOT / "faultline" / "services" / "kafka.sh"), "--data", str(folder / "data")]
    with Program(command, {**environ, **reach}, folder / "broker.log", ROOT) as program:
        program.wait_for(lambda: answers(address, ports["KAFKA_PORT"]), "the broker", seconds=_START_SECONDS)
        try:
            yield OwnBroker(bootstrap, reach, program.log)
        finally:
            program.close(seconds=_STOP_SECONDS)
