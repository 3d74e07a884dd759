"""The walkthroughs: one numbering, one list, the same words at the head of each."""

from __future__ import annotations

import re
import subprocess

import pytest

from contract.settings import ROOT
from stack.header import header

WALKTHROUGHS = sorted((ROOT / "scripts" / "walkthroughs").glob("*.sh"))
ON_THE_STACK = [path for path in WALKTHROUGHS if "lib/walkthrough.sh" in path.read_text(encoding="utf-8")]
EXIT_CODES = "Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run."


def test_they_are_numbered_without_a_gap_after_the_demo() -> None:
    assert [int(path.name[:2]) for path in WALKTHROUGHS] == list(range(2, len(WALKTHROUGHS) + 2))


@pytest.mark.parametrize("script", WALKTHROUGHS, ids=lambda path: path.name)
def test_each_says_what_it_needs_and_takes(script: str) -> None:
    lines = header(str(script))
    assert EXIT_CODES in lines
    assert any(line.startswith("Needs: ") for line in lines)
    assert any(re.fullmatch(r"Takes: \d+ minutes?", line) for line in lines)
    assert any("[--pause]" in line for line in lines[:4])


@pytest.mark.parametrize("script", ON_THE_STACK, ids=lambda path: path.name)
def test_those_that_spoil_the_output_say_that_it_is_removed(script: str) -> None:
    spoils = re.search(r"^spoil ", (ROOT / script).read_text(encoding="utf-8"), re.MULTILINE) is not None
    [needs] = [line for line in header(str(script)) if line.startswith("Needs: ")]
    assert ("are removed at the end" in needs) is spoils


def test_the_page_has_the_sentences_that_each_proves() -> None:
    page = (ROOT / "docs" / "walkthroughs.md").read_text(encoding="utf-8").partition("## Inside a Spark checkpoint")[0]
    expected = []
    for script in (ROOT / "scripts" / "demo.sh", *ON_THE_STACK):
        first, *more = re.findall(r'^ *prove "(.*)"$', script.read_text(encoding="utf-8"), re.MULTILINE)
        expected += [f"| `{script.relative_to(ROOT)}` | {first} |", *(f"| | {sentence} |" for sentence in more)]
    assert [line for line in page.splitlines() if line.startswith("|")][2:] == expected


def test_the_list_has_all_in_order() -> None:
    done = subprocess.run([str(ROOT / "scripts" / "walkthroughs.sh")], capture_output=True, text=True, check=True)
    listed = re.findall(r"^(\d\d)  (\S+)$", done.stdout, re.MULTILINE)
    assert listed == [
        ("01", "scripts/demo.sh"), *((path.name[:2], f"scripts/walkthroughs/{path.name}") for path in WALKTHROUGHS)
    ]  # fmt: skip
    assert done.stdout.count("needs: ") == done.stdout.count("takes: ") == len(listed)


@pytest.mark.parametrize("script", ["scripts/demo.sh", *ON_THE_STACK], ids=str)
def test_bad_flags_are_one_line(script: str) -> None:
    for flag, words in (("--nonsense", "unknown argument '--nonsense'"), ("--pause", "there is no terminal")):
        done = subprocess.run(
            [str(ROOT / script), flag], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
