"""Docs that cannot lie: every script named is there, every command has the flags that it is given."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from pathlib import Path

import pytest

from stack.verbs.help import THEMES, scripts_of
from stack.verbs.tools import MODULES

ROOT = Path(__file__).resolve().parents[2]
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=True,
).stdout.split()
PAGES = sorted(name for name in TRACKED if name.endswith(".md"))
SCRIPTS = sorted(name for name in TRACKED if re.fullmatch(r"scripts/(walkthroughs/)?[^/]+\.sh", name))
FENCE = re.compile(r"^```bash\n(.*?)^```", re.DOTALL | re.MULTILINE)
SCRIPT = re.compile(r"(?<![\w/])((?:scripts|services|docker|\.ci|tests|benchmarks)/[\w./-]+?\.(?:sh|py))\b")
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    missing = {name for name in SCRIPT.findall(text) if not (ROOT / name).exists()}
    missing |= {link for link in LINK.findall(text) if not (ROOT / page).parent.joinpath(link).exists()}
    assert not missing


@pytest.mark.parametrize("source", [name for name in TRACKED if name.endswith((".py", ".sh")) and "tests/" not in name])
def test_every_script_that_a_message_or_comment_names_exists(source: str) -> None:
    text = (ROOT / source).read_text(encoding="utf-8")
    assert {name for name in SCRIPT.findall(text) if not (ROOT / name).exists()} == set()


def commands(page: str) -> list[str]:
    """Command lines of the page's bash blocks, comments cut off."""
    blocks = FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    lines = [line.split("  #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


@functools.cache
def help_of(script: str) -> str:
    done = subprocess.run([str(ROOT / script), "--help"], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_every_flag_in_a_command_is_in_the_help_of_its_script(page: str) -> None:
    for command in commands(page):
        words = [word for word in command.split() if "=" not in word or word.startswith("-")]
        if words[0] not in SCRIPTS:
            continue
        # What follows -- is for another program.
        own = words[1 : words.index("--")] if "--" in words else words[1:]
        flags = {word.partition("=")[0] for word in own if word.startswith("--")}
        assert {flag for flag in flags if not re.search(rf"{flag}\b", help_of(words[0]))} == set(), f"{page}: {command}"


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_says_what_it_does(script: str) -> None:
    lines = (ROOT / script).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert lines[1].startswith("# Summary: ")
    assert lines[2].startswith(f"# Usage: {script}")
    assert "set -euo pipefail" in lines
    done = subprocess.run([str(ROOT / script), "--help"], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Summary: ")


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_is_in_the_docs(script: str) -> None:
    assert any(script in (ROOT / page).read_text(encoding="utf-8") for page in PAGES)


def test_help_lists_every_script_once() -> None:
    listed = [script for theme in THEMES for script in scripts_of(theme)]
    assert sorted([*listed, "scripts/help.sh"]) == SCRIPTS


@pytest.mark.parametrize("verb", sorted(MODULES))
def test_help_shows_the_flags_that_are_passed_on(verb: str) -> None:
    environ = os.environ | {"STACK_BACKEND": "local"}
    command = [str(ROOT / "scripts" / f"{verb}.sh"), "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=environ)
    head, passed_on, flags = done.stdout.partition("Flags that are passed on")
    if not passed_on:
        assert "scripts/fetch.sh" in head
        return
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", head.partition("\n\n")[0])) - {"--backend"}
    assert {flag for flag in named if flag not in flags} == set()
