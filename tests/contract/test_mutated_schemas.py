"""Schemas of every kind, each damaged at one to three places: only the library's own
errors may come out.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from skillruntime import Contract
from skillruntime.errors import InvalidSkillError, SkillInputError

ORIGINALS: list[Any] = [
    {
        "type": "object",
        "required": ["city"],
        "additionalProperties": False,
        "properties": {
            "city": {"type": "string", "minLength": 2, "default": "Rome"},
            "days": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
            "tags": {
                "type": "array",
                "items": {"enum": ["a", "b"]},
                "uniqueItems": True,
                "maxItems": 4,
            },
            "options": {"$ref": "#/$defs/options"},
            "secret": {"type": "string", "format": "password", "writeOnly": True},
        },
        "$defs": {
            "options": {
                "type": "object",
                "properties": {"lang": {"type": "string", "pattern": "^[a-z]+$"}},
            }
        },
    },
    {
        "$anchor": "tree",
        "properties": {
            "left": {"$ref": "#tree"},
            "right": {"$ref": "#"},
            "value": {
                "anyOf": [
                    {"type": "number", "multipleOf": 0.5},
                    {"type": "null"},
                    {"const": "x"},
                ]
            },
        },
        "patternProperties": {"^x-": {"type": "string"}},
        "propertyNames": {"maxLength": 9},
        "dependentRequired": {"left": ["value"]},
        "dependentSchemas": {"right": {"required": ["value"]}},
        "minProperties": 1,
        "unevaluatedProperties": False,
    },
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {
            "a/b": {
                "$id": "#item",
                "type": "array",
                "items": [{"type": "integer"}, True],
            }
        },
        "properties": {
            "p": {"$ref": "#/definitions/a~1b"},
            "q": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "dependencies": {"p": ["q"], "q": {"minProperties": 1}},
        "if": {"required": ["p"]},
        "then": {"properties": {"q": {"default": "z"}}},
        "else": {"not": {"required": ["r"]}},
    },
    {
        "$id": "https://example.org/root",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {
            "list": {
                "type": "array",
                "prefixItems": [{"type": "string"}],
                "items": {"$dynamicRef": "#node"},
                "contains": {"type": "object"},
                "minContains": 0,
                "unevaluatedItems": False,
            },
            "when": {
                "type": ["string", "null"],
                "format": "date-time",
                "examples": ["2024-01-01T00:00:00Z"],
            },
        },
        "additionalProperties": {"$ref": "https://example.org/root"},
    },
    {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "http://example.org/old",
        "properties": {
            "n": {
                "type": "number",
                "minimum": 0,
                "exclusiveMinimum": True,
                "default": 1,
            }
        },
    },
]
ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        5,
        1.5,
        1e400,
        float("nan"),
        10**400,
        -(10**400),
        2**63,
        2**64,
        1e308,
        5e-324,
    ),
    *(
        "",
        "x",
        "#",
        "#/",
        "/",
        ".#/$defs/x",
        "#/$defs",
        "#/$defs/options",
        "#x",
        "..",
        "?",
        "//[",
        "http://[::1",
        "%",
    ),
    *(
        "\ud800",
        "\x00",
        "(",
        "(?<=a)b",
        "[",
        "a{999999}",
        "urn:x:y",
        "#/properties/~2",
        "#/properties/city/0",
        "𝟙",
    ),
    *(
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
        "data:,x",
        "integer",
    ),
    *(
        [],
        {},
        [[]],
        [None],
        [5],
        ["x", "x"],
        {"": 5},
        {"x": None},
        {"a": []},
        [{}],
        [{"$ref": "#"}],
        {"$ref": "#"},
    ),
    *(
        {"$ref": 5},
        {"$id": 5},
        {"$id": "http://[x"},
        {"type": "strng"},
        (),
        {1},
        b"x",
        object,
        {5: 6},
        ["object", 5],
    ),
]
KEYWORDS = sorted(
    {
        *(
            "$ref",
            "$dynamicRef",
            "$recursiveRef",
            "$id",
            "id",
            "$anchor",
            "$dynamicAnchor",
            "$recursiveAnchor",
        ),
        *(
            "$schema",
            "$defs",
            "definitions",
            "$vocabulary",
            "$comment",
            "type",
            "enum",
            "const",
            "default",
            "examples",
        ),
        *(
            "properties",
            "patternProperties",
            "additionalProperties",
            "propertyNames",
            "required",
            "dependentRequired",
        ),
        *(
            "dependentSchemas",
            "dependencies",
            "minProperties",
            "maxProperties",
            "unevaluatedProperties",
            "items",
        ),
        *(
            "prefixItems",
            "additionalItems",
            "contains",
            "minContains",
            "maxContains",
            "minItems",
            "maxItems",
        ),
        *(
            "uniqueItems",
            "unevaluatedItems",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "then",
            "else",
            "minimum",
        ),
        *(
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "pattern",
        ),
        *(
            "format",
            "title",
            "description",
            "deprecated",
            "readOnly",
            "writeOnly",
            "contentMediaType",
            "nullable",
        ),
    }
)
CALLS: list[Any] = [
    *(
        {},
        {"city": "Rome"},
        {"city": 5, "days": "5", "tags": "a", "options": {}},
        {"left": {"right": {}}, "value": 1},
    ),
    *(
        {"p": [1, "x"], "q": "5"},
        {"p": "[1]"},
        {"list": ["a", {"list": []}], "when": "null"},
        {"n": "0"},
        {"": ""},
    ),
    *(
        '{"city": "Rome", "days": "3",}',
        "[1]",
        "",
        None,
        {"City": "Rome", "x-a": 1, "unknown": None},
    ),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all that is in *value*."""
    yield path
    for key, child in (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    ):
        yield from places(child, (*path, key))


def mutated(random_: random.Random) -> Any:
    """Return one of the originals, damaged at one to three places."""
    schema = copy.deepcopy(random_.choice(ORIGINALS))
    for _ in range(random_.randint(1, 3)):
        path = random_.choice(list(places(schema)))
        holder, odd = (
            schema,
            copy.deepcopy(random_.choice(ODD if random_.random() < 0.9 else ORIGINALS)),
        )
        for key in path[:-1]:
            holder = holder[key]
        here = holder[path[-1]] if path else schema
        match random_.randrange(4):
            case 0 if isinstance(here, dict):
                here[random_.choice(KEYWORDS)] = odd
            case 1 if path and isinstance(holder, dict):
                holder[random_.choice(KEYWORDS)] = holder.pop(path[-1])
            case 2 if isinstance(here, list):
                here.append(odd)
            case _ if path:
                holder[path[-1]] = odd
            case _:
                schema = odd
        if not isinstance(schema, dict | list):
            break
    return schema


def attempt(seed: int) -> None:
    """Read one damaged contract, and make some calls to it."""
    random_ = random.Random(seed)
    schema = mutated(random_)
    document: Any = {"version": "1.0.0", "input": schema}
    match random_.randrange(6):
        case 0:
            document["output"] = mutated(random_)
        case 1:
            document["migrations"] = [
                {"to": "1.0.0", "accepts": mutated(random_), "steps": []}
            ]
        case 2:
            document["$defs"] = random_.choice(ODD)
        case 3:
            document[
                random_.choice(
                    ["migrations", "run", "requires", "policy", "annotations"]
                )
            ] = random_.choice(ODD)
    try:
        contract = Contract.from_dict(document)
    except InvalidSkillError:
        return
    for call in CALLS:
        for policy in ("safe", "lenient"):
            try:
                contract.accept(copy.deepcopy(call), policy=policy)
            except SkillInputError:
                pass


@pytest.mark.parametrize("start", range(0, 2000, 200))
@pytest.mark.quick_cases(["0", "600", "1000", "1600"])
def test_a_damaged_schema_raises_only_the_librarys_own_errors(start: int) -> None:
    """Wrong types under each keyword, odd references and numbers, what is not JSON at
    all; each seed is one schema.
    """
    for seed in range(start, start + 200):
        attempt(seed)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": 5},
        {
            "properties": {"a": {"$ref": ".#/$defs/x", "default": 5}},
            "$defs": {"x": {"type": "integer"}},
        },
        {"properties": {"a": {"$ref": "http://[::1", "default": 5}}},
        {"minimum": 10**400},
        {"const": "\ud800"},
    ],
)
def test_an_odd_schema_is_used_or_refused(schema: Any) -> None:
    """What cannot be used is an invalid skill, and nothing else is raised."""
    try:
        Contract.from_dict({"input": schema}).accept({"a": 5})
    except (InvalidSkillError, SkillInputError):
        pass
