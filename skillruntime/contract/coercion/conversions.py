"""What one value can become as a whole: read as another type, or taken out of what stands around it.

Each is a candidate, with the rule it follows; whether it fits, and whether it is the only one, is for others to say.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from decimal import Decimal
from typing import Any

from skillruntime.contract.arguments import parse_container
from skillruntime.contract.coercion.keys import is_call_wrapper, is_schema_echo, is_wrapper, wrapped
from skillruntime.contract.coercion.scalars import booleans, is_nothing, number_in, number_text

__all__ = ["NUMBERS", "read_as", "taken_out"]

NUMBERS = ("number-text", "thousands")
"""The rules by which a text is read as a number."""


def read_as(wanted: str, value: Any, *, more_words: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield *value* as the type *wanted* has it, if it can be read so, with the rule; *more_words* as in `Policy`.

    >>> list(read_as("integer", "1,234")), list(read_as("array", "['a']")), list(read_as("boolean", "maybe"))
    ([('thousands', 1234)], [('container-text', ['a'])], [])
    """
    match wanted, value:
        case (("integer" | "number"), str()):
            number = number_in(value, whole=wanted == "integer")
            if number is not None:
                yield "thousands" if "," in value else "number-text", number
        case "boolean", str():
            word = value.strip().casefold()
            words = booleans(more_words=more_words)
            if word in words:
                yield "boolean-text", words[word]
        case "boolean", int() | float() | Decimal() if value in (0, 1) and not isinstance(value, bool):
            yield "boolean-number", bool(value)
        case "string", int() | float() | Decimal() if not isinstance(value, bool):
            text = number_text(value)
            if text is not None:
                yield "number-for-text", text
        case "null", str() if is_nothing(value, more_words=more_words):
            yield "null-text", None
        case (("array" | "object"), str()):
            parsed = parse_container(value)
            if parsed is not None and isinstance(parsed.value, list if wanted == "array" else dict):
                yield "container-text", parsed.value


def taken_out(value: Any, declared: Container[str], *, of_type: bool, at_top: bool) -> Iterator[tuple[str, Any, Any]]:
    """Yield what stands in *value* alone, with the rule, and *value* as the record shows it.

    *declared* are the properties of the object that is wanted; *of_type* says that it is the type or the choice of
    *value* as a whole that is refused, *at_top* that *value* is all arguments.

    >>> list(taken_out({"input": {"city": "Paris"}}, {"city"}, of_type=False, at_top=True))
    [('wrapper-object', {'city': 'Paris'}, {'input': '…'})]
    """
    match value:
        case [item] if of_type:
            yield "array-of-one", item, value
        case dict() if is_schema_echo(value) and (
            of_type or (isinstance(value["value"], dict) and "value" not in declared)
        ):
            yield "schema-echo", value["value"], value
        case dict():
            for name, inside in value.items():
                if is_wrapper(value, name, declared):
                    content = wrapped(inside)
                    if at_top and content in ("", None) and is_call_wrapper(name):
                        content = {}
                    if isinstance(content, dict):
                        yield "wrapper-object", content, {**value, name: "…"}
