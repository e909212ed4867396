"""Collect all diagnostics of a root, including one for the SKILL.md files below it that
are not offered.

These files are looked for only when the diagnostics are read: a start does not list the
directories of skills.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from skillruntime.catalog.directory_walk import SKIPPED, walk
from skillruntime.catalog.discovery.root_snapshot import Snapshot
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["diagnostics_of", "not_offered"]

MAX_LISTED = 50_000
"""The maximum number of directories that are listed, which takes a second. Ten thousand
skills have about 40,000.
"""


def diagnostics_of(snapshot: Snapshot) -> list[Diagnostic]:
    """List the directories of a root again, and return all its diagnostics, sorted by
    file.
    """
    # Imported here, because a start does not need it.
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
    # Links are not followed: a file could be counted twice.
    walked = walk(snapshot.root.path)
    for number, (directory, directories, files) in enumerate(walked):
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
    # A link is reported by discovery, or leads to a skill that is offered.
    left_out = [path for path in left_out if not os.path.islink(path)]
    if not left_out:
        return
    number_of_files = len(left_out)
    files_are = "files are" if number_of_files > 1 else "file is"
    message = (
        f"{number_of_files:,} SKILL.md {files_are} not offered: inside another skill, "
        "beside another SKILL.md, or nested too deep; the first is "
        f"{min(left_out)}{may_be_more}"
    )
    yield Diagnostic(
        "not-offered",
        Severity.WARNING,
        snapshot.root.path,
        message,
        hint="move them out of that skill, or pass their directory as a root",
    )
