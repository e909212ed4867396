"""Lockfiles: the digest of every skill, so that no change goes unnoticed; written as `npx skills` writes them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from skillruntime.catalog.file_opening import open_regular
from skillruntime.catalog.lock_formats import Locked, files_of, npx_hash, parse_lock
from skillruntime.catalog.skill import SkillMetadata
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["LOCK_FILE", "OWN_LOCK_FILE", "check_lock", "digest_of", "lock_for_npx", "lock_skills"]

LOCK_FILE = "skills-lock.json"
"""The name that `npx skills` gives to its lockfile, whose form is used for every other name but the next."""

OWN_LOCK_FILE = "skills.lock.json"
"""A lockfile with versions, digests that count the executable bit, and older versions of skills."""

LOCK_VERSION = 1
# Files that tools create without a change of the skill.
_SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".DS_Store", ".venv"})
_CHUNK = 1 << 20


def digest_of(directory: str | os.PathLike[str]) -> str:
    """Return ``sha256:`` and the digest of all files under *directory*: path, executable bit, and content.

    A link is not followed; its target path counts. Caches, version control and file times do not count.
    """
    total = hashlib.sha256()
    for path, kind, content in sorted(_entries(os.fspath(directory), "")):
        # A NUL cannot occur in a path, so no path can imitate the end of another field.
        line = "\0".join((path, kind, content)) + "\n"
        total.update(line.encode("utf-8", "surrogateescape"))
    return f"sha256:{total.hexdigest()}"


def lock_skills(skills: Mapping[str, SkillMetadata]) -> dict[str, Any]:
    """Return the lock document of *skills*: ``{"lock_version", "skills": {name: {"version", "digest"}}}``."""
    entries = {}
    for name in sorted(skills):
        metadata = skills[name]
        version = {"version": metadata.version} if metadata.version else {}
        entries[name] = version | {"digest": digest_of(metadata.directory)}
    return {"lock_version": LOCK_VERSION, "skills": entries}


def lock_for_npx(skills: Mapping[str, SkillMetadata], before: Any = None, *, base: str = ".") -> dict[str, Any]:
    """Return the lock document of *skills* as `npx skills` writes ``skills-lock.json``.

    What the document *before* says of the source of a skill is kept, and so are the fields that only later releases of
    `npx skills` know; the source of any other skill is its directory, relative to *base*, or its package.
    """
    held = before.get("skills") if isinstance(before, dict) else None
    known: dict[str, Any] = held if isinstance(held, dict) else {}
    entries = {}
    for name in sorted(skills):
        metadata = skills[name]
        directory = os.path.dirname(metadata.path)  # noqa: PTH120
        if isinstance(known.get(name), dict):
            entry = dict(known[name])
        elif metadata.installed:
            entry = {"source": f"{metadata.scope}=={metadata.version}", "sourceType": "python"}
        else:
            entry = {"source": os.path.relpath(directory, base).replace(os.sep, "/"), "sourceType": "local"}
        entries[name] = entry | {"computedHash": npx_hash(files_of(directory))}
    whole = before if known and "lock_version" not in before else {}
    return {**whole, "version": 1, "skills": entries}


def check_lock(skills: Mapping[str, SkillMetadata], document: Any, *, path: str = LOCK_FILE) -> list[Diagnostic]:
    """Return the differences between *skills* and the lock *document*: changed, missing, or not locked."""

    def finding(rule: str, message: str, hint: str) -> Diagnostic:
        return Diagnostic(rule, Severity.ERROR, path, message, hint=hint)

    try:
        others = parse_lock(document)
    except ValueError as error:
        return [finding("lock-invalid", f"the lockfile cannot be used: {error}", _RECREATE)]
    if others is not None:
        return _check_others(skills, others, finding)
    locked = document.get("skills") if isinstance(document, dict) else None
    if not isinstance(locked, dict) or document.get("lock_version") != LOCK_VERSION:
        return [finding("lock-invalid", "not a readable lockfile", _RECREATE)]
    # Both directions: a skill that is not in the lockfile could have been added by an attacker.
    found, now = [], lock_skills(skills)["skills"]
    accept = "review the change, then run `skillruntime lock`"
    for name in sorted({*locked, *now}):
        before, after = locked.get(name), now.get(name)
        if after is None:
            found.append(
                finding("lock-missing", f"{name} is locked but missing", "restore it, or run `skillruntime lock`")
            )
        elif not isinstance(before, dict):
            found.append(finding("lock-unlocked", f"{name} is not in the lockfile", accept))
        elif before.get("digest") != after["digest"]:
            versions = (before.get("version"), after.get("version"))
            moved = f" from {versions[0]} to {versions[1]}" if versions[0] != versions[1] else f" within {versions[0]}"
            found.append(finding("lock-changed", f"{name} changed{moved if any(versions) else ''}", accept))
        elif before.get("version") != after.get("version"):
            found.append(finding("lock-changed", f"{name}: the lockfile has version {before.get('version')}", accept))
    return found


def _check_others(
    skills: Mapping[str, SkillMetadata], locked: Mapping[str, Locked], finding: Callable[[str, str, str], Diagnostic]
) -> list[Diagnostic]:
    """Return the differences between *skills* and a lockfile that another tool can write."""
    found = []
    for name in sorted({*locked, *skills}):
        if name not in skills:
            hint = "restore it, or lock the skills again"
            found.append(finding("lock-missing", f"{name} is locked but missing", hint))
        elif name not in locked:
            found.append(finding("lock-unlocked", f"{name} is not in the lockfile", _REVIEW))
        else:
            try:
                fault = locked[name].fault(files_of(os.path.dirname(skills[name].path)))  # noqa: PTH120
            except OSError as error:
                fault = f"its files cannot be read: {error}"
            if fault is not None:
                found.append(finding("lock-changed", f"{name} changed: {fault}", _REVIEW))
    return found


_RECREATE = "recreate it with `skillruntime lock`"
_REVIEW = "review the change, then lock the skills again"


def _entries(directory: str, prefix: str) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if entry.name in _SKIPPED:
                continue
            if entry.is_symlink():
                # Following a link could lead out of the skill, or never end.
                found.append((path, "link", os.readlink(entry.path)))  # noqa: PTH115 - paths are text here
            elif entry.is_dir(follow_symlinks=False):
                found += _entries(entry.path, f"{path}/")
            elif entry.is_file(follow_symlinks=False):
                # The executable bit decides whether a script can be started directly.
                runs = "runs" if entry.stat().st_mode & 0o111 else "file"
                found.append((path, runs, _digest(entry.path)))
            # A FIFO or a device has no content to digest; opening it could block.
            else:
                found.append((path, "other", ""))
    return found


def _digest(path: str) -> str:
    total = hashlib.sha256()
    with open(open_regular(path), "rb") as file:  # noqa: PTH123 - a descriptor
        while chunk := file.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()
