"""Where the scripts of an untrusted skill work: a directory of their own, apart from
the workspace.

The workspace is the working directory of trusted scripts, which are not confined, and
perhaps of the user's shell. Many programs run what they find there (``core.fsmonitor``
in a ``.git/config``, a ``conftest.py``), so an untrusted script never writes into it.
The files of the workspace that a call names are copied into the own directory, and what
its scripts make is copied to ``skill-files/NAME`` in the workspace: regular files,
never over another's, none that begins with a dot.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from skillruntime.errors import ToolExecutionError
from skillruntime.runtime.files.skill_copy import safe_name
from skillruntime.runtime.files.workspace import (
    FILE_LIMIT,
    Identity,
    Workspace,
    identity_of,
    is_there,
)
from skillruntime.runtime.sandbox.without_links import open_without_links

__all__ = ["RESULTS", "CallFiles", "OwnDirectory", "own_directory"]

RESULTS = "skill-files"
"""The directory of the workspace in which the files of untrusted skills arrive, each
skill's in one of its name.
"""

MOST_RESULTS = 1_000
"""How many new files of one call are copied to the workspace."""

_DIRECTORY = (
    os.O_RDONLY
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_NEW = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


class OwnDirectory:
    """The working directory of one untrusted skill in one session, and what it has
    exchanged with *workspace*.

    *limit* is how many bytes a call may copy in, and how many all calls may leave in
    the workspace.
    """

    def __init__(self, workspace: Workspace, skill: str, limit: int) -> None:
        self.workspace = workspace
        self.files = Workspace()
        self.limit = limit
        self.results = PurePath(RESULTS, skill)
        # What was copied in or out, by path, as it was then: what the host has changed
        # since is left alone.
        self.copied_in: dict[str, Identity] = {}
        self.copied_out: dict[str, Identity] = {}
        self.bytes_out = 0


def own_directory(workspace: Workspace, skill: str, limit: int) -> OwnDirectory:
    """Return the directory of the untrusted *skill* in *workspace*, the same at each
    call.
    """
    name = safe_name(skill)
    # `setdefault` is one step: two calls at once get the same directory.
    if name not in workspace.own:
        workspace.own.setdefault(name, OwnDirectory(workspace, name, limit))
    directory: OwnDirectory = workspace.own[name]
    return directory


class CallFiles:
    """The own directory as one call sees it; it has the methods of
    `WatchedWorkspace`.
    """

    def __init__(self, own: OwnDirectory) -> None:
        self.workspace = own.workspace
        self.missing: list[str] = []
        self._own = own
        self._named: dict[str, Path] = {}
        self._before: dict[str, Identity] | None = None
        self._is_open = False
        self._changes: list[dict[str, Any]] | None = None

    def resolve(self, path: str) -> Path | None:
        """Return where the script finds *path*, which the model wrote for the
        workspace; None where it is outside.

        What exists in the workspace is copied to this place when the call starts.
        """
        own = self._own
        source = own.workspace.resolve(path)
        if source is None:
            return own.files.resolve(path)
        relative = PurePath(source.relative_to(own.workspace.directory))
        if relative.is_relative_to(own.results):
            relative = relative.relative_to(own.results)
        target = own.files.resolve(str(relative))
        if target is None:
            return None
        if relative.parts and is_there(source):
            self._named[str(target.relative_to(own.files.directory))] = source
        elif not is_there(target):
            self.missing.append(path)
        return target

    def with_named_files(self, value: Any) -> Any:
        """Return *value*, and have the files copied in that its texts name: many
        scripts do not say which are paths.

        An absolute path becomes that of the copy, to which a relative one leads as it
        is.
        """
        if isinstance(value, dict):
            return {key: self.with_named_files(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.with_named_files(item) for item in value]
        if not isinstance(value, str):
            return value
        source = self._own.workspace.resolve(value)
        if source is None:
            return value
        # Raised for thousands of letters, which no file has as its name.
        with suppress(OSError):
            if stat.S_ISREG(source.lstat().st_mode):
                copy = self.resolve(value)
                if PurePath(value).is_absolute():
                    return str(copy)
        return value

    def open(self) -> Path:
        """Copy in what the call names, and return the directory; new and changed files
        are listed from now on.

        Raises:
            ToolExecutionError: a file that the call names cannot be copied, or is too
                large.
        """
        if not self._is_open:
            self._is_open = True
            left = self._own.limit
            for target, source in self._named.items():
                left = self._copy_in(target, source, left)
            self._before = self._own.files.snapshot()
        return self._own.files.directory

    def changes(self) -> list[dict[str, Any]]:
        """Copy new and changed files to the workspace; return them as ``{path,
        media_type, bytes}``.
        """
        if self._changes is None:
            self._changes = []
            if self._is_open:
                self._own.files.directory.chmod(0o700)  # a script may have closed it
            if self._before is not None:
                changes = self._own.files.changes(self._before)
                for change in changes[:MOST_RESULTS]:
                    copied = self._copied_out(change)
                    if copied is not None:
                        self._changes.append(copied)
        return self._changes

    def has_untrusted_files(self) -> bool:
        """Return whether an untrusted script may have written into the directory: it is
        made for that.
        """
        return True

    @property
    def is_unwatched(self) -> bool:
        """Whether the directory holds too many files to compare; none of them is copied
        to the workspace then.
        """
        return self._is_open and self._before is None

    def _copy_in(self, target: str, source: Path, left: int) -> int:
        """Copy *source*, a file or a directory, to *target* in the own directory;
        return how many bytes are left.
        """
        pairs = [(target, source)]
        if source.is_dir():
            below: list[Path] = []
            for directory, _, names in os.walk(source):
                below += [Path(directory, name) for name in names]
            pairs = []
            for path_below in below[: FILE_LIMIT + 1]:
                place = PurePath(target, path_below.relative_to(source))
                pairs.append((str(place), path_below))
        for path, file in pairs:
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode):
                continue
            if self._own.copied_in.get(path) == identity_of(status):
                continue  # the own directory has it as it is
            left -= status.st_size
            if left < 0 or len(pairs) > FILE_LIMIT:
                raise ToolExecutionError(
                    f"{source.name!r} is too large for an untrusted skill: at most "
                    f"{self._own.limit:,} bytes in {FILE_LIMIT:,} files are copied to "
                    "its directory",
                    suggested_action="Send a smaller file; the host can set "
                    "SkillRuntime(script_limits=...)",
                )
            try:
                _place(self._own.files.directory, path, file)
            except OSError as error:
                raise ToolExecutionError(
                    f"{file.name!r} cannot be given to the script: {error.strerror}"
                ) from error
            self._own.copied_in[path] = identity_of(status)
        return left

    def _copied_out(self, change: dict[str, Any]) -> dict[str, Any] | None:
        """Copy a file to the workspace; return *change* with its path there, or None
        where it stays.
        """
        own, path = self._own, change["path"]
        # A dotfile configures whatever runs beside it, and an unprintable name paints
        # over a terminal.
        has_dotfile = any(part.startswith(".") for part in PurePath(path).parts)
        if has_dotfile or not path.isprintable():
            return None
        if own.bytes_out + change["bytes"] > own.limit:
            return None
        destination = own.workspace.directory / own.results / path
        try:
            destination.parent.mkdir(parents=True, exist_ok=True)
            known = own.copied_out.get(str(destination))
            if known is not None and destination.exists():
                # Replaced where the host has not changed it since.
                if known == identity_of(destination.lstat()):
                    own.bytes_out -= known[0]
                    destination.unlink()
            destination = own.files.copy_out(path, _free(destination))
            status = destination.lstat()
        except OSError:
            return None
        own.copied_out[str(destination)] = identity_of(status)
        own.bytes_out += status.st_size
        return {
            **change,
            "path": str(destination.relative_to(own.workspace.directory)),
            "bytes": status.st_size,
        }


def _free(path: Path) -> Path:
    """Return *path*, or the first of ``name-2``, ``name-3``, ... that does not
    exist.
    """
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free


def _place(root: Path, path: str, source: Path) -> None:
    """Copy the file *source* to *path* below *root*, following no link there: a script
    may have made one.

    Raises:
        OSError: it cannot be read, or a part of *path* is a link.
    """
    *parents, name = PurePath(path).parts
    at = open_without_links(str(root), flags=_DIRECTORY)
    try:
        for part in parents:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=at)
            inner = os.open(part, _DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=at)
        with (
            source.open("rb") as file,
            os.fdopen(os.open(name, _NEW, 0o644, dir_fd=at), "wb") as written,
        ):
            shutil.copyfileobj(file, written)
    finally:
        os.close(at)
