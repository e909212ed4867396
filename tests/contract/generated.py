"""Random schemas of every kind that the standard allows, values that fit them, and
single errors of known kinds.

Everything follows from one seed, so that a case that breaks a law can be made again:
``Case.of(seed)``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import jsonschema_rs

from skillruntime.contract.schemas.pointer import Path, value_at

LOOKALIKES = [
    "",
    "null",
    "None",
    "true",
    "False",
    "yes",
    "0",
    "5",
    "5.0",
    "-1",
    "007",
    "1,234",
    "1e5",
    "N/A",
    "[]",
    "{}",
    "[1, 2]",
    '["a", "b"]',
    "['a']",
    '{"a": 1}',
    "{'a': 'b'}",
    "a, b",
    "'x'",
    '"x"',
    "x}",
    "red; green",
    "day -1",
]
WORDS = [
    "Paris",
    "New York",
    "solar power",
    "a",
    "b",
    "kind",
    "today",
    "this_week",
    "x y",
    "Ünï",
    "gpt-4",
    "北京",
]
NAMES = [
    "city",
    "max_items",
    "outputFormat",
    "save-to",
    "tags",
    "kind",
    "limit",
    "Limit",
    "value",
    "data",
    "type",
    "n1",
]
ENUMS: list[list[Any]] = [
    ["red", "dark_green", "light blue"],
    ["today", "this_week", "This-Month"],
    ["A+", "A-", "B"],
    ["UTC-5", "UTC+5", "UTC5"],
    ["none", "some", None],
    [1, 2, 30],
    ["1", "2", "true"],
    [True, "auto"],
]
SCALARS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 1, "maxLength": 12},
    {"type": "string", "pattern": "^[a-z]+$"},
    {"type": "string", "format": "date"},
    {"type": "integer"},
    {"type": "integer", "minimum": 0, "maximum": 99},
    {"type": "number"},
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["integer", "null"]},
    {"type": ["string", "null"]},
    {"type": ["string", "number"]},
    {"const": "fixed"},
    {"const": 7},
]
DEFINITIONS: dict[str, Any] = {
    "tree": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
        },
        "additionalProperties": False,
    },
    "json": {
        "anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": {"$ref": "#/$defs/json"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
        ]
    },
    "point": {
        "type": "array",
        "prefixItems": [{"type": "number"}, {"type": "number"}],
        "minItems": 2,
        "items": False,
    },
    "shape": {
        "oneOf": [
            {
                "type": "object",
                "required": ["kind", "radius"],
                "properties": {
                    "kind": {"const": "circle"},
                    "radius": {"type": "number"},
                },
                "additionalProperties": False,
            },
            {
                "type": "object",
                "required": ["kind", "sides"],
                "properties": {
                    "kind": {"const": "box"},
                    "sides": {"type": "array", "items": {"type": "integer"}},
                },
                "additionalProperties": False,
            },
        ]
    },
}


def make_schema(random: Random, depth: int = 0) -> dict[str, Any]:
    """Return a schema of any kind."""
    kinds = ["scalar"] * 6 + ["enum"] * 2
    if depth < 3:
        kinds += [
            "array",
            "array",
            "arrays",
            "object",
            "object",
            "map",
            "union",
            "union",
            "reference",
            "tuple",
        ]
        kinds += ["optional", "or list"]
    match random.choice(kinds):
        case "scalar":
            return copy.deepcopy(random.choice(SCALARS))
        case "enum":
            return {"enum": list(random.choice(ENUMS))}
        case "array":
            bounds = random.choice(
                [
                    {},
                    {},
                    {"minItems": 1},
                    {"maxItems": 2},
                    {"minItems": 2},
                    {"uniqueItems": True},
                ]
            )
            return {"type": "array", "items": make_schema(random, depth + 1), **bounds}
        case "arrays":
            inner: dict[str, Any] = copy.deepcopy(random.choice(SCALARS))
            for _ in range(random.randint(2, 3)):
                inner = {
                    "type": "array",
                    "items": inner,
                    **random.choice([{}, {"minItems": 2}, {"maxItems": 2}]),
                }
            return inner
        case "object":
            return make_object(random, depth + 1)
        case "map":
            return {
                "type": "object",
                "additionalProperties": make_schema(random, depth + 1),
            }
        case "union":
            branches = [
                make_schema(random, depth + 1) for _ in range(random.randint(2, 3))
            ]
            return {random.choice(["anyOf", "anyOf", "oneOf"]): branches}
        case "optional":
            return {"anyOf": [make_schema(random, depth + 1), {"type": "null"}]}
        case "or list":
            item: dict[str, Any] = random.choice(
                [{"type": "string"}, {"type": "integer"}, {"enum": ["a", "b", "x y"]}]
            )
            other = copy.deepcopy(
                random.choice([*SCALARS, {"type": "object"}, {"enum": ["all", "none"]}])
            )
            branches = [
                {"type": "array", "items": item},
                other,
                *random.choice([[], [{"type": "null"}]]),
            ]
            return {"anyOf": random.sample(branches, len(branches))}
        case "tuple":
            places = [
                make_schema(random, depth + 2) for _ in range(random.randint(1, 3))
            ]
            return {
                "type": "array",
                "prefixItems": places,
                "items": random.choice([False, {"type": "string"}]),
            }
        case _:
            return {"$ref": "#/$defs/" + random.choice(sorted(DEFINITIONS))}


def make_object(random: Random, depth: int = 0) -> dict[str, Any]:
    """Return the schema of an object: closed, open, or with typed extra keys."""
    names = random.sample(NAMES, random.randint(1, 4))
    properties = {name: make_schema(random, depth) for name in names}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema["required"] = [name for name in names if random.random() < 0.4]
    rest = random.choice(
        [False, False, False, None, {"type": "string"}, {"type": "integer"}]
    )
    if rest is not None:
        schema["additionalProperties"] = rest
    if len(names) > 1 and random.random() < 0.15:
        schema["dependentRequired"] = {names[0]: [names[1]]}
    for name in names:
        if random.random() < 0.15 and isinstance(properties[name], dict):
            properties[name]["default"] = make_value(
                random, properties[name], DEFINITIONS
            )
    return schema


CIRCLE = {"kind": "circle", "radius": 1}
LEAVES = {"tree": {"name": "leaf"}, "json": 1, "point": [1, 2.5]}
"""Values of the definitions that end a recursion; of all others, a circle."""


def make_value(
    random: Random, schema: Any, definitions: dict[str, Any], depth: int = 0
) -> Any:
    """Return a value that probably fits *schema*."""
    if schema is True or schema == {}:
        return random.choice([*LOOKALIKES, 5, True, None])
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if depth > 4:
            return copy.deepcopy(LEAVES.get(name, CIRCLE))
        return make_value(random, definitions[name], definitions, depth + 1)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            alternative = random.choice(schema[keyword])
            return make_value(random, alternative, definitions, depth + 1)
    if "enum" in schema:
        return random.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = random.choice(kind)
    match kind:
        case "string":
            return _make_text(random, schema)
        case "integer":
            return random.choice([0, 1, 5, 42, 99, -3, 1234, 2**53 + 1])
        case "number":
            return random.choice([0, 1, 2.5, -0.125, 1e3, 1234.5, 5])
        case "boolean":
            return random.random() < 0.5
        case "null":
            return None
        case "array":
            return _make_list(random, schema, definitions, depth)
        case _:
            return _make_object(random, schema, definitions, depth)


def _make_text(random: Random, schema: dict[str, Any]) -> str:
    if schema.get("format") == "date":
        year = random.randint(10, 39)
        month = random.randint(1, 9)
        return f"20{year}-0{month}-{random.randint(10, 28)}"
    if "pattern" in schema:
        return random.choice(["a", "abc", "null", "true", "none"])
    return random.choice(random.choice([LOOKALIKES, WORDS]))


def _make_list(
    random: Random, schema: dict[str, Any], definitions: dict[str, Any], depth: int
) -> list[Any]:
    prefix = schema.get("prefixItems", [])
    made = [make_value(random, place, definitions, depth + 1) for place in prefix]
    items = schema.get("items", True)
    if items is False:
        return made
    # Behind places of their own, few lists have more.
    if prefix and random.random() >= 0.3:
        return made
    fewest = max(0, schema.get("minItems", 0) - len(made))
    most = min(3 - depth // 2, schema.get("maxItems", 3))
    for _ in range(random.randint(fewest, max(fewest, most))):
        made.append(make_value(random, items, definitions, depth + 1))
    return made


def _make_object(
    random: Random, schema: dict[str, Any], definitions: dict[str, Any], depth: int
) -> dict[str, Any]:
    required = schema.get("required", [])
    made = {}
    for name, member in schema.get("properties", {}).items():
        if name in required or random.random() < 0.5:
            made[name] = make_value(random, member, definitions, depth + 1)
    rest = schema.get("additionalProperties", True)
    if rest is not False and depth < 5 and random.random() < 0.5:
        key = random.choice(["extra", "Extra_Key", "x1", "notes"])
        made.setdefault(key, make_value(random, rest, definitions, depth + 1))
    return made


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every part of *value*, itself first."""
    yield path
    members = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, member in members:
        yield from places(member, (*path, key))


def replaced(value: Any, path: Path, part: Any) -> Any:
    """Return a copy of *value* with *part* at *path*."""
    if not path:
        return part
    changed = copy.deepcopy(value)
    value_at(changed, path[:-1])[path[-1]] = part
    return changed


def _camel(name: str) -> str:
    first, *rest = name.replace("-", "_").split("_")
    return first + "".join(map(str.capitalize, rest))


VALUE_ERRORS: dict[str, Callable[[Random, Any], Any]] = {
    "number in a string": lambda random, v: json.dumps(v) if _is_number(v) else v,
    "integer with a fraction in a string": lambda random, v: (
        f"{v}.0" if _is_integer(v) else v
    ),
    "thousands": lambda random, v: f"{v:,}" if _is_integer(v) else v,
    "boolean in a string": lambda random, v: (
        random.choice([str(v), str(v).lower()]) if isinstance(v, bool) else v
    ),
    "null in a string": lambda random, v: (
        random.choice(["null", "None"]) if v is None else v
    ),
    "number for a string": lambda random, v: (
        int(v) if isinstance(v, str) and v in ("0", "5", "-1") else v
    ),
    "array of one": lambda random, v: [v],
    "item for an array": lambda random, v: (
        v[0]
        if isinstance(v, list) and len(v) == 1 and not _reads_otherwise(v[0])
        else v
    ),
    "a level of brackets lost": lambda random, v: (
        v[0] if isinstance(v, list) and len(v) == 1 and isinstance(v[0], list) else v
    ),
    "container as JSON": lambda random, v: (
        json.dumps(v) if isinstance(v, list | dict) else v
    ),
    "container as Python": lambda random, v: (
        repr(v) if isinstance(v, list | dict) else v
    ),
    "other case": lambda random, v: (
        random.choice([v.upper(), v.title(), v.lower()])
        if isinstance(v, str) and not _reads_otherwise(v)
        else v
    ),
    "other separators": lambda random, v: (
        v.replace("_", " ").replace("-", "_") if isinstance(v, str) else v
    ),
    "quotes": lambda random, v: f"'{v}'" if isinstance(v, str) else v,
    "echoed schema": lambda random, v: {"type": _type_of(v), "value": v},
    "list with commas": lambda random, v: (
        ", ".join(map(str, v))
        if isinstance(v, list) and len(v) > 2 and all(map(_is_integer, v))
        else v
    ),
}
KEY_ERRORS: dict[str, Callable[[str], str]] = {
    "camel case": _camel,
    "capitals": str.upper,
    "hyphens": lambda name: name.replace("_", "-"),
    "trailing underscore": lambda name: name + "_",
}
WRAPPERS = ["arguments", "input", "parameters", "kwargs", "type", ""]
TEXT_ERRORS: dict[str, Callable[[str, Any], str]] = {
    "fence": lambda text, value: f"```json\n{text}\n```",
    "prose": lambda text, value: f"Here is the call: {text}",
    "double encoding": lambda text, value: json.dumps(text),
    "Python": lambda text, value: repr(value),
    "trailing comma": lambda text, value: text[:-1] + ",}" if value else text,
    "single quotes around": lambda text, value: f"'{text}'",
    "backticks around": lambda text, value: f"`{text}`",
}


def _reads_otherwise(value: Any) -> bool:
    """Whether a documented rule reads *value* by itself: an array in a string as the
    array, ``None`` as nothing.
    """
    if isinstance(value, str):
        return (value[:1] in ("[", "(") and len(value) > 1) or value.casefold() in (
            "",
            "null",
            "none",
        )
    return value is None


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _type_of(value: Any) -> str:
    kinds = {
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return kinds.get(type(value), "null")


@dataclass(frozen=True, slots=True)
class Case:
    """A schema of a tool's arguments, and a value that fits it."""

    seed: int
    schema: dict[str, Any]
    value: dict[str, Any]

    @classmethod
    def of(cls, seed: int, schemas: Sequence[dict[str, Any]] = ()) -> Case | None:
        """Return the case of *seed*, by one of *schemas* where there are any; ``None``
        where no value was found.

        A schema of somebody else may be closed, or left open as it was.
        """
        random = Random(seed)
        schema = {**make_object(random), "$defs": DEFINITIONS}
        if schemas:
            schema = copy.deepcopy(random.choice(schemas))
            if random.random() < 0.5:
                schema.pop("additionalProperties", None)
        if not schema.get("properties"):
            return None
        is_valid = jsonschema_rs.validator_for(schema, validate_formats=True).is_valid
        for _ in range(20):
            value = make_value(random, schema, DEFINITIONS)
            if is_valid(value):
                return cls(seed, schema, value)
        return None

    def errors(self, count: int) -> Iterator[tuple[str, Any]]:
        """Yield up to *count* single errors: the kind, and the value (or the text) with
        it.
        """
        random = Random(self.seed + 1)
        every = list(places(self.value))
        for _ in range(count):
            yield from self._error(random, every)

    def _error(self, random: Random, every: list[Path]) -> Iterator[tuple[str, Any]]:
        match random.choice(
            ["value"] * 8 + ["key"] * 3 + ["null", "wrapper", "text", "text"]
        ):
            case "value" if len(every) > 1:
                path, kind = (
                    random.choice(every[1:]),
                    random.choice(sorted(VALUE_ERRORS)),
                )
                yield (
                    kind,
                    replaced(
                        self.value,
                        path,
                        VALUE_ERRORS[kind](random, value_at(self.value, path)),
                    ),
                )
            case "key":
                path = random.choice(
                    [
                        path
                        for path in every
                        if isinstance(value_at(self.value, path), dict)
                    ]
                )
                parent = value_at(self.value, path)
                kind = random.choice(sorted(KEY_ERRORS))
                if parent:
                    name = random.choice(sorted(parent))
                    new = KEY_ERRORS[kind](name)
                    if new not in parent:
                        members = {
                            new if key == name else key: member
                            for key, member in parent.items()
                        }
                        yield f"key in {kind}", replaced(self.value, path, members)
            case "null":
                word = random.choice([None, None, "null", "None", ""])
                for name in random.sample(
                    sorted(self.schema["properties"]), len(self.schema["properties"])
                ):
                    member = {**self.schema["properties"][name], "$defs": DEFINITIONS}
                    # A word that the member takes as it is, is a value, and may be what
                    # the model meant.
                    is_value = any(
                        jsonschema_rs.is_valid(member, sent, validate_formats=True)
                        for sent in (None, word)
                    )
                    if name not in self.value and not is_value:
                        yield "null for nothing", {**self.value, name: word}
                        break
            case "wrapper":
                yield "wrapper", {random.choice(WRAPPERS): self.value}
            case "text":
                kind = random.choice(sorted(TEXT_ERRORS))
                yield (
                    f"text: {kind}",
                    TEXT_ERRORS[kind](json.dumps(self.value), self.value),
                )
