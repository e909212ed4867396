"""The list of a skill's files as a model reads it: short, whatever the skill has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from skillruntime.catalog.resources import Resource

__all__ = ["MOST_LISTED", "has_summary", "listed_lines"]

MOST_LISTED = 20
"""How many files of a skill are listed one by one when it is loaded; above that the
largest directories are a line each.
"""

_MOST_KINDS = 4
_SUFFIX = re.compile(r"\.\w{1,12}\Z")


def has_summary(files: Sequence[Resource]) -> bool:
    """Return whether `listed_lines` has directories in place of their files."""
    return len(files) > MOST_LISTED


def listed_lines(
    files: Sequence[Resource], below: str = "", *, all_own: bool = False
) -> list[str]:
    """Return a line for each of *files*, all of them below the directory *below*
    (``""`` or ``"assets/"``).

    Where there are more than `MOST_LISTED`, the smallest of its directories are listed
    as far as they fit, and any other one is a line with the number and kinds of its
    files. With *all_own* the files directly in *below* are all listed.

    >>> fonts = [Resource(f"fonts/{number}.ttf", 9, "font/ttf") for number in range(30)]
    >>> listed_lines([Resource("a.md", 1_200, "text/markdown"), *fonts])
    ['- a.md (1,200 bytes)', '- fonts/ (30 files: 30 .ttf)']
    """
    if not has_summary(files):
        return [_line(file) for file in files]
    own: list[Resource] = []
    directories: dict[str, list[Resource]] = {}
    for file in files:
        name, slash, _ = file.path.removeprefix(below).partition("/")
        if slash:
            directories.setdefault(f"{below}{name}/", []).append(file)
        else:
            own.append(file)
    shown = own
    if not all_own:
        shown = own[:MOST_LISTED]
    lines = [_line(file) for file in shown]
    rest = own[len(shown) :]
    if rest:
        lines.append(f"- ./ ({len(rest):,} more files: {_kinds(rest)})")
    listed = _that_fit(directories, MOST_LISTED - len(shown))
    for directory, content in directories.items():
        if directory in listed:
            lines += [_line(file) for file in content]
        else:
            lines.append(f"- {directory} ({len(content):,} files: {_kinds(content)})")
    return lines


def _that_fit(directories: dict[str, list[Resource]], left: int) -> set[str]:
    """Return the directories that have at most *left* files together, the smallest
    first.
    """
    listed = set()
    for directory in sorted(directories, key=lambda name: len(directories[name])):
        left -= len(directories[directory])
        if left < 0:
            break
        listed.add(directory)
    return listed


def _line(file: Resource) -> str:
    return f"- {file.path} ({file.bytes:,} bytes)"


def _kinds(files: Iterable[Resource]) -> str:
    """Return how many of *files* have which suffix, the commonest first."""
    suffixes: Counter[str] = Counter()
    for file in files:
        suffix = _SUFFIX.search(file.path)
        suffixes["other" if suffix is None else suffix[0].lower()] += 1
    kinds = [f"{count:,} {suffix}" for suffix, count in suffixes.most_common()]
    if len(kinds) > _MOST_KINDS:
        kinds = [*kinds[:_MOST_KINDS], "…"]
    return ", ".join(kinds)
