"""The directory for the files of a session: resolve paths inside it, and report changed
files.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from skillruntime.catalog.meant_path import folded, plain_path, readings
from skillruntime.catalog.resources import media_type
from skillruntime.catalog.visibility import visible_line
from skillruntime.errors import InvalidSkillError
from skillruntime.forks import renew_locks_of
from skillruntime.runtime.files.temporary import make_temporary, remove_soon
from skillruntime.runtime.sandbox.without_links import (
    HAS_DIRECTORY_DESCRIPTORS,
    open_without_links,
)

__all__ = [
    "FILE_LIMIT",
    "Identity",
    "Workspace",
    "identity_of",
    "is_there",
    "require_directory",
]

Identity = tuple[int, int, int]
"""The size, time and number of a file; a different identity means that the file was
changed.
"""

FILE_LIMIT = 20_000
"""A workspace with more files and directories than this is not watched: its new files
are not listed.
"""

_DEEPEST = 64  # levels; a script may make thousands
_LISTED = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_MOST_NAMES = 5
_UNWATCHED = frozenset({"__pycache__", "node_modules"})
# The directories in which a script of an untrusted skill has worked, of every session
# of this process.
_with_untrusted_files: set[Path] = set()


def require_directory(workspace: str | os.PathLike[str]) -> None:
    """Raise an InvalidSkillError unless *workspace* is an existing directory.

    It is not made, because a misspelt path would become a directory without the
    expected files.
    """
    if os.path.isdir(workspace):  # noqa: PTH112 - accepts text too
        return
    path = os.fspath(workspace)
    if os.path.lexists(workspace):
        raise InvalidSkillError(f"The workspace {path!r} is not a directory")
    raise InvalidSkillError(
        f"The workspace {path!r} does not exist; make it first, or leave it out: each "
        "session then has a temporary directory"
    )


class Workspace:
    """A directory given by the host, or a fresh temporary one, made when it is first
    needed.

    The temporary directory is removed when the workspace is closed or
    garbage-collected; the host's own never is.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self.given: Path | None = None if directory is None else Path(directory)
        """The host's directory; None if it is temporary."""
        self._directory: Path | None = None
        # Parallel calls of one session must not create two directories.
        self._making = threading.Lock()
        self._removal: weakref.finalize[[Path], Workspace] | None = None
        self._placed: dict[str, Identity] = {}
        self.own: dict[str, Any] = {}
        """The `OwnDirectory` of each untrusted skill that was called with this
        workspace.
        """
        renew_locks_of(self)

    def renew_locks(self) -> None:
        """Replace the lock in a forked child, because threads of the parent may hold
        it.
        """
        self._making = threading.Lock()

    @property
    def directory(self) -> Path:
        """The directory, absolute and without symbolic links; it exists."""
        with self._making:
            if self._directory is None:
                self._directory = self._make()
            return self._directory

    def _make(self) -> Path:
        if self.given is not None:
            self.given.mkdir(parents=True, exist_ok=True)
            return self.given.resolve()
        made = make_temporary()
        self._removal = weakref.finalize(self, remove_soon, made)
        return made

    def resolve(self, path: str) -> Path | None:
        """Return *path* as an absolute path inside the workspace; None if it would be
        outside.

        Symbolic links are followed before the decision, so a link inside cannot lead
        out. The file need not exist.
        """
        try:
            resolved = (self.directory / path).resolve()
        # Too long, a NUL byte, a loop of links.
        except (OSError, ValueError, RuntimeError):
            return None
        if not resolved.is_relative_to(self.directory):
            return None
        return resolved

    def find(self, path: str) -> Path | None:
        """Return the absolute path that *path* means; None if it would be outside.

        If *path* does not exist as written, it means the single existing file or
        directory that fits by the rule of `meant_path`; otherwise a new file, without
        quotes, surrounding blanks and ``file://``.
        """
        resolved = self.resolve(path)
        if resolved is not None and is_there(resolved):
            return resolved
        plain = plain_path(path)
        if not plain:
            return resolved
        candidates = set()
        for reading in readings(path, self.roots):
            existing = self._existing(reading)
            if existing is not None:
                candidates.add(existing)
        if len(candidates) == 1:
            return candidates.pop()
        return self.resolve(plain)

    def repaired(self, path: str) -> str | None:
        """Return the path, relative to the workspace, that `find` reads *path* as; None
        if *path* needs no repair.
        """
        found = self.find(path)
        if found is None or found == self.resolve(path):
            return None
        return found.relative_to(self.directory).as_posix()

    @property
    def roots(self) -> set[str]:
        """The prefixes that paths of its files may have."""
        roots = {str(self.directory)}
        if self.given is not None:
            roots.add(str(self.given.absolute()))
        return roots

    def _existing(self, reading: str) -> Path | None:
        """Return the file or directory of the workspace that *reading* names, perhaps
        in another case; None if there is not exactly one.
        """
        found = self.directory
        for part in reading.split("/"):
            name = _entry_named(found, part)
            if name is None:
                return None
            found /= name
        return self.resolve(str(found))

    @property
    def dotfiles(self) -> list[str]:
        """The names in the directory that begin with a dot."""
        names = [path.name for path in self.directory.iterdir()]
        return sorted(name for name in names if name.startswith("."))

    def described(self) -> str:
        """Describe the contents of this directory, for the error about a missing file.

        The model reads it, so it does not say where the directory lies.
        """
        entries = [path.name for path in self.directory.iterdir()]
        names = sorted(name for name in entries if not name.startswith("."))
        if not names:
            return "the workspace, which is empty"
        shown = ", ".join(repr(visible_line(name[:80])) for name in names[:_MOST_NAMES])
        if len(names) > _MOST_NAMES:
            shown += f" and {len(names) - _MOST_NAMES:,} more"
        return f"the workspace, which has {shown}"

    @property
    def next_step(self) -> str:
        """The next step for a model whose file is missing."""
        if self.given is None:
            return (
                "Tell the user: the host sets the directory of the files with "
                "workspace="
            )
        return (
            "Send the path of a file that is there, relative to the workspace, or ask "
            "the user for it"
        )

    @property
    def has_untrusted_files(self) -> bool:
        """Whether a script of an untrusted skill may have written here; if so, scripts
        no longer run here unconfined.
        """
        own = self.directory
        for directory in _with_untrusted_files:
            if own.is_relative_to(directory) or directory.is_relative_to(own):
                return True
        return False

    def note_untrusted(self) -> None:
        """Record that a script of an untrusted skill is about to write here."""
        _with_untrusted_files.add(self.directory)

    def snapshot(self) -> dict[str, Identity] | None:
        """Return the identity of every file, by relative path; None if there are too
        many to watch.

        Hidden directories, symbolic links and directories more than 64 levels deep are
        not looked into.
        """
        identities: dict[str, Identity] = {}
        with suppress(OSError):
            directory = str(self.directory)
            at: int | str = directory
            if HAS_DIRECTORY_DESCRIPTORS:
                at = open_without_links(directory, flags=_LISTED)
            if _look(at, "", identities, 0) > FILE_LIMIT:
                return None
        return identities

    def note_placed(self, path: str) -> None:
        """Record that a tool of the model wrote *path*, not a skill."""
        with suppress(OSError):
            self._placed[path] = identity_of((self.directory / path).lstat())

    def changes(self, before: Mapping[str, Identity]) -> list[dict[str, Any]]:
        """Return the files that are new or changed since *before*, as ``{path,
        media_type, bytes}``.
        """
        after = self.snapshot() or {}
        changes = []
        for path, identity in sorted(after.items()):
            # A tool of the model may have written it while the script ran.
            if identity in (before.get(path), self._placed.get(path)):
                continue
            size, _, _ = identity
            changes.append(
                {
                    "path": _encodable(path),
                    "media_type": media_type(path),
                    "bytes": size,
                }
            )
        return changes

    def copy_out(self, path: str, destination: str | os.PathLike[str]) -> Path:
        """Copy the regular file *path* to *destination*, which must not exist; return
        the destination.

        No part of *path* may be a symbolic link: a script could have made one that
        points out of the workspace, after the file was listed. The copy appears
        completely or not at all: it is first written beside *destination*.

        Raises:
            OSError: the file is missing, reached through a link or not regular, or the
                copy cannot be written.
        """
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise PermissionError(errno.EACCES, "outside the workspace", path)
        # O_NONBLOCK: opening a FIFO must not wait for its other end.
        descriptor = open_without_links(
            f"{self.directory}/{path}", flags=os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )
        with os.fdopen(descriptor, "rb") as source:
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                raise PermissionError(errno.EACCES, "not a regular file", path)
            return _copied_whole(source, Path(destination))

    def close(self) -> None:
        """Remove the temporary directories, if any; the host's own directory stays."""
        while self.own:
            self.own.popitem()[1].files.close()
        if self._removal is not None:
            self._removal()
            self._removal = None
            self._directory = None


def _entry_named(directory: Path, name: str) -> str | None:
    """Return the entry of *directory* that is or resembles *name*; None if there is not
    exactly one.
    """
    try:
        if os.path.lexists(directory / name):
            return name
        entries = [path.name for path in directory.iterdir()]
    except (OSError, ValueError):  # not a directory, too long, or with a NUL byte
        return None
    alike = [entry for entry in entries if folded(entry) == folded(name)]
    if len(alike) == 1:
        return alike[0]
    return None


def is_there(path: Path) -> bool:
    """Return whether *path* exists; a path that is too long does not."""
    try:
        return path.exists()
    except OSError:
        return False


def identity_of(status: os.stat_result) -> Identity:
    """Return the values that differ between two states of a file."""
    return status.st_size, status.st_mtime_ns, status.st_ino


def _look(
    at: int | str, prefix: str, identities: dict[str, Identity], seen: int
) -> int:
    """Add the files of the directory *at* to *identities*; return the number of all
    entries seen.

    If *at* is a descriptor, it is closed.
    """
    try:
        directories = []
        with os.scandir(at) as entries:
            for entry in entries:
                # Directories and links too: a script may leave a million for each later
                # call to walk.
                seen += 1
                if seen > FILE_LIMIT:
                    return seen
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not name.startswith(".") and name not in _UNWATCHED:
                        directories.append(name)
                elif entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    identities[prefix + name] = identity_of(status)
        if prefix.count("/") >= _DEEPEST:
            return seen
        for name in directories:
            with suppress(OSError):
                below: int | str
                if isinstance(at, str):
                    below = f"{at}/{name}"
                else:
                    below = os.open(name, _LISTED | os.O_NOFOLLOW, dir_fd=at)
                seen = _look(below, f"{prefix}{name}/", identities, seen)
            if seen > FILE_LIMIT:
                break
        return seen
    finally:
        if isinstance(at, int):
            os.close(at)


def _copied_whole(source: BinaryIO, destination: Path) -> Path:
    """Copy *source* to *destination* atomically: a full disk or the end of this process
    does not leave a part of it there.
    """
    # Archives and compression, which most calls do not need.
    from shutil import copyfileobj

    if os.path.lexists(destination):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(destination))
    partial = destination.parent / f".{os.urandom(8).hex()}.part"
    try:
        with partial.open("xb") as file:
            copyfileobj(source, file)
        try:
            # Not a rename, which would replace a file that was made meanwhile.
            destination.hardlink_to(partial)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links, such as FAT
            partial.rename(destination)
    finally:
        partial.unlink(missing_ok=True)
    return destination


def _encodable(path: str) -> str:
    """Return *path* with bytes that are not UTF-8 escaped, because JSON text cannot
    hold them.
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")
