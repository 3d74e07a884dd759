"""One file of manifests: its objects, and its first lines, which say what to fill in and what is not checked."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

Object = dict[str, Any]
"""A Kubernetes object, or a part of one."""
_TO_FILL_IN = re.compile(r"YOUR-[A-Z-]+")
_WIDTH = 118


class _Whole(yaml.SafeDumper):
    """Writes a part that occurs twice in full, not as a reference to its first place."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Answer for every value."""
        return True


@dataclass(frozen=True)
class Unchecked:
    """A part of the manifests that no published schema decides, and why."""

    part: str
    reason: str


@dataclass(frozen=True)
class Manifest:
    """One file below deploy/. `checked`: what its objects are compared with in the tests."""

    file: str
    operator: str
    checked: str
    unchecked: tuple[Unchecked, ...]
    objects: tuple[Object, ...]

    def text(self) -> str:
        """The file's content."""
        body = yaml.dump_all(self.objects, Dumper=_Whole, sort_keys=False, width=_WIDTH, explicit_start=True)
        return "\n".join([*self._header(body), body])

    def _header(self, body: str) -> Iterator[str]:
        yield from _comment(
            f"For {self.operator}. Written by `scripts/deploy.sh write` from .env, deploy/kubernetes.env and the "
            "settings of the local stack: change those, not this file. docs/scaling_out.md says what to do with it."
        )
        to_fill_in = sorted(set(_TO_FILL_IN.findall(body)))
        if to_fill_in:
            yield from _comment(
                f"FILL IN: {', '.join(to_fill_in)}, in deploy/kubernetes.env, then write again. There are no keys "
                "here: they are in a Secret that you make."
            )
        yield from _comment(f"Checked in the tests against {self.checked}.")
        for each in self.unchecked:
            yield from _comment(f"unchecked: {each.part}: {each.reason}")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)


def object_name(name: str) -> str:
    """A name as Kubernetes takes it: no underscores."""
    return name.replace("_", "-")


def apart(labels: dict[str, str]) -> Object:
    """Affinity by which no two pods with these labels are on one node."""
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
