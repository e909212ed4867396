"""The lockfile: the digest of every skill, so that no change goes unnoticed; in the
form of `npx skills`.

``skills-lock.json`` (vercel-labs/skills, src/local-lock.ts) has for each skill one
SHA-256 over the paths and the bytes of its files.

A frozen catalog offers only skills that are in a lockfile and have the files that it
pins. All files of a skill are hashed at a start, again when it is activated, from the
bytes that are used, and so is every file of it that is read later, and every script
that is started.
"""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.discovery.root_snapshot import Root, Snapshot
from skillruntime.catalog.file_opening import (
    FileTooLargeError,
    Identity,
    read_inside,
    read_regular,
)
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError, LockfileNotFoundError

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill, SkillMetadata

__all__ = [
    "LOCK_FILE",
    "FrozenGuard",
    "check_lock",
    "files_of",
    "lock_document",
    "lock_skills",
    "npx_hash",
    "read_lock",
]

LOCK_FILE = "skills-lock.json"
MAX_LOCKFILE = 64 * 1024 * 1024
MAX_FILE = 256 * 1024 * 1024
_SKIPPED = frozenset({".git", "node_modules"})  # as `npx skills` does
_ORDER = r""" _-,;:!?.'"()[]{}@*/\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"""
_RANKS = {character: rank for rank, character in enumerate(_ORDER)}


def lock_skills(
    skills: Mapping[str, SkillMetadata], before: Any = None, *, base: str = "."
) -> dict[str, Any]:
    """Return the lock document of *skills*.

    The source of a skill that the document *before* states is kept, and so are the
    fields that only later releases of `npx skills` know; the source of any other skill
    is its directory, relative to *base*, or its package.
    """
    document: dict[str, Any] = {}
    known: dict[str, Any] = {}
    if isinstance(before, dict):
        entries_before = before.get("skills")
        if entries_before and isinstance(entries_before, dict):
            document = dict(before)
            known = entries_before
    entries = {}
    for name in sorted(skills):
        metadata = skills[name]
        directory = os.path.dirname(metadata.path)
        if isinstance(known.get(name), dict):
            entry = dict(known[name])
        elif metadata.installed:
            entry = {
                "source": f"{metadata.scope}=={metadata.version}",
                "sourceType": "python",
            }
        else:
            entry = {
                "source": os.path.relpath(directory, base).replace(os.sep, "/"),
                "sourceType": "local",
            }
        entries[name] = entry | {"computedHash": npx_hash(files_of(directory))}
    return document | {"version": 1, "skills": entries}


def check_lock(
    skills: Mapping[str, SkillMetadata], document: Any, *, path: str = LOCK_FILE
) -> list[Diagnostic]:
    """Return the differences between *skills* and the lock *document*: changed,
    missing, or not locked.
    """

    def finding(rule: str, message: str, hint: str) -> Diagnostic:
        return Diagnostic(rule, Severity.ERROR, path, message, hint=hint)

    try:
        locked = _parsed(document)
    except ValueError as error:
        message = f"not a readable lockfile: {error}"
        hint = "recreate it with `skillruntime lock`"
        return [finding("lock-invalid", message, hint)]
    findings: list[Diagnostic] = []
    # Compare in both directions: a skill that is not in the lockfile could have been
    # added by an attacker.
    for name in sorted({*locked, *skills}):
        if name not in skills:
            message = f"{name} is locked but missing"
            hint = "restore it, or run `skillruntime lock`"
            findings.append(finding("lock-missing", message, hint))
        elif name not in locked:
            message = f"{name} is not in the lockfile"
            findings.append(finding("lock-unlocked", message, _REVIEW))
        else:
            directory = os.path.dirname(skills[name].path)
            fault = _difference_on_disk(locked[name], directory)
            if fault is not None:
                message = f"{name} changed: {fault}"
                findings.append(finding("lock-changed", message, _REVIEW))
    return findings


_REVIEW = "review the change, then run `skillruntime lock`"
_NOT_LOCKED = "it is not in the lockfile"


def read_lock(path: str) -> dict[str, str]:
    """Return the digest that the lockfile at *path* has for each skill; an empty string
    if it states none.

    Raises:
        LockfileNotFoundError: there is no such file.
        InvalidSkillError: it is not a readable lockfile.
    """
    document = lock_document(path)
    try:
        return _parsed(document)
    except ValueError as error:
        action = "Write skills-lock.json with skillruntime lock, or npx skills"
        raise InvalidSkillError(
            f"{path!r} is not a readable lockfile: {error}", suggested_action=action
        ) from None


def lock_document(path: str) -> Any:
    """Return the content of the lockfile at *path*. Raises what `read_lock` raises."""
    try:
        data = read_regular(path, MAX_LOCKFILE)
    except FileNotFoundError:
        action = "Write it with skillruntime lock"
        raise LockfileNotFoundError(
            f"There is no lockfile {path!r}", suggested_action=action
        ) from None
    except (OSError, ValueError) as error:
        # A link is not followed, because it could be pointed at another lockfile.
        if os.path.islink(path):
            reason = "it is a symbolic link; give the path of the file itself"
        else:
            reason = str(error)
        raise InvalidSkillError(
            f"The lockfile {path!r} cannot be read: {reason}"
        ) from None
    try:
        return json.loads(data.decode("utf-8-sig"))
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:
        reason = str(error)
    raise InvalidSkillError(f"{path!r} is not a readable lockfile: {reason}")


def _parsed(document: Any) -> dict[str, str]:
    skills = document.get("skills") if isinstance(document, dict) else None
    if not isinstance(skills, dict):
        raise ValueError("it has no `skills`")
    if str(document.get("version", "1")) != "1":
        raise ValueError(
            f"its version is {document['version']!r}, and only 1 can be read"
        )
    locked: dict[str, str] = {}
    for name, entry in skills.items():
        if isinstance(entry, dict):
            digest = entry.get("computedHash")
            locked[str(name)] = digest if isinstance(digest, str) else ""
    return locked


def _difference_on_disk(digest: str, directory: str) -> str | None:
    """Return how the files in *directory* differ from the locked *digest*, or why they
    cannot be read; ``None`` if they do not differ.
    """
    try:
        return _difference(digest, files_of(directory))
    except OSError as error:
        return f"its files cannot be read: {error}"


def _difference(digest: str, files: Mapping[str, bytes]) -> str | None:
    """Return how *files*, the bytes of a skill by path, differ from the locked
    *digest*; ``None`` if they do not.
    """
    if not digest:
        return "the lockfile has no digest of its files"
    if npx_hash(files) == digest:
        return None
    clean = {path: data for path, data in files.items() if not _is_left_behind(path)}
    if len(clean) < len(files) and npx_hash(clean) == digest:
        return None
    with_lf = {path: data.replace(b"\r\n", b"\n") for path, data in clean.items()}
    if npx_hash(with_lf) == digest:
        return (
            "its lines end with CRLF, in the lockfile with LF (git's core.autocrlf "
            "changes them)"
        )
    return "its files differ from the lockfile"


class FrozenGuard:
    """Refuses the skills that differ from the lockfile at *path*. Making a guard raises
    what `read_lock` raises.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._locked = read_lock(path)
        self._offered: dict[Root, Snapshot] = {}
        # By root, including the skills that are refused.
        self._complete: dict[Root, Snapshot] = {}

    def offered(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* without the skills that are not locked, or not as they were
        locked.
        """
        self._complete[snapshot.root] = snapshot
        refused: dict[int, str] = {}
        for position, entry in enumerate(snapshot.entries):
            if entry.name:
                fault = self._fault(entry.name, os.path.dirname(entry.file))
                if fault is not None:
                    refused[position] = fault
        if not refused:
            self._offered[snapshot.root] = snapshot
            return snapshot
        self._offered[snapshot.root] = kept = snapshot.without(refused, ())
        holders: dict[str, str] = {}
        for offered in self._offered.values():
            holders.update({entry.name: entry.file for entry in offered.entries})
        problems = []
        for position, fault in refused.items():
            entry = snapshot.entries[position]
            holder = holders.get(entry.name)
            if holder is None or fault == _NOT_LOCKED:
                severity = Severity.ERROR
                message = f"{entry.name}: {fault} ({self._path}); skipped"
                hint = _REVIEW
            else:
                # A lockfile has one skill for a name; locking again would not change
                # that.
                severity = Severity.WARNING
                message = (
                    f"{entry.name}: the lockfile ({self._path}) pins another skill of "
                    f"this name, {holder}; skipped"
                )
                hint = "rename one of them, then lock again"
            problems.append(
                Diagnostic("frozen-drift", severity, entry.file, message, hint=hint)
            )
        return kept._replace(problems=(*kept.problems, *problems))

    def check(self, skill: Skill) -> Mapping[str, str]:
        """Hash the files of *skill* now, its SKILL.md as it was read; return the
        SHA-256 of each by its path.

        Raises:
            InvalidSkillError: it is not what was locked.
        """
        locked = self._locked_digest(skill.name)
        directory, file_name = os.path.split(skill.metadata.path)
        files: dict[str, bytes] = {}
        fault: str | None = _NOT_LOCKED
        if locked is not None:
            try:
                files = files_of(
                    directory, known={file_name: skill.data}, identity=skill.identity
                )
                fault = _difference(locked, files)
            except OSError as error:
                fault = f"its files cannot be read: {error}"
        if fault is not None:
            raise InvalidSkillError(
                f"The skill {skill.name!r} is refused: {fault} ({self._path})",
                suggested_action="Continue without this skill",
            )
        # A file that may appear beside the locked ones is not pinned, because it was
        # not reviewed: it is not read.
        return {
            path: hashlib.sha256(data).hexdigest()
            for path, data in files.items()
            if not _is_left_behind(path)
        }

    def _locked_digest(self, name: str) -> str | None:
        """Return the digest of the skill *name*; ``None`` if it is not locked."""
        # "user:pdf" and "pdf@1.2.0" are names that the catalog gives; a SKILL.md can
        # state such a name too.
        without_version = name.partition("@")[0]
        without_scope = without_version.rpartition(":")[2]
        for candidate in (name, without_version, without_scope):
            if candidate in self._locked:
                return self._locked[candidate]
        return None

    def missing(self) -> Iterator[Diagnostic]:
        """Yield a warning for each locked skill that no root has."""
        names: set[str] = set()
        for snapshot in self._complete.values():
            names.update(entry.name for entry in snapshot.entries)
        for name in sorted(self._locked.keys() - names):
            message = (
                f"{name}: it is in the lockfile, and none of the directories has it"
            )
            yield Diagnostic(
                "frozen-missing",
                Severity.WARNING,
                self._path,
                message,
                hint="restore it, or lock again",
            )

    def _fault(self, name: str, directory: str) -> str | None:
        if name not in self._locked:
            return _NOT_LOCKED
        return _difference_on_disk(self._locked[name], directory)


def files_of(
    directory: str,
    *,
    known: Mapping[str, bytes] | None = None,
    identity: Identity | None = None,
) -> dict[str, bytes]:
    """Return the bytes of every regular file below *directory*, by path; those in
    *known* are not read again.

    With *identity* it must still be the same directory.

    Raises:
        OSError: a file cannot be read, is reached through a link, or is larger than
            `MAX_FILE`.
    """
    contents = dict(known or {})
    for path, kind in _paths(directory, ""):
        if kind == "link":
            raise OSError(f"{directory}/{path} is a symbolic link")
        if path not in contents:
            try:
                contents[path] = read_inside(
                    directory, path, MAX_FILE, identity=identity
                )
            except FileTooLargeError:
                raise OSError(
                    f"{directory}/{path} is larger than {MAX_FILE // 1024**2} MiB"
                ) from None
    return contents


def npx_hash(files: Mapping[str, bytes]) -> str:
    """Return the ``computedHash`` of `npx skills`: SHA-256 over path and bytes of each
    file, in locale order.
    """
    total = hashlib.sha256()
    for path in sorted(files, key=_locale_key):
        total.update(path.encode("utf-8", "surrogateescape"))
        total.update(files[path])
    return total.hexdigest()


def _is_left_behind(path: str) -> bool:
    """Return whether the file *path* is one that running a skill, or browsing its
    directory, leaves there.

    `npx skills` counts such files if they are there.
    """
    return path.endswith(".DS_Store") or "/__pycache__/" in f"/{path}"


def _paths(directory: str, prefix: str) -> Iterable[tuple[str, str]]:
    with os.scandir(f"{directory}/{prefix}") as children:
        for child in children:
            if child.is_symlink():
                yield prefix + child.name, "link"
            elif child.is_dir(follow_symlinks=False):
                if child.name not in _SKIPPED:
                    yield from _paths(directory, f"{prefix}{child.name}/")
            elif child.is_file(follow_symlinks=False):
                yield prefix + child.name, "file"


def _locale_key(path: str) -> tuple[list[tuple[int, str]], list[str], list[bool]]:
    """Return a key that sorts as JavaScript's ``localeCompare`` does in English (CLDR's
    root collation).

    Letters by alphabet, then accents, then lower case before upper case; signs before
    digits before letters.
    """
    letters: list[tuple[int, str]] = []
    accents: list[str] = []
    capitals: list[bool] = []
    for character in unicodedata.normalize("NFD", path):
        if unicodedata.combining(character):
            accents.append(character)
            continue
        lower = character.lower()
        if lower in _RANKS:
            letters.append((_RANKS[lower], ""))
        else:
            letters.append((len(_RANKS), lower))
        accents.append("")
        capitals.append(character != lower)
    return letters, accents, capitals
