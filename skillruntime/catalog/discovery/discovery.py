"""Directories -> SkillCatalog. Reads only the frontmatter of each SKILL.md, and does
not open unchanged files.

One bad file does not affect the others: every skill is either read or reported by a
diagnostic.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.discovery.index import index_path, load_index, save_index
from skillruntime.catalog.discovery.root_diagnostics import PARTS_OF_A_SKILL, SKIPPED
from skillruntime.catalog.discovery.root_snapshot import (
    STAMP,
    DirectoryStamp,
    Entry,
    Root,
    Snapshot,
    absolute,
    packed_stamp,
    stamp_at,
)
from skillruntime.catalog.file_opening import NO_FOLLOW, READ_FLAGS
from skillruntime.catalog.skill import Skill
from skillruntime.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from skillruntime.catalog.discovery.sources import SkillCopies, SkillSource
    from skillruntime.catalog.discovery.summary import Summary

__all__ = ["MAX_DEPTH", "discover"]

MAX_DEPTH = 5
"""How many levels below its root a skill's directory may be; directories inside a skill
belong to that skill.
"""

MAX_DIRECTORIES = 20_000
"""How many directories without a SKILL.md are searched in one root."""

# The bits of a mode: S_IFMT, S_IFREG, S_IFLNK.
_KIND = 0o170000
_REGULAR = 0o100000
_LINK = 0o120000
_KINDS = {
    0o040000: "a directory",
    0o010000: "a FIFO",
    0o140000: "a socket",
    0o020000: "a device",
    0o060000: "a device",
}


def discover(
    *roots: str | os.PathLike[str] | Root | SkillSource | Skill,
    trusted: bool = False,
    missing_ok: bool = False,
    use_index: bool = True,
    derive_contracts: bool = True,
    installed: bool | str | Iterable[str] = False,
    frozen: str | os.PathLike[str] | None = None,
) -> SkillCatalog:
    """Return the catalog of all skills under *roots*; if two skills have the same name,
    the earlier root wins.

    A root is a skill's directory or a directory of skills, nested up to `MAX_DEPTH`, or
    both. A valid skill below the root contains no others; in and below an invalid one
    the search continues. *trusted* applies to every root that is not itself a `Root`.
    Nothing that a root contains raises an exception: see ``catalog.diagnostics``.

    A root may also be a `SkillSource`, such as a host's database, or a `Skill` that
    `Skill.from_text` made. All files of a source are copied now, and at each refresh
    those that changed; with one of these there is no index.

    What was read is stored in an index, so that the next start opens only files that
    have changed: each SKILL.md is compared by size, both times and inode. The index is
    in the user's cache directory, or where ``SKILLRUNTIME_CACHE`` says (``off``: none);
    with ``use_index=False`` there is none.

    With *derive_contracts*, each script of a skill without a contract becomes a tool,
    whose contract is read from the script's source when the skill is activated; trust
    and approval apply to it as to every script.

    *installed* adds the skills in installed packages after *roots*: of all of them with
    ``True``, or of the distributions that are named. They are never trusted; see
    `installed_roots`.

    With *frozen*, the path of a lockfile, a skill that is not in it, or that differs
    from it, is not offered: its diagnostic says how. Every file of the skills is hashed
    at the start; what is activated, and every script that is started, is hashed again
    when it is used.

    Raises:
        FileNotFoundError: a root does not exist, or a package in *installed* has no
            skills. With *missing_ok* the former is a diagnostic, and the latter is left
            out.
        NotADirectoryError: a root is a file.
        LockfileNotFoundError, InvalidSkillError: the lockfile is not there, or not
            readable.
    """
    copies: dict[Root, SkillCopies] = {}
    given = [_as_root(root, trusted, copies) for root in roots]
    # The index would only grow with copies and skills from text: the next process has
    # other directories for them.
    is_in_private_directory = copies or any(isinstance(root, Skill) for root in roots)
    if use_index and not is_in_private_directory:
        path = index_path()
    else:
        path = None
    if installed is not False:
        from skillruntime.catalog.discovery.installed import installed_roots

        given += installed_roots(installed, missing_ok=missing_ok)
    guard = None
    if frozen is not None:
        from skillruntime.catalog.checks.lockfile import FrozenGuard

        guard = FrozenGuard(os.fsdecode(frozen))
    wanted = list(dict.fromkeys(given))
    if not missing_ok:
        _require_directories(wanted)

    def read_again(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
        known = {snapshot.root: snapshot for snapshot in snapshots}
        return _read_roots(wanted, known, path, copies)

    indexed = load_index(path, wanted) if path else {}
    return SkillCatalog(
        _read_roots(wanted, indexed, path, copies),
        rescan=read_again,
        derive=derive_contracts,
        guard=guard,
        is_indexed=path is not None,
    )


def _read_roots(
    roots: Sequence[Root],
    known: Mapping[Root, Snapshot],
    path: str | None,
    copies: Mapping[Root, SkillCopies],
) -> list[Snapshot]:
    """Return the current snapshots of *roots*, and write those that are not *known* to
    the index at *path*.
    """
    snapshots: list[Snapshot] = []
    changed: list[Snapshot] = []
    for root in roots:
        if root in copies:
            fresh = _read_copy(root, copies[root])
        else:
            fresh = read_root(root, known.get(root))
        snapshots.append(fresh)
        if root not in known or not fresh.is_stored_as(known[root]):
            changed.append(fresh)
    if path and changed:
        save_index(path, changed)
    return snapshots


def _read_copy(root: Root, copies: SkillCopies) -> Snapshot:
    """Return the current snapshot of *root*, to which a source is copied, with what
    could not be read of it.
    """
    unread = copies.update()
    snapshot = read_root(root)
    return snapshot._replace(problems=(*snapshot.problems, *unread))


def _as_root(
    root: str | os.PathLike[str] | Root | SkillSource | Skill,
    trusted: bool,
    copies: dict[Root, SkillCopies],
) -> Root:
    if isinstance(root, Skill):
        return Root(str(root.directory), trusted)
    path = root.path if isinstance(root, Root) else root
    if isinstance(path, str | bytes | os.PathLike):
        if isinstance(root, Root):
            return replace(root, path=absolute(path))
        return Root(absolute(path), trusted)
    if isinstance(root, Root) or not hasattr(path, "skills"):
        raise TypeError(
            "discover takes directories, one by one: discover('skills', "
            f"'more-skills'); got {root!r:.80}"
        )
    from skillruntime.catalog.discovery.sources import SkillCopies

    source_copies = SkillCopies(path)
    own = Root(source_copies.directory, trusted)
    copies[own] = source_copies
    return own


def _require_directories(roots: Iterable[Root]) -> None:
    for root in roots:
        if "\0" in root.path or not os.path.lexists(root.path):
            raise FileNotFoundError(
                f"There is no directory {root.path!r} to discover skills in; "
                "correct the path, or pass missing_ok=True if it may be absent"
            )
        if not os.path.isdir(root.path):
            raise NotADirectoryError(
                f"{root.path!r} is a file; pass the directory that contains it"
            )


def read_root(root: Root, known: Snapshot | None = None) -> Snapshot:
    """Return the current snapshot of *root*; entries that have not changed since
    *known* are reused unopened.
    """
    reading = _Reading(root, known)
    try:
        reading.read()
    except (OSError, ValueError) as error:
        reading.report("directory-unreadable", root.path, _reason(error))
    return reading.finish()


_NONE, _FAULTY, _VALID = range(3)
"""What there is in a directory: no SKILL.md, one that is not a valid skill, or a
skill.
"""


class _Reading:
    """One reading of one root."""

    def __init__(self, root: Root, known: Snapshot | None) -> None:
        self.root = root
        self.known = known
        self.entries: list[Entry] = []
        # Ten thousand objects of 65 bytes would leave holes in the memory.
        self.stamps = bytearray()
        self.notes: dict[int, tuple[Diagnostic, ...]] = {}
        self.read_summary: (
            Callable[[int, str, str, list[Diagnostic]], Summary | None] | None
        ) = None
        self.reusable: dict[str, int] = {}
        """The positions of the known entries that have not changed, by path; empty
        until the root is walked.
        """
        self.reused = 0
        self.problems: list[Diagnostic] = []
        self.searched: list[DirectoryStamp] = []
        self.skipped = SKIPPED
        self.is_stable = True
        """Whether every new skill changes the stamp of a directory."""
        self.started = time.time_ns()
        self.recent = self.started - _COARSE_TICK
        self.result: Snapshot | None = None

    def read(self) -> None:
        path = self.root.path
        # `os.path.isdir` would only return false, without a reason.
        if "\0" in path:
            self.report(
                "directory-unreadable",
                path.replace("\0", "\\0"),
                "the path contains a NUL character",
            )
            return
        if not os.path.isdir(path):
            if os.path.lexists(path):
                what = "it is a file; pass the directory that contains it"
            else:
                what = "the directory does not exist"
            self.report("root-missing", path, what)
            return
        known = self.known
        if known is not None:
            changed = self.changed_entries(known)
            if not changed and _are_unchanged(known.searched):
                self.result = known
                return
            self.reusable = {
                entry.file: position
                for position, entry in enumerate(known.entries)
                if position not in changed
            }
        self.walk()

    def changed_entries(self, known: Snapshot) -> set[int]:
        """Return the positions of the *known* entries whose file has changed or is
        gone.
        """
        # Relative to an open directory the kernel resolves a shorter path for each
        # file: a fifth faster.
        root = os.open(self.root.path, READ_FLAGS)
        lstat = os.lstat
        changed: set[int] = set()
        try:
            stamps = STAMP.iter_unpack(known.stamps)
            stamped_entries = zip(known.entries, stamps, strict=True)
            for position, (entry, stamp) in enumerate(stamped_entries):
                try:
                    # A warm start spends most of its time here. An absolute path
                    # ignores the directory.
                    stat = lstat(entry[0] or f"{entry[1]}/SKILL.md", dir_fd=root)
                except OSError:
                    changed.add(position)
                    continue
                if stamp != (
                    stat.st_size,
                    stat.st_mtime_ns,
                    stat.st_ctime_ns,
                    stat.st_ino,
                ):
                    changed.add(position)
        finally:
            os.close(root)
        return changed

    def walk(self) -> None:
        """Take every skill at and below the root, level by level."""
        root = self.root.path
        if self.take(root, os.path.basename(root), "SKILL.md") == _VALID:
            self.skipped = SKIPPED | PARTS_OF_A_SKILL
        level = [root]
        for depth in range(MAX_DEPTH + 1):
            deeper: list[str] = []
            for directory in level:
                if len(self.searched) >= MAX_DIRECTORIES:
                    limit = f"the first {MAX_DIRECTORIES:,} directories"
                    self.report(
                        "too-many-directories", root, f"only {limit} are searched"
                    )
                    return
                self.search(directory, deeper, is_last=depth == MAX_DEPTH)
            level = deeper
            self.skipped = SKIPPED

    def search(self, directory: str, deeper: list[str], *, is_last: bool) -> None:
        """Take the skills directly in *directory*, and add to *deeper* the directories
        to search next.
        """
        stamp = _stamp_of(directory)
        self.searched.append(stamp)
        if self.may_still_change(max(stamp[1:3])):
            self.is_stable = False
        try:
            with os.scandir(directory) as children:
                directories, links, other_cases = self.sort_children(children)
        except OSError as error:
            self.report("directory-unreadable", directory, _reason(error))
            return
        # On a case-insensitive file system SKILL.md was already found; `max` prefers
        # the most lower-case name.
        if other_cases and not os.path.lexists(f"{directory}/SKILL.md"):
            name = os.path.basename(directory)
            taken = self.take(directory, name, max(other_cases))
            if taken == _VALID and directory != self.root.path:
                return
        if is_last:
            return
        prefix = directory.rstrip("/") + "/"
        take = self.take
        for name in directories:
            path = prefix + name
            is_link = name in links
            if take(path, name, "SKILL.md", is_link=is_link) == _VALID:
                continue
            if not is_link or not _is_loop(path):
                deeper.append(path)

    def sort_children(
        self, children: Iterable[os.DirEntry[str]]
    ) -> tuple[list[str], set[str], list[str]]:
        """Return the names of the directories among *children*.

        Also return which of them are links, and the files named SKILL.md in another
        case.
        """
        directories: list[str] = []
        links: set[str] = set()
        other_cases: list[str] = []
        for child in children:
            name = child.name
            if name in self.skipped:
                continue
            try:
                is_link = child.is_symlink()
                is_directory = child.is_dir()
            except OSError:
                is_link = True
                is_directory = False
            if is_directory:
                directories.append(name)
                # Installers link skills from one store into the directories of several
                # clients: followed, but reported.
                if is_link:
                    links.add(name)
            elif is_link:
                # Its target may appear later without a change of this directory.
                self.is_stable = False
            # Most names have another length, which is compared faster.
            if len(name) == 8 and name != "SKILL.md" and name.lower() == "skill.md":
                other_cases.append(name)
        return directories, links, other_cases

    def take(
        self, directory: str, name: str, file_name: str, *, is_link: bool = False
    ) -> int:
        """Take the skill in *directory*; return whether there is a SKILL.md, and a
        valid one.
        """
        path = f"{directory}/{file_name}"
        reused = self.reuse(path)
        if reused is not None:
            return reused
        try:
            # Opened first and examined then: a file that is examined by its path can be
            # another one when it is opened.
            descriptor = os.open(path, READ_FLAGS | NO_FOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return _NONE
        except OSError as error:
            self.report_unopened(path, error)
            return _FAULTY
        try:
            status = os.fstat(descriptor)
            kind = status.st_mode & _KIND
            if kind != _REGULAR:
                self.report_kind(path, kind)
                return _FAULTY
            findings: list[Diagnostic] = []
            if file_name != "SKILL.md":
                message = f"the file is named {file_name}, not SKILL.md"
                findings.append(
                    Diagnostic("file-name-case", Severity.WARNING, path, message)
                )
            if is_link:
                findings += _notes_on_link(self.root.path, directory, path)
            if self.read_summary is None:
                # Not needed for an import or a warm start.
                from skillruntime.catalog.discovery.skill_file import read_summary

                self.read_summary = read_summary
            summary = self.read_summary(descriptor, path, name, findings)
        finally:
            os.close(descriptor)
        if findings:
            self.notes[len(self.entries)] = tuple(findings)
        size, modified = status.st_size, status.st_mtime_ns
        # A stamp that matches no file, if this one could still change without changing
        # its stamp.
        if modified > self.recent and self.may_still_change(modified):
            size = -1
        self.stamps += packed_stamp(size, modified, status.st_ctime_ns, status.st_ino)
        if summary is None:
            self.entries.append(Entry(path, "", "", None, 0, self.root))
            return _FAULTY
        own, description, version, flags = summary
        # The path is left out if it follows from the name and the root.
        own_path: str | None = path
        if own == name and file_name == "SKILL.md":
            is_below_root = len(directory) - len(own) - 1 == len(self.root.path)
            if is_below_root:
                own_path = None
        if version:
            version = sys.intern(version)
        # As `Entry(...)`, but in C.
        entry = _new_entry(
            Entry, (own_path, own, description, version, flags, self.root)
        )
        self.entries.append(entry)
        return _VALID

    def reuse(self, path: str) -> int | None:
        """Take the known entry of *path*, if its file has not changed; return whether
        it is a valid skill.
        """
        position = self.reusable.get(path)
        if position is None or self.known is None:
            return None
        known = self.known
        self.reused += 1
        self.entries.append(known.entries[position])
        self.stamps += known.stamp(position)
        if position in known.notes:
            self.notes[len(self.entries) - 1] = known.notes[position]
        return _VALID if known.entries[position].name else _FAULTY

    def report_unopened(self, path: str, error: OSError) -> None:
        """Report why the SKILL.md *path* cannot be opened."""
        try:
            kind = os.lstat(path).st_mode & _KIND
        except OSError:
            kind = _REGULAR
        if kind == _LINK:
            # It could point to any file that the host can read, a key for example, and
            # put that into a prompt.
            self.report("link-outside", path, "it is a symbolic link; skipped")
        elif kind != _REGULAR:
            self.report_kind(path, kind)
        else:
            self.report("skill-unreadable", path, _reason(error))

    def report_kind(self, path: str, kind: int) -> None:
        self.report(
            "not-a-file",
            path,
            f"it is {_KINDS.get(kind, 'not a regular file')}; skipped",
        )

    def report(self, rule: str, path: str, message: str) -> None:
        is_partial = rule == "too-many-directories"
        severity = Severity.WARNING if is_partial else Severity.ERROR
        self.problems.append(Diagnostic(rule, severity, path, message))

    def finish(self) -> Snapshot:
        """Return the snapshot; if nothing has changed, with the same entries as the
        known one.
        """
        if self.result is not None:
            return self.result
        known = self.known
        problems = tuple(self.problems)
        entries = self.entries
        # What had errors can change without a change of its directory.
        searched = None
        if self.is_stable and not problems:
            searched = tuple(self.searched)
        if known is not None and self.reused == len(entries) == len(known.entries):
            if (problems, searched) == (known.problems, known.searched):
                return known
            return known._replace(problems=problems, searched=searched)
        # By name, so that neither the index nor a collision depends on the order of the
        # file system.
        names = [entry[1] for entry in entries]
        paths = [entry[0] or "" for entry in entries]
        order = sorted(range(len(entries)), key=paths.__getitem__)
        order.sort(key=names.__getitem__)  # stable, and faster than one sort by pairs
        stamps = bytearray()
        # Package managers make hard links of one file in a store: it is one skill, and
        # `not_offered` counts the others.
        kept: list[int] = []
        name = ""
        seen: set[bytes] = set()
        for position in order:
            if names[position] != name:
                name = names[position]
                seen = set()
            stamp = bytes(self.stamps[stamp_at(position)])
            # Without the size, which is not that of the file where it may still change.
            file = stamp[8:]
            if file not in seen or not name:
                seen.add(file)
                stamps += stamp
                kept.append(position)
        notes = {
            new: self.notes[old] for new, old in enumerate(kept) if old in self.notes
        }
        return Snapshot(
            self.root,
            [entries[position] for position in kept],
            bytes(stamps),
            notes,
            problems,
            searched,
        )

    def may_still_change(self, time_ns: int) -> bool:
        """Return whether a later change could have the same *time_ns*.

        The clock of a file system ticks every few milliseconds, or seconds (FAT), so
        two edits can have one time.
        """
        tick = _COARSE_TICK if time_ns % 1_000_000_000 == 0 else _TICK
        return self.started - tick <= time_ns <= self.started + _FUTURE


# In nanoseconds.
_TICK = 20_000_000
_COARSE_TICK = 2_000_000_000
_FUTURE = 3_600_000_000_000


_new_entry = tuple.__new__


def _are_unchanged(searched: Sequence[DirectoryStamp] | None) -> bool:
    """Return whether the *searched* directories are known and still have their
    stamps.
    """
    if not searched:
        return False
    return all(_stamp_of(stamp[0]) == stamp for stamp in searched)


def _stamp_of(directory: str) -> DirectoryStamp:
    """Return the stamp of *directory*, which changes with its list of children."""
    try:
        status = os.stat(directory)
    except OSError:
        return directory, 0, 0, 0
    # A program can set the modification time, but not the status change time; on
    # Windows the latter does not change.
    return directory, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _notes_on_link(root: str, directory: str, path: str) -> list[Diagnostic]:
    """Return a warning if the linked *directory* of the SKILL.md at *path* is outside
    *root*.
    """
    target = os.path.realpath(directory)
    if f"{target}{os.sep}".startswith(os.path.realpath(root).rstrip(os.sep) + os.sep):
        return []
    message = f"the skill's directory is a symbolic link out of its root, to {target}"
    return [Diagnostic("directory-link", Severity.WARNING, path, message)]


def _is_loop(path: str) -> bool:
    """Return whether the linked directory *path* is one of its own parents."""
    target = os.path.realpath(path).rstrip(os.sep) + os.sep
    parent = os.path.realpath(os.path.dirname(path)) + os.sep
    return parent.startswith(target)


def _reason(error: Exception) -> str:
    return f"it cannot be read: {getattr(error, 'strerror', None) or error}"
