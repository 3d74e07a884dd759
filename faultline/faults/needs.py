"""Checks of what a row needs of the machine and of its stack: each need is tried out, not assumed."""

from __future__ import annotations

import os
import subprocess
import sys

from faultline.faults.model import Need
from faultline.settings import ROOT
from faultline.stack.stack import Stack

_TRIAL = {
    Need.MOUNT: (
        "folder=$(mktemp -d) && trap 'rmdir $folder' EXIT && mount -t tmpfs -o size=1m faultline $folder && "
        "umount $folder"
    ),
    Need.FIREWALL: "iptables --list OUTPUT",
    Need.CUT_OFF: "faultline/faults/cut_off.sh check",
}


def missing(need: Need, stack: Stack) -> str | None:
    """Return why this stack or the machine lacks it, or None."""
    if need is Need.DISK:
        settings = stack.settings.typed
        return f"it breaks files, and {settings.data} is an object store" if settings.has_store else None
    if stack.backend.name != "local":
        return f"{need.value} of this machine do not reach into containers: --backend local"
    return why_not(need)


def why_not(need: Need) -> str | None:
    """Return why this user may not do it on this machine, or None."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return f"{need.value} need root on Linux"
    done = subprocess.run(["bash", "-c", _TRIAL[need]], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"{need.value} are not possible here: {words}"
    return None
