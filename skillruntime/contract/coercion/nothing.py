"""Words for nothing that say something: where they are members of a choice, or where a default is the opposite."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skillruntime.contract.coercion.scalars import is_nothing
from skillruntime.contract.coercion.subschemas import in_place, item_locations, subschemas
from skillruntime.contract.pointer import Path
from skillruntime.contract.references import References

__all__ = ["is_named", "is_opposite", "may_be_null_text"]


def is_named(references: References, text: Any, location: Path) -> bool:
    """Whether *text* is a member of a choice for the items of an array at *location*, at any level of it.

    >>> encodings = {"type": "array", "items": {"enum": ["none", "gzip"]}}
    >>> [is_named(References(encodings), text, ()) for text in ("None", "null", None)]
    [True, False, False]
    """
    named = references.once(("named nothing", location), lambda: _named(references, location))
    return isinstance(text, str) and text.strip().casefold() in named


def _named(references: References, location: Path) -> set[str]:
    found, pending, seen = set[str](), [location], set[Path]()
    while pending:
        here = pending.pop()
        for place, schema in in_place(references, [here]):
            if place in seen:
                continue
            seen.add(place)
            allowed = schema.get("enum")
            members = [*(allowed if isinstance(allowed, list) else ()), schema.get("const")]
            # A choice for the whole may be one of arrays: {"enum": [["none"], ["gzip"]]}.
            texts = [each for member in members if isinstance(member, list) for each in member]
            texts += members if here != location else []
            found |= {each.strip().casefold() for each in texts if isinstance(each, str) and is_nothing(each)}
        pending += [place for place in item_locations(references, here) if place not in seen]
    return found


def is_opposite(references: References, value: Any, path: Path) -> bool:
    """Whether *value*, at *path*, is the word ``none``, and its declared default is something.

    ``"None"`` is how Python writes null, so that it says nothing; ``"none"`` may mean none of them.

    >>> schema = {"properties": {"tags": {"type": "array", "default": ["all"]}}}
    >>> [is_opposite(References(schema), text, ("tags",)) for text in ("none", "None", "")]
    [True, False, False]
    """
    if not isinstance(value, str) or value.strip() != "none":
        return False
    defaults = [schema["default"] for schema in subschemas(references, path) if "default" in schema]
    return any(default not in (None, "", [], {}) and default is not False for default in defaults)


def may_be_null_text(value: Any, schemas: Iterable[Mapping[str, Any]]) -> bool:
    """Whether *value*, null or a word for it, may mean the text ``null`` that one of *schemas* has for a choice.

    >>> [may_be_null_text(None, [{"enum": members}]) for members in (["null", "asc"], ["none", "asc"])]
    [True, False]
    """
    if not is_nothing(value) or (isinstance(value, str) and not value.strip()):
        return False
    for schema in schemas:
        allowed = schema.get("enum")
        members = [*(allowed if isinstance(allowed, list) else ()), schema.get("const")]
        if any(isinstance(each, str) and each.strip().casefold() == "null" for each in members):
            return True
    return False
