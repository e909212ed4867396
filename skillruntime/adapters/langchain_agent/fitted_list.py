"""Keep the list of skills that was fitted into an agent's system message, for the next
start of the agent.

Fitting a list counts the tokens of hundreds of entries, and the first count loads a
tokenizer: that took half of the time in which the middleware is made.

Law: a kept list is the one that `SkillSession.fit_catalog` would return. Its key is a
digest of everything that decides it: the skills, the budget and the form, the way
tokens are counted, and the code that writes lists.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

from skillruntime.cache_files import read_cached, write_cached
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.contracts.reader_edition import reader_edition
from skillruntime.catalog.rendering import Rendered
from skillruntime.runtime.session import SkillSession
from skillruntime.tokens.counter import tokenizer_of

__all__ = ["fitted_list"]

_FILE = "lists.json"
_MOST_KEPT = 8
_MOST_BYTES = 16 * 1024 * 1024


def fitted_list(
    session: SkillSession,
    catalog: SkillCatalog,
    how: tuple[int | None, str, tuple[str, ...]],
) -> Rendered:
    """Return the list of *catalog*, which is the session's, within the tokens, in the
    style and with the pins of *how*.
    """
    tokens, style, pins = how
    model = session.state.model
    # The host's own function may count differently tomorrow.
    if tokens is None or not isinstance(model, str):
        return session.fit_catalog(tokens, style, pins=pins)
    key = _key(catalog, how, model)
    kept = _read()
    found = _to_rendered(kept.pop(key, None))
    if found is not None:
        return found
    rendered = session.fit_catalog(tokens, style, pins=pins)
    others = list(kept.items())[1 - _MOST_KEPT :]
    document = {**dict(others), key: asdict(rendered)}
    write_cached(_FILE, json.dumps(document).encode())
    return rendered


def _key(
    catalog: SkillCatalog, how: tuple[int | None, str, tuple[str, ...]], model: str
) -> str:
    skills = [
        (metadata.name, metadata.description, metadata.path)
        for metadata in catalog.for_model().values()
    ]
    decides = repr((reader_edition(), tokenizer_of(model), how, skills))
    data = decides.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=16).hexdigest()


def _read() -> dict[str, Any]:
    try:
        kept = json.loads(read_cached(_FILE, _MOST_BYTES) or b"{}")
    except ValueError:
        return {}
    if not isinstance(kept, dict):
        return {}
    return kept


def _to_rendered(kept: Any) -> Rendered | None:
    if not isinstance(kept, dict):
        return None
    fields: dict[str, Any] = {}
    for name, value in kept.items():
        # JSON has no tuples.
        fields[name] = tuple(value) if isinstance(value, list) else value
    try:
        return Rendered(**fields)
    except TypeError:  # written by another version
        return None
