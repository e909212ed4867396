"""Build a `SkillCatalog` from directories. Read only the frontmatter of each SKILL.md,
and do not open unchanged files.

One bad file does not affect the others: every skill is either read or reported by a
diagnostic.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from skillruntime.cache_files import READ_FLAGS
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.directory_walk import PARTS_OF_A_SKILL, SKIPPED, is_loop
from skillruntime.catalog.discovery.index import index_path, load_index, save_index
from skillruntime.catalog.discovery.root_snapshot import (
    COARSE_TICK,
    STAMP,
    DirectoryStamp,
    Entry,
    Root,
    Snapshot,
    absolute,
    may_still_change,
    packed_stamp,
    stamp_at,
)
from skillruntime.catalog.file_opening import NO_FOLLOW
from skillruntime.catalog.skill import Skill
from skillruntime.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from typing import TypeAlias

    from skillruntime.catalog.discovery.sources import SkillCopies, SkillSource
    from skillruntime.catalog.discovery.summary import Summary

    Given: TypeAlias = str | os.PathLike[str] | Root | SkillSource | Skill

__all__ = ["MAX_DEPTH", "discover"]

MAX_DEPTH = 10
"""The maximum depth of a skill's directory below its root; directories inside a skill
belong to that skill.
"""

MAX_DIRECTORIES = 20_000
"""The maximum number of directories without a SKILL.md that are searched in one
root.
"""

_MOST_READ_AGAIN = 256
"""The maximum number of changed files that are read without walking their root. A
program made a larger number of changes, and probably moved some files.
"""

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
    *roots: Given | Iterable[Given],
    trusted: bool = False,
    missing_ok: bool = False,
    use_index: bool = True,
    derive_contracts: bool = True,
    installed: bool | str | Iterable[str] = False,
    frozen: str | os.PathLike[str] | None = None,
    first_only: bool = False,
    exclude: str | Iterable[str] = (),
) -> SkillCatalog:
    """Return the catalog of all skills under *roots*, passed one by one or as a list.

    If two skills have the same name and their directories differ, the skill of the
    earlier root gets the name, and the other is called ``place:name``. The place is its
    plugin's name, its package, the scope of its root or a directory above it. With
    *first_only* the other skill is left out: a project's skill then replaces the
    user's. *exclude* has the names of skills to leave out, or patterns such as
    ``pdf-*``.

    A root is a skill's directory or a directory of skills, nested up to `MAX_DEPTH`, or
    both. The search does not continue inside a valid skill below the root, but it
    continues inside an invalid one. *trusted* applies to every root that is not itself
    a `Root`. The contents of a root never raise an exception: see
    ``catalog.diagnostics``.

    A root may also be a `SkillSource`, such as a host's database, or a `Skill` that
    `Skill.from_text` made. All files of a source are copied now, and changed files are
    copied at each refresh. With such a root no index is used.

    The result is stored in an index, so that the next start opens only changed files:
    each SKILL.md is compared by size, both change times and inode. The index is in the
    user's cache directory, or in the directory that ``SKILLRUNTIME_CACHE`` names.
    ``SKILLRUNTIME_CACHE=off`` and ``use_index=False`` disable it.

    With *derive_contracts*, each script of a skill without a contract becomes a tool,
    whose contract is read from the script's source when the skill is activated; trust
    and approval apply to it as to every script.

    *installed* adds the skills in installed packages after *roots*: ``True`` for all
    packages, or the names of distributions. These skills are never trusted; see
    `installed_roots`.

    *frozen* is the path of a lockfile: a skill that is not in the lockfile, or differs
    from it, is not offered, and a diagnostic states the difference. Every file of the
    skills is hashed at the start; an activated skill and a started script are hashed
    again.

    Raises:
        FileNotFoundError: a root does not exist, or a package in *installed* has no
            skills. With *missing_ok* the former is a diagnostic, and the latter is left
            out.
        NotADirectoryError: a root is a file.
        ValueError: a root is an empty path.
        LockfileNotFoundError, InvalidSkillError: the lockfile does not exist, or is not
        readable.
    """
    copies: dict[Root, SkillCopies] = {}
    listed = list(_one_by_one(roots))
    given = [_as_root(root, trusted, copies) for root in listed]
    # Copies and skills from text would only make the index grow: the next process has
    # different directories for them.
    is_in_private_directory = copies or any(isinstance(root, Skill) for root in listed)
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
    catalog = SkillCatalog(
        _read_roots(wanted, indexed, path, copies),
        rescan=read_again,
        derive=derive_contracts,
        guard=guard,
        is_indexed=path is not None,
        first_only=first_only,
    )
    return catalog.select(exclude=exclude) if exclude else catalog


def _read_roots(
    roots: Sequence[Root],
    known: Mapping[Root, Snapshot],
    path: str | None,
    copies: Mapping[Root, SkillCopies],
) -> list[Snapshot]:
    """Return the current snapshots of *roots*, and write those that differ from *known*
    to the index at *path*.
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
    if not path or not changed:
        return snapshots
    sections = save_index(path, changed)
    return [
        snapshot._replace(section=sections.get(snapshot.root.path, snapshot.section))
        for snapshot in snapshots
    ]


def _read_copy(root: Root, copies: SkillCopies) -> Snapshot:
    """Copy the changed files of a source to *root* and return its current snapshot,
    with a diagnostic for each skill that could not be read.
    """
    unread = copies.update()
    snapshot = read_root(root)
    return snapshot._replace(problems=(*snapshot.problems, *unread))


def _one_by_one(roots: Iterable[Given | Iterable[Given]]) -> Iterator[Given]:
    """Yield each root of *roots*, whose items may also be collections of roots."""
    for root in roots:
        # A source may be iterable too. The keys of a mapping are rarely what is meant.
        is_one = isinstance(root, str | bytes | os.PathLike | Root | Skill | Mapping)
        if is_one or hasattr(root, "skills") or not isinstance(root, Iterable):
            yield cast("Given", root)
        else:
            yield from root


def _as_root(root: Given, trusted: bool, copies: dict[Root, SkillCopies]) -> Root:
    # The names of private directories are random, and must not be in a skill's name.
    if isinstance(root, Skill):
        return Root(str(root.directory), trusted, "code")
    path = root.path if isinstance(root, Root) else root
    if isinstance(path, str | bytes | os.PathLike):
        if isinstance(root, Root):
            return replace(root, path=absolute(path))
        return Root(absolute(path), trusted)
    if isinstance(root, Root) or not hasattr(path, "skills"):
        raise TypeError(
            "discover takes directories, one by one or in one list: "
            f"discover('skills', 'more-skills'); got {root!r:.80}"
        )
    from skillruntime.catalog.discovery.sources import SkillCopies

    source_copies = SkillCopies(path)
    own = Root(source_copies.directory, trusted, "source")
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
    *known* are reused without opening their files.
    """
    reading = _Reading(root, known)
    try:
        reading.read()
    except (OSError, ValueError) as error:
        reading.report("directory-unreadable", root.path, _reason(error))
    return reading.finish()


_NONE, _FAULTY, _VALID = range(3)
"""A directory has no SKILL.md, an invalid one, or a valid one.
"""


class _Reading:
    """One reading of one root."""

    def __init__(self, root: Root, known: Snapshot | None) -> None:
        self.root = root
        self.known = known
        self.entries: list[Entry] = []
        # One array: ten thousand objects of 65 bytes would fragment the memory.
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
        self.recent = self.started - COARSE_TICK
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
            if _are_unchanged(known.searched):
                self.result = self.read_again(known, changed)
                if self.result is not None:
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
        # Paths relative to an open directory are shorter for the kernel to resolve,
        # which is a fifth faster.
        root = os.open(self.root.path, READ_FLAGS)
        lstat = os.lstat
        changed: set[int] = set()
        try:
            stamps = STAMP.iter_unpack(known.stamps)
            stamped_entries = zip(known.entries, stamps, strict=True)
            for position, (entry, stamp) in enumerate(stamped_entries):
                try:
                    # A warm start spends most of its time here. `stat` ignores the open
                    # directory if the path is absolute.
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

    def read_again(self, known: Snapshot, changed: set[int]) -> Snapshot | None:
        """Return *known* with the files at the *changed* positions read again; ``None``
        if a skill appeared, disappeared or was renamed, so that the root must be
        walked.
        """
        if not changed:
            return known
        if len(changed) > _MOST_READ_AGAIN:
            return None
        entries = list(known.entries)
        stamps = bytearray(known.stamps)
        notes = dict(known.notes)
        for position in sorted(changed):
            single = _Reading(self.root, None)
            before = entries[position]
            directory, _, file_name = before.file.rpartition("/")
            # As in `walk`, only a directory below the root may be a link.
            is_link = file_name == "SKILL.md" and directory != self.root.path
            single.take(
                directory,
                os.path.basename(directory),
                file_name,
                is_link=is_link and os.path.islink(directory),
            )
            if not single.entries or single.entries[0][:2] != before[:2]:
                return None
            entries[position] = single.entries[0]
            stamps[stamp_at(position)] = single.stamps
            notes.pop(position, None)
            if single.notes:
                notes[position] = single.notes[0]
        return known._replace(
            entries=entries,
            stamps=bytes(stamps),
            notes=notes,
            edited=tuple(sorted(changed)),
        )

    def walk(self) -> None:
        """Take every skill at and below the root, level by level."""
        root = self.root.path
        if self.take(root, os.path.basename(root), "SKILL.md") == _VALID:
            self.skipped = SKIPPED | PARTS_OF_A_SKILL
        levels: list[list[str]] = [[] for _ in range(MAX_DEPTH + 2)]
        links: list[list[str]] = [[] for _ in range(MAX_DEPTH + 2)]
        levels[0].append(root)
        # The directories behind links come last: a link may lead to a whole disk, and
        # must not use up the limit.
        if self.search_levels(levels, links):
            self.search_levels(links, links)

    def search_levels(self, levels: list[list[str]], links: list[list[str]]) -> bool:
        """Search the directories in *levels*, by depth, and those below them; add the
        linked ones to *links*. Return whether the limit admitted all of them.
        """
        for depth, level in enumerate(levels):
            for directory in level:
                if len(self.searched) >= MAX_DIRECTORIES:
                    limit = f"the first {MAX_DIRECTORIES:,} directories"
                    self.report(
                        "too-many-directories",
                        self.root.path,
                        f"only {limit} are searched",
                    )
                    return False
                self.search(
                    directory,
                    levels[depth + 1] if depth < MAX_DEPTH else None,
                    links[depth + 1],
                )
            self.skipped = SKIPPED
        return True

    def search(
        self, directory: str, deeper: list[str] | None, links: list[str]
    ) -> None:
        """Take the skills directly in *directory*, and add the directories to search
        next to *deeper*, or to *links*; with ``None`` for *deeper* none is searched.
        """
        stamp = _stamp_of(directory)
        self.searched.append(stamp)
        if may_still_change(max(stamp[1:3]), self.started):
            self.is_stable = False
        try:
            with os.scandir(directory) as children:
                directories, linked, other_cases = self.sort_children(children)
        except OSError as error:
            self.report("directory-unreadable", directory, _reason(error))
            return
        # On a case-insensitive file system SKILL.md was already found. `max` prefers
        # the name with the most lower-case letters.
        if other_cases and not os.path.lexists(f"{directory}/SKILL.md"):
            name = os.path.basename(directory)
            taken = self.take(directory, name, max(other_cases))
            if taken == _VALID and directory != self.root.path:
                return
        if deeper is None:
            return
        prefix = directory.rstrip("/") + "/"
        take = self.take
        for name in directories:
            path = prefix + name
            is_link = name in linked
            if take(path, name, "SKILL.md", is_link=is_link) == _VALID:
                continue
            if not is_link:
                deeper.append(path)
            elif not is_loop(path):
                links.append(path)

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
                # Follow links, but report them: installers link skills from one store
                # into the directories of several clients.
                if is_link:
                    links.add(name)
            elif is_link:
                # The target of a broken link may appear later without a change of this
                # directory.
                self.is_stable = False
            # The length is compared first, because it is faster and most names differ
            # in it.
            if len(name) == 8 and name != "SKILL.md" and name.lower() == "skill.md":
                other_cases.append(name)
        return directories, links, other_cases

    def take(
        self, directory: str, name: str, file_name: str, *, is_link: bool = False
    ) -> int:
        """Take the skill in *directory*; return whether it has no SKILL.md, an invalid
        one or a valid one.
        """
        path = f"{directory}/{file_name}"
        known_position = self.reusable.get(path)
        if known_position is not None and self.known is not None:
            return self.reuse(self.known, known_position)
        try:
            # Open the file before examining it: a path that was examined can name
            # another file when it is opened.
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
                # Imported here, because an import or a warm start does not need it.
                from skillruntime.catalog.discovery.skill_file import read_summary

                self.read_summary = read_summary
            try:
                summary = self.read_summary(descriptor, path, name, findings)
            except Exception as error:  # one bad file must not affect the others
                summary = None
                findings.append(_unforeseen(path, error))
        finally:
            os.close(descriptor)
        if findings:
            self.notes[len(self.entries)] = tuple(findings)
        size, modified = status.st_size, status.st_mtime_ns
        # If the file could still change without changing its stamp, store a stamp that
        # matches no file.
        if modified > self.recent and may_still_change(modified, self.started):
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

    def reuse(self, known: Snapshot, position: int) -> int:
        """Take the *known* entry at *position*, whose file has not changed; return
        whether it is a valid skill.
        """
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
        if kind == _LINK and _is_skill_inside(self.root.path, path):
            return  # the skill is offered at the link's target
        if kind == _LINK:
            # The link could point to any file that the host can read, such as a key,
            # and put its text into a prompt.
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
        """Return the snapshot; if it is unchanged, with the same list of entries as the
        known snapshot.
        """
        if self.result is not None:
            return self.result
        known = self.known
        problems = tuple(self.problems)
        entries = self.entries
        # A directory with errors can become readable without a change of its stamp.
        searched = None
        if self.is_stable and not problems:
            searched = tuple(self.searched)
        if known is not None and self.reused == len(entries) == len(known.entries):
            if (problems, searched) == (known.problems, known.searched):
                return known
            return known._replace(problems=problems, searched=searched)
        # Sorted by name, so that the index and collisions do not depend on the order of
        # the file system.
        names = [entry[1] for entry in entries]
        order: Iterable[int] = range(len(entries))
        if len(set(names)) < len(names):
            order = self.by_precedence()
        order = sorted(order, key=names.__getitem__)  # stable
        # A list of stamps would take a third of the memory of the entries.
        stamps = bytearray()
        size = STAMP.size
        with memoryview(self.stamps) as unsorted_stamps:
            for position in order:
                # Not `stamp_at`, which would be a call for each skill.
                stamps += unsorted_stamps[size * position : size * (position + 1)]
        notes: dict[int, tuple[Diagnostic, ...]] = {}
        if self.notes:
            for new, old in enumerate(order):
                if old in self.notes:
                    notes[new] = self.notes[old]
        return Snapshot(
            self.root,
            [entries[position] for position in order],
            bytes(stamps),
            notes,
            problems,
            searched,
        )

    def by_precedence(self) -> list[int]:
        """Return the positions of the entries in the order of precedence among skills
        with one name: the shallowest first, then by path.
        """
        # Compare directories, because "tdd-new/SKILL.md" sorts before "tdd/SKILL.md".
        paths = [entry.directory for entry in self.entries]
        # A directory `place:name`, as `import_skills` writes it, is as deep as
        # `place/name`: the skill `name` comes first.
        depths = [path.count("/") + path.count(":") for path in paths]
        order = sorted(range(len(paths)), key=paths.__getitem__)
        return sorted(order, key=depths.__getitem__)


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


def _is_skill_inside(root: str, link: str) -> bool:
    """Return whether *link* leads to another SKILL.md inside *root*."""
    target = os.path.realpath(link)
    if os.path.basename(target) != "SKILL.md" or not os.path.isfile(target):
        return False
    return target.startswith(os.path.realpath(root).rstrip(os.sep) + os.sep)


def _unforeseen(path: str, error: Exception) -> Diagnostic:
    """Log the traceback of the unexpected *error* in reading a SKILL.md, which is also
    a bug of this library, and return a diagnostic.
    """
    import logging

    log = logging.getLogger("skillruntime.catalog")
    log.error("%s could not be read", path, exc_info=error)
    message = f"it cannot be read ({type(error).__name__})"
    return Diagnostic("skill-unreadable", Severity.ERROR, path, message)


def _reason(error: Exception) -> str:
    return f"it cannot be read: {getattr(error, 'strerror', None) or error}"
