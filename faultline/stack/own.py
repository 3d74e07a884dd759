"""The environment of a stack beside the one in use: another home, and free ports. For the matrix, benchmarks, tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from faultline.ports import free_ports
from faultline.settings import as_environment
from faultline.stack.services import LOCAL_PORTS

_PORTS = (*LOCAL_PORTS, "PAGE_BUTTONS_PORT")


def own_environment(
    home: Path,
    settings: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    address: str = "127.0.0.1",
) -> dict[str, str]:
    """Return the environment with which scripts, and `open_stack`, act on a stack in `home`.

    `settings`: further settings, which win; `environ`: other variables, by default those of this process; `address`:
    where the ports must be free.
    """
    ports = dict(zip(_PORTS, map(str, free_ports(address, len(_PORTS)))))
    own = as_environment({"HOME": str(home), **ports, **(settings or {})})
    return {**(os.environ if environ is None else environ), **own}
