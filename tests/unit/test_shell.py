"""Shell code on a user's machine, which must run on bash 3.2 and with BSD tools, as macOS has them."""

from __future__ import annotations

import re

from faultline.settings import ROOT
from tests.tree import SCRIPTS, files, require_none, text_of

# Containers and CI machines are Debian.
ELSEWHERE = ("docker/", ".ci/")
LACKING = {
    "an option that only GNU tools have": re.compile(
        r"\b(awk|cat|cp|cut|date|df|du|find|grep|head|ln|ls|mkdir|mktemp|mv|ps|readlink|rm|sed|sha256sum|sort|stat|tail|"
        r"touch|tr|wc|xargs)\b[^|;&)]* --[a-z]"
    ),
    "find -printf": re.compile(r"\bfind\b.*-printf\b"),
    "a tool that macOS lacks": re.compile(r"(?<![-\w])(realpath|sha256sum|tac|timeout|setsid|numfmt|getent)\b"),
    "mapfile, which is bash 4": re.compile(r"\b(mapfile|readarray|coproc)\b"),
    "an array by name or by key, which is bash 4": re.compile(r"\b(declare|local|typeset) -[a-z]*[An]\b"),
    "a change of case, which is bash 4": re.compile(r"\$\{\w+(\^|,)"),
    "a redirection of bash 4": re.compile(r"&>>|\|&"),
    "an array that may be empty, which bash 3.2 takes for unset": re.compile(r'(?<!\+)"\$\{\w+\[@\]\}"'),
}
# Arrays that are never empty.
FULL = {"faultline/services/kafka/bin/kafka-run-class.sh": {"${heap[@]}"}}


def test_nothing_is_used_that_macos_lacks() -> None:
    scripts = [
        name
        for name in files()
        if not name.startswith(ELSEWHERE)
        and (ROOT / name).read_bytes().startswith((b"#!/usr/bin/env bash", b"# shellcheck shell"))
    ]
    assert set(SCRIPTS) < set(scripts)
    require_none(
        f"{name}:{number}: {what}: {line.strip()}"
        for name in scripts
        for number, line in enumerate(text_of(name).splitlines(), start=1)
        if not line.lstrip().startswith("#")
        for what, pattern in LACKING.items()
        if pattern.search(line.partition("# ")[0]) and not any(array in line for array in FULL.get(name, ()))
    )


def test_the_patterns_find_what_they_are_for() -> None:
    samples = (
        "sort --numeric-sort file", "find . -printf x", "realpath x", "mapfile -t lines", "declare -A map",
        "${name,,}", "ls |& cat", '"${words[@]}"',
    )  # fmt: skip
    for sample, pattern in zip(samples, LACKING.values(), strict=True):
        assert pattern.search(sample), sample
