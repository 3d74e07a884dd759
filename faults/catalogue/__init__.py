"""The faults: one file each, with the lines that break something and those that repair it.

Every file of this folder has a `FAULT`; a soak chooses among all of them.
"""

from __future__ import annotations

import importlib
import pkgutil

from faults.model import Fault


def catalogue() -> dict[str, Fault]:
    """All faults by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = [importlib.import_module(f"{__name__}.{name}").FAULT for name in names]
    return {fault.name: fault for fault in found}
