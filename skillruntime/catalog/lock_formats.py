"""Lockfiles as others write them: which digest they hold for a skill, and whether its files have it.

- ``skills-lock.json`` of ``npx skills`` (vercel-labs/skills, src/local-lock.ts): one hash over a skill's files;
- ``toolhive.lock.yaml`` of ToolHive: the ``contentDigest`` of its RFC 0080, a draft, read as Go's dirhash;
- the manifest of the Skills extension of MCP (SEP-2640): the digest of every file.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from skillruntime.catalog.file_opening import FileTooLargeError, Identity, read_inside

__all__ = ["Locked", "each_once", "files_of", "is_left_behind", "npx_hash", "parse_lock", "toolhive_digest"]

_Value = TypeVar("_Value")
MAX_FILE = 256 * 1024 * 1024
_SKIPPED = frozenset({".git", "node_modules"})  # as `npx skills` does
# What running a skill leaves in its directory; `npx skills` counts these if they are there.
_LEFT_BEHIND = ("__pycache__/", ".DS_Store")
_ORDER = r""" _-,;:!?.'"()[]{}@*/\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"""
_RANKS = {character: rank for rank, character in enumerate(_ORDER)}


@dataclass(frozen=True, slots=True)
class Locked:
    """What a lockfile says of one skill: the digest of all its files, or one for each, and its version if stated.

    ``digest_of`` makes the digest of files given as a mapping from path to SHA-256 and bytes.
    """

    digest: str
    digest_of: Callable[[Mapping[str, bytes]], str] | None = None
    files: Mapping[str, str] | None = None
    version: str | None = None

    def fault(self, files: Mapping[str, bytes]) -> str | None:
        """Return how *files*, the bytes of a skill by path, differ from what is locked; ``None`` if they do not."""
        if self.files is not None:
            now = {path: _sha256(data) for path, data in files.items() if not is_left_behind(path)}
            changed = [path for path in sorted({*self.files, *now}) if self.files.get(path) != now.get(path)]
            return f"{', '.join(changed[:3])} changed" if changed else None
        if self.digest_of is None:
            return "the lockfile has no digest of its files"
        if self.digest_of(files) == self.digest:
            return None
        clean = {path: data for path, data in files.items() if not is_left_behind(path)}
        if len(clean) < len(files) and self.digest_of(clean) == self.digest:
            return None
        unix = {path: data.replace(b"\r\n", b"\n") for path, data in clean.items()}
        if self.digest_of(unix) == self.digest:
            return "its lines end with CRLF, in the lockfile with LF (git's core.autocrlf changes them)"
        return "its files differ from the lockfile"


def files_of(
    directory: str, *, known: Mapping[str, bytes] | None = None, identity: Identity | None = None
) -> dict[str, bytes]:
    """Return the bytes of every regular file below *directory*, by path; those in *known* are not read again.

    With *identity* it must still be the same directory.

    Raises:
        OSError: a file cannot be read, is reached through a link, or is larger than `MAX_FILE`.
    """
    found = dict(known or {})
    for path, kind in _paths(directory, ""):
        if kind == "link":
            raise OSError(f"{directory}/{path} is a symbolic link")
        if path not in found:
            try:
                found[path] = read_inside(directory, path, MAX_FILE, identity=identity)
            except FileTooLargeError:
                raise OSError(f"{directory}/{path} is larger than {MAX_FILE // 1024**2} MiB") from None
    return found


def npx_hash(files: Mapping[str, bytes]) -> str:
    """Return the ``computedHash`` of `npx skills`: SHA-256 over path and bytes of each file, in locale order."""
    import hashlib

    total = hashlib.sha256()
    for path in sorted(files, key=_locale_key):
        total.update(path.encode("utf-8", "surrogateescape"))
        total.update(files[path])
    return total.hexdigest()


def toolhive_digest(files: Mapping[str, bytes]) -> str:
    """Return the ``contentDigest`` of ToolHive: SHA-256 over a line ``digest  path`` for each file, sorted by path."""
    import hashlib

    lines = (f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n" for path in sorted(files))
    return _sha256("".join(lines).encode("utf-8", "surrogateescape"))


def parse_lock(document: Any) -> dict[str, Locked] | None:
    """Return what the lock *document* says of each skill by name; ``None`` if its form is unknown.

    Raises:
        ValueError: it names a skill twice, or has a version that cannot be read.
    """
    skills = document.get("skills") if isinstance(document, dict) else None
    if not isinstance(skills, dict | list) or "lock_version" in document:
        return None
    if "version" in document and str(document["version"]) != "1":
        raise ValueError(f"its version is {document['version']!r}, and only 1 can be read")
    if isinstance(skills, dict):
        return {str(name): _of_npx(entry) for name, entry in skills.items() if isinstance(entry, dict)}
    if "version" not in document:
        return each_once(_of_manifest(skills))
    own = (entry for entry in skills if isinstance(entry, dict) and isinstance(entry.get("name"), str))
    return each_once((entry["name"], _of_toolhive(entry)) for entry in own)


def each_once(pairs: Iterable[tuple[str, _Value]]) -> dict[str, _Value]:
    """Return *pairs* as a mapping, of the objects of a JSON document for example (``object_pairs_hook``).

    Raises:
        ValueError: a key appears twice; which value counts differs between readers (RFC 8259, section 4).
    """
    found: dict[str, _Value] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"it has {name[:80]!r} twice")
        found[name] = value
    return found


def _of_npx(entry: Mapping[str, Any]) -> Locked:
    digest = entry.get("computedHash")
    return Locked(digest, npx_hash) if isinstance(digest, str) and digest else Locked("")


def _of_toolhive(entry: Mapping[str, Any]) -> Locked:
    digest, version = entry.get("contentDigest"), entry.get("version")
    stated = version if isinstance(version, str) else None
    # `digest` names a commit or an image, which the files on disk cannot be compared with.
    return Locked(digest, toolhive_digest, version=stated) if isinstance(digest, str) else Locked("", version=stated)


def _of_manifest(skills: Iterable[Any]) -> Iterable[tuple[str, Locked]]:
    for entry in skills:
        frontmatter = entry.get("frontmatter") if isinstance(entry, dict) else None
        name = frontmatter.get("name") if isinstance(frontmatter, dict) else None
        if not isinstance(name, str):
            continue
        base = str(entry.get("uri", entry.get("url", ""))).rpartition("/")[0] + "/"
        files = {}
        resources = entry.get("resources")
        for resource in resources if isinstance(resources, list) else ():
            if isinstance(resource, dict) and isinstance(resource.get("digest"), str):
                files[str(resource.get("uri", "")).removeprefix(base)] = resource["digest"].lower()
        yield name, Locked("", files=files) if files else Locked("")


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


def is_left_behind(path: str) -> bool:
    """Whether the file *path* is one that running a skill, or looking at it, leaves in its directory."""
    return path.endswith(_LEFT_BEHIND[1]) or f"/{_LEFT_BEHIND[0]}" in f"/{path}"


def _sha256(data: bytes) -> str:
    import hashlib

    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _locale_key(path: str) -> tuple[list[tuple[int, str]], list[str], list[bool]]:
    """Return a key that sorts as JavaScript's ``localeCompare`` does in English (CLDR's root collation).

    Letters by alphabet, then accents, then lower case before upper case; signs before digits before letters.
    """
    letters, accents, capitals = [], [], []
    for character in unicodedata.normalize("NFD", path):
        if unicodedata.combining(character):
            accents.append(character)
            continue
        lower = character.lower()
        letters.append((_RANKS.get(lower, len(_RANKS)), "" if lower in _RANKS else lower))
        accents.append("")
        capitals.append(character != lower)
    return letters, accents, capitals
