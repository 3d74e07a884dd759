"""The command `faultline VERB ...` of an installed clone: runs scripts/<verb>.sh, with its words and its exit code."""

from __future__ import annotations

import os
import sys

from faultline.command import fail
from faultline.settings import ROOT
from faultline.verbs.help import THEMES, scripts_of


def main() -> None:
    """Become the script. Without a verb it is scripts/help.sh, which lists all."""
    verb, *words = sys.argv[1:] or ["help"]
    scripts = {"scripts/help.sh", *(script for theme in THEMES for script in scripts_of(theme))}
    script = f"scripts/{verb}.sh"
    if script not in scripts:
        fail("faultline", f"there is no verb '{verb}'; `faultline help` lists them")
    path = str(ROOT / script)
    os.execv(path, [path, *words])


if __name__ == "__main__":
    main()
