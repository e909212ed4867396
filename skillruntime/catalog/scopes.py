"""The usual directories of skills of a project and of a user, in order of precedence."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from skillruntime.catalog.root_snapshot import Root, absolute

__all__ = ["PLACES", "standard_roots"]

PLACES = (".agents/skills", ".claude/skills")
"""Directories of skills in a project or a home directory; the first has precedence."""


def standard_roots(
    start: str | os.PathLike[str] = ".",
    *,
    extra: Iterable[str | os.PathLike[str]] = (),
    home: str | os.PathLike[str] | None = None,
    admit: Callable[[str], bool] = lambda directory: True,
    trust_user: bool = False,
) -> list[Root]:
    """Return the roots that exist, in order of precedence.

    First the *extra* ones, then the project's (of *start* and of every parent up to the repository), then the user's.
    *admit* is called once with the project's directory: the skills of a freshly cloned repository can contain prompt
    injections, so a host should ask the user first; if it returns false, the project's roots are left out. Scripts of
    a project are never trusted here; with *trust_user* those of the user's own skills are.
    """
    own_home = absolute("~" if home is None else home)
    roots = [Root(absolute(path), scope="extra") for path in extra]
    directories = _project_directories(absolute(start), own_home)
    found = [
        Root(f"{directory.rstrip('/')}/{place}", scope="project")
        for directory in directories
        for place in PLACES
        if os.path.isdir(f"{directory}/{place}")  # noqa: PTH112
    ]
    if found and admit(directories[-1]):
        roots += found
    roots += [
        Root(f"{own_home}/{place}", trust_user, "user")
        for place in PLACES
        if os.path.isdir(f"{own_home}/{place}")  # noqa: PTH112
    ]
    # The same directory can be an extra root and the project's; the first occurrence wins.
    return list({root.path: root for root in reversed(roots)}.values())[::-1]


def _project_directories(start: str, home: str) -> list[str]:
    """Return *start* and its parents up to the repository's directory; only *start* if there is no repository."""
    directories = [start]
    while True:
        directory = directories[-1]
        # `lexists`: in a worktree or a submodule .git is a file.
        if os.path.lexists(f"{directory}/.git"):
            break
        above = os.path.dirname(directory)  # noqa: PTH120
        # Outside a repository, parents such as /tmp may belong to other users.
        if directory in (above, home):
            directories = [start]
            break
        directories.append(above)
    return [directory for directory in directories if directory != home]
