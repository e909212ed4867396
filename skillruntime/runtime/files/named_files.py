"""List what an untrusted script gets from the workspace: the files and directories that
the caller named, and the parts that are left out.

Law: no part of a copied path, relative to the workspace, begins with a dot, unless the
host granted it; no link leads out of a copied directory; a directory beyond its limits
is not copied at all.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from skillruntime.catalog.visibility import visible_line
from skillruntime.errors import ToolExecutionError
from skillruntime.runtime.sandbox.protocol import Limits

__all__ = [
    "Contents",
    "CopiedFile",
    "NamedFiles",
    "listed_inside",
    "refuse_excess",
    "ungranted",
]

_MOST_ENTRIES = 100_000
"""The most entries of a directory that are counted before it is refused."""

_MOST_DOTFILES = 20
"""The most dotfiles that are kept for messages."""

_MOST_WARNINGS = 10


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file or directory of the workspace that is copied for an untrusted script.

    ``path`` is relative to the workspace, which itself is ``"."``; ``bytes`` is the
    size. ``files`` is the number of files in a directory, None for a file; ``left_out``
    counts the entries of a directory that are not copied, by kind: dotfiles, links,
    other entries.

    >>> str(CopiedFile("src", 1234, 3, {"dotfile": 3, "link": 1}))
    'src (3 files, 1,234 bytes; left out: 3 dotfiles, 1 link)'
    """

    path: str
    bytes: int
    files: int | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    dotfiles: tuple[str, ...] = ()
    """The first dotfiles that are left out, which a grant would name."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields; ``files`` and ``left_out`` only if they have a value."""
        stated: dict[str, Any] = {"path": self.path, "bytes": self.bytes}
        if self.files is not None:
            stated["files"] = self.files
        if self.left_out:
            stated["left_out"] = dict(self.left_out)
        return stated

    def __str__(self) -> str:
        size = _counted(self.bytes, "byte")
        if self.files is not None:
            size = f"{_counted(self.files, 'file')}, {size}"
        if self.left_out:
            size += f"; {self.left_out_text}"
        return f"{visible_line(self.path)} ({size})"

    @property
    def left_out_text(self) -> str:
        """A description such as ``left out: 3 dotfiles, 1 link``."""
        counts = [_counted(number, kind) for kind, number in self.left_out.items()]
        return f"left out: {', '.join(counts)}"


@dataclass(slots=True)
class Contents:
    """The copied contents of one directory, by paths relative to the workspace:
    *directories*, *files* with their sizes, and *links* with their targets.
    """

    directories: list[PurePath] = field(default_factory=list)
    files: dict[PurePath, int] = field(default_factory=dict)
    links: dict[PurePath, PurePath] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    dotfiles: list[str] = field(default_factory=list)
    """The first dotfiles that are left out."""
    is_cut: bool = False
    """Whether the directory has too many entries to examine all."""

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(self.files.values())


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """The files that one call names: the *copied* ones, the *dotfiles* without a grant,
    the *empty* directories, the files *not_sent* by the caller but named by the
    contract, and the directories that are *not_there*.
    """

    copied: tuple[CopiedFile, ...] = ()
    dotfiles: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    not_sent: tuple[str, ...] = ()
    not_there: tuple[str, ...] = ()

    def warnings(self, how_to_grant: Callable[[tuple[str, ...]], str]) -> list[str]:
        """Return the answer's warnings about files that were left out; *how_to_grant*
        says how the host grants these dotfiles.
        """
        warnings = []
        for each in self.copied:
            if not each.left_out:
                continue
            shown = visible_line(each.path)
            warning = f"{shown!r} was copied for the script; {each.left_out_text}"
            if each.dotfiles:
                warning += f". {how_to_grant(each.dotfiles)}"
            warnings.append(warning)
        for path in self.empty:
            warnings.append(f"The directory {visible_line(path)!r} was empty")
        for path in self.not_there:
            warnings.append(f"{visible_line(path)!r} is not in the workspace")
        for path in self.not_sent:
            warnings.append(
                f"{visible_line(path)!r} was not copied for the script: the contract "
                "names it, and not the call; send it to have it copied"
            )
        return warnings[:_MOST_WARNINGS]


def ungranted(path: PurePath, granted: Iterable[str]) -> PurePath | None:
    """Return *path* up to its first part that begins with a dot; None if there is no
    such part, or if *granted* covers it.

    A grant covers everything below it and the directories that lead to it: ``.git`` is
    granted as one thing.

    >>> str(ungranted(PurePath("src/.venv/lib"), [".git"]))
    'src/.venv'
    >>> ungranted(PurePath(".git/config"), [".git"]) is None
    True
    """
    for grant in granted:
        if path.is_relative_to(grant) or PurePath(grant).is_relative_to(path):
            return None
    for number, part in enumerate(path.parts, start=1):
        if part.startswith("."):
            return PurePath(*path.parts[:number])
    return None


def listed_inside(
    workspace: Path, directory: PurePath, granted: Iterable[str], apart: PurePath
) -> Contents:
    """Return the contents of *directory*, a path relative to *workspace*, that are
    copied; *apart* is skipped.

    Raises:
        OSError: a directory cannot be read.
    """
    grants = tuple(granted)
    contents = Contents()
    pending = [directory]
    seen = 0
    while pending:
        here = pending.pop()
        with os.scandir(workspace / here) as entries:
            for entry in entries:
                seen += 1
                if seen > _MOST_ENTRIES:
                    contents.is_cut = True
                    return contents
                path = here / entry.name
                if path == apart:
                    continue
                if ungranted(path, grants) is not None:
                    contents.left_out["dotfile"] += 1
                    if len(contents.dotfiles) < _MOST_DOTFILES:
                        contents.dotfiles.append(str(path))
                elif entry.is_symlink():
                    _note_link(contents, workspace, directory, path)
                elif entry.is_dir(follow_symlinks=False):
                    contents.directories.append(path)
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False):
                    contents.files[path] = entry.stat(follow_symlinks=False).st_size
                else:
                    contents.left_out["special file"] += 1
    _leave_out_broken_links(contents, directory)
    return contents


def _note_link(
    contents: Contents, workspace: Path, directory: PurePath, path: PurePath
) -> None:
    """Record the link at *path*, or count it as left out if it leaves *directory*."""
    try:
        target = (workspace / path).resolve(strict=True).relative_to(workspace)
    except (OSError, ValueError, RuntimeError):  # broken, outside, or a loop
        contents.left_out["link"] += 1
        return
    if target.is_relative_to(directory):
        contents.links[path] = PurePath(target)
    else:
        contents.left_out["link"] += 1


def _leave_out_broken_links(contents: Contents, directory: PurePath) -> None:
    """Leave out links whose target is not copied, such as a dotfile."""
    there = {directory, *contents.directories, *contents.files}
    for path, target in list(contents.links.items()):
        if target not in there:
            del contents.links[path]
            contents.left_out["link"] += 1


def refuse_excess(path: str, contents: Contents, limits: Limits) -> None:
    """Refuse the directory at *path* if it holds, together with those named before it,
    more than may be copied.

    Raises:
        ToolExecutionError: the directory is too large; the message has its size.
    """
    number = len(contents.files) + len(contents.links)
    number_of_entries = max(number, len(contents.directories))
    shown = repr(visible_line(path))
    if (
        contents.is_cut
        or contents.bytes > limits.copied_bytes
        or number_of_entries > limits.copied_files
    ):
        size = f"{_counted(contents.bytes, 'byte')} in {_counted(number, 'file')}"
        if contents.is_cut:
            size = f"more than {_counted(_MOST_ENTRIES, 'entry')}"
        raise ToolExecutionError(
            f"The directory {shown} is too large to be copied for an untrusted skill: "
            f"it has {size}, and at most {limits.copied_bytes:,} bytes in "
            f"{limits.copied_files:,} files are copied",
            details={"path": path, "bytes": contents.bytes, "files": number},
            suggested_action="Name a smaller directory, or single files; the host can "
            "set SkillRuntime(script_limits=Limits(copied_bytes=..., "
            "copied_files=...))",
        )


def _counted(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}s"
