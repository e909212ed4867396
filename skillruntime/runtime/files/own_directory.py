"""Give the scripts of an untrusted skill a working directory outside the workspace.

The workspace is the working directory of trusted scripts, which are not confined, and
perhaps of the user's shell. Many programs run code that they find there
(``core.fsmonitor`` in a ``.git/config``, a ``conftest.py``), so an untrusted script
never writes into it. The files and directories of the workspace that the caller named
are copied into the skill's directory, and the files that its scripts make are copied to
``skill-files/NAME`` in the workspace: only regular files, never over another file, and
never a dotfile. If the scripts remove such a file, it is removed there too; files of
the host stay.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from skillruntime.catalog.visibility import visible_line
from skillruntime.contract.caller_texts import TextPlace, texts_in
from skillruntime.contract.schemas.pointer import Edit
from skillruntime.errors import ToolExecutionError
from skillruntime.runtime.files.named_files import (
    Contents,
    CopiedFile,
    NamedFiles,
    listed_inside,
    refuse_excess,
    ungranted,
)
from skillruntime.runtime.files.skill_copy import safe_name
from skillruntime.runtime.files.workspace import (
    Identity,
    Workspace,
    identity_of,
    is_there,
)
from skillruntime.runtime.grants import Grants
from skillruntime.runtime.sandbox.protocol import Limits
from skillruntime.runtime.sandbox.without_links import open_without_links, used_bytes

__all__ = ["RESULTS", "CallFiles", "OwnDirectory", "own_directory"]

RESULTS = "skill-files"
"""The directory of the workspace that receives the files of untrusted skills, each
skill's in a directory of its name.
"""

_MOST_NAMED = 3  # a refusal names at most this many dotfiles of one directory

MOST_RESULTS = 1_000
"""The most new files of one call that are copied to the workspace."""

_DIRECTORY = (
    os.O_RDONLY
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
# Opening a FIFO must not wait for its other end.
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


class OwnDirectory:
    """The working directory of one untrusted skill in one session, with a record of the
    files that it exchanged with *workspace*.

    *limit* is the most bytes that a call may copy in, and that all calls together may
    leave in the workspace.
    """

    def __init__(self, workspace: Workspace, skill: str, limit: int) -> None:
        self.workspace = workspace
        self.files: Workspace = Workspace()
        self.limit = limit
        self.results: PurePath = PurePath(RESULTS, skill)
        # The state of each copied file at the time of the copy, by path: a file that
        # the host has changed since is left alone.
        self.copied_in: dict[str, Identity] = {}
        self.copied_out: dict[str, Identity] = {}
        self.bytes_out = 0

    def held_bytes(self) -> float:
        """Return the bytes that the directory takes on its disk; infinity if they
        cannot be measured.
        """
        try:
            at = open_without_links(str(self.files.directory), flags=_DIRECTORY)
        except OSError:
            return 0
        return used_bytes(at)


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
    """The directory of an untrusted skill as one call sees it; it has the methods of
    `WatchedWorkspace`.

    *texts* are the places of the arguments whose texts the caller sent: the files that
    they name in the workspace are copied, up to *limits*.
    """

    def __init__(
        self, own: OwnDirectory, texts: Collection[TextPlace], limits: Limits
    ) -> None:
        self.workspace: Workspace = own.workspace
        self.missing: list[str] = []
        self._own = own
        self._texts = texts
        self._limits = limits
        # The path of each copy in the skill's directory, with its source.
        self._named: dict[PurePath, Path] = {}
        self._copied: dict[PurePath, Path] = {}
        self._absent: list[str] = []
        self._not_sent: dict[str, None] = {}
        self._not_there: dict[str, None] = {}
        self._parents: set[PurePath] = set()
        self._contents: dict[PurePath, Contents] = {}
        self._grants = Grants()
        self.unseen: Grants = Grants()
        """The grants for files that the script works on although no argument names
        them.
        """
        self._before: dict[str, Identity] | None = None
        self._is_open = False
        self._changes: list[dict[str, Any]] | None = None

    def resolve(self, path: str, place: TextPlace) -> Path | None:
        """Return the path at which the script finds the file *path* of the workspace;
        None if *path* leads out of it. The model wrote *path*, at *place* of the
        arguments.

        If the caller sent *path* and the file exists, it is copied for the script when
        the call starts.
        """
        own = self._own
        source = own.workspace.find(path)
        if source is None:
            # The path leads out of the workspace, perhaps through a link. A file is
            # there for the script only if an earlier call made it.
            made = own.files.resolve(path)
            if made is None or not is_there(made):
                return None
            return made
        target = own.files.resolve(str(self._relative(source)))
        if target is None:
            return None
        # An empty text does not name a file: models send it for a file that they do not
        # have.
        if not path:
            return target
        is_callers = place in self._texts
        if is_there(source) and not is_callers:
            self._note_not_sent(path, source, target)
        elif is_there(source):
            self._named[PurePath(target.relative_to(own.files.directory))] = source
        elif is_callers:
            self._note_parent(source, target)
            self._note_missing(path, target)
        elif not is_there(target):
            self.missing.append(path)
        return target

    def with_named_files(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return *arguments*, and copy in each file whose exact path is one of the
        caller's texts: many scripts do not declare which texts are paths.

        An absolute path becomes the path of the copy; a relative path already leads to
        the copy, or becomes its relative path.
        """
        edit = Edit(arguments)
        for place, text in [*texts_in(arguments)]:
            if place.is_key or not text:
                continue
            source = self._own.workspace.resolve(text)
            if source is None:
                continue
            if not is_there(source):
                self._note_absent(text, source, place)
                continue
            copy = self.resolve(text, place)
            if copy is None or place not in self._texts:
                continue
            relative = copy.relative_to(self._own.files.directory)
            if PurePath(text).is_absolute():
                edit.put(place.path, str(copy))
            elif os.path.normpath(text) != str(relative):
                edit.put(place.path, str(relative))
        changed: dict[str, Any] = edit.value
        return changed

    def look(self, grants: Grants) -> NamedFiles:
        """Return the files that will be copied in for the call with these *grants*.

        Raises:
            ToolExecutionError: a named file is missing, cannot be copied, or is too
                large; or the session's directories are full.
        """
        self._refuse_absent()
        self._refuse_full()
        copied: dict[PurePath, CopiedFile] = {}
        dotfiles: dict[str, None] = {}
        empty: list[str] = []
        left = self._own.limit
        total = Contents()
        self._contents = {}
        self._grants = grants
        self._copied = self._named | self._granted(grants)
        for target, source in self._copied.items():
            path = PurePath(source.relative_to(self.workspace.directory))
            hidden = ungranted(path, grants.dotfiles)
            if hidden is not None:
                dotfiles[str(hidden)] = None
            elif source.is_dir():
                contents = self._listed(path, grants)
                total.files |= contents.files
                total.links |= contents.links
                total.directories += contents.directories
                total.is_cut = total.is_cut or contents.is_cut
                refuse_excess(str(path), total, self._limits)
                self._contents[target] = contents
                copied[path] = _copied_directory(path, contents)
                if not contents.files and contents.dotfiles:
                    dotfiles |= dict.fromkeys(sorted(contents.dotfiles)[:_MOST_NAMED])
                elif not contents.files and not contents.directories:
                    empty.append(str(path))
            else:
                size = _size_of(source)
                left -= size
                if left < 0:
                    raise _too_large(source, self._own.limit)
                copied[path] = CopiedFile(str(path), size)
        return NamedFiles(
            tuple(copied[path] for path in sorted(copied)),
            tuple(dotfiles),
            tuple(empty),
            tuple(self._not_sent),
            tuple(self._not_there),
        )

    def open(self) -> Path:
        """Copy in the files that the call names, and return the directory; new and
        changed files are listed from now on.

        Raises:
            ToolExecutionError: a file that the call names cannot be copied.
        """
        if not self._is_open:
            self._is_open = True
            for directory in self._parents:
                # If a script made a link in its place, the script finds the link.
                with suppress(OSError):
                    os.close(
                        _made_directory(self._own.files.directory, directory.parts)
                    )
            for target, source in self._copied.items():
                self._copy_in(target, source)
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
                self._remove_results(self._before)
                changes = self._own.files.changes(self._before)
                for change in changes[:MOST_RESULTS]:
                    copied = self._copied_out(change)
                    if copied is not None:
                        self._changes.append(copied)
        return self._changes

    def _remove_results(self, before: Iterable[str]) -> None:
        """Remove from the workspace those of the skill's results that the script
        removed: clean.py of a presentation skill removes slides that pack.py would
        pack.

        A result that the host has changed stays, and so do all other files.
        """
        own = self._own
        results = own.workspace.directory / own.results
        for path in before:
            destination = results / path
            known = own.copied_out.get(str(destination))
            if known is None or os.path.lexists(own.files.directory / path):
                continue
            with suppress(OSError):
                if known == identity_of(destination.lstat()):
                    destination.unlink()
                    own.bytes_out -= known[0]
                    del own.copied_out[str(destination)]

    def uncopied(self, words: Iterable[str]) -> Grants:
        """Return the grants that would have given the script the workspace files that
        *words* name, and `unseen`.
        """
        missed = self.unseen
        for word in words:
            source = self.workspace.resolve(word)
            if source is None or not is_there(source):
                continue
            path = PurePath(source.relative_to(self.workspace.directory))
            if not is_there(self._own.files.directory / self._relative(source)):
                missed |= self._grant_for(path)
        if "." in missed.files:
            return replace(missed, files=(".",))
        return missed

    def _grant_for(self, path: PurePath) -> Grants:
        """Return the grant that gives the script a copy of *path*."""
        hidden = ungranted(path, self._grants.dotfiles)
        if hidden is None:
            return Grants(files=(str(path),))
        dotfiles = (str(hidden),)
        for target in self._contents:
            if hidden.is_relative_to(target):  # it was left out of the copied directory
                return Grants(dotfiles=dotfiles)
        if (self.workspace.directory / hidden).is_dir():
            # Such a directory describes its surroundings, as `.git` does.
            path = hidden.parent
        return Grants(dotfiles=dotfiles, files=(str(path),))

    def has_untrusted_files(self) -> bool:
        """Return True: an untrusted script may always have written into its own
        directory.
        """
        return True

    @property
    def is_unwatched(self) -> bool:
        """Whether the directory holds too many files to compare; then none of them is
        copied to the workspace.
        """
        return self._is_open and self._before is None

    def _relative(self, source: Path) -> PurePath:
        """Return the path in the skill's directory for *source*, a path in the
        workspace. A result of the skill has the name that the skill gave it.
        """
        relative = PurePath(source.relative_to(self._own.workspace.directory))
        if relative.is_relative_to(self._own.results):
            return relative.relative_to(self._own.results)
        return relative

    def _granted(self, grants: Grants) -> dict[PurePath, Path]:
        """Return the granted files that the arguments do not name, in the same form as
        the named ones.
        """
        found = {}
        for path in grants.files:
            source = self.workspace.resolve(path)
            if source is not None and is_there(source):
                found[self._relative(source)] = source
        return found

    def _note_not_sent(self, path: str, source: Path, target: Path) -> None:
        """Record that *path* exists and is not copied, because the contract supplied
        it, not the caller.
        """
        if source.is_dir() or not is_there(target):
            self._not_sent[path] = None

    def _note_parent(self, source: Path, target: Path) -> None:
        """Record the directory in which a script may create the file *source*: if the
        workspace has this directory, the skill's directory gets it too.
        """
        if is_there(source.parent) and source.parent.is_dir():
            directory = self._own.files.directory
            self._parents.add(PurePath(target.parent.relative_to(directory)))

    def _note_missing(self, path: str, target: Path) -> None:
        if is_there(target):
            return
        self.missing.append(path)
        if path.endswith(("/", "/.")):
            self._absent.append(path)

    def _note_absent(self, text: str, source: Path, place: TextPlace) -> None:
        """Record the directory of *text*, because the script may create *text* as a
        file. If *text* has the form of a directory's path, also record it as possibly
        missing: a script may silently find nothing in it.
        """
        if place not in self._texts:
            return
        target = self._own.files.resolve(str(self._relative(source)))
        if target is not None and target != self._own.files.directory:
            self._note_parent(source, target)
        is_path = text.endswith("/") and ":" not in text and text.isprintable()
        if is_path and not is_there(self._own.files.directory / text):
            self._not_there[text] = None

    def _refuse_absent(self) -> None:
        for path in self._absent:
            workspace = self.workspace
            raise ToolExecutionError(
                f"The directory {visible_line(path[:80])!r} is not in "
                f"{workspace.described()}",
                recoverable=workspace.given is not None,
                suggested_action=workspace.next_step,
            )

    def _refuse_full(self) -> None:
        """Refuse the call if the directories of the session's untrusted skills hold too
        much. Each call may add files, and the session does not empty the directories.
        """
        own = self._own
        held = sum(each.held_bytes() for each in [*self.workspace.own.values()])
        if held <= self._limits.session:
            return
        if held == float("inf"):
            size = "directories more than 64 levels deep, or that may not be listed"
        else:
            size = f"{held:,.0f} bytes"
        raise ToolExecutionError(
            f"The skill {own.results.name!r} is not started: the files that untrusted "
            f"skills keep in this session have {size}, and they may have "
            f"{self._limits.session:,} bytes",
            details={"limit_bytes": self._limits.session},
            suggested_action="Start a new session; the host can set "
            "SkillRuntime(script_limits=Limits(session=...))",
        )

    def _listed(self, path: PurePath, grants: Grants) -> Contents:
        """Return the contents of the directory at *path* that are copied."""
        apart = self._own.results
        # Inside the results directory itself nothing is skipped.
        if path.is_relative_to(apart):
            apart = PurePath("..")
        directory = self.workspace.directory
        try:
            return listed_inside(directory, path, grants.dotfiles, apart)
        except OSError as error:
            raise _not_given(str(path), error) from error

    def _copy_in(self, target: PurePath, source: Path) -> None:
        """Copy *source*, a file or a directory, to *target* in the skill's
        directory.
        """
        own, root = self._own, self.workspace.directory
        path = PurePath(source.relative_to(root))
        contents = self._contents.get(target)
        if contents is None:
            self._copy_file(path, target)
            return
        try:
            for directory in (path, *contents.directories):
                place = target / directory.relative_to(path)
                os.close(_made_directory(own.files.directory, place.parts))
            for link, leads_to in contents.links.items():
                to = os.path.relpath(leads_to, link.parent)
                place = target / link.relative_to(path)
                _place_link(own.files.directory, place, to)
        except OSError as error:
            raise _not_given(str(path), error) from error
        self._remove_stale(target, path, contents)
        for file in contents.files:
            self._copy_file(file, target / file.relative_to(path))

    def _copy_file(self, path: PurePath, target: PurePath) -> None:
        """Copy the file at *path* of the workspace to *target* in the skill's
        directory.
        """
        own, root = self._own, self.workspace.directory
        try:
            status = (root / path).lstat()
            if own.copied_in.get(str(target)) == identity_of(status):
                return  # the skill's directory already has this version
            _place(own.files.directory, target, root, path)
        except OSError as error:
            raise _not_given(path.name, error) from error
        own.copied_in[str(target)] = identity_of(status)

    def _remove_stale(
        self, target: PurePath, path: PurePath, contents: Contents
    ) -> None:
        """Remove the copies below *target* of files that are no longer at *path*."""
        own, root = self._own, self.workspace.directory
        for known in [*own.copied_in]:
            if not PurePath(known).is_relative_to(target):
                continue
            source = path / PurePath(known).relative_to(target)
            # Files that the skill made, or that a call named there, lie elsewhere.
            if source in contents.files or is_there(root / own.results / known):
                continue
            if os.path.lexists(root / source):
                continue
            del own.copied_in[known]
            with suppress(OSError):
                *parents, name = PurePath(known).parts
                directory = str(own.files.directory.joinpath(*parents))
                at = open_without_links(directory, flags=_DIRECTORY)
                try:
                    os.unlink(name, dir_fd=at)
                finally:
                    os.close(at)

    def _copied_out(self, change: dict[str, Any]) -> dict[str, Any] | None:
        """Copy a file to the workspace; return *change* with its path there, or None if
        it is not copied.
        """
        own, path = self._own, change["path"]
        # A dotfile can configure programs that run beside it, and an unprintable name
        # can garble a terminal.
        has_dotfile = any(part.startswith(".") for part in PurePath(path).parts)
        if has_dotfile or not path.isprintable():
            return None
        if own.bytes_out + change["bytes"] > own.limit:
            return None
        destination = own.workspace.directory / own.results / path
        # A script that worked in the workspace itself (``shared_workspace``) may have
        # left a link there that leads out of it.
        if destination.parent.resolve() != destination.parent:
            return None
        try:
            destination.parent.mkdir(parents=True, exist_ok=True)
            known = own.copied_out.get(str(destination))
            if known is not None and destination.exists():
                # Replace the file if the host has not changed it.
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


def _copied_directory(path: PurePath, contents: Contents) -> CopiedFile:
    number = len(contents.files) + len(contents.links)
    return CopiedFile(
        str(path),
        contents.bytes,
        number,
        dict(contents.left_out),
        tuple(sorted(contents.dotfiles)),
    )


def _size_of(source: Path) -> int:
    """Return the size of the file *source*.

    Raises:
        ToolExecutionError: *source* is not a regular file.
    """
    try:
        status = source.lstat()
    except OSError as error:
        raise _not_given(source.name, error) from error
    if not stat.S_ISREG(status.st_mode):
        raise ToolExecutionError(
            f"{source.name!r} cannot be given to the script: it is neither a file nor "
            "a directory"
        )
    return status.st_size


def _too_large(source: Path, limit: int) -> ToolExecutionError:
    return ToolExecutionError(
        f"{source.name!r} is too large for an untrusted skill: the files that a call "
        f"names have at most {limit:,} bytes",
        suggested_action="Send a smaller file; the host can set "
        "SkillRuntime(script_limits=...)",
    )


def _not_given(name: str, error: OSError) -> ToolExecutionError:
    return ToolExecutionError(
        f"{visible_line(name)!r} cannot be given to the script: {error.strerror}"
    )


def _made_directory(root: Path, parts: Iterable[str]) -> int:
    """Return a descriptor of the directory *parts* below *root*, and create it if it is
    missing. Links are not followed, because a script may have made them.
    """
    at = open_without_links(str(root), flags=_DIRECTORY)
    try:
        for part in parts:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=at)
            inner = os.open(part, _DIRECTORY, dir_fd=at)
            os.close(at)
            at = inner
    except OSError:
        os.close(at)
        raise
    return at


def _place(root: Path, path: PurePath, workspace: Path, source: PurePath) -> None:
    """Copy the file *source* of *workspace* to *path* below *root*, without following
    links in either path: a script may have made them.

    Raises:
        OSError: the file cannot be read, or a part of a path is a link.
    """
    at = _made_directory(root, path.parts[:-1])
    try:
        read = open_without_links(f"{workspace}/{source}", flags=_READ)
        with os.fdopen(read, "rb") as file:
            with suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=at)
            # Keep the executable bit, because git compares the mode.
            mode = 0o644
            if os.fstat(read).st_mode & stat.S_IXUSR:
                mode = 0o755
            written = os.open(path.name, _NEW, mode, dir_fd=at)
            with os.fdopen(written, "wb") as copy:
                shutil.copyfileobj(file, copy)
    finally:
        os.close(at)


def _place_link(root: Path, path: PurePath, leads_to: str) -> None:
    """Create the link *path* below *root*."""
    at = _made_directory(root, path.parts[:-1])
    try:
        with suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=at)
        os.symlink(leads_to, path.name, dir_fd=at)
    finally:
        os.close(at)
