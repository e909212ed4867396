"""Directories -> SkillCatalog. Reads only the frontmatter of each SKILL.md, and does not open unchanged files.

One bad file does not affect the others: every skill is either read or reported by a diagnostic.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.file_opening import NO_FOLLOW, READ_FLAGS
from skillruntime.catalog.index import index_path, load_index, save_index
from skillruntime.catalog.root_snapshot import Entry, Listing, Root, Snapshot, Stamp
from skillruntime.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from skillruntime.catalog.summary import Summary

__all__ = ["MAX_DEPTH", "discover"]

MAX_DEPTH = 5
"""How many levels below its root a skill's directory may be; directories inside a skill belong to that skill."""

MAX_DIRECTORIES = 20_000
"""How many directories without a SKILL.md are searched in one root."""

_SKIPPED = frozenset({".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", "venv", ".tox"})
_KIND, _REGULAR, _LINK, _DIRECTORY = 0o170000, 0o100000, 0o120000, 0o040000


def discover(
    *roots: str | os.PathLike[str] | Root,
    trusted: bool = False,
    missing_ok: bool = False,
    use_index: bool = True,
    index_file: str | os.PathLike[str] | None = None,
    derive_contracts: bool = True,
) -> SkillCatalog:
    """Return the catalog of all skills under *roots*; if two skills have the same name, the earlier root wins.

    A root is a skill's directory or a directory of skills, nested up to `MAX_DEPTH`. *trusted* applies to every root
    that is not itself a `Root`. Nothing that a root contains raises an exception: see ``catalog.diagnostics``.

    What was read is stored in an index, so that the next start opens only files that have changed: each SKILL.md is
    compared by size, modification time and inode. The index is in the user's cache directory, or where
    ``SKILLRUNTIME_CACHE`` says (``off``: none), or in *index_file*; with ``use_index=False`` there is none.

    With *derive_contracts*, each script of a skill without a contract becomes a tool, whose contract is read from the
    script's source when the skill is activated; trust and approval apply to it as to every script.

    Raises:
        FileNotFoundError: a root does not exist. With *missing_ok* that is a diagnostic.
        NotADirectoryError: a root is a file.
    """
    path = None if not use_index else index_path() if index_file is None else os.fsdecode(index_file)
    wanted = list(dict.fromkeys(_as_root(root, trusted) for root in roots))
    if not missing_ok:
        _require_directories(wanted)
    snapshots = _read_roots(wanted, load_index(path, wanted) if path else {}, path)
    return SkillCatalog(
        snapshots,
        rescan=lambda known: _read_roots(wanted, {snapshot.root: snapshot for snapshot in known}, path),
        derive=derive_contracts,
        search_directory=os.path.dirname(path) if path else None,  # noqa: PTH120
    )


def _read_roots(roots: Sequence[Root], known: Mapping[Root, Snapshot], path: str | None) -> list[Snapshot]:
    """Return the current snapshots of *roots*, and write those that are not *known* to the index at *path*."""
    snapshots = [read_root(root, known.get(root)) for root in roots]
    changed = [fresh for fresh in snapshots if fresh.root not in known or not fresh.is_stored_as(known[fresh.root])]
    if path and changed:
        save_index(path, changed)
    return snapshots


def _as_root(root: str | os.PathLike[str] | Root, trusted: bool) -> Root:
    if isinstance(root, Root):
        return Root(_absolute(root.path), root.trusted, root.scope)
    return Root(_absolute(root), trusted)


def _require_directories(roots: Iterable[Root]) -> None:
    for root in roots:
        if "\0" in root.path or not os.path.lexists(root.path):
            raise FileNotFoundError(
                f"There is no directory {root.path!r} to discover skills in; "
                "correct the path, or pass missing_ok=True if it may be absent"
            )
        if not os.path.isdir(root.path):  # noqa: PTH112
            raise NotADirectoryError(f"{root.path!r} is a file; pass the directory that contains it")


def _absolute(path: str | os.PathLike[str]) -> str:
    return os.path.abspath(os.path.expanduser(os.fsdecode(path)))  # noqa: PTH100, PTH111 - importing pathlib would take a third of a start


def read_root(root: Root, known: Snapshot | None = None) -> Snapshot:
    """Return the current snapshot of *root*; entries that have not changed since *known* are reused unopened."""
    reading = _Reading(root, known)
    try:
        reading.read()
    except (OSError, ValueError) as error:
        reading.report("directory-unreadable", root.path, _reason(error))
    return reading.finish()


class _Reading:
    """One walk over one root."""

    def __init__(self, root: Root, known: Snapshot | None) -> None:
        self.root = root
        self.known = known
        self.entries: list[Entry] = []
        self.new_stamps = bytearray()
        self.notes: dict[int, tuple[Diagnostic, ...]] = {}
        self.read_summary: Callable[[int, str, str, list[Diagnostic]], Summary | None] | None = None
        self.unchanged: list[int] = []
        self.problems: list[Diagnostic] = []
        self.directories = 0
        self.only_skills = True
        self.listing: Listing | None = None
        self.started = time.time_ns()
        entries = known.entries if known else []
        # Skills whose path does not follow from their name, by path; `unchanged_entries` checks all others in one loop.
        self.unusual = {entry[0]: position for position, entry in enumerate(entries) if entry[0] is not None}

    def read(self) -> None:
        path = self.root.path
        # `os.path.isdir` would only return false, without a reason.
        if "\0" in path:
            self.report("directory-unreadable", path.replace("\0", "\\0"), "the path contains a NUL character")
            return
        if not os.path.isdir(path):  # noqa: PTH112
            what = (
                "it is a file; pass the directory that contains it"
                if os.path.lexists(path)
                else "the directory does not exist"
            )
            self.report("root-missing", path, what)
            return
        if self.take(path, os.path.basename(path), "SKILL.md"):  # noqa: PTH119
            return
        known = self.known
        if known is not None:
            self.unchanged = self.unchanged_entries(known)
        listing = self.listing_stamp()
        if known is None:
            self.descend(set())
        elif len(self.unchanged) < len(known.entries) or listing is None or listing != known.listing:
            self.descend({known.entries[position][1] for position in self.unchanged})
        # Deeper skills, or entries that had errors, can change without a change of the root directory.
        if self.only_skills and self.directories <= 1 and not self.problems:
            self.listing = listing

    def descend(self, passed: set[str]) -> None:
        """Take every skill below the root, level by level; children of the root in *passed* are already done."""
        level = [self.root.path]
        for depth in range(MAX_DEPTH + 1):
            deeper: list[str] = []
            for directory in level:
                self.directories += 1
                if self.directories > MAX_DIRECTORIES:
                    self.report(
                        "too-many-directories",
                        self.root.path,
                        f"only the first {MAX_DIRECTORIES:,} directories are searched",
                    )
                    return
                self.look_into(directory, set() if depth else passed, deeper, is_last=depth == MAX_DEPTH)
            level = deeper

    def look_into(self, directory: str, passed: set[str], deeper: list[str], *, is_last: bool) -> None:
        """Take the skills directly in *directory*, and add to *deeper* the directories to search next."""
        try:
            with os.scandir(directory) as children:
                directories, links, other_cases = self.sort_children(children, passed)
        except OSError as error:
            self.report("directory-unreadable", directory, _reason(error))
            return
        # On a case-insensitive file system SKILL.md was already found; `max` prefers the most lower-case name.
        if other_cases and self.take(directory, os.path.basename(directory), max(other_cases)):  # noqa: PTH119
            return
        prefix = directory.rstrip("/") + "/"
        for name in () if is_last else directories:
            path = prefix + name
            if not self.take(path, name, "SKILL.md", is_link=name in links) and not (name in links and _is_loop(path)):
                deeper.append(path)

    def sort_children(
        self, children: Iterable[os.DirEntry[str]], passed: Container[str]
    ) -> tuple[list[str], set[str], list[str]]:
        """Return the names of the directories among *children*, without the *passed* ones.

        Also return which of them are links, and the files named SKILL.md in another case.
        """
        directories: list[str] = []
        links: set[str] = set()
        other_cases: list[str] = []
        for child in children:
            name = child.name
            if name in _SKIPPED or name in passed:
                continue
            try:
                is_link = child.is_symlink()
                is_directory = child.is_dir()
            except OSError:
                is_link, is_directory = True, False
            if is_directory:
                directories.append(name)
                # Installers link skills from one store into the directories of several clients: followed, but reported.
                if is_link:
                    links.add(name)
            else:
                self.only_skills &= not is_link  # its target may appear later without a change of this directory
            if len(name) == 8 and _is_other_case(name):
                other_cases.append(name)
        return directories, links, other_cases

    def unchanged_entries(self, known: Snapshot) -> list[int]:
        """Return the positions of the *known* skills directly below the root that have not changed.

        Skills whose path does not follow from their name are not included: `descend` finds them.
        """
        # Relative to an open directory the kernel resolves a shorter path for each file: a fifth faster.
        root, prefix = None, self.root.path.rstrip("/") + "/"
        if os.stat in os.supports_dir_fd:
            root, prefix = os.open(self.root.path, READ_FLAGS), ""
        lstat = os.lstat
        unchanged: list[int] = []
        try:
            stamps = struct.iter_unpack("=3q", known.stamps)
            for position, (entry, stamp) in enumerate(zip(known.entries, stamps, strict=True)):
                if entry[0] is not None:
                    continue
                try:  # a warm start spends most of its time here
                    stat = lstat(f"{prefix}{entry[1]}/SKILL.md", dir_fd=root)
                except OSError:
                    continue
                if (stat.st_size, stat.st_mtime_ns, stat.st_ino) == stamp:
                    unchanged.append(position)
        finally:
            if root is not None:
                os.close(root)
        return unchanged

    def listing_stamp(self) -> Listing | None:
        """Return the stamp of the root's list of children, or ``None`` if a change could leave the stamp the same."""
        # The change time (ctime) cannot be set by a program, unlike the modification time.
        stat = os.stat(self.root.path)  # noqa: PTH116
        changed = stat.st_ctime_ns
        return None if self.may_still_change(changed) else (changed, stat.st_ino & _MAX)

    def take(self, directory: str, name: str, file_name: str, *, is_link: bool = False) -> bool:
        """Take the skill in *directory*; return whether there is a SKILL.md, valid or not."""
        path = f"{directory}/{file_name}"
        position = self.unusual.get(path)
        if position is not None and self.is_unchanged(path, position):
            self.unchanged.append(position)
            return True
        try:
            # Opened first and examined then: a file that is examined by its path can be another one when it is opened.
            descriptor = os.open(path, READ_FLAGS | NO_FOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            self.report_unopened(path, error)
            return True
        try:
            status = os.fstat(descriptor)
            kind = status.st_mode & _KIND
            if kind != _REGULAR:
                self.report_kind(path, kind)
                return kind != _DIRECTORY
            found = self.notes_on(directory, path, file_name, status, is_link=is_link)
            if self.read_summary is None:
                from skillruntime.catalog.skill_file import read_summary  # not needed for an import or a warm start

                self.read_summary = read_summary
            summary = self.read_summary(descriptor, path, name, found)
        finally:
            os.close(descriptor)
        stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
        self.add(_entry(summary, path, self.root), self.settled(stamp), tuple(found))
        return True

    def is_unchanged(self, path: str, position: int) -> bool:
        """Whether the known file *path* still has its stamp."""
        try:
            status = os.lstat(path)
        except OSError:
            return False
        return self.known_stamp(position) == (status.st_size, status.st_mtime_ns, status.st_ino)

    def notes_on(
        self, directory: str, path: str, file_name: str, status: os.stat_result, *, is_link: bool
    ) -> list[Diagnostic]:
        """Return what is unusual about the file itself."""
        found: list[Diagnostic] = []
        if file_name != "SKILL.md":
            message = f"the file is named {file_name}, not SKILL.md"
            found.append(Diagnostic("file-name-case", Severity.WARNING, path, message))
        if is_link:
            target = os.path.realpath(directory)
            if not target.startswith(os.path.realpath(self.root.path).rstrip(os.sep) + os.sep):
                message = f"the skill's directory is a symbolic link out of its root, to {target}"
                found.append(Diagnostic("directory-link", Severity.WARNING, path, message))
        if status.st_nlink > 1:
            # Package installers create hard links (uv, pnpm); an attacker could use one to show a file from elsewhere.
            message = f"the file has {status.st_nlink} hard links; a change under another path changes this skill"
            found.append(Diagnostic("hard-link", Severity.ADVICE, path, message))
        return found

    def report_unopened(self, path: str, error: OSError) -> None:
        """Report why the SKILL.md *path* cannot be opened."""
        try:
            kind = os.lstat(path).st_mode & _KIND
        except OSError:
            kind = _REGULAR
        if kind == _LINK:
            # It could point to any file that the host can read, a key for example, and put that into a prompt.
            self.report("link-outside", path, "it is a symbolic link; skipped")
        elif kind != _REGULAR:
            self.report_kind(path, kind)
        else:
            self.report("skill-unreadable", path, _reason(error))

    def report_kind(self, path: str, kind: int) -> None:
        self.report("not-a-file", path, f"it is {_KINDS.get(kind, 'not a regular file')}; skipped")

    def add(self, entry: Entry, stamp: Stamp, notes: tuple[Diagnostic, ...]) -> None:
        """Add the entry of one file, in its final form: intermediate objects would fragment the memory."""
        if notes:
            self.notes[len(self.entries)] = notes
        self.entries.append(entry)
        self.new_stamps += struct.pack("=3q", *stamp)

    def report(self, rule: str, path: str, message: str) -> None:
        severity = Severity.WARNING if rule == "too-many-directories" else Severity.ERROR
        self.problems.append(Diagnostic(rule, severity, path, message))

    def finish(self) -> Snapshot:
        """Return the snapshot; if nothing has changed, with the same entries as the known one."""
        known, problems = self.known, tuple(self.problems)
        if known is not None:
            if not self.entries and len(self.unchanged) == len(known.entries):
                same = (problems, self.listing) == (known.problems, known.listing)
                return known if same else replace(known, problems=problems, listing=self.listing)
            for position in self.unchanged:
                self.add(known.entries[position], self.known_stamp(position), known.notes.get(position, ()))
        entries = self.entries
        # By name, so that neither the index nor a collision depends on the order of the file system.
        order = sorted(range(len(entries)), key=lambda position: (entries[position][1], entries[position][0] or ""))
        numbers = memoryview(self.new_stamps).cast("q")
        stamps = bytearray()
        for position in order:
            stamps += numbers[3 * position : 3 * position + 3]
        notes = {new: self.notes[old] for new, old in enumerate(order) if old in self.notes}
        return Snapshot(
            self.root, [entries[position] for position in order], bytes(stamps), notes, problems, self.listing
        )

    def known_stamp(self, position: int) -> Stamp:
        stamps = self.known.stamps if self.known else b""
        return struct.unpack_from("=3q", stamps, 24 * position)

    def settled(self, stamp: Stamp) -> Stamp:
        """Return *stamp*, or one that matches no file if the file could still change without changing its stamp."""
        size, modified, inode = stamp
        return -1 if self.may_still_change(modified) else size, modified, inode & _MAX

    def may_still_change(self, time_ns: int) -> bool:
        """Whether a later change could have the same *time_ns*.

        The clock of a file system ticks every few milliseconds, or seconds (FAT), so two edits can have one time.
        """
        tick = _COARSE_TICK if time_ns % 1_000_000_000 == 0 else _TICK
        return self.started - tick <= time_ns <= self.started + _FUTURE


_TICK, _COARSE_TICK, _FUTURE = 20_000_000, 2_000_000_000, 3_600_000_000_000  # nanoseconds
_MAX = 2**63 - 1


def _entry(summary: Summary | None, path: str, root: Root) -> Entry:
    if summary is None:
        return Entry(path, "", "", None, 0, root)
    name, description, version, flags = summary
    usual = path == f"{root.path}/{name}/SKILL.md"
    return Entry(None if usual else path, name, description, version and sys.intern(version), flags, root)


def _is_other_case(name: str) -> bool:
    return name != "SKILL.md" and name.lower() == "skill.md"


def _is_loop(path: str) -> bool:
    """Whether the linked directory *path* is one of its own parents."""
    target = os.path.realpath(path)
    return (os.path.realpath(os.path.dirname(path)) + os.sep).startswith(target.rstrip(os.sep) + os.sep)  # noqa: PTH120


_KINDS = {
    _DIRECTORY: "a directory",
    0o010000: "a FIFO",
    0o140000: "a socket",
    0o020000: "a device",
    0o060000: "a device",
}


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return f"it cannot be read: {text}"
