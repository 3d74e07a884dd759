"""Plain English in every text file of the repository."""

from __future__ import annotations

import re
import subprocess

from contract.settings import ROOT

FORBIDDEN = re.compile(r"\banew\b|\bin vain\b|\bthe former\b|manieth|\band its kin\b", re.IGNORECASE)
# The list itself.
LEFT_ALONE = "tests/unit/test_english.py"


def test_no_forbidden_word() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split("\0") if name and not name.startswith(LEFT_ALONE)]
    assert len(names) > 100
    found = []
    for name in names:
        path = ROOT / name
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{name}:{number}: {line.strip()}"
            for number, line in enumerate(text.splitlines(), 1)
            if FORBIDDEN.search(line)
        ]
    assert found == []


SINCE = "2026-11-22T14:00:00Z"
"""Older titles stay as they are."""
TITLE_LENGTH = 72
NOT_IMPERATIVE = re.compile(r"^\w+(ed|ing)\b|^[a-z]|\.$")


def test_commit_titles_are_short_and_imperative() -> None:
    command = ["git", "log", f"--since={SINCE}", "--no-merges", "--format=%s"]
    titles = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [title for title in titles if len(title) > TITLE_LENGTH or NOT_IMPERATIVE.search(title)] == []


def test_the_rule_of_titles_finds_what_it_is_for() -> None:
    assert all(NOT_IMPERATIVE.search(title) for title in ("Added a test", "Adding a test", "add a test", "Add a test."))
    assert not NOT_IMPERATIVE.search("Add a test")
