"""Compare Kubernetes objects with published schemas, and look up names of settings in compiled classes."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from faultline.settings import ROOT

OPEN = "x-kubernetes-preserve-unknown-fields"


def written(file: str) -> list[dict[str, Any]]:
    """The objects of a file below deploy/."""
    return list(yaml.safe_load_all((ROOT / "deploy" / file).read_text(encoding="utf-8")))


def with_key(thing: dict[str, Any], place: Sequence[str | int], name: str) -> dict[str, Any]:
    """The object, with one more key at a place in it."""
    inner: Any = thing
    for step in place:
        inner = inner[step]
    inner[name] = "x"
    return thing


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema, refusing every field that it does not name.

    Kubernetes drops an unknown field without a word, and JSON Schema allows it: a misspelt key would pass.
    """
    made = dict(schema)
    for name in ("properties", "$defs"):
        if name in made:
            made[name] = {key: strict(part) for key, part in made[name].items()}
    for name in ("anyOf", "allOf", "oneOf"):
        if name in made:
            made[name] = [strict(part) for part in made[name]]
    for name in ("items", "additionalProperties"):
        if isinstance(made.get(name), Mapping):
            made[name] = strict(made[name])
    is_object = made.get("type") == "object" or "properties" in made
    if is_object and "additionalProperties" not in made and not made.get(OPEN):
        made["additionalProperties"] = False
    return made


def of_definition(definition: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The strict schema of a CustomResourceDefinition's version."""
    (found,) = (each for each in definition["spec"]["versions"] if each["name"] == version)
    schema = strict(found["schema"]["openAPIV3Schema"])
    # Every object has these, and a definition need not name them.
    schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {}}
    return schema


def errors(schema: Mapping[str, Any], thing: object) -> list[str]:
    """`path: message` of everything that does not fit."""
    found = jsonschema.Draft202012Validator(schema).iter_errors(thing)
    return sorted({f"{_path(leaf)}: {leaf.message}" for error in found for leaf in _leaves(error)})


def _leaves(error: Any) -> Iterator[Any]:
    """The innermost errors: of an alternative, those of each branch."""
    if error.context:
        for inner in error.context:
            yield from _leaves(inner)
    else:
        yield error


def _path(error: Any) -> str:
    return ".".join(str(part) for part in error.absolute_path)


def names_in_classes(jars: Iterable[Path], wanted: Iterable[str], classes: str) -> set[str]:
    """Those names that are a string constant of a class whose path matches `classes`."""
    left = {name: b"\x01" + len(name).to_bytes(2, "big") + name.encode("ascii") for name in wanted}
    found: set[str] = set()
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for entry in archive.namelist():
                if entry.endswith(".class") and re.search(classes, entry):
                    content = archive.read(entry)
                    here = {name for name, constant in left.items() if constant in content}
                    found |= here
                    for name in here:
                        del left[name]
                    if not left:
                        return found
    return found
