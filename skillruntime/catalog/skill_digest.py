"""Compute the digest of all files of a skill, in the form of `npx skills`: SHA-256 over
the paths and the bytes (vercel-labs/skills, src/local-lock.ts).
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Mapping

from skillruntime.catalog.file_opening import FileTooLargeError, Identity, read_inside

__all__ = ["directory_digest", "files_of", "is_left_behind", "npx_hash", "paths_below"]

NOT_HASHED = frozenset({".git", "node_modules"})
"""The directories that are not part of a skill, as in `npx skills`."""

MAX_FILE = 256 * 1024 * 1024
_ORDER = r""" _-,;:!?.'"()[]{}@*/\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"""
_RANKS = {character: rank for rank, character in enumerate(_ORDER)}


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
    for path, kind in paths_below(directory):
        if kind == "link":
            raise OSError(f"{directory}/{path} is a symbolic link")
        if kind == "file" and path not in contents:
            try:
                contents[path] = read_inside(
                    directory, path, MAX_FILE, identity=identity
                )
            except FileTooLargeError:
                raise OSError(
                    f"{directory}/{path} is larger than {MAX_FILE // 1024**2} MiB"
                ) from None
    return contents


def directory_digest(directory: str) -> str | None:
    """Return the digest of the files that a skill's *directory* came with; ``None`` if
    they cannot be locked.
    """
    try:
        files = files_of(directory)
    except OSError:
        return None
    own = {path: data for path, data in files.items() if not is_left_behind(path)}
    return npx_hash(own)


def npx_hash(files: Mapping[str, bytes]) -> str:
    """Return the ``computedHash`` of `npx skills`: SHA-256 over path and bytes of each
    file, in locale order.
    """
    import hashlib  # not needed for a start

    total = hashlib.sha256()
    for path in sorted(files, key=_locale_key):
        total.update(path.encode("utf-8", "surrogateescape"))
        total.update(files[path])
    return total.hexdigest()


def is_left_behind(path: str) -> bool:
    """Return whether the file *path* is a leftover of running a skill, or of browsing
    its directory.

    `npx skills` includes such files if they exist.
    """
    return path.endswith(".DS_Store") or "/__pycache__/" in f"/{path}"


def paths_below(directory: str) -> Iterator[tuple[str, str]]:
    """Yield the path relative to *directory* of everything below it that is part of a
    skill, with its kind: ``file``, ``link``, or ``directory``, whose path ends with a
    slash.

    Raises:
        OSError: a directory cannot be listed, because its path is too long for example.
    """
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(f"{directory}/{prefix}") as children:
            for child in children:
                path = prefix + child.name
                if child.is_symlink():
                    yield path, "link"
                elif child.is_dir(follow_symlinks=False):
                    if child.name not in NOT_HASHED:
                        yield f"{path}/", "directory"
                        pending.append(f"{path}/")
                elif child.is_file(follow_symlinks=False):
                    yield path, "file"


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
