"""All diagnostics of a root; also which SKILL.md files below it are not offered, and
why.

Those are looked for when the diagnostics are asked for: a start does not list the
directories of skills.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from skillruntime.catalog.discovery.root_snapshot import Snapshot
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["PARTS_OF_A_SKILL", "SKIPPED", "diagnostics_of", "not_offered"]

SKIPPED = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".jj",
        "node_modules",
        "__pycache__",
        ".venv",
        "venv",
        ".tox",
    }
)
"""Directories that are never searched."""

PARTS_OF_A_SKILL = frozenset({"scripts", "references", "assets"})
"""The directories that the format gives to a skill; in a root that is a skill itself,
all others may contain skills.
"""

MAX_LISTED = 50_000
"""How many directories are listed at most: a second's work. Ten thousand skills have
about 40,000.
"""


def diagnostics_of(snapshot: Snapshot) -> list[Diagnostic]:
    """Return all diagnostics of a root, sorted by file. Its directories are listed once
    more for them.
    """
    from skillruntime.catalog.discovery.summary import (
        notes_on_name,  # not needed for a start
    )

    found = [*snapshot.problems, *not_offered(snapshot)]
    for position, entry in enumerate(snapshot.entries):
        notes = snapshot.notes.get(position, ())
        found += notes
        if entry.name:
            found += notes_on_name(entry.name, entry.description, entry.file, notes)
    return sorted(
        found,
        key=lambda diagnostic: (diagnostic.path, diagnostic.line or 0, diagnostic.rule),
    )


def not_offered(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Yield one diagnostic with the number of the SKILL.md files below the root of
    *snapshot* that are not offered.
    """
    if "\0" in snapshot.root.path:
        return
    known = {entry.file for entry in snapshot.entries} | {
        each.path for each in snapshot.problems
    }
    found: list[str] = []
    may_be_more = ""
    # Links are not followed: following them could count a file twice.
    for number, (directory, directories, files) in enumerate(
        os.walk(snapshot.root.path)
    ):
        if number == MAX_LISTED:
            may_be_more = (
                f"; there may be more, because only {MAX_LISTED:,} directories were "
                "listed"
            )
            break
        directories[:] = [name for name in directories if name not in SKIPPED]
        own = {
            os.path.join(directory, name)  # noqa: PTH118
            for name in files
            if name.lower() == "skill.md"
        }
        # On a case-insensitive file system the only file was opened by its proper name.
        if len(own) > 1 or os.path.join(directory, "SKILL.md") not in known:  # noqa: PTH118
            found += own - known
    if found:
        message = (
            f"{len(found):,} SKILL.md file{'s are' if len(found) > 1 else ' is'} not "
            "offered: inside another skill, beside another SKILL.md, a hard link of "
            f"one, or nested too deep; the first is {min(found)}{may_be_more}"
        )
        hint = "move them out of that skill, or pass their directory as a root"
        yield Diagnostic(
            "not-offered", Severity.WARNING, snapshot.root.path, message, hint=hint
        )
