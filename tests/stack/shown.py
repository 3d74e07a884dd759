"""Output of a walkthrough: as docs/walkthroughs.md shows that of a lab, and with every sentence proven."""

from __future__ import annotations

import re

from faultline.settings import ROOT
from tests.tree import sentences_of

_CODE = re.compile(r"``\s?(.+?)\s?``(?!`)|`([^`]+)`")


def shown_of(name: str) -> list[str]:
    """The lines that the page shows of a walkthrough, for instance of `11_micro_batch_restart`."""
    script, found = "", []
    for line in (ROOT / "docs" / "walkthroughs.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3:
            script = cells[0] or script
            if script == f"`scripts/walkthroughs/{name}.sh`":
                found += [first or second for first, second in _CODE.findall(cells[2])]
    return found


def was_printed(shown: str, output: str) -> bool:
    """Return whether the output has a line like the shown one: numbers may differ, and `...` stands for anything."""
    parts = [_pattern(part) for part in shown.split("...")]
    return any(re.search(".*".join(parts), line) for line in output.splitlines())


def require_all_proven(script: str, printed: str) -> None:
    """Fail unless a walkthrough of scripts/ has proven each of its sentences, in order."""
    sentences = sentences_of(f"scripts/{script}")
    ends = re.findall(r"^(?:NOT )?PROVEN  .*$", printed, re.MULTILINE)
    assert sentences and ends == [f"PROVEN  {sentence}" for sentence in sentences], printed


def _pattern(text: str) -> str:
    return re.sub(r"\d+", r"\\d+", re.escape(text))
