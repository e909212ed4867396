"""Walk directories that anyone may have made: of any depth, with links in a circle.

No function here calls itself: a thousand nested directories raise `RecursionError` in a
function that does, such as `os.walk` up to Python 3.11.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

__all__ = ["PARTS_OF_A_SKILL", "SKIPPED", "is_loop", "walk"]

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
"""Directories that are never searched for skills."""

PARTS_OF_A_SKILL = frozenset({"scripts", "references", "assets"})
"""The directories that the format defines in a skill. In a root that is itself a skill,
all other directories may contain skills.
"""


def walk(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield *top* and each directory below it, with the names of its directories and of
    everything else in it; links are not followed.

    As with `os.walk`, the caller may remove names of directories that it does not want,
    and a directory that cannot be listed is left out.
    """
    pending = [top]
    while pending:
        directory = pending.pop()
        directories: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(directory) as children:
                for child in children:
                    if child.is_dir(follow_symlinks=False):
                        directories.append(child.name)
                    else:
                        others.append(child.name)
        except OSError:
            continue
        yield directory, directories, others
        # Reversed, so that they are visited in the caller's order.
        pending += [os.path.join(directory, name) for name in reversed(directories)]


def is_loop(link: str) -> bool:
    """Return whether the linked directory *link* is one of its own parents."""
    target = os.path.realpath(link).rstrip(os.sep) + os.sep
    parent = os.path.realpath(os.path.dirname(link)) + os.sep
    return parent.startswith(target)
