"""What one value can become as a whole: converted to another type, or taken out of what is around it.

Each is a candidate, with the rule it follows; the coercer finds out whether it fits, and whether it is the only one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from skillruntime.contract.arguments import parse_container
from skillruntime.contract.coercion.keys import is_call_wrapper, is_entry, is_schema_echo, is_wrapper, wrapped
from skillruntime.contract.coercion.scalars import booleans, fold_name, is_nothing, number_in, number_text

__all__ = ["NUMBERS", "read_as", "taken_out"]

# The rules by which a text is read as a number.
NUMBERS = ("number-text", "thousands")


def read_as(wanted: str, value: Any, *, more_words: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield *value* converted to the type *wanted*, if it can be, with the rule; *more_words* as in `Policy`.

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
        # 1 and 0 only: 2 is not a boolean in any language that a model writes.
        case "boolean", int() | float() | Decimal() if value in (0, 1) and not isinstance(value, bool):
            yield "boolean-number", bool(value)
        # True is left out: "True", "true" and "yes" are different texts, and none was written.
        case "string", int() | float() | Decimal() if not isinstance(value, bool):
            text = number_text(value)
            if text is not None:
                yield "number-for-text", text
        # Only where null is a type of its own: an optional property is left out instead, by another rule.
        case "null", str() if is_nothing(value, more_words=more_words):
            yield "null-text", None
        case (("array" | "object"), str()):
            parsed = parse_container(value)
            if parsed is not None and isinstance(parsed.value, list if wanted == "array" else dict):
                yield "container-text", parsed.value


def taken_out(
    value: Any,
    declared: Collection[str],
    *,
    of_type: bool,
    needed: Collection[str] | None,
    wants_text: bool = False,
    wants_list: bool = True,
    schema: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[tuple[str, Any, Any]]:
    """Yield what *value* holds alone, with the rule, and *value* as the record shows it.

    *declared* are the properties of the object that is wanted, *schema* is what it is wanted by; *of_type* says that
    the type or the choice of *value* as a whole is refused. *needed* are the parameters that a call cannot leave out,
    if *value* is all arguments, else ``None``. With *wants_text* a string that means null is one.

    >>> list(taken_out({"input": {"city": "Paris"}}, {"city"}, of_type=False, needed=()))
    [('wrapper-object', {'city': 'Paris'}, {'input': '…'})]
    """
    match value:
        case [item] if (
            of_type
            and (wants_text or not is_nothing(item))
            and not (
                is_entry(item) and item.keys().isdisjoint(declared)  # of a map in the form of its entries
            )
        ):
            yield "array-of-one", item, value
        case dict() if (
            is_schema_echo(value, schema)
            and "value" not in declared
            and (of_type or isinstance(value["value"], dict))
            # {"value": [5]} for a text would need a second guess: that a list of one is its item.
            and (wants_list or not isinstance(value["value"], list))
        ):
            yield "schema-echo", value["value"], value
        case dict():
            for name, inside in value.items():
                content = wrapped(inside)
                if is_wrapper(value, name, declared):
                    # `{"arguments": ""}`: what models send for a tool without parameters.
                    if needed is not None and content in ("", None) and is_call_wrapper(name):
                        content = {}
                elif needed is None or len(value) > 1 or not _holds_all(name, content, declared, needed, schema):
                    continue
                if isinstance(content, dict):
                    yield "wrapper-object", content, {**value, name: "…"}


def _holds_all(
    name: str, content: Any, declared: Collection[str], needed: Collection[str], schema: Mapping[str, Any]
) -> bool:
    """Whether *content*, all that was sent under a blank key, ``type`` or the schema's title, is a call's arguments.

    Models put their arguments there by mistake; so each key must be declared, and none that is needed be absent.
    """
    # The title: a function whose only parameter is the model `trip` has it, and a caller may write {"trip": {...}}.
    if name.strip() and name not in ("type", schema.get("title")):
        return False
    if name.strip() and any(fold_name(each) == fold_name(name) for each in declared):
        return False
    return (
        isinstance(content, dict)
        and bool(content)
        and all(key in declared for key in content)
        and all(key in content for key in needed)
    )
