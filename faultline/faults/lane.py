"""One of several stacks that share the rows of a run. `faultline/faults/lanes.py` starts it.

Usage: python -m faultline.faults.lane FOLDER SEED MODE keep|reset NAME...
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from faultline.command import CommandError
from faultline.faults.matrix import run_rows
from faultline.faults.plan import Planned, groups, plan
from faultline.messages import say
from faultline.settings import ROOT
from faultline.stack.stack import open_stack
from faultline.stop import interrupt_once

CLAIMS = "claims"


def claimed(rows: Sequence[Planned], folder: Path) -> Iterator[Planned]:
    """Yield the rows of each group that no other stack has claimed, when its turn comes."""
    for number, group in enumerate(groups(rows)):
        try:
            (folder / CLAIMS / str(number)).open("x").close()
        except FileExistsError:
            continue
        yield from group


def main(arguments: Sequence[str]) -> int:
    """Run rows until none is left; returns the exit code."""
    folder, seed, mode, data, *names = arguments
    interrupt_once()
    try:
        rows = claimed(plan(names, int(seed), mode), Path(folder))
        run_rows(rows, Path(folder), open_stack(), may_reset=data == "reset")
    except CommandError as error:
        say(f"faults.sh: {error}")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
