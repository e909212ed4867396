"""The lockfile: the digest of every skill, so that no change goes unnoticed; in the
form of `npx skills`.

``skills-lock.json`` (vercel-labs/skills, src/local-lock.ts) has for each skill one
SHA-256 over the paths and the bytes of its files.

A frozen catalog offers only skills that are in a lockfile and have the files that it
pins. All files of a skill are hashed at the start, and again at its activation from the
bytes that are used; so is every file that is read later, and every script that is
started.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.discovery.root_snapshot import Entry, Root, Snapshot
from skillruntime.catalog.file_opening import read_regular
from skillruntime.catalog.skill_digest import files_of, is_left_behind, npx_hash
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError, LockfileNotFoundError

if TYPE_CHECKING:
    from skillruntime.catalog.skill import Skill, SkillMetadata

__all__ = [
    "LOCK_FILE",
    "FrozenGuard",
    "check_lock",
    "lock_document",
    "lock_skills",
    "read_lock",
]

LOCK_FILE = "skills-lock.json"
MAX_LOCKFILE = 64 * 1024 * 1024


def lock_skills(
    skills: Mapping[str, SkillMetadata],
    before: Any = None,
    *,
    base: str = ".",
    findings: list[Diagnostic] | None = None,
) -> dict[str, Any]:
    """Return the lock document of *skills*.

    A skill that cannot be locked, because it has a symbolic link for example, is left
    out with a diagnostic in *findings*.

    The source of a skill that the document *before* states is kept, and so are the
    fields that only later releases of `npx skills` know; the source of any other skill
    is its directory, relative to *base*, or its package.

    Raises:
        OSError: a skill cannot be locked, and there are no *findings*.
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
        try:
            digest = npx_hash(files_of(directory))
        except OSError as error:
            if findings is None:
                raise
            findings.append(_not_lockable(name, metadata.path, error))
            continue
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
        entries[name] = entry | {"computedHash": digest}
    return document | {"version": 1, "skills": entries}


def _not_lockable(name: str, path: str, error: OSError) -> Diagnostic:
    reason = str(error)
    if error.strerror:
        reason = f"{error.filename or path}: {error.strerror}"
    return Diagnostic(
        "lock-impossible",
        Severity.ERROR,
        path,
        f"{name} cannot be locked: {reason}",
        hint="`--frozen` and `lock --check` refuse it until that is corrected",
    )


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
    """Return the content of the lockfile at *path*. Raises the same errors as
    `read_lock`.
    """
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
    clean = {path: data for path, data in files.items() if not is_left_behind(path)}
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
    """Refuses the skills that differ from the lockfile at *path*. Creating a guard
    raises the same errors as `read_lock`.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._locked = read_lock(path)
        self._offered: dict[Root, Snapshot] = {}
        # "plugin:pdf" is locked for a skill whose own name is "pdf".
        self._by_own_name: dict[str, list[str]] = {}
        for name in self._locked:
            self._by_own_name.setdefault(name, []).insert(0, name)
            _, colon, own = name.rpartition(":")
            if colon:
                self._by_own_name.setdefault(own, []).append(name)
        # The locked name by file, if it differs from the skill's own.
        self._names: dict[str, str] = {}
        # The locked names of the skills in each root, including those that are refused.
        self._met: dict[Root, set[str]] = {}

    def offered(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* without the skills that are not locked, or that differ from
        the lockfile.
        """
        met = self._met[snapshot.root] = set[str]()
        refused: dict[int, str] = {}
        for position, entry in enumerate(snapshot.entries):
            if not entry.name:
                continue
            name, fault = self._judged(entry.name, os.path.dirname(entry.file))
            if fault is None:
                met.add(name)
            else:
                met.update(self._by_own_name.get(entry.name, ()))
                refused[position] = fault
            if name != entry.name:
                self._names[entry.file] = name
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

    def named(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot*, the result of `offered`, with the names under which its
        skills were locked.
        """
        entries: list[Entry] = []
        for entry in snapshot.entries:
            name = self._names.get(entry.file)
            if name is not None:
                entry = entry._replace(name=name, path=entry.file)
            entries.append(entry)
        return snapshot._replace(entries=entries)

    def check(self, skill: Skill) -> Mapping[str, str]:
        """Hash the files of *skill* now, its SKILL.md as it was read; return the
        SHA-256 of each by its path.

        Raises:
            InvalidSkillError: *skill* differs from the locked one.
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
            if not is_left_behind(path)
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
        met = set[str]().union(*self._met.values())
        for name in sorted(self._locked.keys() - met):
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

    def _judged(self, own_name: str, directory: str) -> tuple[str, str | None]:
        """Return the name under which the skill in *directory* was locked, and how it
        differs from the locked one; ``None`` if it does not.
        """
        faults: list[str] = []
        names = self._by_own_name.get(own_name, ())
        for name in names:
            fault = _difference_on_disk(self._locked[name], directory)
            if fault is None:
                return name, None
            faults.append(fault)
        return own_name, faults[0] if faults else _NOT_LOCKED
