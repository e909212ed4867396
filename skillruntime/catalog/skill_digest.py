"""The digest of what a skill can execute: contracts, scripts and the modules next to them. Nothing is parsed."""

from __future__ import annotations

import hashlib

from skillruntime.catalog.resources import CONTRACT_FILES, list_files, read_bytes
from skillruntime.errors import ResourceNotFoundError

__all__ = ["digest_of_code"]

CODE_SUFFIXES = (".py", ".sh", ".bash", ".js", ".mjs", ".cjs", ".ts", ".pl", ".rb", ".so", ".pth", ".json", ".toml")
"""Next to SKILL.md only these count; below ``scripts/`` and ``contracts/`` every file does."""


def digest_of_code(directory: str) -> bytes:
    """Return the SHA-256 of the contracts, scripts and modules in *directory*: their paths and their bytes.

    A file that is too large to read counts with its path and its size.
    """
    total = hashlib.sha256()
    for resource in list_files(directory):
        top, _, below = resource.path.partition("/")
        if not (top in ("scripts", *CONTRACT_FILES) if below else top in CONTRACT_FILES or top.endswith(CODE_SUFFIXES)):
            continue
        try:
            content = hashlib.sha256(read_bytes(directory, resource.path)).hexdigest()
        except ResourceNotFoundError:
            # Too large to be a script that is run unseen; its size still changes with most edits.
            content = str(resource.bytes)
        # A NUL cannot occur in a path, so no two lists of files give the same input.
        total.update(f"{resource.path}\0{content}\n".encode("utf-8", "surrogateescape"))
    return total.digest()
