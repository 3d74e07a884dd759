"""The walkthroughs: one numbering, one list, the same words at the head of each."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from faultline.settings import ROOT
from faultline.verbs.header import header
from spark_job.report import batch_line
from tests.called import process, script
from tests.golden.archives import golden
from tests.tree import require_none, sentences_of

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
        name = str(walkthrough.relative_to(ROOT))
        first, *more = sentences_of(name)
        expected += [f"| `{name}` | {first} |", *(f"| | {sentence} |" for sentence in more)]
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


def walked(*lines: str) -> subprocess.CompletedProcess[str]:
    """The end of a walkthrough that has these lines, and uses no stack."""
    return process(
        ["bash", "-c", "\n".join(("set -euo pipefail", "source scripts/lib/walkthrough.sh", "flags", *lines))]
    )


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("fact seen 1 1", "ok      seen: 1"),
        ("fact seen 1 2", "FAILED  seen: 1, expected 2"),
        ("fact seen '' 2", "FAILED  seen: no value, expected 2"),
        ("fact seen '' ''", "FAILED  seen: no value, expected a value"),
        ("fact_is seen 3 -gt 2", "ok      seen: 3"),
        ("fact_is seen 2 -gt 2", "FAILED  seen: 2, expected -gt 2"),
        ("fact_is seen 3 -le 2", "FAILED  seen: 3, expected -le 2"),
        ("fact_is seen '' -ge 0", "FAILED  seen: no value, expected -ge 0"),
        ("fact_is seen '' -ge ''", "FAILED  seen: no value, expected -ge a value"),
        ("true", ""),
    ],
)
def test_a_sentence_is_proven_by_facts_that_are_all_ok(line: str, shown: str) -> None:
    proven = shown.startswith("ok")
    head, facts, code = "PROVEN" if proven else "NOT PROVEN", f"  {shown}\n" if shown else "", 0 if proven else 1
    done = walked(line, "prove 'This is so.'", "finish")
    assert (done.returncode, done.stdout) == (code, f"{head}  This is so.\n{facts}")


def test_one_fact_that_fails_is_enough_for_its_sentence_and_for_the_exit_code() -> None:
    done = walked("fact a 1 1", "fact b 1 2", "fact c 1 1", "prove One.", "fact d 1 1", "prove Two.", "finish")
    assert (done.returncode, done.stdout.splitlines()) == (
        1,
        [
            "NOT PROVEN  One.", "  ok      a: 1", "  FAILED  b: 1, expected 2", "  ok      c: 1",
            "PROVEN  Two.", "  ok      d: 1",
        ],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (["fact seen 1 1", "prove One.", "finish 1"], 1),
        (["fact seen 1 1", "prove One.", "finish 2"], 2),
        (["prove One.", "finish 2"], 2),
        (["prove One.", "finish 0"], 1),
        # It ended early: 1 is for a sentence that is not proven.
        (["false", "prove One.", "finish"], 2),
        (["exit 3"], 3),
    ],
)
def test_a_walkthrough_ends_with_the_worst_code(lines: list[str], code: int) -> None:
    assert walked(*lines).returncode == code


@pytest.mark.parametrize("note", ["re-run", "re-run; its files are already in the output's log: nothing written"])
@pytest.mark.parametrize(("end", "code"), [(20, 0), (19, 1)])
def test_a_batch_with_another_range_than_the_planned_one_is_a_fact_that_fails(note: str, end: int, code: int) -> None:
    log = [
        batch_line(3, "visits", {"0": 15, "1": 15}, {"0": end, "1": 20}, rows=10, seconds=1, note=note),
        batch_line(4, "visits", {"0": 20, "1": 20}, {"0": 30, "1": 30}, rows=20, seconds=1, note=""),
    ]
    done = walked(
        'scripts/inspect.sh() { python3 -m faultline.inspector "$@"; return 1; }',
        f"scripts/logs.sh() {{ printf 'synchronizer: %s\\n' {shlex.join(log)}; }}",
        f'fact range "$(range_rerun 3)" "$(range_promised {golden("spark-4.0")}/kafka_killed/checkpoint)"',
        "prove One.", "finish",
    )  # fmt: skip
    assert (done.returncode, f"range: visits-0 [15, {end}), visits-1 [15, 20)" in done.stdout) == (code, True), done
