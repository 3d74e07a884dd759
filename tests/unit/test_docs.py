"""Docs that cannot lie: every script named is there, every command has the flags that it is given."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import re
import sys
from pathlib import Path

import pytest

from faultline.settings import ROOT
from faultline.stack.backends.local import LocalBackend
from faultline.stack.home import Home
from faultline.stack.settings import load
from faultline.verbs.__main__ import VERBS, WITHOUT_A_STACK, run
from faultline.verbs.header import header
from faultline.verbs.help import THEMES, scripts_of
from faultline.verbs.tools import MODULES
from tests.called import process
from tests.tree import PAGES, SCRIPTS, commands, files, places, require_none, text_of

SCRIPT = re.compile(r"(?<![\w/])((?:scripts|services|docker|\.ci|tests|benchmarks)/[\w./-]+?\.(?:sh|py))\b")
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
SOURCES = [name for name in files() if name.endswith((".py", ".sh")) and "tests/" not in name]
HERE = r'"$(dirname "$(readlink -f "$0")")/'


def test_every_script_that_a_page_a_message_or_a_comment_names_exists() -> None:
    found = list(places(SCRIPT, PAGES + SOURCES))
    assert len(found) > 100
    require_none(f"{place}: {name} does not exist" for place, name in found if not (ROOT / name).exists())


def test_every_link_of_a_page_leads_to_a_file() -> None:
    found = [(Path(place).parent / link, place) for place, link in places(LINK, PAGES)]
    assert len(found) > 80
    require_none(f"{place}: {target} does not exist" for target, place in found if not (ROOT / target).exists())


def words_of(script: str) -> list[str]:
    """Return the words that the last line of a script hands to `python -m faultline.verbs`.

    A walkthrough on the stack hands over none.
    """
    begin, end = f'exec {HERE}{"../" * (script.count("/") - 1)}lib/verb.sh" ', ' "$@"'
    last = text_of(script).splitlines()[-1]
    return last.removeprefix(begin).removesuffix(end).split() if last.startswith(begin) and last.endswith(end) else []


def lacking_in(script: str) -> list[str]:
    """List the parts of the common form that a script lacks."""
    lines, words = text_of(script).splitlines(), words_of(script)
    walkthrough = f'source {HERE}{"../" * (script.count("/") - 1)}lib/walkthrough.sh"'
    rules = {
        "line 1: its interpreter": lines[0] == "#!/usr/bin/env bash",
        "line 2: its summary": lines[1].startswith("# Summary: "),
        "line 3: its usage": lines[2].startswith(f"# Usage: {script}"),
        "set -euo pipefail": "set -euo pipefail" in lines,
        "at its end lib/verb.sh with its own name and a verb, or the functions of a walkthrough": (
            words[0] == script and words[1] in VERBS | WITHOUT_A_STACK
            if words
            else walkthrough in lines
            and not {'begin "$@"', 'flags "$@"'}.isdisjoint(lines)
            and lines[-1].split()[0] == "finish"
        ),
    }
    return [rule for rule, kept in rules.items() if not kept]


def test_every_script_has_its_header_and_calls_its_verb() -> None:
    require_none(f"{script}: it lacks {rule}" for script in SCRIPTS for rule in lacking_in(script))


def program_help(module: str, *words: str) -> str:
    """Return the output of `python -m MODULE WORD... --help`, without a process."""
    is_package = (ROOT / module.replace(".", "/") / "__main__.py").is_file()
    program = importlib.import_module(f"{module}.__main__" if is_package else module)
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", [module, *words, "--help"])
        program.main()
    assert ended.value.code == 0
    return printed.getvalue()


@functools.cache
def help_of(script: str) -> str:
    """Return the script's output for --help when everything is fetched, without a process."""
    if not (words := words_of(script)):
        return "\n".join(header(script)) + "\n"
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.setenv("STACK_BACKEND", "local")
        patch.setattr(LocalBackend, "is_prepared", lambda _: True)
        patch.setattr(LocalBackend, "help_of", lambda _, module, environment: program_help(*module))
        assert run(words[0], words[1], [*words[2:], "--help"]) == 0
    return printed.getvalue()


# One of each kind: a verb, a lab among the walkthroughs, and two walkthroughs on the stack.
@pytest.mark.parametrize(
    "script",
    [
        "scripts/up.sh", "scripts/walkthroughs/11_micro_batch_restart.sh", "scripts/demo.sh",
        "scripts/walkthroughs/02_cancel_and_restore.sh",
    ],
)  # fmt: skip
def test_a_process_prints_the_same_help(script: str) -> None:
    assert process([script, "--help"]).stdout == help_of(script)


def test_a_process_prints_the_same_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    backend = LocalBackend(load(os.environ, {}, {}), Home(tmp_path))
    assert backend.help_of(["faultline.inspector.flink", "list"], "tools") == program_help(
        "faultline.inspector.flink", "list"
    )


def test_help_begins_with_the_summary_of_every_script() -> None:
    require_none(f"{script} --help" for script in SCRIPTS if not help_of(script).startswith("Summary: "))


def test_every_flag_in_a_command_of_a_page_is_in_the_help_of_its_script() -> None:
    found = []
    for page in PAGES:
        for command in commands(page):
            words = [word for word in command.split() if "=" not in word or word.startswith("-")]
            if words[0] not in SCRIPTS:
                continue
            # What follows -- is for another program.
            own = words[1 : words.index("--")] if "--" in words else words[1:]
            flags = [word.partition("=")[0] for word in own if word.startswith("--")]
            found += [(flag, help_of(words[0]), f"{page}: {command}") for flag in flags]
    assert len(found) > 10
    require_none(f"{place}: no {flag}" for flag, text, place in found if not re.search(rf"{flag}\b", text))


def test_the_header_names_no_flag_that_the_program_behind_it_lacks() -> None:
    missing = []
    for verb in MODULES:
        head, passed_on, flags = help_of(f"scripts/{verb}.sh").partition("\n\nFlags that are passed on:\n\n")
        assert passed_on, verb
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", head.partition("\n\n")[0])) - {"--backend"}
        missing += [f"scripts/{verb}.sh: no {flag}" for flag in named if flag not in flags]
    require_none(missing)


def test_every_script_is_in_the_docs() -> None:
    text = "".join(map(text_of, PAGES))
    require_none(f"{script} is on no page" for script in SCRIPTS if script not in text)


def test_help_lists_every_script_once() -> None:
    listed = [script for theme in THEMES for script in scripts_of(theme)]
    assert sorted([*listed, "scripts/help.sh"]) == SCRIPTS
