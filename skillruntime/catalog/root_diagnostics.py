"""All diagnostics of a root; also which SKILL.md files below it are not offered, and why.

Those are looked for when the diagnostics are asked for: a start does not list the directories of skills.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from skillruntime.catalog.root_snapshot import Snapshot
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["PARTS_OF_A_SKILL", "SKIPPED", "diagnostics_of", "not_offered"]

SKIPPED = frozenset({".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", "venv", ".tox"})
"""Directories that are never searched."""

PARTS_OF_A_SKILL = frozenset({"scripts", "references", "assets"})
"""The directories that the format gives to a skill; in a root that is a skill itself, all others may contain skills."""

MAX_LISTED = 50_000
"""How many directories are listed at most: a second's work. Ten thousand skills have about 40,000."""

_DEEP = "nested too deep"
_INSIDE = "inside another skill"
_BESIDE = "beside another SKILL.md"
_HINT = "move them out of that skill, or pass their directory as a root"


def diagnostics_of(snapshot: Snapshot) -> list[Diagnostic]:
    """Return all diagnostics of a root, sorted by file. Its directories are listed once more for them."""
    from skillruntime.catalog.summary import notes_on_name  # not needed for a start

    found = [*snapshot.problems, *not_offered(snapshot)]
    for position, entry in enumerate(snapshot.entries):
        notes = snapshot.notes.get(position, ())
        found += notes
        if entry.name:
            found += notes_on_name(entry.name, entry.description, entry.file, notes)
    return sorted(found, key=lambda diagnostic: (diagnostic.path, diagnostic.line or 0, diagnostic.rule))


def not_offered(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Yield one diagnostic with the number of the SKILL.md files below the root of *snapshot* that are not offered."""
    offered = {entry.file: bool(entry.name) for entry in snapshot.entries}
    offered.update((each.path, False) for each in snapshot.problems)
    numbers: dict[str, int] = {}
    first = ""
    waiting = [(snapshot.root.path.rstrip("/"), False)]
    for path, is_inside, is_beside in _skill_files(waiting, offered):
        kind = _BESIDE if is_beside else _INSIDE if is_inside else _DEEP
        numbers[kind] = numbers.get(kind, 0) + 1
        first = min(first, path) if first else path
    if numbers:
        total = sum(numbers.values())
        listed = ", ".join(f"{numbers[kind]:,} {kind}" for kind in (_INSIDE, _DEEP, _BESIDE) if kind in numbers)
        what = f"{total:,} SKILL.md file{'s are' if total > 1 else ' is'} not offered: {listed}; the first is {first}"
        if waiting:
            what += f"; there may be more, because only {MAX_LISTED:,} directories were listed"
        yield Diagnostic("not-offered", Severity.WARNING, snapshot.root.path, what, hint=_HINT)


def _skill_files(waiting: list[tuple[str, bool]], offered: dict[str, bool]) -> Iterator[tuple[str, bool, bool]]:
    """Yield each SKILL.md that is not in *offered*, and whether it is inside or beside one that is.

    *waiting* has the root, and whether it is inside a skill; afterwards, the directories that were not listed.
    """
    root = waiting[0][0]
    for _ in range(MAX_LISTED):
        if not waiting:
            return
        directory, is_inside = waiting.pop()
        children = _children(directory or "/")
        names = [child.name for child in children if child.name.lower() == "skill.md"]
        # On a case-insensitive file system the only file was opened by its proper name.
        files = [f"{directory}/{name if len(names) > 1 else _opened(directory, name, offered)}" for name in names]
        here = any(path in offered for path in files)
        for path in files:
            if path not in offered and not os.path.isdir(path):  # noqa: PTH112
                yield path, is_inside, here
        is_skill = any(offered.get(path) for path in files)
        below = is_inside or is_skill
        # A skill at the root hides only what is in its own directories.
        hides_all = below and directory != root
        names = [child.name for child in children if child.name not in SKIPPED and _is_directory(child)]
        waiting += [(f"{directory}/{name}", hides_all or (below and name in PARTS_OF_A_SKILL)) for name in names]


def _children(directory: str) -> list[os.DirEntry[str]]:
    """Return the directories and the SKILL.md files in *directory*; of a million others nothing is kept."""
    try:
        with os.scandir(directory) as entries:
            return [child for child in entries if child.name.lower() == "skill.md" or _is_directory(child)]
    except (OSError, ValueError):
        return []  # it has a diagnostic of its own


def _opened(directory: str, name: str, offered: dict[str, bool]) -> str:
    return "SKILL.md" if f"{directory}/SKILL.md" in offered else name


def _is_directory(child: os.DirEntry[str]) -> bool:
    # Links are followed by discovery only to skills; following them here could count a file twice.
    try:
        return child.is_dir(follow_symlinks=False)
    except OSError:
        return False
