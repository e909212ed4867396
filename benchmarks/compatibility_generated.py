"""How often a sampled instance refutes a verdict of `compare`, over generated pairs for
each keyword of draft 2020-12.

Run: ``python benchmarks/compatibility_generated.py [--pairs 1000] [--seed 1] [--keyword
NAME] [--json]``.

The pairs are made by program, and small: they show where a verdict is wrong, not how
often real contracts change so. By set theory a verdict claims that the taking side
admits all that the giving side does, unless it is MAJOR; PATCH and NONE claim it both
ways. Each claim is tried on values that either schema is likely to admit, and on a
fixed pool, by the reference engine. Every counterexample that is shown is checked by it
too.
"""

from __future__ import annotations

import json
import random
import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema

sys.path.insert(0, str(Path(__file__).parents[1]))

from skillruntime.compatibility import Bump, compare

POOL: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        5,
        10,
        0.5,
        1.5,
        -2.5,
        1e6,
        "",
        "a",
        "b",
        "ab",
        "abc",
        "x-a",
        "A",
        "5",
        "a b",
    ),
    *(
        "2024-11-20",
        "2024-11-20T12:00:00Z",
        "ann@example.org",
        "192.0.2.1",
        "https://example.org/",
        "a" * 12,
    ),
    *(
        [],
        [0],
        [1, 1],
        [0, 1],
        ["a"],
        ["a", "b"],
        ["a", 0],
        [0, "a"],
        [None],
        [0, 1, 2, 3],
        [[]],
        [{}],
        ["a", "a", "a"],
    ),
    *(
        {},
        {"a": 1},
        {"a": "a"},
        {"b": 1},
        {"a": 1, "b": 2},
        {"a": "x", "b": "y"},
        {"c": 0},
        {"a": None},
        {"ab": 5},
    ),
    *(
        {"x-a": 1},
        {"x-a": "a"},
        {"a": {}},
        {"a": {"a": 1}},
        {"a": [1]},
        {"a": 1, "b": "y", "c": True},
    ),
]


class Maker:
    """Random values of keywords, and small schemas around them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def leaf(self) -> Any:
        """Return a schema without applicators."""
        choice = self.random.choice
        return choice(
            [
                True,
                {},
                {"type": choice(["string", "integer", "number", "boolean", "null"])},
                {"type": "string", "minLength": choice([0, 1, 2])},
                {"type": "integer", "minimum": choice([0, 1])},
                {"type": "number", "maximum": choice([0.5, 3])},
                {"enum": self.random.sample(["a", "b", 1, None, True], 2)},
                {"const": choice(["a", 1])},
                {"type": ["string", "null"]},
            ]
        )

    def schema(self) -> Any:
        """Return a schema of at most two levels."""
        choice, leaf = self.random.choice, self.leaf
        return choice(
            [
                leaf,
                leaf,
                lambda: {
                    "type": "object",
                    "properties": {choice("ab"): leaf()},
                    "required": [choice("ab")],
                },
                lambda: {
                    "type": "object",
                    "properties": {"a": leaf(), "b": leaf()},
                    "additionalProperties": False,
                },
                lambda: {"properties": {choice("abc"): leaf()}},
                lambda: {"type": "array", "items": leaf()},
                lambda: {
                    "type": "array",
                    "prefixItems": [leaf()],
                    "maxItems": choice([1, 2]),
                },
            ]
        )()

    def names(self) -> list[str]:
        """Return a few property names."""
        return self.random.sample(["a", "b", "c"], self.random.choice([0, 1, 1, 2]))

    def members(self, keys: list[str]) -> dict[str, Any]:
        """Return schemas for some of *keys*."""
        return {
            key: self.leaf()
            for key in self.random.sample(keys, self.random.choice([1, 1, 2]))
        }


def keywords(make: Maker) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return, for each keyword of draft 2020-12, what makes a schema that uses it."""
    choice, leaf, schema, names = make.random.choice, make.leaf, make.schema, make.names

    def number(keyword: str, values: list[Any]) -> Callable[[], dict[str, Any]]:
        return lambda: {
            **choice([{}, {"type": "integer"}, {"type": "number"}]),
            keyword: choice(values),
        }

    def of(
        kind: str, keyword: str, value: Callable[[], Any], *around: dict[str, Any]
    ) -> Callable[[], dict[str, Any]]:
        return lambda: {
            **choice([{}, {"type": kind}]),
            **choice([{}, *around]),
            keyword: value(),
        }

    def some(count: int = 3) -> Callable[[], list[Any]]:
        return lambda: [schema() for _ in range(choice(range(1, count + 1)))]

    declared: list[dict[str, Any]] = [{"properties": {"a": leaf()}} for _ in range(4)]
    tuples: list[dict[str, Any]] = [{"prefixItems": [leaf()]} for _ in range(4)]
    branches = [
        {
            "anyOf": [
                {"properties": {"a": leaf()}},
                {"properties": {"b": leaf()}, "required": ["b"]},
            ]
        },
        {"allOf": [{"properties": {"a": leaf()}}, {"properties": {"b": True}}]},
        {"properties": {"a": True}, "patternProperties": {"^x-": leaf()}},
        {"if": {"required": ["a"]}, "then": {"properties": {"b": leaf()}}},
    ]
    items = [
        {"anyOf": [{"prefixItems": [leaf()]}, {"prefixItems": [True, leaf()]}]},
        {"contains": {"type": "string"}},
    ]
    patterns = ["^a", "b$", "^x-", "^[a-c]$"]
    formats = ["date", "date-time", "email", "ipv4", "uri", "uuid", "unknown-format"]
    types = ["string", "integer", "number", "boolean", "null", "array", "object"]
    return {
        "type": lambda: {"type": choice([choice(types), make.random.sample(types, 2)])},
        "enum": lambda: {
            "enum": make.random.sample(
                ["a", "b", "ab", 0, 1, 1.5, None, True, [], {}], choice([1, 2, 4])
            )
        },
        "const": lambda: {
            "const": choice(["a", "b", 1, 1.0, True, None, [1], {"a": 1}])
        },
        "minimum": number("minimum", [-1, 0, 1, 0.5, 5]),
        "maximum": number("maximum", [-1, 0, 1, 2.5, 5]),
        "exclusiveMinimum": number("exclusiveMinimum", [-1, 0, 0.5, 2]),
        "exclusiveMaximum": number("exclusiveMaximum", [0, 1, 2.5, 5]),
        "multipleOf": number("multipleOf", [1, 2, 3, 4, 0.5, 0.25]),
        "minLength": of("string", "minLength", lambda: choice([0, 1, 2, 3])),
        "maxLength": of("string", "maxLength", lambda: choice([0, 1, 2, 12])),
        "pattern": of(
            "string",
            "pattern",
            lambda: choice(["^a", "a", "^[a-z]+$", "^ab$", "."]),
            {"enum": ["a", "b", "ab"]},
        ),
        "format": of("string", "format", lambda: choice(formats)),
        "minItems": of(
            "array", "minItems", lambda: choice([0, 1, 2, 3]), {"items": leaf()}
        ),
        "maxItems": of(
            "array", "maxItems", lambda: choice([0, 1, 2, 4]), {"items": leaf()}
        ),
        "uniqueItems": of(
            "array",
            "uniqueItems",
            lambda: choice([True, False]),
            {"items": leaf()},
            {"maxItems": 1},
        ),
        "items": of("array", "items", schema, *tuples),
        "prefixItems": of(
            "array",
            "prefixItems",
            some(),
            {"items": leaf()},
            {"items": False},
            {"minItems": 1},
        ),
        "contains": of(
            "array",
            "contains",
            leaf,
            {"minContains": choice([0, 2])},
            {"maxContains": 1},
            {"items": leaf()},
        ),
        "minContains": of(
            "array",
            "minContains",
            lambda: choice([0, 1, 2]),
            {"contains": leaf()},
            {"contains": True},
        ),
        "maxContains": of(
            "array",
            "maxContains",
            lambda: choice([1, 2]),
            {"contains": leaf()},
            {"contains": True},
        ),
        "unevaluatedItems": of(
            "array",
            "unevaluatedItems",
            lambda: choice([False, True, leaf()]),
            *tuples,
            *items,
        ),
        "properties": of(
            "object",
            "properties",
            lambda: make.members(["a", "b", "c"]),
            {"required": ["a"]},
        ),
        "patternProperties": of(
            "object", "patternProperties", lambda: make.members(patterns), *declared
        ),
        "additionalProperties": of(
            "object",
            "additionalProperties",
            lambda: choice([False, True, leaf()]),
            *declared,
        ),
        "propertyNames": of(
            "object",
            "propertyNames",
            lambda: choice(
                [{"maxLength": 1}, {"enum": ["a", "b"]}, {"pattern": "^a"}, True]
            ),
        ),
        "unevaluatedProperties": of(
            "object",
            "unevaluatedProperties",
            lambda: choice([False, True, leaf()]),
            *declared,
            *branches,
        ),
        "required": of("object", "required", names, *declared),
        "minProperties": of(
            "object", "minProperties", lambda: choice([0, 1, 2]), *declared
        ),
        "maxProperties": of(
            "object", "maxProperties", lambda: choice([0, 1, 2]), *declared
        ),
        "dependentRequired": of(
            "object", "dependentRequired", lambda: {choice("ab"): names()}, *declared
        ),
        "dependentSchemas": of(
            "object", "dependentSchemas", lambda: {choice("ab"): schema()}, *declared
        ),
        "allOf": lambda: {**choice([{}, leaf_object(leaf())]), "allOf": some()()},
        "anyOf": lambda: {**choice([{}, leaf_object(leaf())]), "anyOf": some()()},
        "oneOf": lambda: {**choice([{}, leaf_object(leaf())]), "oneOf": some()()},
        "not": lambda: {**choice([{}, leaf_object(leaf())]), "not": schema()},
        "if": lambda: {
            "if": schema(),
            **choice([{"then": schema()}, {"else": schema()}]),
        },
        "then": lambda: {
            "if": choice([{"type": "string"}, {"required": ["a"]}]),
            "then": schema(),
        },
        "else": lambda: {
            "if": choice([{"type": "string"}, {"required": ["a"]}]),
            "else": schema(),
        },
        "$ref": lambda: {
            "$ref": "#/$defs/" + choice("ab"),
            "$defs": {"a": schema(), "b": schema()},
        },
        "$dynamicRef": lambda: {
            "properties": {"a": {"$dynamicRef": "#n"}},
            "$defs": {"n": {"$dynamicAnchor": "n", **leaf_object(leaf())}},
        },
        "$anchor": lambda: {
            "items": {"$ref": "#n"},
            "$defs": {"n": {"$anchor": "n", **leaf_object(leaf())}},
        },
        "default": lambda: {
            "properties": {"a": {**leaf_object(leaf()), "default": choice(["a", 1])}}
        },
    }


def leaf_object(leaf: Any) -> dict[str, Any]:
    """Return *leaf* as a schema that is an object."""
    return leaf if isinstance(leaf, dict) else {}


def pair(make: Maker, keyword: str) -> tuple[Any, Any]:
    """Return two schemas that differ in *keyword*: changed, added, taken away, or moved
    to another place.
    """
    create = keywords(make)[keyword]
    old = create()
    match make.random.randrange(5):
        case 0:
            new = (
                {name: value for name, value in old.items() if name != keyword}
                if keyword != "$ref"
                else create()
            )
        case 1:
            new = {
                **old,
                **{name: value for name, value in create().items() if name == keyword},
            }
        case 2:
            definitions = {"$defs": old["$defs"]} if "$defs" in old else {}
            new = {
                "allOf": [
                    {name: value for name, value in old.items() if name != "$defs"}
                ],
                **definitions,
            }
        case _:
            new = create()
    if make.random.random() < 0.3:
        name = make.random.choice("ab")
        definitions = {"$defs": old["$defs"]} if "$defs" in old else {}
        closed = make.random.choice([{}, {"additionalProperties": False}])
        if "$ref" not in json.dumps([old, new]) and "$dynamicRef" not in json.dumps(
            [old, new]
        ):
            old, new = (
                {"type": "object", "properties": {name: each}, **closed, **definitions}
                for each in (old, new)
            )
    return (new, old) if make.random.random() < 0.3 else (old, new)


def admits(schema: Any, values: list[Any]) -> list[bool | None]:
    """Return the reference engine's verdict on each value; nothing if it fails."""
    validator = jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.FormatChecker()
    )
    found: list[bool | None] = []
    for value in values:
        try:
            found.append(bool(validator.is_valid(value)))
        except Exception:
            found.append(None)
    return found


def examined(old: Any, new: Any, side: str) -> tuple[str, list[str], Bump]:
    """Return whether the verdict was proven or undecided, what refutes it, and its part
    by set theory.
    """
    verdict = compare({side: old}, {side: new})
    giver, taker = (new, old) if side == "output" else (old, new)
    values = [*POOL, *candidates(old), *candidates(new)]
    given, taken = admits(giver, values), admits(taker, values)
    refuted = []
    for value, gives, takes in zip(values, given, taken, strict=True):
        if gives and takes is False and verdict.set_theory is not Bump.MAJOR:
            refuted.append(
                f"{verdict.set_theory}: {value!r} is admitted by the giver and "
                "refused by the taker"
            )
        if takes and gives is False and verdict.set_theory in (Bump.NONE, Bump.PATCH):
            refuted.append(
                f"{verdict.set_theory}: {value!r} is admitted by the taker alone"
            )
    undecided = False
    for change in verdict.changes:
        undecided = undecided or "cannot be proven harmless" in change.why
        if change.counterexample_reading not in (
            "both",
            "set theory",
        ):  # nothing to show, or by the practical reading
            continue
        if admits(giver, [change.counterexample]) == [False] or admits(
            taker, [change.counterexample]
        ) == [True]:
            refuted.append(f"the counterexample {change.counterexample!r} is not one")
    return ("undecided" if undecided else "decided"), refuted, verdict.set_theory


def candidates(schema: Any) -> list[Any]:
    """Return values near what the schema says: its constants and limits, alone and
    inside members and items.
    """
    found: list[Any] = []
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending += part.values()
            found += [
                *part.get("enum", ()),
                *([part["const"]] if "const" in part else []),
            ]
            for word in (
                "minimum",
                "maximum",
                "exclusiveMinimum",
                "exclusiveMaximum",
                "multipleOf",
            ):
                if isinstance(part.get(word), int | float):
                    found += [
                        part[word] - 1,
                        part[word],
                        part[word] + 0.5,
                        part[word] * 2,
                    ]
        elif isinstance(part, list):
            pending += part
    found = found[:12]
    return (
        found
        + [{"a": value} for value in found]
        + [{"b": value} for value in found]
        + [[value] for value in found]
    )


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keyword")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows, all_refuted, start = {}, [], time.perf_counter()
    for keyword in keywords(Maker(0)):
        if options.keyword and keyword != options.keyword:
            continue
        make = Maker(options.seed)
        counts: Counter[str] = Counter()
        for number in range(options.pairs):
            old, new = pair(make, keyword)
            decided, refuted, bump = examined(
                old, new, "output" if number % 4 == 3 else "input"
            )
            counts[decided] += 1
            counts["refuted"] += bool(refuted)
            counts[str(bump)] += 1
            if refuted:
                all_refuted.append(
                    {
                        "keyword": keyword,
                        "old": old,
                        "new": new,
                        "output": number % 4 == 3,
                        "by": refuted[0],
                    }
                )
        rows[keyword] = dict(counts)
    result = {
        "pairs_of_a_keyword": options.pairs,
        "keywords": rows,
        "refuted": all_refuted,
    }
    if options.json:
        print(json.dumps(result, indent=2, default=str))
        return
    print(
        f"{'keyword':24}{'refuted':>9}{'undecided':>11}"
        f"{'major':>8}{'minor':>8}{'patch':>8}{'none':>8}"
    )
    for keyword, counts in rows.items():
        shown = [
            counts.get(name, 0)
            for name in ("refuted", "undecided", "major", "minor", "patch", "none")
        ]
        print(
            f"{keyword:24}{shown[0]:9}{shown[1]:11}"
            + "".join(f"{each:8}" for each in shown[2:])
        )
    print(f"{len(all_refuted)} refuted, {time.perf_counter() - start:.0f} s")
    for each in all_refuted[:10]:
        print(json.dumps(each, default=str)[:400])


if __name__ == "__main__":
    main()
