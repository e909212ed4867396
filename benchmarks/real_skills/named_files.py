"""Which files of a skill its SKILL.md names, as it writes them.

The names are found without this library: by the characters around them, and by
comparing them with the files that are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

_WORD = re.compile(r"[^\s`'\"()\[\]<>|,;]+")
_PLACE = re.compile(r"\{[^{}/]+\}|\*+")


@dataclass(frozen=True, slots=True)
class NamedFile:
    """What SKILL.md writes, and which file or directory it means."""

    written: str
    path: str
    is_directory: bool = False


def named_files(instructions: str, files: Iterable[str]) -> list[NamedFile]:
    """Return what *instructions* name of *files*, each name once.

    A name is a path, or the end of exactly one path, in any case of letters. A pattern
    (``{lang}/README.md``, ``shared/agents-*.md``) names each file that it fits.
    """
    paths = sorted(path for path in files if path != "SKILL.md")
    directories = {str(above) for path in paths for above in PurePath(path).parents}
    found: dict[str, NamedFile] = {}
    for word in _WORD.findall(instructions):
        for named in _meant(_bare(word), paths, directories):
            found.setdefault(named.written, named)
    return list(found.values())


def _bare(word: str) -> str:
    """Return *word* without what stands around a path: emphasis, the end of a sentence,
    a slash after a placeholder.
    """
    return word.strip("*").rstrip(".:*").lstrip("/")


def _meant(word: str, paths: list[str], directories: set[str]) -> list[NamedFile]:
    """Return the files that *word* means."""
    plain = word.removeprefix("./").casefold()
    if not plain or plain.startswith("."):
        return []
    if _PLACE.search(plain):
        if _PLACE.sub("", plain).count("/") == 0:
            return []  # not a path: {name}, 2*x
        pattern = "[^/]*".join(re.escape(part) for part in _PLACE.split(plain))
        fits = [path for path in paths if re.fullmatch(pattern, path.casefold())]
        return [NamedFile(path, path) for path in fits]
    exact = [path for path in paths if path.casefold() == plain]
    ends = [path for path in paths if path.casefold().endswith("/" + plain)]
    if exact:
        return [NamedFile(word, exact[0])]
    if len(ends) == 1 and "." in plain:
        return [NamedFile(word, ends[0])]
    if "/" in word and plain.rstrip("/") in directories:
        return [NamedFile(word, plain.rstrip("/"), is_directory=True)]
    return []
