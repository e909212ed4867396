"""List a skill's files for a model: the list is short, however many files the skill
has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from skillruntime.catalog.resources import Resource
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["MOST_LISTED", "has_summary", "listed_lines"]

MOST_LISTED = 20
"""The most files of a skill that are listed one by one when it is loaded; beyond that
each of the largest directories becomes one line.
"""

_MOST_KINDS = 4
_SUFFIX = lazy_pattern(r"\.\w{1,12}\Z")


def has_summary(files: Sequence[Resource]) -> bool:
    """Return whether `listed_lines` lists directories instead of their files."""
    return len(files) > MOST_LISTED


def listed_lines(
    files: Sequence[Resource], below: str = "", *, all_own: bool = False
) -> list[str]:
    """Return a line for each of *files*, all of them below the directory *below*
    (``""`` or ``"assets/"``).

    If there are more than `MOST_LISTED`, the smallest directories are listed as long as
    they fit, and each other directory becomes one line with the number and kinds of its
    files. With *all_own* all files directly in *below* are listed.

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
    """Return the directories that together have at most *left* files, starting with the
    smallest.
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
    """Return the number of *files* with each suffix, the commonest first."""
    suffixes: Counter[str] = Counter()
    for file in files:
        suffix = _SUFFIX.search(file.path)
        suffixes["other" if suffix is None else suffix[0].lower()] += 1
    kinds = [f"{count:,} {suffix}" for suffix, count in suffixes.most_common()]
    if len(kinds) > _MOST_KINDS:
        kinds = [*kinds[:_MOST_KINDS], "…"]
    return ", ".join(kinds)
