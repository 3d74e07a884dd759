"""Plain English in every text file of the repository, and titles of commits in the imperative."""

from __future__ import annotations

import re
import subprocess

from faultline.settings import ROOT
from tests.tree import files, places, require_none

FORBIDDEN = re.compile(r"\banew\b|\bin vain\b|\bthe former\b|manieth|\band its kin\b", re.IGNORECASE)
# The list itself.
LEFT_ALONE = "tests/unit/test_english.py"


def test_no_forbidden_word() -> None:
    names = [name for name in files() if not name.startswith(LEFT_ALONE)]
    require_none(f"{place}: {word}" for place, word in places(FORBIDDEN, names))


# A docstring says what a function does or what a thing is: it begins with a verb or with the thing.
QUESTION = re.compile(r'"""(What|Whether|How|Who|Whose|Which|When|Why|Where)\b')


def test_no_docstring_begins_with_a_question() -> None:
    require_none(f"{place}: {word}" for place, word in places(QUESTION, [n for n in files() if n.endswith(".py")]))


TITLE_LENGTH = 72
SINCE = "2026-11-22T14:00:00Z"
"""Older titles stay as they are."""
PAST_OR_GERUND = re.compile(r"\w*[aeiouy]\w*(?:ed|ing)", re.IGNORECASE)
"""Added, Adding. Without a vowel before the ending it is the verb itself: Shred, Bring, Ping."""
VERB = re.compile(r"(?!(?:dis)?agreed|freed|decreed|guaranteed)\w*eed|embed", re.IGNORECASE)
"""Speed, Feed, Exceed: the verb itself, too."""


def new_titles() -> list[str]:
    """Titles that can still be changed: of commits that no remote branch has. A source archive has none."""
    if not (ROOT / ".git").exists():
        return []
    command = ["git", "log", f"--since={SINCE}", "--no-merges", "--format=%s", "HEAD", "--not", "--remotes"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def is_right(title: str) -> bool:
    """In the imperative, as far as its first word shows, short, and without a full stop."""
    word = re.split(r"\W", title, maxsplit=1)[0]
    imperative = VERB.fullmatch(word) or not PAST_OR_GERUND.fullmatch(word)
    return bool(imperative and word[:1].isupper() and not title.endswith(".") and len(title) <= TITLE_LENGTH)


def test_new_commit_titles_are_short_and_imperative() -> None:
    require_none(title for title in new_titles() if not is_right(title))


def test_the_rule_of_titles_takes_verbs_and_nothing_else() -> None:
    verbs = "Add Use Speed Feed Need Exceed Embed Shed Shred Bring Ping String"
    require_none(verb for verb in verbs.split() if not is_right(f"{verb} a test"))
    others = "Added Adding Tried Using Freed Agreed Speeding Speeded Embedded Shredded Stringing add speed"
    require_none(other for other in others.split() if is_right(f"{other} a test"))
    assert not is_right("Add a test.")
    assert not is_right("Add a test that is " + "long " * 12)
    assert not is_right("")
