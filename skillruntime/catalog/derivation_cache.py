"""What was read of scripts, kept on disk beside the index: reading one takes a hundred times as long as looking it up.

Law: what comes back is what `derive` gives now. A file is found by the bytes of the script and the code of the reader,
and used only if every module that the script imports from its skill has the same bytes as well.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from typing import Any

import skillruntime.contract
import skillruntime.derive
from skillruntime.cache_files import prune_cached, read_cached, write_cached
from skillruntime.derive import Derivation, derive
from skillruntime.derive.command import Unread
from skillruntime.derive.interpreter.state import Neighbours

__all__ = ["derive_cached", "derive_known"]

_DIRECTORY = "derived"
_MOST_BYTES = 4 * 1024 * 1024
_MOST_FILES = 50_000  # 5,600 scripts are in 10,000 real skills


def derive_cached(source: bytes, *, path: str, neighbours: Neighbours) -> Derivation | None:
    """Return what `derive` does, from the file of an earlier process if there is one."""
    return derive_known(source, path=path, neighbours=neighbours)[0]


def derive_known(source: bytes, *, path: str, neighbours: Neighbours) -> tuple[Derivation | None, bool]:
    """Return what `derive_cached` does, and whether it is known to make a usable contract.

    Compiling the contract for that takes as long as reading the script: it is done once, too.
    """
    key = sha256(b"\0".join([_reader_edition(), path.encode("utf-8", "surrogatepass"), source])).hexdigest()
    file = f"{_DIRECTORY}/{key}"
    known = _parse(read_cached(file, _MOST_BYTES))
    if known is not None and all(_digest(neighbours(name)) == was for name, was in known["asked"].items()):
        return _to_derivation(known["found"]), known["usable"]
    # Which modules it imports is known only after reading it, so they are part of the content, not of the key.
    asked: dict[str, str] = {}

    def noted(name: str) -> str | None:
        module = neighbours(name)
        asked[name] = _digest(module)
        return module

    found = derive(source, path=path, neighbours=noted)
    document = None if found is None else dataclasses.asdict(found)
    usable = found is not None and _is_usable(found)
    try:
        text = json.dumps({"asked": asked, "usable": usable, "found": document}, allow_nan=False)
    except (TypeError, ValueError):
        return found, False  # a default that JSON has no form for, such as an infinite number: read again each time
    # JSON has no tuples and only text as keys: what would come back as something else is not written.
    if _to_derivation(json.loads(text)["found"]) == found:
        write_cached(file, text.encode("utf-8", "surrogatepass"))
        if key.startswith("00"):  # once in 256 new files
            prune_cached(_DIRECTORY, _MOST_FILES)
    return found, usable


def _is_usable(found: Derivation) -> bool:
    try:
        found.to_contract()
    except Exception:  # whatever it is, it is raised again where the contract itself is made
        return False
    return True


def _parse(data: bytes | None) -> dict[str, Any] | None:
    try:
        value = None if data is None else json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _to_derivation(document: dict[str, Any] | None) -> Derivation | None:
    if document is None:
        return None
    unread = tuple(Unread(**each) for each in document["unread"])
    return Derivation(**{**document, "unread": unread, "notes": tuple(document["notes"])})


def _digest(module: str | None) -> str:
    return "" if module is None else sha256(module.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def _reader_edition() -> bytes:
    """Return what changes when a script may be read or a contract be judged otherwise: our files, Python's parser."""
    packages = (skillruntime.derive, skillruntime.contract)
    files = [sorted(_files_below(os.path.dirname(each.__file__ or ""))) for each in packages]  # noqa: PTH120
    return sha256(repr((sys.version_info[:3], files)).encode()).digest()


def _files_below(directory: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _files_below(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
