"""The faults: one file each, with the lines that break something and those that repair it.

Every file of this folder has a `FAULT`; a soak chooses among those that its stack can have.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection

from faultline.faults.model import Fault


def catalogue() -> dict[str, Fault]:
    """All faults by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = [importlib.import_module(f"{__name__}.{name}").FAULT for name in names]
    return {fault.name: fault for fault in found}


def possible(services: Collection[str]) -> dict[str, Fault]:
    """The faults of a stack with these services, by name."""
    has = frozenset(services)
    return {name: fault for name, fault in catalogue().items() if fault.needs <= has and not fault.without & has}
