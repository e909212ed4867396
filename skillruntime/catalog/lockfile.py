"""The lockfile: the version and the digest of every skill, so that no change goes unnoticed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from skillruntime.catalog.file_opening import open_regular
from skillruntime.catalog.skill import SkillMetadata
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["LOCK_FILE", "check_lock", "digest_of", "lock_skills"]

LOCK_FILE = "skills.lock.json"
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


def check_lock(skills: Mapping[str, SkillMetadata], document: Any, *, path: str = LOCK_FILE) -> list[Diagnostic]:
    """Return the differences between *skills* and the lock *document*: changed, missing, or not locked."""

    def finding(rule: str, message: str, hint: str) -> Diagnostic:
        return Diagnostic(rule, Severity.ERROR, path, message, hint=hint)

    locked = document.get("skills") if isinstance(document, dict) else None
    if not isinstance(locked, dict) or document.get("lock_version") != LOCK_VERSION:
        return [finding("lock-invalid", "not a readable lockfile", "recreate it with `skillruntime lock`")]
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
