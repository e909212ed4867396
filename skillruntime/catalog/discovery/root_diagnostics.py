"""All diagnostics of a root, including one for the SKILL.md files below it that are not
offered.

These files are looked for only when the diagnostics are read: a start does not list the
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
    # Not needed for a start.
    from skillruntime.catalog.discovery.summary import notes_on_name

    findings = [*snapshot.problems, *not_offered(snapshot)]
    for position, entry in enumerate(snapshot.entries):
        notes = snapshot.notes.get(position, ())
        findings += notes
        if entry.name:
            findings += notes_on_name(entry.name, entry.description, entry.file, notes)
    return sorted(
        findings,
        key=lambda diagnostic: (diagnostic.path, diagnostic.line or 0, diagnostic.rule),
    )


def not_offered(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Yield one diagnostic with the number of the SKILL.md files below the root of
    *snapshot* that are not offered.
    """
    if "\0" in snapshot.root.path:
        return
    known = {entry.file for entry in snapshot.entries}
    known.update(problem.path for problem in snapshot.problems)
    left_out: list[str] = []
    may_be_more = ""
    # Links are not followed: following them could count a file twice.
    walk = os.walk(snapshot.root.path)
    for number, (directory, directories, files) in enumerate(walk):
        if number == MAX_LISTED:
            may_be_more = (
                f"; there may be more, because only {MAX_LISTED:,} directories were "
                "listed"
            )
            break
        directories[:] = [name for name in directories if name not in SKIPPED]
        skill_files = {
            os.path.join(directory, name)
            for name in files
            if name.lower() == "skill.md"
        }
        # On a case-insensitive file system the only file was opened by its proper name.
        usual_file = os.path.join(directory, "SKILL.md")
        if len(skill_files) > 1 or usual_file not in known:
            left_out += skill_files - known
    if not left_out:
        return
    number_of_files = len(left_out)
    files_are = "files are" if number_of_files > 1 else "file is"
    message = (
        f"{number_of_files:,} SKILL.md {files_are} not offered: inside another skill, "
        "beside another SKILL.md, a hard link of one, or nested too deep; the first is "
        f"{min(left_out)}{may_be_more}"
    )
    yield Diagnostic(
        "not-offered",
        Severity.WARNING,
        snapshot.root.path,
        message,
        hint="move them out of that skill, or pass their directory as a root",
    )
