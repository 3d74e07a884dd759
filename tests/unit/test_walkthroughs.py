"""The walkthroughs: one numbering, one list, the same words at the head of each."""

from __future__ import annotations

import re

from faultline.settings import ROOT
from faultline.verbs.header import header
from tests.called import process, script
from tests.tree import require_none

WALKTHROUGHS = sorted((ROOT / "scripts" / "walkthroughs").glob("*.sh"))
ON_THE_STACK = [path for path in WALKTHROUGHS if "lib/walkthrough.sh" in path.read_text(encoding="utf-8")]
EXIT_CODES = "Exit codes: 0 every sentence is proven, 1 one is not, 2 it could not run."


def test_they_are_numbered_without_a_gap_after_the_demo() -> None:
    assert [int(path.name[:2]) for path in WALKTHROUGHS] == list(range(2, len(WALKTHROUGHS) + 2))


def test_each_says_what_it_needs_and_takes() -> None:
    wrong = []
    for path in WALKTHROUGHS:
        lines = header(str(path))
        rules = {
            EXIT_CODES: EXIT_CODES in lines,
            "Needs: ...": any(line.startswith("Needs: ") for line in lines),
            "Takes: N minutes": any(re.fullmatch(r"Takes: \d+ minutes?", line) for line in lines),
            "[--pause]": any("[--pause]" in line for line in lines[:4]),
        }
        wrong += [f"{path.name} lacks {rule}" for rule, kept in rules.items() if not kept]
    require_none(wrong)


def test_those_that_spoil_the_output_say_that_it_is_removed() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in ON_THE_STACK}
    spoil = {name for name, text in texts.items() if re.search(r"^spoil ", text, re.MULTILINE)}
    say_so = {
        name for name, text in texts.items() if re.search(r"^# Needs: .*are removed at the end", text, re.MULTILINE)
    }
    assert spoil
    assert spoil == say_so


def test_the_page_has_the_sentences_that_each_proves() -> None:
    page = (ROOT / "docs" / "walkthroughs.md").read_text(encoding="utf-8").partition("## Inside a Spark checkpoint")[0]
    expected = []
    for walkthrough in (ROOT / "scripts" / "demo.sh", *ON_THE_STACK):
        first, *more = re.findall(r'^ *prove "(.*)"$', walkthrough.read_text(encoding="utf-8"), re.MULTILINE)
        expected += [f"| `{walkthrough.relative_to(ROOT)}` | {first} |", *(f"| | {sentence} |" for sentence in more)]
    assert [line for line in page.splitlines() if line.startswith("|")][2:] == expected


def test_the_list_has_all_in_order() -> None:
    done = script("walkthroughs.sh")
    listed = re.findall(r"^(\d\d)  (\S+)$", done.stdout, re.MULTILINE)
    assert listed == [
        ("01", "scripts/demo.sh"), *((path.name[:2], f"scripts/walkthroughs/{path.name}") for path in WALKTHROUGHS)
    ]  # fmt: skip
    assert done.stdout.count("needs: ") == done.stdout.count("takes: ") == len(listed)


def test_bad_flags_are_one_line() -> None:
    wrong = []
    for walkthrough in (ROOT / "scripts" / "demo.sh", *ON_THE_STACK):
        for flag, words in (("--nonsense", "unknown argument '--nonsense'"), ("--pause", "there is no terminal")):
            done = process([str(walkthrough), flag])
            if (done.returncode, done.stdout, done.stderr.count("\n")) != (2, "", 1) or words not in done.stderr:
                wrong.append(f"{walkthrough.name} {flag}: exit code {done.returncode}: {done.stdout}{done.stderr}")
    require_none(wrong)
