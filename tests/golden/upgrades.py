"""Start the golden checkpoints of older releases of Spark on newer ones, and keep what came of it. Tools environment.

Usage: python -m tests.golden.upgrades [RELEASE...]      of ONTO; no release: only write the table again

docs/upgrades.json has what was predicted and what the release did, and docs/reading_a_checkpoint.md the table of it.
A restart that is on record is not carried out again: delete its entry first.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from faultline.files import replace_text
from faultline.inspector.spark.report import read_report
from faultline.settings import ROOT
from tests.stack.releases import copies, is_as_said, made_python, predicted, restarted

PAGE, RECORD = ROOT / "docs" / "reading_a_checkpoint.md", ROOT / "docs" / "upgrades.json"
FROM, ONTO = ("3.5", "4.0", "4.1", "4.2"), ("4.2", "4.3")
"""Releases that wrote the checkpoints, and those that start them: that of the stack, and the newest that was had."""
BEGIN, END = "<!-- rendered by: python -m tests.golden.upgrades -->\n", "<!-- end -->\n"
_HEAD = """
| written by | started by | checkpoint | predicted | carried out | versions of the logs |
| --- | --- | --- | --- | --- | --- |
"""

Upgrade = dict[str, Any]
"""One restart: written, started, recipe, predicted, step, error, committed, before and after (versions of the logs)."""


def carried_out(onto: str, folder: Path, known: set[tuple[str, str]]) -> list[Upgrade]:
    """Start each golden checkpoint of an older release with a newer one, but those that are known.

    One that ended in no error and made no batch in its time, as on a machine that has other work, says nothing.
    """
    places = {
        (written, recipe): place
        for written in FROM
        if written != onto
        for recipe, place in copies(written, onto, folder).items()
        if (written, recipe) not in known
    }
    if not places:
        return []
    said = {key: predicted(place, onto) for key, place in places.items()}
    before = {key: _versions(place) for key, place in places.items()}
    done = restarted(made_python(onto), places.values())
    found = []
    for key, place in places.items():
        (written, recipe), (action, step), (error, committed) = key, said[key], done[place]
        if not error and not committed:
            print(f"{recipe} of {written} made no batch on {onto}; run this again", file=sys.stderr)
            continue
        found.append(
            {"written": written, "started": onto, "recipe": recipe, "predicted": action, "step": step,
             "error": error, "committed": committed, "before": before[key], "after": _versions(place)}
        )  # fmt: skip
    return found


def _versions(place: Path) -> dict[str, str]:
    """The version of the newest file of each log."""
    formats = read_report(place / "checkpoint", 1, None).formats
    return {name: found.partition(",")[0] for name, found in formats.items()}


def _condition(error: str) -> str:
    """The name of Spark's error condition, the last one of a chain; the whole error where it has none."""
    named = re.findall(r"\[([A-Z][A-Z0-9_.]+)\]", error)
    return f"`{named[-1]}`" if named else error


def table(upgrades: list[Upgrade]) -> str:
    """Render the rows, those of one outcome in one line."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for each in upgrades:
        agrees = is_as_said((each["predicted"], each["step"]), each["error"], each["committed"])
        said = "refuses" if each["predicted"] == "impossible" else "goes on"
        did = f"refused: {_condition(each['error'])}" if each["error"] else "went on"
        changes = [
            f"{name}: {was} to {each['after'][name].removeprefix('version ')}"
            for name, was in each["before"].items()
            if was != each["after"].get(name, was)
        ]
        kept = ", ".join(f"{name}: {was}" for name, was in each["before"].items())
        key = (each["written"], each["started"], said, did if agrees else f"{did}: not as predicted")
        lines.setdefault((*key, "; ".join(changes) or f"the same ({kept})"), []).append(each["recipe"])
    rows = [
        f"| {written} | {started} | {', '.join(f'`{name}`' for name in recipes)} | {said} | {did} | {versions} |"
        for (written, started, said, did, versions), recipes in lines.items()
    ]
    return _HEAD + "\n".join(rows) + "\n\n"


def page(upgrades: list[Upgrade], text: str) -> str:
    """Put the table into the page's text."""
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:start] + table(upgrades) + text[end:]


def main() -> int:
    """Carry out what is named, and write record and page; returns the exit code."""
    upgrades: list[Upgrade] = json.loads(RECORD.read_text()) if RECORD.exists() else []
    for onto in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            known = {(each["written"], each["recipe"]) for each in upgrades if each["started"] == onto}
            upgrades += carried_out(onto, Path(folder), known)
    upgrades.sort(key=lambda each: (each["started"], each["written"], each["recipe"]))
    replace_text(RECORD, json.dumps(upgrades, indent=1) + "\n")
    replace_text(PAGE, page(upgrades, PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
