"""Decide what the text of a parameter means by its schema: the parameters of chat
templates, and swallowed ones.

A text is a string wherever the schema takes one, and else JSON of the declared type;
where it could be both, with different values, the call is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from skillruntime.contract.reading.json_text import UnreadableError, decode
from skillruntime.contract.reading.templates import without_breaks
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA, ValuePath
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import places_of, property_locations
from skillruntime.errors import SkillInputError

_WORDS = {"true": True, "false": False, "null": None, "none": None}


def typed_parameters(
    texts: Mapping[str, str], strings: Mapping[str, bool], schema: Schema
) -> dict[str, Any]:
    """Return the values of *texts*, the parameters of a chat template; *strings* says
    of some whether they are strings.

    >>> properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
    >>> schema = Schema({"properties": properties})
    >>> typed_parameters({"city": "75001", "days": "3"}, {}, schema)
    {'city': '75001', 'days': 3}

    Raises:
        SkillInputError: a text may be a string or another value.
    """
    return {
        name: _typed(name, text, strings.get(name), schema)
        for name, text in texts.items()
    }


def _typed(name: str, text: str, is_string: bool | None, schema: Schema) -> Any:
    if is_string:
        return text
    is_readable, value = _read(text)
    if is_string is False:
        return value if is_readable else text
    fits_as_text = _fits(name, text, schema)
    fits_as_value = is_readable and _fits(name, value, schema)
    if fits_as_text and fits_as_value and not is_same(text, value):
        raise SkillInputError(
            f"The parameter {name!r} could be a string or another value",
            suggested_action="Send the arguments as one JSON object",
        )
    # If neither fits, the text may need a repair, like any other value that was sent as
    # a string.
    return value if fits_as_value else text


def _fits(name: str, value: Any, schema: Schema) -> bool:
    """Return whether *value* fits the parameter *name*, as far as *schema* says."""
    certain = places_of(schema.references, WHOLE_SCHEMA, ValuePath((name,)))
    if certain:
        return all(schema.fits(value, location) for location in certain)
    possible = property_locations(schema.references, [WHOLE_SCHEMA]).get(name, [])
    if possible:
        return any(schema.fits(value, location) for location in possible)
    return True


def _read(text: str) -> tuple[bool, Any]:
    """Return whether *text* writes a JSON value, or a word that Python's templates
    write for one, and the value.
    """
    plain = text.strip()
    if plain.casefold() in _WORDS:
        return True, _WORDS[plain.casefold()]
    try:
        return True, decode(plain, literals=False)
    except (ValueError, RecursionError, UnreadableError):
        return False, None


# A closing tag followed by nothing but parameter elements. APIs that extract calls from
# XML leave them in a value (ten public threads; in one of them 6.2 % of the calls).
_SWALLOWED = re.compile(r"</(?P<tag>[\w:.-]{1,80})>\s*(?=<(?:antml:)?parameter[\s=])")
_ELEMENT = re.compile(
    r"""\s*<(?P<tag>(?:antml:)?parameter)(?:\s+name\s*=|=)\s*"""
    r"""["']?(?P<name>[^<>"'=\s]{1,120})["']?\s*>"""
)


def may_have_swallowed(arguments: Mapping[str, Any]) -> bool:
    """Return whether a value of *arguments* may have swallowed parameters.

    A quick test: a valid call costs nothing more.
    """
    for value in arguments.values():
        if type(value) is str and "</" in value and "parameter" in value:
            return True
    return False


def with_swallowed(
    arguments: dict[str, Any], schema: Schema
) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Return *arguments* with swallowed parameters restored, and, for each parameter
    that had swallowed some, their names.

    A parameter is swallowed if its element was pasted into the end of another's value.

    >>> properties = {"text": {"type": "string"}, "tags": {"type": "array"}}
    >>> schema = Schema({"properties": properties})
    >>> text = 'long</text>\\n<parameter name="tags">["a"]</parameter>'
    >>> with_swallowed({"text": text}, schema)
    ({'text': 'long', 'tags': ['a']}, {'text': ('tags',)})

    Raises:
        SkillInputError: swallowed parameters do not fit; the message names them.
    """
    declared = property_locations(schema.references, [WHOLE_SCHEMA])
    recovered: dict[str, tuple[str, ...]] = {}
    for name, value in list(arguments.items()):
        split = _split(value) if isinstance(value, str) else None
        if split is None:
            continue
        text, swallowed = split
        if any(key in arguments or key not in declared for key in swallowed):
            continue
        typed = typed_parameters(swallowed, {}, schema)
        if not all(_fits(key, member, schema) for key, member in typed.items()):
            names = ", ".join(map(repr, swallowed))
            raise SkillInputError(
                f"The parameter {name!r} holds others that do not fit: {names}",
                suggested_action="Send each parameter under its own name, in its "
                "declared type",
            )
        arguments = {**arguments, name: text, **typed}
        recovered[name] = tuple(swallowed)
    return arguments, recovered


def _split(text: str) -> tuple[str, dict[str, str]] | None:
    """Return the value that *text* begins with, and the texts of the parameters behind
    it; ``None`` where *text* is not of that form.
    """
    match = _SWALLOWED.search(text)
    if match is None:
        return None
    value = text[: match.start()]
    # If the value opens the tag itself, the value is XML.
    if re.search(rf"<{re.escape(match['tag'])}[\s>]", value):
        return None
    swallowed: dict[str, str] = {}
    position = match.end()
    while text[position:].strip():
        element = _ELEMENT.match(text, position)
        if element is None or element["name"] in swallowed:
            return None
        closing = f"</{element['tag']}>"
        end = text.find(closing, element.end())
        if end < 0:
            # The last element is not closed.
            end = len(text)
        content = text[element.end() : end]
        swallowed[element["name"]] = without_breaks(content, False)
        position = end + len(closing)
    return value, swallowed
