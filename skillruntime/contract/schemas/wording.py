"""Say in few words what a schema takes and what a value is, for the errors that a model
reads.

The law: each phrase has a bound of its own, so that an error about a large value is as
short as one about a small one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
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
    """Return in words what *schema* takes, for a next step: ``an integer from 1 to
    10``.
    """
    if not isinstance(schema, dict):
        return ""
    if isinstance(schema.get("enum"), list):
        return "one of " + listed(schema["enum"])
    if "const" in schema:
        return quoted(schema["const"])
    words = _kind_in_words(schema) + _range_in_words(schema)
    for few, many, unit in (
        ("minLength", "maxLength", "characters"),
        ("minItems", "maxItems", "items"),
    ):
        words += _count_in_words(schema.get(few), schema.get(many), unit)
    if "pattern" in schema:
        words += f" that matches {shortened(str(schema['pattern']))}"
    if "format" in schema:
        words += f" in the format {schema['format']}"
        # RFC 3339, section 5.6: an offset is required, which callers often leave out.
        if schema["format"] in _FORMS:
            words += f", such as {_FORMS[schema['format']]}"
    if words == "an array" or words.startswith("an array,"):
        inner = in_words(schema.get("items"))
        words += f", each {inner}" if inner else ""
    return shortened(words.lstrip(", "), MAX_LISTED)


def _kind_in_words(schema: dict[str, Any]) -> str:
    """Return the types of *schema*, and of an object what it needs, else what it may
    have.
    """
    words = type_names(schema["type"]) if "type" in schema else ""
    names = schema.get("required") or schema.get("properties")
    if words != "an object" or not names:
        return words
    # What a discriminated union differs in: without the value all its branches read
    # alike.
    kinds = [
        f"{quoted(key)} {in_words(part)}"
        for key, part in (schema.get("properties") or {}).items()
        if isinstance(part, dict) and "const" in part
    ]
    return f"an object with {', '.join(kinds) or listed(names)}"


def _range_in_words(schema: dict[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    words = ""
    if low is not None and high is not None:
        words = f" equal to {low}" if low == high else f" from {low} to {high}"
    elif low is not None:
        words = f", at least {low}"
    elif high is not None:
        words = f", at most {high}"
    for keyword, side in (("exclusiveMinimum", "more"), ("exclusiveMaximum", "less")):
        if schema.get(keyword) not in (
            None,
            True,
        ):  # true as in draft 4, beside the bound
            words += f", {side} than {schema[keyword]}"
    return words


def _count_in_words(few: Any, many: Any, unit: str) -> str:
    one = unit[:-1]
    if few is not None and many is not None:
        exactly = f", exactly {few} {one if few == 1 else unit}"
        return exactly if few == many else f", {few} to {many} {unit}"
    if few is not None:
        return f", at least {few} {one if few == 1 else unit}"
    return "" if many is None else f", at most {many} {one if many == 1 else unit}"


# What pydantic reads, and writes, of these types is more than the format that it
# states: ``date-time`` requires an offset (RFC 3339, section 5.6), and a Python
# ``datetime`` is often naive; ``duration`` has no fractions of a second, and no days
# beside years (appendix A); ``uri`` is ASCII, and pydantic encodes the rest as a
# browser does (``https://example.org/Köln``). So a pattern takes its place; pydantic
# itself checks the rest of an argument.
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
    """Return the one of *names* that is most like *name*, whatever its case; none that
    is less like it than *cutoff*.

    >>> nearest("maxlength", ["maxItems", "maxLength"]), nearest("colour", ["size"])
    ('maxLength', None)
    """
    import difflib  # only for names that do not fit

    folded = {
        known[:MAX_QUOTED].casefold(): known for known in list(names)[:MAX_COMPARED]
    }
    near = difflib.get_close_matches(
        name[:MAX_QUOTED].casefold(), folded, n=1, cutoff=cutoff
    )
    return folded[near[0]] if near else None


def type_names(types: Any) -> str:
    return " or ".join(
        _ARTICLES.get(name, f"a {name}")
        for name in (types if isinstance(types, list) else [types])
    )


def listed(names: Iterable[Any]) -> str:
    """Return *names* as a model reads them, as many as fit."""
    every, shown, size = list(names), list[str](), 0
    for name in every:
        written = quoted(name)
        size += len(written.encode()) + 2
        if size > MAX_LISTED and shown:
            return ", ".join(shown) + f" and {len(every) - len(shown)} more"
        shown.append(written)
    return ", ".join(shown)


def quoted(value: Any) -> str:
    match value:
        case dict():
            return "{" + shortened(", ".join(map(str, value))) + "}"
        case list() if not _is_short(value):
            return f"an array of {len(value)}"
        case Decimal():
            # `1e5` as a number, and not as `1E+5`, which Python alone writes.
            return (
                f"{value:f}"
                if -20 < value.adjusted() < 20
                else str(value).lower().replace("e+", "e")
            )
        case _:
            return shortened(as_json(value))


# `json.dumps` with options makes an encoder for each value.
as_json = json.JSONEncoder(ensure_ascii=False, default=str).encode


def _is_short(items: list[Any]) -> bool:
    """Whether *items* are few, and each a scalar or an array of few scalars."""
    parts = [
        part for item in items for part in (item if isinstance(item, list) else [item])
    ]
    return len(items) <= MAX_ITEMS >= len(parts) and all(
        isinstance(part, str | int | float | None) for part in parts
    )


def shortened(text: str, limit: int = MAX_QUOTED) -> str:
    """Return *text*, cut to *limit* bytes: what tokens follow more closely than
    characters.
    """
    # Bytes follow tokens more closely than characters do: a Chinese character is one
    # token or more.
    data = text.encode(errors="replace")
    return (
        text if len(data) <= limit else data[: limit - 1].decode(errors="ignore") + "…"
    )
