"""Damage by chance to a copied folder: what disks, copies and people do to files."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

STRAY = (
    "0_$folder$",
    ".DS_Store",
    "_SUCCESS",
    "٣",
    "007",
    "-1",
    "99999999999999999999",
    "9223372036854775807",
    "1772600000000",
    "3.compact",
    "9.compact.tmp",
    ".12.delta.tmp",
    "chk-x",
    "chk-99",
    "1 (copy)",
    "x" * 200,
)
"""Names that no engine gave, or that look like those that it gives."""


def _remove(file: Path, others: list[Path], chance: random.Random) -> None:
    file.unlink()


def _cut(file: Path, others: list[Path], chance: random.Random) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: chance.randrange(len(content) + 1)])


def _empty(file: Path, others: list[Path], chance: random.Random) -> None:
    file.write_bytes(b"")


def _nuls(file: Path, others: list[Path], chance: random.Random) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def _flip(file: Path, others: list[Path], chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(chance.choice((1, 1, 3, 30)) if content else 0):
        content[chance.randrange(len(content))] = chance.randrange(256)
    file.write_bytes(content)


def _rename(file: Path, others: list[Path], chance: random.Random) -> None:
    target = file.with_name(chance.choice((f"{file.name}.bak", f"{file.name}0", file.name.upper(), *STRAY)))
    if not target.is_dir():
        file.replace(target)


def _duplicate(file: Path, others: list[Path], chance: random.Random) -> None:
    target = chance.choice(others).parent / chance.choice((f"{file.name}~", *STRAY))
    if not target.exists():
        shutil.copyfile(file, target)


def _move(file: Path, others: list[Path], chance: random.Random) -> None:
    target = chance.choice(others).parent / file.name
    if not target.is_dir():
        file.replace(target)


def _swap(file: Path, others: list[Path], chance: random.Random) -> None:
    other = chance.choice(others)
    first, second = file.read_bytes(), other.read_bytes()
    file.write_bytes(second)
    other.write_bytes(first)


def _stray(file: Path, others: list[Path], chance: random.Random) -> None:
    target = file.parent / chance.choice(STRAY)
    # A damage before this one may have left the name.
    if target.exists():
        return
    if chance.random() < 0.5:
        target.mkdir()
    else:
        target.write_bytes(chance.randbytes(20))


def _folder_instead(file: Path, others: list[Path], chance: random.Random) -> None:
    file.unlink()
    file.mkdir()


WAYS: tuple[Callable[[Path, list[Path], random.Random], None], ...] = (
    _remove, _cut, _empty, _nuls, _flip, _flip, _rename, _duplicate, _move, _swap, _stray, _folder_instead,
)  # fmt: skip


def damage(folder: Path, chance: random.Random) -> list[str]:
    """Damage one file of the folder, at times two or three, or remove a folder in it; say what was done."""
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if not files:
            break
        if chance.random() < 0.05:
            gone = chance.choice(files).parent
            if gone != folder:
                shutil.rmtree(gone)
                done.append(f"removed {gone.relative_to(folder)}/")
                continue
        file, way = chance.choice(files), chance.choice(WAYS)
        done.append(f"{way.__name__.strip('_')} {file.relative_to(folder)}")
        way(file, files, chance)
    return done
