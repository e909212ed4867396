"""Schemas and payloads that cost far more than they are long, or that mean two things
at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.hostile.cases import Case

__all__ = ["schema_cases"]

_ANY: dict[str, Any] = {"type": "object"}
_BOUNDED = "accepted or refused, in bounded time"
_REFUSED = "refused"

# name, what it does, what must happen, the schema, the payload: a value, or the text
# that a model sent.
_CASES: tuple[tuple[str, str, str, Callable[[], Any], Callable[[], Any]], ...] = (
    (
        "pattern-nested",
        "a pattern of nested repetitions",
        _BOUNDED,
        lambda: _of({"pattern": "^(a+)+$"}),
        lambda: {"a": "a" * 40 + "!"},
    ),
    (
        "pattern-choices",
        "a pattern of overlapping choices",
        _BOUNDED,
        lambda: _of({"pattern": "^(a|a)*$"}),
        lambda: {"a": "a" * 40 + "!"},
    ),
    (
        "pattern-stars",
        "a pattern of many stars",
        _BOUNDED,
        lambda: _of({"pattern": "^" + "a*" * 30 + "b$"}),
        lambda: {"a": "a" * 60},
    ),
    (
        "pattern-power",
        "a pattern that takes the fourth power of the length",
        _BOUNDED,
        lambda: _of({"pattern": "a*a*a*b"}),
        lambda: {"a": "a" * 10_000},
    ),
    (
        "pattern-optional",
        "a pattern of many optional letters",
        _BOUNDED,
        lambda: _of({"pattern": "^" + "a?" * 40 + "a" * 40 + "$"}),
        lambda: {"a": "a" * 40},
    ),
    (
        "pattern-back-reference",
        "a pattern with a back-reference",
        _BOUNDED,
        lambda: _of({"pattern": "^(.+)\\1+$"}),
        lambda: {"a": "ab" * 5000 + "!"},
    ),
    (
        "pattern-look-behind",
        "a pattern with look-around",
        _BOUNDED,
        lambda: _of({"pattern": "(?<=a+)b"}),
        lambda: {"a": "a" * 1000},
    ),
    (
        "pattern-counted",
        "a pattern counted to a million",
        _BOUNDED,
        lambda: _of({"pattern": "(a{1000}){1000}"}),
        lambda: {"a": "a" * 100},
    ),
    (
        "pattern-keys",
        "a slow pattern for the keys",
        _BOUNDED,
        lambda: {"patternProperties": {"^(a+)+$": {}}},
        lambda: {"a" * 40 + "!": 1},
    ),
    (
        "unique-items",
        "5,000 objects that must differ",
        _BOUNDED,
        lambda: {"properties": {"a": {"uniqueItems": True}}},
        lambda: {"a": [{"k": n} for n in range(5000)]},
    ),
    (
        "required-many",
        "20,000 required keys",
        _REFUSED,
        lambda: {"required": [f"k{n}" for n in range(20_000)]},
        dict,
    ),
    (
        "enum-many",
        "100,000 allowed values",
        _REFUSED,
        lambda: _of({"enum": [f"v{n}" for n in range(100_000)]}),
        lambda: {"a": "v"},
    ),
    (
        "properties-many",
        "20,000 keys, each near to another",
        _REFUSED,
        lambda: {
            "properties": {f"key{n}": {"type": "integer"} for n in range(5000)},
            "additionalProperties": False,
        },
        lambda: {f"kex{n}": 1 for n in range(2000)},
    ),
    ("reference-self", "a reference to itself", _BOUNDED, lambda: {"$ref": "#"}, dict),
    (
        "reference-pair",
        "two references to each other",
        _BOUNDED,
        lambda: {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        },
        dict,
    ),
    (
        "reference-doubling",
        "references that double at each step",
        _BOUNDED,
        lambda: _doubling("$ref"),
        lambda: {"x": 1},
    ),
    (
        "reference-anchor",
        "anchors that double at each step",
        _BOUNDED,
        lambda: _anchors("$anchor", "$ref"),
        lambda: {"x": 1},
    ),
    (
        "reference-dynamic",
        "dynamic references that double at each step",
        _BOUNDED,
        lambda: _anchors("$dynamicAnchor", "$dynamicRef"),
        lambda: {"x": 1},
    ),
    (
        "reference-id",
        "a reference by another identity",
        _BOUNDED,
        lambda: {
            "$id": "http://x.invalid/a",
            "$ref": "http://x.invalid/b",
            "$defs": {"b": {"$id": "b", "$ref": "a"}},
        },
        dict,
    ),
    (
        "reference-network",
        "a reference to the network",
        _REFUSED,
        lambda: {"$ref": "http://127.0.0.1:9/schema.json"},
        dict,
    ),
    (
        "reference-file",
        "a reference to a file",
        _REFUSED,
        lambda: {"$ref": "file:///etc/passwd"},
        dict,
    ),
    (
        "reference-long",
        "a reference of 1 MB",
        _REFUSED,
        lambda: {"$ref": "#/" + "a/" * 500_000},
        dict,
    ),
    (
        "nested-any-of",
        "choices inside choices",
        _BOUNDED,
        lambda: _nested("anyOf", 12),
        lambda: {"x": 1},
    ),
    (
        "nested-one-of",
        "exclusive choices inside choices",
        _BOUNDED,
        lambda: _nested("oneOf", 12),
        lambda: {"x": 1},
    ),
    (
        "nested-all-of",
        "2,000 conditions inside each other",
        _BOUNDED,
        lambda: _chain("allOf", 2000),
        dict,
    ),
    (
        "nested-not",
        "2,000 negations inside each other",
        _BOUNDED,
        lambda: _chain("not", 2000),
        dict,
    ),
    (
        "conditions",
        "2,000 conditions",
        _BOUNDED,
        lambda: {
            "allOf": [
                {"if": {"required": [f"k{n}"]}, "then": {"required": [f"k{n + 1}"]}}
                for n in range(2000)
            ]
        },
        dict,
    ),
    (
        "unevaluated",
        "unevaluated properties through references",
        _BOUNDED,
        lambda: {**_doubling("$ref"), "unevaluatedProperties": False},
        lambda: {"x": 1},
    ),
    (
        "huge-minimum-length",
        "a length that no text has",
        _REFUSED,
        lambda: _of({"type": "string", "minLength": 10**18}),
        lambda: {"a": "x"},
    ),
    (
        "tiny-multiple",
        "a multiple of next to nothing",
        _BOUNDED,
        lambda: _of({"multipleOf": 1e-300}),
        lambda: {"a": 1e300},
    ),
    (
        "huge-multiple",
        "a number of 4,000 digits and its multiple",
        _BOUNDED,
        lambda: _of({"multipleOf": 3}),
        lambda: {"a": 10**4000},
    ),
    (
        "minimum-not-a-number",
        "a limit that is not a number",
        _REFUSED,
        lambda: _of({"minimum": "x"}),
        lambda: {"a": 1},
    ),
    (
        "keyword-null",
        "null for every keyword",
        _REFUSED,
        lambda: dict.fromkeys(("type", "properties", "required", "enum", "allOf")),
        dict,
    ),
    (
        "schema-deep",
        "a schema of 100,000 brackets",
        _REFUSED,
        lambda: _chain("not", 50_000),
        dict,
    ),
    (
        "payload-deep",
        "arguments of 100,000 brackets",
        _REFUSED,
        lambda: _ANY,
        lambda: "[" * 100_000,
    ),
    (
        "payload-deep-object",
        "100,000 objects inside each other",
        _REFUSED,
        lambda: _ANY,
        lambda: '{"a":' * 100_000,
    ),
    (
        "payload-broken-array",
        "a broken array of 10 MB",
        _REFUSED,
        lambda: _ANY,
        lambda: '{"a": [' + "1," * 5_000_000,
    ),
    (
        "payload-broken-text",
        "a text of 10 MB that never ends",
        _REFUSED,
        lambda: _ANY,
        lambda: '{"a": "' + "x" * 10_000_000,
    ),
    (
        "payload-quotes",
        "a million quotes",
        _REFUSED,
        lambda: _ANY,
        lambda: '{"a": ' + '"' * 1_000_001,
    ),
    (
        "payload-backslashes",
        "a million backslashes",
        _REFUSED,
        lambda: _ANY,
        lambda: '{"a": "' + "\\" * 1_000_001,
    ),
    (
        "payload-long-number",
        "a number of a million digits",
        _REFUSED,
        lambda: _of({"type": "integer"}),
        lambda: '{"a": ' + "9" * 1_000_000 + "}",
    ),
    (
        "payload-large-exponent",
        "a number with an exponent of a billion",
        _REFUSED,
        lambda: _of({"type": "integer"}),
        lambda: '{"a": 1e1000000000}',
    ),
    (
        "payload-text-exponent",
        "the same as text",
        _REFUSED,
        lambda: _of({"type": "integer"}),
        lambda: {"a": "1e1000000000"},
    ),
    (
        "payload-not-a-number",
        "NaN",
        _REFUSED,
        lambda: _of({"type": "number", "maximum": 5}),
        lambda: '{"a": NaN}',
    ),
    (
        "payload-infinity",
        "a number that is too large",
        _REFUSED,
        lambda: _of({"type": "number", "maximum": 5}),
        lambda: '{"a": 1e999}',
    ),
    (
        "payload-many-keys",
        "200,000 unknown keys",
        _REFUSED,
        lambda: {"properties": {"a": {}}, "additionalProperties": False},
        lambda: {f"k{n}": 1 for n in range(200_000)},
    ),
    (
        "payload-twice-encoded",
        "arguments encoded ten times",
        _BOUNDED,
        lambda: _ANY,
        lambda: _encoded(10),
    ),
    (
        "payload-wrapped",
        "arguments wrapped a thousand times",
        _BOUNDED,
        lambda: _ANY,
        lambda: _wrapped(1000),
    ),
    (
        "payload-prose",
        "arguments after 5 MB of words",
        _BOUNDED,
        lambda: _ANY,
        lambda: "word { " * 700_000,
    ),
    (
        "payload-empty-lines",
        "5 MB of blank lines",
        _BOUNDED,
        lambda: _ANY,
        lambda: "\n" * 5_000_000,
    ),
)


def schema_cases() -> list[Case]:
    """Return every case of a schema and a payload."""
    return [
        Case(f"schema-{name}", "schema", what, expected, schema=schema, payload=payload)
        for name, what, expected, schema, payload in _CASES
    ]


def _of(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}}


def _doubling(keyword: str) -> dict[str, Any]:
    definitions = {
        f"d{n}": {"allOf": [{keyword: f"#/$defs/d{n + 1}"}] * 2} for n in range(24)
    }
    return {keyword: "#/$defs/d0", "$defs": {**definitions, "d24": {"type": "object"}}}


def _anchors(anchor: str, keyword: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"d{n}": {anchor: f"d{n}", "allOf": [{keyword: f"#d{n + 1}"}] * 2}
        for n in range(24)
    }
    return {
        keyword: "#d0",
        "$defs": {**definitions, "d24": {anchor: "d24", "type": "object"}},
    }


def _nested(keyword: str, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {keyword: [schema, schema]}
    return schema


def _chain(keyword: str, depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {keyword: [schema] if keyword == "allOf" else schema}
    return schema


def _encoded(times: int) -> str:
    text = '{"a": 1}'
    for _ in range(times):
        text = json.dumps(text)
    return text


def _wrapped(times: int) -> Any:
    value: Any = {"a": 1}
    for _ in range(times):
        value = {"arguments": value}
    return value
