"""What was read of scripts, kept on disk beside the index: reading one takes a hundred
times as long as looking it up.

Law: what comes back is what `derive` gives now. A file is found by the bytes of the
script and the code of the reader.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from skillruntime.cache_files import prune_cached, read_cached, write_cached
from skillruntime.catalog.contracts.reader_edition import reader_edition

if TYPE_CHECKING:
    from skillruntime.derive import Derivation

__all__ = ["derive_known"]

_DIRECTORY = "derived"
_MOST_BYTES = 4 * 1024 * 1024
_MOST_FILES = 50_000  # 5,600 scripts are in 10,000 real skills


def derive_known(source: bytes, *, path: str) -> tuple[Mapping[str, Any] | None, bool]:
    """Return the document of the contract that `derive` reads, and whether it is known
    to make a usable contract.

    It is read from the file of an earlier process if there is one, without the code
    that reads scripts. Compiling the contract to know whether it is usable takes as
    long as reading the script, so it is done once, too.
    """
    key = sha256(
        b"\0".join([reader_edition(), path.encode("utf-8", "surrogatepass"), source])
    ).hexdigest()
    file = f"{_DIRECTORY}/{key}"
    known = _parse(read_cached(file, _MOST_BYTES))
    if known is not None:
        return known["found"], known["usable"]
    from skillruntime.derive import derive

    found = derive(source, path=path)
    document = None if found is None else found.document
    usable = found is not None and _is_usable(found)
    try:
        text = json.dumps({"usable": usable, "found": document}, allow_nan=False)
    except (TypeError, ValueError):
        # a default that JSON has no form for, such as an infinite number: read again
        # each time
        return (document, False)
    # JSON has no tuples and only text as keys: what would come back as something else
    # is not written.
    if json.loads(text)["found"] == document:
        write_cached(file, text.encode("utf-8", "surrogatepass"))
        if key.startswith("00"):  # once in 256 new files
            prune_cached(_DIRECTORY, _MOST_FILES)
    return document, usable


def _is_usable(found: Derivation) -> bool:
    try:
        found.to_contract()
    except (
        Exception
    ):  # whatever it is, it is raised again where the contract itself is made
        return False
    return True


def _parse(data: bytes | None) -> dict[str, Any] | None:
    try:
        value = None if data is None else json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
