"""Pairs of contracts and what each change asks for, written by hand from the contract
document's rules and the JSON Schema keywords.

Each row: a name, the old schema, the new one, the part to raise, and the part by set
theory alone. ``INPUT`` rows stand on the input side, ``OUTPUT`` rows on the output
side, ``CONTRACT`` rows are whole documents. What that document (31.5) rules by name is
marked with its clause.
"""

from __future__ import annotations

from typing import Any

NONE, PATCH, MINOR, MAJOR = "none", "patch", "minor", "major"

S: dict[str, Any] = {"type": "string"}
I: dict[str, Any] = {"type": "integer"}  # noqa: E741 - one letter for each type
N: dict[str, Any] = {"type": "number"}
B: dict[str, Any] = {"type": "boolean"}
DATE: dict[str, Any] = {"type": "string", "format": "date"}


def obj(
    properties: dict[str, Any] | None = None,
    required: tuple[str, ...] = (),
    **more: Any,
) -> dict[str, Any]:
    """An object that says nothing of undeclared members."""
    found: dict[str, Any] = {"type": "object", "properties": properties or {}}
    if required:
        found["required"] = list(required)
    return found | more


def shut(
    properties: dict[str, Any] | None = None,
    required: tuple[str, ...] = (),
    **more: Any,
) -> dict[str, Any]:
    """An object with additionalProperties: false, as principle four of the contract
    document asks for.
    """
    return obj(properties, required, additionalProperties=False, **more)


def x(**schema: Any) -> dict[str, Any]:
    """A closed object with one optional member x."""
    return shut({"x": schema})


def free(**more: Any) -> dict[str, Any]:
    """An object that declares no members: a map."""
    return {"type": "object"} | more


def arr(items: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "array"} | ({} if items is None else {"items": items}) | more


def text(**more: Any) -> dict[str, Any]:
    return x(type="string", **more)


def num(**more: Any) -> dict[str, Any]:
    return x(type="number", **more)


def whole(**more: Any) -> dict[str, Any]:
    return x(type="integer", **more)


TREE = {
    "$defs": {"T": obj({"v": I, "kids": arr({"$ref": "#/$defs/T"})})},
    **obj({"tree": {"$ref": "#/$defs/T"}}),
}
TREE_WIDE = {
    "$defs": {"T": obj({"v": N, "kids": arr({"$ref": "#/$defs/T"})})},
    **obj({"tree": {"$ref": "#/$defs/T"}}),
}
TREE_TIGHT = {
    "$defs": {"T": obj({"v": {**I, "minimum": 0}, "kids": arr({"$ref": "#/$defs/T"})})},
    **obj({"tree": {"$ref": "#/$defs/T"}}),
}
NEWS = shut(
    {
        "topics": arr(
            {"type": "string", "minLength": 2, "maxLength": 100}, minItems=1, maxItems=5
        ),
        "time_range": {
            "type": "string",
            "enum": ["today", "24h", "this_week", "this_month"],
            "default": "today",
        },
        "max_articles_per_topic": {
            "type": "integer",
            "minimum": 1,
            "maximum": 10,
            "default": 5,
        },
        "output_language": {"type": "string", "default": "auto"},
    },
    ("topics",),
)


def news(**changes: Any) -> dict[str, Any]:
    return {**NEWS, "properties": {**NEWS["properties"], **changes}}


INPUT: list[tuple[str, Any, Any, str, str]] = [
    # Nothing that a caller sees
    ("the same", NEWS, NEWS, NONE, NONE),
    ("keys in another order", obj({"a": S, "b": I}), obj({"b": I, "a": S}), NONE, NONE),
    (
        "a description",
        obj({"a": S}),
        obj({"a": {**S, "description": "A."}}),
        PATCH,
        PATCH,
    ),
    ("a title", obj({"a": S}), obj({"a": S}, title="T"), PATCH, PATCH),
    ("examples", obj({"a": S}), obj({"a": {**S, "examples": ["x"]}}), PATCH, PATCH),
    ("an unknown keyword", obj({"a": S}), obj({"a": {**S, "x-note": 1}}), PATCH, PATCH),
    (
        "a reference for the same",
        obj({"a": S}),
        {**obj({"a": {"$ref": "#/$defs/A"}}), "$defs": {"A": S}},
        NONE,
        NONE,
    ),
    (
        "definitions renamed",
        {"$ref": "#/$defs/A", "$defs": {"A": NEWS}},
        {"$ref": "#/$defs/B", "$defs": {"B": NEWS}},
        NONE,
        NONE,
    ),
    (
        "enum in another order",
        text(enum=["a", "b"]),
        text(enum=["b", "a"]),
        PATCH,
        PATCH,
    ),
    ("const as enum of one", x(const=1), x(enum=[1]), PATCH, PATCH),
    (
        "exclusive bound of integers",
        whole(minimum=1),
        whole(exclusiveMinimum=0),
        PATCH,
        PATCH,
    ),
    ("type list of one", x(type="string"), x(type=["string"]), PATCH, PATCH),
    (
        "required in another order",
        obj({"a": S, "b": S}, ("a", "b")),
        obj({"a": S, "b": S}, ("b", "a")),
        NONE,
        NONE,
    ),
    ("minLength for an integer", whole(), whole(minLength=5), PATCH, PATCH),
    ("minItems 0", x(type="array"), x(type="array", minItems=0), PATCH, PATCH),
    (
        "nullable by type or by anyOf",
        x(type=["string", "null"]),
        x(anyOf=[S, {"type": "null"}]),
        PATCH,
        PATCH,
    ),
    # Parameters (31.5 where marked)
    (
        "31.5 optional added to a closed object",
        shut({"a": S}),
        shut({"a": S, "b": S}),
        MINOR,
        MINOR,
    ),
    (
        "31.5 optional with a default added",
        NEWS,
        news(brief={"type": "boolean", "default": False}),
        MINOR,
        MINOR,
    ),
    (
        "31.5 optional added to an open object",
        obj({"a": S}),
        obj({"a": S, "b": S}),
        MINOR,
        MAJOR,
    ),
    (
        "31.5 optional without constraint added to an open object",
        obj({"a": S}),
        obj({"a": S, "b": {}}),
        MINOR,
        PATCH,
    ),
    ("31.5 required removed, closed", shut({"a": S}, ("a",)), shut({}), MAJOR, MAJOR),
    ("31.5 required removed, open", obj({"a": S}, ("a",)), obj({}), MAJOR, MINOR),
    (
        "31.5 required renamed, closed",
        shut({"topic": S}, ("topic",)),
        shut({"topics": S}, ("topics",)),
        MAJOR,
        MAJOR,
    ),
    (
        "31.5 required renamed, open",
        obj({"topic": S}, ("topic",)),
        obj({"topics": S}, ("topics",)),
        MAJOR,
        MAJOR,
    ),
    (
        "31.5 nested required renamed",
        obj({"o": obj({"a": S}, ("a",))}),
        obj({"o": obj({"b": S}, ("b",))}),
        MAJOR,
        MAJOR,
    ),
    ("optional removed, closed", shut({"a": S, "b": S}), shut({"a": S}), MAJOR, MAJOR),
    ("optional removed, open", obj({"a": S, "b": S}), obj({"a": S}), MAJOR, MINOR),
    (
        "optional removed, where others pass",
        obj({"b": S}, additionalProperties=True),
        obj({}, additionalProperties=True),
        MINOR,
        MINOR,
    ),
    ("optional renamed, closed", shut({"count": I}), shut({"amount": I}), MAJOR, MAJOR),
    ("required added", shut({"a": S}), shut({"a": S, "b": S}, ("b",)), MAJOR, MAJOR),
    (
        "required added, open",
        obj({"a": S}),
        obj({"a": S, "b": S}, ("b",)),
        MAJOR,
        MAJOR,
    ),
    (
        "required with a default added",
        shut({}),
        shut({"b": {**S, "default": "x"}}, ("b",)),
        MAJOR,
        MAJOR,
    ),
    ("optional becomes required", shut({"a": S}), shut({"a": S}, ("a",)), MAJOR, MAJOR),
    ("required becomes optional", shut({"a": S}, ("a",)), shut({"a": S}), MINOR, MINOR),
    (
        "one of two required freed",
        obj({"a": S, "b": S}, ("a", "b")),
        obj({"a": S, "b": S}, ("a",)),
        MINOR,
        MINOR,
    ),
    ("undeclared name required", obj({"a": S}), obj({"a": S}, ("b",)), MAJOR, MAJOR),
    ("two optional added", shut({}), shut({"a": S, "b": I}), MINOR, MINOR),
    (
        "31.5 the document's own v1 to v2",
        shut({"topics": S}, ("topics",)),
        shut({"topics": arr(S)}, ("topics",)),
        MAJOR,
        MAJOR,
    ),
    (
        "string or list of strings",
        shut({"t": S}),
        shut({"t": {"anyOf": [S, arr(S)]}}),
        MINOR,
        MINOR,
    ),
    (
        "string or list, by type",
        shut({"t": S}),
        shut({"t": {"type": ["string", "array"], "items": S}}),
        MINOR,
        MINOR,
    ),
    ("default changed", text(default="a"), text(default="b"), MINOR, PATCH),
    ("default added", text(), text(default="b"), MINOR, PATCH),
    ("default removed", text(default="a"), text(), MINOR, PATCH),
    ("deprecated", text(), text(deprecated=True), MINOR, PATCH),
    # Types
    ("string to integer", text(), whole(), MAJOR, MAJOR),
    ("integer to number", whole(), num(), MINOR, MINOR),
    ("number to integer", num(), whole(), MAJOR, MAJOR),
    ("null allowed", text(), x(type=["string", "null"]), MINOR, MINOR),
    ("null forbidden", x(type=["string", "null"]), text(), MAJOR, MAJOR),
    ("any to string", x(), text(), MAJOR, MAJOR),
    ("string to any", text(), x(), MINOR, MINOR),
    ("object to array", x(type="object"), x(type="array"), MAJOR, MAJOR),
    (
        "boolean to enum of the same",
        x(type="boolean"),
        x(enum=[True, False]),
        PATCH,
        PATCH,
    ),
    ("boolean to string", x(type="boolean"), text(), MAJOR, MAJOR),
    # Enum and const
    (
        "31.5 enum value added",
        text(enum=["a", "b"]),
        text(enum=["a", "b", "c"]),
        MINOR,
        MINOR,
    ),
    ("enum value removed", text(enum=["a", "b"]), text(enum=["a"]), MAJOR, MAJOR),
    ("enum value replaced", text(enum=["a", "b"]), text(enum=["a", "c"]), MAJOR, MAJOR),
    ("free text to enum", text(), text(enum=["a"]), MAJOR, MAJOR),
    ("enum to free text", text(enum=["a"]), text(), MINOR, MINOR),
    ("const changed", x(const=1), x(const=2), MAJOR, MAJOR),
    ("const freed", x(const=1), x(type="integer"), MINOR, MINOR),
    ("31.5 const to enum", x(const="a"), x(enum=["a", "b"]), MINOR, MINOR),
    ("enum value of another type removed", x(enum=[1, "1"]), x(enum=[1]), MAJOR, MAJOR),
    (
        "31.5 enum value added in an item",
        x(type="array", items={"enum": ["a"]}),
        x(type="array", items={"enum": ["a", "b"]}),
        MINOR,
        MINOR,
    ),
    (
        "enum value that the type forbids removed",
        text(enum=["a", 1]),
        text(enum=["a"]),
        PATCH,
        PATCH,
    ),
    # Numbers
    ("minimum raised", whole(minimum=1), whole(minimum=2), MAJOR, MAJOR),
    ("minimum lowered", whole(minimum=1), whole(minimum=0), MINOR, MINOR),
    ("minimum added", num(), num(minimum=0), MAJOR, MAJOR),
    ("minimum removed", num(minimum=0), num(), MINOR, MINOR),
    ("maximum lowered", whole(maximum=10), whole(maximum=9), MAJOR, MAJOR),
    ("maximum raised", whole(maximum=10), whole(maximum=11), MINOR, MINOR),
    ("maximum added", num(), num(maximum=1), MAJOR, MAJOR),
    ("maximum removed", num(maximum=1), num(), MINOR, MINOR),
    (
        "exclusive becomes inclusive",
        num(exclusiveMinimum=0),
        num(minimum=0),
        MINOR,
        MINOR,
    ),
    (
        "inclusive becomes exclusive",
        num(minimum=0),
        num(exclusiveMinimum=0),
        MAJOR,
        MAJOR,
    ),
    (
        "exclusiveMaximum lowered",
        num(exclusiveMaximum=2),
        num(exclusiveMaximum=1),
        MAJOR,
        MAJOR,
    ),
    (
        "exclusiveMaximum raised",
        num(exclusiveMaximum=1),
        num(exclusiveMaximum=2),
        MINOR,
        MINOR,
    ),
    (
        "range moved",
        whole(minimum=1, maximum=5),
        whole(minimum=3, maximum=8),
        MAJOR,
        MAJOR,
    ),
    (
        "range widened on both sides",
        whole(minimum=1, maximum=5),
        whole(minimum=0, maximum=8),
        MINOR,
        MINOR,
    ),
    ("multipleOf added", whole(), whole(multipleOf=5), MAJOR, MAJOR),
    ("multipleOf removed", whole(multipleOf=5), whole(), MINOR, MINOR),
    (
        "multipleOf to a multiple",
        whole(multipleOf=2),
        whole(multipleOf=4),
        MAJOR,
        MAJOR,
    ),
    ("multipleOf to a divisor", whole(multipleOf=4), whole(multipleOf=2), MINOR, MINOR),
    ("multipleOf 1 for an integer", whole(), whole(multipleOf=1), PATCH, PATCH),
    ("fraction step", num(multipleOf=0.5), num(multipleOf=0.25), MINOR, MINOR),
    # Text
    ("minLength added", text(), text(minLength=1), MAJOR, MAJOR),
    ("minLength raised", text(minLength=1), text(minLength=3), MAJOR, MAJOR),
    ("minLength lowered", text(minLength=3), text(minLength=1), MINOR, MINOR),
    ("minLength removed", text(minLength=3), text(), MINOR, MINOR),
    ("maxLength lowered", text(maxLength=100), text(maxLength=50), MAJOR, MAJOR),
    ("maxLength raised", text(maxLength=50), text(maxLength=100), MINOR, MINOR),
    ("maxLength removed", text(maxLength=50), text(), MINOR, MINOR),
    ("pattern added", text(), text(pattern="^[a-z]+$"), MAJOR, MAJOR),
    ("pattern removed", text(pattern="^[a-z]+$"), text(), MINOR, MINOR),
    (
        "pattern to a wider one: undecided",
        text(pattern="^[a-z]$"),
        text(pattern="^[a-z]{1,2}$"),
        MAJOR,
        MAJOR,
    ),
    ("pattern to another", text(pattern="^a"), text(pattern="^b"), MAJOR, MAJOR),
    (
        "the document's date range pattern freed",
        text(pattern=r"^\d{4}-\d{2}-\d{2}$"),
        text(),
        MINOR,
        MINOR,
    ),
    ("format added", text(), text(format="date"), MAJOR, MAJOR),
    ("format removed", text(format="date"), text(), MINOR, MINOR),
    ("format changed", text(format="date"), text(format="date-time"), MAJOR, MAJOR),
    (
        "length window moved",
        text(minLength=1, maxLength=3),
        text(minLength=2, maxLength=4),
        MAJOR,
        MAJOR,
    ),
    # Arrays
    ("minItems added", x(type="array"), x(type="array", minItems=1), MAJOR, MAJOR),
    ("minItems removed", x(type="array", minItems=1), x(type="array"), MINOR, MINOR),
    (
        "maxItems lowered",
        x(type="array", maxItems=5),
        x(type="array", maxItems=4),
        MAJOR,
        MAJOR,
    ),
    (
        "maxItems raised",
        x(type="array", maxItems=4),
        x(type="array", maxItems=5),
        MINOR,
        MINOR,
    ),
    ("maxItems added", x(type="array"), x(type="array", maxItems=5), MAJOR, MAJOR),
    (
        "uniqueItems added",
        x(type="array"),
        x(type="array", uniqueItems=True),
        MAJOR,
        MAJOR,
    ),
    (
        "uniqueItems removed",
        x(type="array", uniqueItems=True),
        x(type="array"),
        MINOR,
        MINOR,
    ),
    ("items of another type", x(**arr(S)), x(**arr(I)), MAJOR, MAJOR),
    ("items of a wider type", x(**arr(I)), x(**arr(N)), MINOR, MINOR),
    ("items described", x(**arr()), x(**arr(S)), MAJOR, MAJOR),
    ("items freed", x(**arr(S)), x(**arr()), MINOR, MINOR),
    (
        "longer items",
        x(**arr({**S, "minLength": 2})),
        x(**arr({**S, "minLength": 3})),
        MAJOR,
        MAJOR,
    ),
    (
        "an item's optional member added",
        x(**arr(shut({"a": S}))),
        x(**arr(shut({"a": S, "b": S}))),
        MINOR,
        MINOR,
    ),
    (
        "an item's member required",
        x(**arr(shut({"a": S}))),
        x(**arr(shut({"a": S}, ("a",)))),
        MAJOR,
        MAJOR,
    ),
    (
        "prefix item narrowed",
        x(type="array", prefixItems=[N]),
        x(type="array", prefixItems=[I]),
        MAJOR,
        MAJOR,
    ),
    (
        "prefix item widened",
        x(type="array", prefixItems=[I]),
        x(type="array", prefixItems=[N]),
        MINOR,
        MINOR,
    ),
    (
        "prefix item added",
        x(type="array", prefixItems=[I]),
        x(type="array", prefixItems=[I, I]),
        MAJOR,
        MAJOR,
    ),
    (
        "tuple closed",
        x(type="array", prefixItems=[I]),
        x(type="array", prefixItems=[I], items=False),
        MAJOR,
        MAJOR,
    ),
    (
        "tuple opened",
        x(type="array", prefixItems=[I], items=False),
        x(type="array", prefixItems=[I]),
        MINOR,
        MINOR,
    ),
    ("contains added", x(type="array"), x(type="array", contains=S), MAJOR, MAJOR),
    ("contains removed", x(type="array", contains=S), x(type="array"), MINOR, MINOR),
    (
        "minContains raised",
        x(type="array", contains=S, minContains=1),
        x(type="array", contains=S, minContains=2),
        MAJOR,
        MAJOR,
    ),
    (
        "maxContains added",
        x(type="array", contains=S),
        x(type="array", contains=S, maxContains=2),
        MAJOR,
        MAJOR,
    ),
    # Objects
    ("object closed", obj({"a": S}), shut({"a": S}), MINOR, MAJOR),
    ("object opened", shut({"a": S}), obj({"a": S}), MINOR, MINOR),
    (
        "pass-through closed",
        obj({"a": S}, additionalProperties=True),
        shut({"a": S}),
        MAJOR,
        MAJOR,
    ),
    (
        "pass-through declared",
        obj({"a": S}),
        obj({"a": S}, additionalProperties=True),
        MINOR,
        PATCH,
    ),
    (
        "map values narrowed",
        free(additionalProperties=N),
        free(additionalProperties=I),
        MAJOR,
        MAJOR,
    ),
    (
        "map values widened",
        free(additionalProperties=I),
        free(additionalProperties=N),
        MINOR,
        MINOR,
    ),
    (
        "map values described",
        free(additionalProperties=True),
        free(additionalProperties=S),
        MAJOR,
        MAJOR,
    ),
    (
        "nested member narrowed",
        obj({"o": obj({"a": N})}),
        obj({"o": obj({"a": I})}),
        MAJOR,
        MAJOR,
    ),
    (
        "nested member widened",
        obj({"o": obj({"a": I})}),
        obj({"o": obj({"a": N})}),
        MINOR,
        MINOR,
    ),
    ("minProperties added", free(), free(minProperties=1), MAJOR, MAJOR),
    ("minProperties removed", free(minProperties=1), free(), MINOR, MINOR),
    (
        "maxProperties lowered",
        free(maxProperties=3),
        free(maxProperties=2),
        MAJOR,
        MAJOR,
    ),
    ("propertyNames added", free(), free(propertyNames={"maxLength": 3}), MAJOR, MAJOR),
    ("propertyNames freed", free(propertyNames={"maxLength": 3}), free(), MINOR, MINOR),
    (
        "pattern member narrowed",
        obj(patternProperties={"^a": N}),
        obj(patternProperties={"^a": I}),
        MAJOR,
        MAJOR,
    ),
    (
        "pattern member widened",
        obj(patternProperties={"^a": I}),
        obj(patternProperties={"^a": N}),
        MINOR,
        MINOR,
    ),
    ("pattern members added", free(), free(patternProperties={"^a": I}), MAJOR, MAJOR),
    (
        "pattern members added to declared ones",
        obj({"b": S}),
        obj({"b": S}, patternProperties={"^a": I}),
        MINOR,
        MAJOR,
    ),
    ("pattern members freed", free(patternProperties={"^a": I}), free(), MINOR, MINOR),
    (
        "pattern members no longer declared",
        obj({"b": S}, patternProperties={"^a": I}),
        obj({"b": S}),
        MAJOR,
        MINOR,
    ),
    (
        "dependentRequired added",
        obj({"a": S, "b": S}),
        obj({"a": S, "b": S}, dependentRequired={"a": ["b"]}),
        MAJOR,
        MAJOR,
    ),
    (
        "dependentRequired removed",
        obj({"a": S, "b": S}, dependentRequired={"a": ["b"]}),
        obj({"a": S, "b": S}),
        MINOR,
        MINOR,
    ),
    (
        "draft 7 dependencies are the same",
        {
            **obj({"a": S, "b": S}),
            "dependencies": {"a": ["b"]},
            "$schema": "http://json-schema.org/draft-07/schema#",
        },
        obj({"a": S, "b": S}, dependentRequired={"a": ["b"]}),
        NONE,
        NONE,
    ),
    (
        "draft 7 tuple is the same",
        {
            **x(type="array", items=[I]),
            "$schema": "http://json-schema.org/draft-07/schema#",
        },
        x(type="array", prefixItems=[I]),
        NONE,
        NONE,
    ),
    # Combinations
    ("anyOf branch added", x(anyOf=[S, I]), x(anyOf=[S, I, B]), MINOR, MINOR),
    ("anyOf branch removed", x(anyOf=[S, I, B]), x(anyOf=[S, I]), MAJOR, MAJOR),
    ("anyOf branch narrowed", x(anyOf=[S, N]), x(anyOf=[S, I]), MAJOR, MAJOR),
    ("anyOf branches reordered", x(anyOf=[S, I]), x(anyOf=[I, S]), PATCH, PATCH),
    ("oneOf branch added", x(oneOf=[S, I]), x(oneOf=[S, I, B]), MINOR, MINOR),
    ("oneOf branches overlap now", x(oneOf=[S, I]), x(oneOf=[S, N, I]), MAJOR, MAJOR),
    (
        "oneOf branch widened into another",
        x(oneOf=[{**S, "maxLength": 2}, {**S, "minLength": 5}]),
        x(oneOf=[{**S, "maxLength": 6}, {**S, "minLength": 5}]),
        MAJOR,
        MAJOR,
    ),
    ("allOf part added", x(allOf=[S]), x(allOf=[S, {"minLength": 1}]), MAJOR, MAJOR),
    ("allOf part removed", x(allOf=[S, {"minLength": 1}]), x(allOf=[S]), MINOR, MINOR),
    (
        "allOf part narrowed",
        x(allOf=[S, {"minLength": 1}]),
        x(allOf=[S, {"minLength": 2}]),
        MAJOR,
        MAJOR,
    ),
    (
        "allOf flattened",
        x(allOf=[S, {"minLength": 1}]),
        text(minLength=1),
        PATCH,
        PATCH,
    ),
    ("not added", x(), x(**{"not": S}), MAJOR, MAJOR),
    ("not removed", x(**{"not": S}), x(), MINOR, MINOR),
    ("not widened refuses more", x(**{"not": I}), x(**{"not": N}), MAJOR, MAJOR),
    ("not narrowed refuses less", x(**{"not": N}), x(**{"not": I}), MINOR, MINOR),
    (
        "if/then added",
        obj({"a": B, "b": S}),
        obj(
            {"a": B, "b": S},
            **{
                "if": {"properties": {"a": {"const": True}}, "required": ["a"]},
                "then": {"required": ["b"]},
            },
        ),
        MAJOR,
        MAJOR,
    ),
    (
        "if/then removed",
        obj(
            {"a": B, "b": S},
            **{
                "if": {"properties": {"a": {"const": True}}, "required": ["a"]},
                "then": {"required": ["b"]},
            },
        ),
        obj({"a": B, "b": S}),
        MINOR,
        MINOR,
    ),
    (
        "the document's empty if/then removed",
        shut(
            {"s": B, "f": S},
            **{
                "if": {"properties": {"s": {"const": True}}},
                "then": {"properties": {"f": S}},
            },
        ),
        shut({"s": B, "f": S}),
        PATCH,
        PATCH,
    ),
    (
        "unevaluated members refused",
        obj({"a": S}),
        obj({"a": S}, unevaluatedProperties=False),
        MINOR,
        MAJOR,
    ),
    (
        "a member forbidden",
        obj({"a": S, "b": S}),
        obj({"a": S, "b": False}),
        MAJOR,
        MAJOR,
    ),
    # References
    ("recursive, unchanged", TREE, TREE, NONE, NONE),
    ("recursive, widened", TREE, TREE_WIDE, MINOR, MINOR),
    ("recursive, narrowed", TREE, TREE_TIGHT, MAJOR, MAJOR),
    (
        "definition narrowed",
        {**obj({"a": {"$ref": "#/$defs/A"}}), "$defs": {"A": N}},
        {**obj({"a": {"$ref": "#/$defs/A"}}), "$defs": {"A": I}},
        MAJOR,
        MAJOR,
    ),
    # The document's own example, changed
    (
        "topics bounded closer",
        NEWS,
        news(
            topics=arr(
                {"type": "string", "minLength": 2, "maxLength": 100},
                minItems=1,
                maxItems=3,
            )
        ),
        MAJOR,
        MAJOR,
    ),
    (
        "31.5 time_range gets a value",
        NEWS,
        news(
            time_range={
                "type": "string",
                "enum": ["today", "24h", "this_week", "this_month", "this_year"],
                "default": "today",
            }
        ),
        MINOR,
        MINOR,
    ),
    (
        "output_language checked",
        NEWS,
        news(
            output_language={
                "type": "string",
                "default": "auto",
                "pattern": "^(auto|[a-z]{2})$",
            }
        ),
        MAJOR,
        MAJOR,
    ),
    (
        "more articles",
        NEWS,
        news(
            max_articles_per_topic={
                "type": "integer",
                "minimum": 1,
                "maximum": 20,
                "default": 5,
            }
        ),
        MINOR,
        MINOR,
    ),
    (
        "as text as well",
        NEWS,
        news(max_articles_per_topic={"type": ["integer", "string"], "default": 5}),
        MINOR,
        MINOR,
    ),
]

OUTPUT: list[tuple[str, Any, Any, str, str]] = [
    ("the same", obj({"a": S}, ("a",)), obj({"a": S}, ("a",)), NONE, NONE),
    (
        "31.5 optional field added, open",
        obj({"a": S}),
        obj({"a": S, "b": S}),
        MINOR,
        MINOR,
    ),
    (
        "31.5 optional field added, closed",
        shut({"a": S}),
        shut({"a": S, "b": S}),
        MINOR,
        MAJOR,
    ),
    (
        "31.5 optional field added in an item",
        obj({"r": arr(shut({"a": S}))}),
        obj({"r": arr(shut({"a": S, "b": S}))}),
        MINOR,
        MAJOR,
    ),
    (
        "31.5 required field added",
        obj({"a": S}, ("a",)),
        obj({"a": S, "b": S}, ("a", "b")),
        MAJOR,
        MINOR,
    ),
    (
        "31.5 required field removed",
        obj({"a": S, "b": S}, ("a", "b")),
        obj({"a": S}, ("a",)),
        MAJOR,
        MAJOR,
    ),
    (
        "31.5 required field becomes optional",
        obj({"a": S}, ("a",)),
        obj({"a": S}),
        MAJOR,
        MAJOR,
    ),
    (
        "31.5 optional field becomes required",
        obj({"a": S}),
        obj({"a": S}, ("a",)),
        MAJOR,
        MINOR,
    ),
    (
        "31.5 required field renamed",
        obj({"articles": S}, ("articles",)),
        obj({"article": S}, ("article",)),
        MAJOR,
        MAJOR,
    ),
    (
        "31.5 required in an item changed",
        obj({"r": arr(obj({"a": S}, ("a",)))}),
        obj({"r": arr(obj({"a": S}))}),
        MAJOR,
        MAJOR,
    ),
    (
        "31.5 enum value added",
        obj({"s": {"enum": ["ok", "failed"]}}),
        obj({"s": {"enum": ["ok", "failed", "partial"]}}),
        MINOR,
        MAJOR,
    ),
    (
        "enum value removed",
        obj({"s": {"enum": ["ok", "failed"]}}),
        obj({"s": {"enum": ["ok"]}}),
        MINOR,
        MINOR,
    ),
    (
        "optional field removed, open",
        obj({"a": S, "b": S}),
        obj({"a": S}),
        MINOR,
        MAJOR,
    ),
    ("type changed", obj({"a": S}), obj({"a": I}), MAJOR, MAJOR),
    ("type widened", obj({"a": I}), obj({"a": N}), MAJOR, MAJOR),
    ("type narrowed", obj({"a": N}), obj({"a": I}), MINOR, MINOR),
    (
        "null may come",
        obj({"a": S}),
        obj({"a": {"type": ["string", "null"]}}),
        MAJOR,
        MAJOR,
    ),
    (
        "null no longer comes",
        obj({"a": {"type": ["string", "null"]}}),
        obj({"a": S}),
        MINOR,
        MINOR,
    ),
    (
        "maximum raised",
        obj({"a": {**I, "maximum": 5}}),
        obj({"a": {**I, "maximum": 9}}),
        MAJOR,
        MAJOR,
    ),
    (
        "maximum lowered",
        obj({"a": {**I, "maximum": 9}}),
        obj({"a": {**I, "maximum": 5}}),
        MINOR,
        MINOR,
    ),
    (
        "minItems dropped",
        obj({"a": arr(S, minItems=1)}),
        obj({"a": arr(S)}),
        MAJOR,
        MAJOR,
    ),
    ("format promised", obj({"a": S}), obj({"a": DATE}), MINOR, MINOR),
    ("format no longer promised", obj({"a": DATE}), obj({"a": S}), MAJOR, MAJOR),
    ("object closed", obj({"a": S}), shut({"a": S}), MINOR, MINOR),
    ("object opened", shut({"a": S}), obj({"a": S}), MINOR, MAJOR),
    (
        "a new kind of answer",
        {"oneOf": [obj({"s": {"const": 1}}, ("s",))]},
        {"oneOf": [obj({"s": {"const": 1}}, ("s",)), obj({"s": {"const": 2}}, ("s",))]},
        MAJOR,
        MAJOR,
    ),
    (
        "one kind of answer less",
        {"oneOf": [obj({"s": {"const": 1}}, ("s",)), obj({"s": {"const": 2}}, ("s",))]},
        {"oneOf": [obj({"s": {"const": 1}}, ("s",))]},
        MINOR,
        MINOR,
    ),
    (
        "31.5 optional field in one kind of answer",
        {"oneOf": [obj({"s": {"const": 1}}, ("s",)), obj({"s": {"const": 2}}, ("s",))]},
        {
            "oneOf": [
                obj({"s": {"const": 1}, "n": I}, ("s",)),
                obj({"s": {"const": 2}}, ("s",)),
            ]
        },
        MINOR,
        MINOR,
    ),
    (
        "31.5 required in one kind of answer",
        {
            "oneOf": [
                obj({"s": {"const": 1}, "n": I}, ("s", "n")),
                obj({"s": {"const": 2}}, ("s",)),
            ]
        },
        {
            "oneOf": [
                obj({"s": {"const": 1}, "n": I}, ("s",)),
                obj({"s": {"const": 2}}, ("s",)),
            ]
        },
        MAJOR,
        MAJOR,
    ),
    (
        "a description",
        obj({"a": S}),
        obj({"a": {**S, "description": "A."}}),
        PATCH,
        PATCH,
    ),
]


def doc(**more: Any) -> dict[str, Any]:
    return {"input": obj({"a": S})} | more


CONTRACT: list[tuple[str, Any, Any, str, str]] = [
    (
        "31.5 tool removed",
        doc(requires={"tools": ["web_search", "fetch"]}),
        doc(requires={"tools": ["fetch"]}),
        MAJOR,
        MINOR,
    ),
    (
        "31.5 tool replaced",
        doc(requires={"tools": ["web_search"]}),
        doc(requires={"tools": ["bing"]}),
        MAJOR,
        MAJOR,
    ),
    ("31.5 tool added", doc(), doc(requires={"tools": ["fetch"]}), MAJOR, MAJOR),
    (
        "tools in another order",
        doc(requires={"tools": ["a", "b"]}),
        doc(requires={"tools": ["b", "a"]}),
        NONE,
        NONE,
    ),
    (
        "runtime narrowed",
        doc(requires={"runtime": ">=1.0.0,<3.0.0"}),
        doc(requires={"runtime": ">=1.0.0,<2.0.0"}),
        MAJOR,
        MAJOR,
    ),
    (
        "runtime raised",
        doc(requires={"runtime": ">=1.0.0"}),
        doc(requires={"runtime": ">=1.1.0"}),
        MAJOR,
        MAJOR,
    ),
    (
        "runtime widened",
        doc(requires={"runtime": "^1.2"}),
        doc(requires={"runtime": ">=1.0.0,<3.0.0"}),
        MINOR,
        MINOR,
    ),
    (
        "runtime written otherwise",
        doc(requires={"runtime": "^1.0.0"}),
        doc(requires={"runtime": ">=1.0.0,<2.0.0"}),
        MINOR,
        MINOR,
    ),
    ("runtime asked for", doc(), doc(requires={"runtime": ">=1.0.0"}), MAJOR, MAJOR),
    ("packages changed", doc(), doc(requires={"packages": ["pypdf"]}), MINOR, MINOR),
    (
        "no longer read only",
        doc(annotations={"read_only": True}),
        doc(annotations={"read_only": False}),
        MAJOR,
        MAJOR,
    ),
    ("read only now", doc(), doc(annotations={"read_only": True}), MINOR, MINOR),
    (
        "no longer idempotent",
        doc(annotations={"idempotent": True}),
        doc(),
        MAJOR,
        MAJOR,
    ),
    ("another annotation", doc(), doc(annotations={"icon": "x"}), PATCH, PATCH),
    ("description", doc(description="a"), doc(description="b"), PATCH, PATCH),
    (
        "another script",
        doc(run={"script": "scripts/a.py"}),
        doc(run={"script": "scripts/b.py"}),
        PATCH,
        PATCH,
    ),
    (
        "an exit code is a result",
        doc(run={"script": "scripts/a.py"}),
        doc(run={"script": "scripts/a.py", "exit_codes": {"1": "found"}}),
        MINOR,
        MINOR,
    ),
    (
        "an exit code is no longer a result",
        doc(run={"script": "scripts/a.py", "exit_codes": {"1": "found", "2": "x"}}),
        doc(run={"script": "scripts/a.py", "exit_codes": {"1": "found"}}),
        MAJOR,
        MAJOR,
    ),
    (
        "an exit code in other words",
        doc(run={"script": "scripts/a.py", "exit_codes": {"1": "found"}}),
        doc(run={"script": "scripts/a.py", "exit_codes": {"1": "problems found"}}),
        PATCH,
        PATCH,
    ),
    ("output declared", doc(), doc(output=obj({"a": S})), MINOR, MINOR),
    ("output no longer declared", doc(output=obj({"a": S})), doc(), MAJOR, MAJOR),
    (
        "input and output",
        doc(output=obj({"a": S})),
        {"input": shut({"a": S, "b": S}), "output": obj({"a": I})},
        MAJOR,
        MAJOR,
    ),
]
