"""The header of a script: its summary, usage and notes."""

from __future__ import annotations

import re

from faultline.settings import ROOT

_LINE = re.compile(r"^# ?(.*)$")


def header(script: str) -> list[str]:
    """Read the comment at the top of a script, without its `#`."""
    lines = []
    for line in (ROOT / script).read_text(encoding="utf-8").splitlines()[1:]:
        found = _LINE.match(line)
        if found is None:
            break
        lines.append(found[1])
    return lines
