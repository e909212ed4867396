"""The contracts that were derived from scripts, kept on disk beside the index: deriving
one takes a hundred times as long as looking it up.

Law: a stored answer is what `derive` gives now. A file is found by the bytes of the
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
    encoded_path = path.encode("utf-8", "surrogatepass")
    key = sha256(b"\0".join([reader_edition(), encoded_path, source])).hexdigest()
    file = f"{_DIRECTORY}/{key}"
    known = _parse(read_cached(file, _MOST_BYTES))
    if known is not None:
        return known["found"], known["usable"]
    from skillruntime.derive import derive

    derivation = derive(source, path=path)
    if derivation is None:
        document = None
        usable = False
    else:
        document = derivation.document
        usable = _is_usable(derivation)
    try:
        text = json.dumps({"usable": usable, "found": document}, allow_nan=False)
    except (TypeError, ValueError):
        # A default that JSON has no form for, such as an infinite number, is derived
        # again each time.
        return document, False
    # JSON has no tuples and only text as keys: a document that would come back as
    # another one is not written.
    if json.loads(text)["found"] == document:
        write_cached(file, text.encode("utf-8", "surrogatepass"))
        if key.startswith("00"):  # once in 256 new files
            prune_cached(_DIRECTORY, _MOST_FILES)
    return document, usable


def _is_usable(derivation: Derivation) -> bool:
    try:
        derivation.to_contract()
    except Exception:
        # Any error is raised again where the contract itself is made.
        return False
    return True


def _parse(data: bytes | None) -> dict[str, Any] | None:
    if data is None:
        return None
    try:
        value = json.loads(data)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    return value
