"""Interpret the text of a parameter by its schema: the parameters of chat templates,
and swallowed ones.

A text is a string if the schema accepts a string, and otherwise JSON of the declared
type. If it could be both, with different values, the call is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from skillruntime.contract.reading.json_text import UnreadableError, decode
from skillruntime.contract.reading.templates import without_breaks
from skillruntime.contract.schemas.names import renames
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA, ValuePath
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.subschemas import (
    in_place,
    item_locations,
    kinds_taken_by,
    places_of,
    property_locations,
)
from skillruntime.errors import SkillInputError
from skillruntime.lazy_patterns import lazy_pattern

MAX_QUOTED = 8
_WORDS = {"true": True, "false": False, "null": None, "none": None}


def typed_parameters(
    texts: Mapping[str, str], strings: Mapping[str, bool], schema: Schema
) -> dict[str, Any]:
    """Return the values of *texts*, the parameters of a chat template; *strings* says
    for some of them whether they are strings.

    >>> properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
    >>> schema = Schema({"properties": properties})
    >>> typed_parameters({"city": "75001", "days": "3"}, {}, schema)
    {'city': '75001', 'days': 3}

    Raises:
        SkillInputError: a text may be a string or another value.
    """
    declared = property_locations(schema.references, [WHOLE_SCHEMA])
    unknown = texts.keys() - declared.keys()
    # The key itself is repaired later, with a record; here its value gets the type of
    # the parameter that the key means.
    meant = renames(unknown, declared, texts)
    values: dict[str, Any] = {}
    for name, text in texts.items():
        parameter = meant.get(name, name)
        values[name] = _typed(parameter, text, strings.get(name), schema)
    return values


def _typed(name: str, text: str, is_string: bool | None, schema: Schema) -> Any:
    if is_string:
        return text
    is_readable, value = _read(text)
    if is_string is False:
        return value if is_readable else text
    fits_as_text = _fits(name, text, schema)
    fits_as_value = is_readable and _fits(name, value, schema)
    is_null = value is None and text.strip().casefold() == "null"
    if is_null and fits_as_value and _is_declared(name, schema):
        # vLLM reads it in the same way (`convert_param_value` of its Qwen3-Coder
        # parser).
        return None
    is_unclear = fits_as_value and not is_same(text, value)
    if isinstance(value, list) and not fits_as_value:
        is_unclear = _fits_an_item(name, value, schema)
    if fits_as_text and is_unclear:
        raise SkillInputError(
            f"The parameter {name!r} could be a string or another value",
            suggested_action="Send the arguments as one JSON object",
        )
    # A template cannot write an object in another way; therefore a fault is inside the
    # object.
    is_container = isinstance(value, dict | list) and not fits_as_text
    if is_container and not _takes_text(name, schema):
        return value
    # If neither fits, the text may need a repair, like any other value that was sent as
    # a string.
    return value if fits_as_value else text


def _takes_text(name: str, schema: Schema) -> bool:
    declared = property_locations(schema.references, [WHOLE_SCHEMA])
    places = declared.get(name)
    if places is None:
        return True
    # Look only at the parts that always apply: a branch of a union may leave the type
    # to the schema around it.
    for _, part in in_place(schema.references, places, choices=False):
        if "type" in part and "string" not in part["type"]:
            return False
    return "string" in kinds_taken_by(schema.references, places)


def _fits(name: str, value: Any, schema: Schema) -> bool:
    """Return whether *value* fits the parameter *name*; an undeclared name fits any
    value.
    """
    certain = places_of(schema.references, WHOLE_SCHEMA, ValuePath((name,)))
    if certain:
        return all(schema.fits(value, location) for location in certain)
    possible = property_locations(schema.references, [WHOLE_SCHEMA]).get(name, [])
    if possible:
        return any(schema.fits(value, location) for location in possible)
    return True


def _is_declared(name: str, schema: Schema) -> bool:
    return name in property_locations(schema.references, [WHOLE_SCHEMA])


def _fits_an_item(name: str, items: list[Any], schema: Schema) -> bool:
    """Return whether one of *items* fits the item schema of the parameter *name*; then
    an array was meant, not a text that looks like an array.
    """
    declared = property_locations(schema.references, [WHOLE_SCHEMA]).get(name, [])
    locations = item_locations(schema.references, declared)
    return any(schema.fits(item, location) for location in locations for item in items)


def _read(text: str) -> tuple[bool, Any]:
    """Parse *text* as JSON or as a word that Python's templates write for a JSON value;
    return whether this succeeded, and the value.
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
_SWALLOWED = lazy_pattern(r"</(?P<tag>[\w:.-]{1,80})>\s*(?=<(?:antml:)?parameter[\s=])")
_ELEMENT = lazy_pattern(
    r"""\s*<(?P<tag>(?:antml:)?parameter)(?:\s+name\s*=|=)\s*"""
    r"""["']?(?P<name>[^<>"'=\s]{1,120})["']?\s*>"""
)


def may_have_swallowed(arguments: Mapping[str, Any]) -> bool:
    """Return whether a value of *arguments* may have swallowed parameters.

    This quick test is the only cost for a valid call.
    """
    for value in arguments.values():
        if type(value) is str and "</" in value and "parameter" in value:
            return True
    return False


def with_swallowed(
    arguments: dict[str, Any], schema: Schema
) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Return *arguments* with swallowed parameters restored, and a mapping of each
    swallowing parameter to the names that it had swallowed.

    A parameter is swallowed if its element was pasted at the end of another parameter's
    value.

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
        split = _split(name, value) if isinstance(value, str) else None
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


def _is_quoted(before: str, after: str) -> bool:
    """Return whether a tag between *before* and *after* is quoted: after an opening
    quote, in an open code span or fence, in an indented block or a block quote.

    >>> _is_quoted("It ends in `", "`"), _is_quoted("He said 'yes'", "")
    (True, False)
    """
    line = before[before.rfind("\n") + 1 :]
    if _OPENING_QUOTE.search(line) or line.count("`") % 2:
        return True
    if before.count("```") % 2 or before.count("~~~") % 2:
        return True
    margin = line[: len(line) - len(line.lstrip("> \t"))]
    if not (">" in margin or "\t" in margin or "    " in margin):
        return False
    # The last line of indented code does not belong to a block if the following text is
    # not indented.
    return line == margin or after.startswith(f"\n{margin}")


# Matches an opening quote at the end of the text; a closing quote follows a character.
_OPENING_QUOTE = lazy_pattern(r"""(?:^|[\s(\[{=:,])["'\u201c\u2018\u201e\u00ab]$""")


def _split(name: str, text: str) -> tuple[str, dict[str, str]] | None:
    """Split *text*, the value of the parameter *name*, into the value itself and the
    texts of the swallowed parameters; return ``None`` if *text* does not have that
    form.
    """
    # A text with more such tags is a text about this form of call.
    for match in islice(_SWALLOWED.finditer(text), MAX_QUOTED):
        is_own = match["tag"].rpartition(":")[2] in (name, "parameter")
        after = match[0].rpartition(">")[2]
        if is_own and not _is_quoted(text[: match.start()], after):
            break
    else:
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
