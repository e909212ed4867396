"""Describe schemas and values in a few words, for the errors that a model reads.

The law: each phrase has its own bound, so that an error about a large value is as short
as one about a small value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

MAX_QUOTED = 40
MAX_COMPARED = 80
MAX_ITEMS = 5
MAX_LISTED = 72
_ARTICLES = {
    "integer": "an integer",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def in_words(schema: Any) -> str:
    """Describe the values of *schema* in words, for a next step: ``an integer from 1 to
    10``.
    """
    if not isinstance(schema, dict):
        return ""
    if isinstance(schema.get("enum"), list):
        return "one of " + listed(schema["enum"])
    if "const" in schema:
        return shortened(as_json(schema["const"]))
    words = _kind_in_words(schema) + _range_in_words(schema)
    words += _count_in_words(
        schema.get("minLength"), schema.get("maxLength"), "characters"
    )
    words += _count_in_words(schema.get("minItems"), schema.get("maxItems"), "items")
    words += _count_in_words(
        schema.get("minProperties"), schema.get("maxProperties"), "members"
    )
    if "pattern" in schema:
        words += f" that matches {shortened(str(schema['pattern']))}"
    if "format" in schema:
        words += f" in the format {schema['format']}"
        # RFC 3339, section 5.6: an offset is required, which callers often leave out.
        if schema["format"] in _FORMS:
            words += f", such as {_FORMS[schema['format']]}"
    if words == "an array" or words.startswith("an array,"):
        item = in_words(schema.get("items"))
        if item:
            words += f", each {item}"
    return shortened(words.lstrip(", "), MAX_LISTED)


def _kind_in_words(schema: dict[str, Any]) -> str:
    """Return the types of *schema* in words, and for an object its required members, or
    else its optional ones.
    """
    types = schema.get("type")
    # A branch of a union often only names the members that it requires or excludes.
    if types is None and _names_members(schema):
        types = "object"
    if types is None:
        return ""
    words = type_names(types)
    if words != "an object":
        return words
    members = _members_in_words(schema)
    if members:
        words += f" with {members}"
    excluded = excluded_together(schema.get("not"))
    if excluded:
        words += f", without {' and '.join(map(quoted, excluded))}"
    return words


def _names_members(schema: dict[str, Any]) -> bool:
    if _required_names(schema) or schema.get("properties"):
        return True
    return bool(excluded_together(schema.get("not")))


def _members_in_words(schema: dict[str, Any]) -> str:
    properties = schema.get("properties") or {}
    # The branches of a discriminated union differ in a constant: without its value,
    # their descriptions would all be the same.
    constants: list[str] = []
    for key, part in properties.items():
        if isinstance(part, dict) and "const" in part:
            constants.append(f"{quoted(key)} {in_words(part)}")
    if constants:
        return ", ".join(constants)
    required = _required_names(schema)
    if required:
        return listed(required)
    # Optional members need not be sent, and may exclude one another.
    if len(properties) > 1:
        return f"any of {listed(properties)}"
    return listed(properties)


def _required_names(schema: dict[str, Any]) -> list[Any]:
    """Return the members that *schema* requires; up to draft 3, ``required`` was a
    boolean.
    """
    names = schema.get("required")
    return names if isinstance(names, list) else []


def excluded_together(schema: Any) -> list[str]:
    """Return the members that an object must not have together: those that *schema*,
    found under ``not``, requires. Return an empty list if it has other keywords.
    """
    if not isinstance(schema, dict) or schema.keys() - {"required", "type"}:
        return []
    return [name for name in _required_names(schema) if isinstance(name, str)]


def _range_in_words(schema: dict[str, Any]) -> str:
    low = schema.get("minimum")
    high = schema.get("maximum")
    words = ""
    if low is not None and high is not None:
        words = f" equal to {low}" if low == high else f" from {low} to {high}"
    elif low is not None:
        words = f", at least {low}"
    elif high is not None:
        words = f", at most {high}"
    for keyword, side in (("exclusiveMinimum", "more"), ("exclusiveMaximum", "less")):
        bound = schema.get(keyword)
        # In draft 4 this is not a bound but a boolean that modifies `minimum` or
        # `maximum`.
        if bound is not None and not isinstance(bound, bool):
            words += f", {side} than {bound}"
    return words


def _count_in_words(least: Any, most: Any, unit: str) -> str:
    if least is not None and least == most:
        return f", exactly {_counted(least, unit)}"
    if least is not None and most is not None:
        return f", {least} to {most} {unit}"
    if least is not None:
        return f", at least {_counted(least, unit)}"
    if most is not None:
        return f", at most {_counted(most, unit)}"
    return ""


def _counted(count: Any, unit: str) -> str:
    """Return *count* with its *unit*, a plural that ends in ``s``."""
    if count == 1:
        unit = unit.removesuffix("s")
    return f"{count} {unit}"


# For these types pydantic reads and writes more than the format that it states:
# ``date-time`` requires an offset (RFC 3339, section 5.6), and a Python ``datetime`` is
# often naive; ``duration`` has no fractions of a second, and no days beside years
# (appendix A); ``uri`` is ASCII, and pydantic encodes the rest as a browser does
# (``https://example.org/Köln``). So a pattern replaces the format; pydantic itself
# checks the rest of an argument.
WIDER = {
    "date-time": (r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}", "2026-01-31T09:30:00"),
    "time": (r"^\d{2}:\d{2}", "09:30:00"),
    "duration": (r"^[+-]?P", "PT1H30M"),
    "uri": (r"^\s*[A-Za-z][A-Za-z0-9+.-]*:", "https://example.com/page"),
}
FORMAT_OF_PATTERN = {pattern: name for name, (pattern, _) in WIDER.items()}
_FORMS = {
    "date-time": "2026-01-31T09:30:00Z",
    "date": "2026-01-31",
    "time": "09:30:00Z",
    "duration": "PT1H30M",
}


def nearest(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the one of *names* most similar to *name*, ignoring case; None if the
    similarity of all is below *cutoff*.

    >>> nearest("maxlength", ["maxItems", "maxLength"]), nearest("colour", ["size"])
    ('maxLength', None)
    """
    import difflib  # imported only for unknown names

    folded = {
        known[:MAX_QUOTED].casefold(): known for known in list(names)[:MAX_COMPARED]
    }
    near = difflib.get_close_matches(
        name[:MAX_QUOTED].casefold(), folded, n=1, cutoff=cutoff
    )
    if not near:
        return None
    return folded[near[0]]


def type_names(types: Any) -> str:
    """Describe the *types* of a schema, one or several, in words: ``a string or
    null``.
    """
    names = types if isinstance(types, list) else [types]
    return " or ".join(_ARTICLES.get(name, f"a {name}") for name in names)


def listed(names: Iterable[Any]) -> str:
    """Return a list of *names* for a model, with as many as fit."""
    names = list(names)
    shown: list[str] = []
    size = 0
    for name in names:
        text = quoted(name)
        size += len(text.encode()) + 2
        if size > MAX_LISTED and shown:
            return ", ".join(shown) + f" and {len(names) - len(shown)} more"
        shown.append(text)
    return ", ".join(shown)


def quoted(value: Any) -> str:
    """Return *value* as a quotation for a message: an object by its keys, a long array
    by its number of items.
    """
    match value:
        case dict():
            return "{" + shortened(", ".join(map(str, value))) + "}"
        case list() if not _is_short(value):
            return f"an array of {len(value)}"
        case Decimal() if -20 < value.adjusted() < 20:
            return f"{value:f}"
        case Decimal():
            # Write `1e50` as in JSON, not `1E+50` as in Python.
            return str(value).lower().replace("e+", "e")
        case _:
            return shortened(as_json(value))


# Shared, because `json.dumps` with options creates an encoder for each value.
as_json: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, default=str).encode


def _is_short(items: list[Any]) -> bool:
    """Return whether there are few *items*, each a scalar or an array of few
    scalars.
    """
    if len(items) > MAX_ITEMS:
        return False
    scalars: list[Any] = []
    for item in items:
        if isinstance(item, list):
            scalars += item
        else:
            scalars.append(item)
    if len(scalars) > MAX_ITEMS:
        return False
    return all(isinstance(scalar, str | int | float | None) for scalar in scalars)


def shortened(text: str, limit: int = MAX_QUOTED) -> str:
    """Return *text* truncated to *limit* bytes."""
    # Bytes follow tokens more closely than characters do: a Chinese character is one
    # token or more.
    data = text.encode(errors="replace")
    if len(data) <= limit:
        return text
    return data[: limit - 1].decode(errors="ignore") + "…"
