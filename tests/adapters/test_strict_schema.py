"""Strict mode of OpenAI: `skillruntime/adapters/tools/strict_schema.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import jsonschema
import pytest

from skillruntime.adapters.tool_formats import from_provider, to_openai
from skillruntime.adapters.tools.strict_schema import to_strict
from skillruntime.contract import Contract
from tests import needs
from tests.contract.generated import DEFINITIONS, make_object, make_value

S: dict[str, Any] = {"type": "string"}


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema inside *schema*, itself first."""
    if isinstance(schema, dict):
        yield schema
        for key in ("properties", "$defs"):
            for each in schema.get(key, {}).values():
                yield from objects(each)
        for each in [*schema.get("anyOf", ()), schema.get("items")]:
            yield from objects(each)


def obeys_the_guide(schema: dict[str, Any]) -> bool:
    """Whether *schema* follows the guide's section "Supported schemas"."""
    keywords = {
        *(
            "type",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "enum",
            "anyOf",
            "$ref",
            "$defs",
        ),
        *(
            "description",
            "pattern",
            "format",
            "multipleOf",
            "maximum",
            "exclusiveMaximum",
            "minimum",
        ),
        *("exclusiveMinimum", "minItems", "maxItems"),
    }
    is_right = schema["type"] == "object" and "anyOf" not in schema
    for each in objects(schema):
        is_right &= each.keys() <= keywords
        is_right &= bool(each.keys() & {"type", "anyOf", "$ref"})
        is_right &= "$ref" not in each or each.keys() == {"$ref"}
        if "properties" in each or each.get("type") == "object":
            is_right &= each["additionalProperties"] is False and each[
                "required"
            ] == list(each["properties"])
    return is_right


def in_strict_form(schema: dict[str, Any], value: Any, root: dict[str, Any]) -> Any:
    """Return *value* with null for each property that it leaves out, as the strict
    *schema* has it.
    """
    if "$ref" in schema:
        return in_strict_form(
            root["$defs"][schema["$ref"].rsplit("/", 1)[1]], value, root
        )
    for branch in schema.get("anyOf", ()):
        written = in_strict_form(branch, value, root)
        if jsonschema.Draft202012Validator(
            {**branch, "$defs": root.get("$defs", {})}
        ).is_valid(written):
            return written
    if isinstance(value, dict) and value.keys() <= schema.get("properties", {}).keys():
        properties = schema["properties"].items()
        return {
            key: in_strict_form(each, value[key], root) if key in value else None
            for key, each in properties
        }
    if isinstance(value, list) and "items" in schema:
        return [in_strict_form(schema["items"], item, root) for item in value]
    return value


def comes_back(contract: Contract, strict: dict[str, Any], value: Any) -> None:
    shown: dict[str, str] = {}
    for name in strict["properties"]:
        [declared] = from_provider(contract, {name: None}, "openai")
        shown[declared] = name
    renamed = {shown.get(name, name): each for name, each in value.items()}
    written = in_strict_form(strict, renamed, strict)

    assert jsonschema.Draft202012Validator(strict).is_valid(written)
    sent = from_provider(contract, written, "openai")
    assert contract.accept(sent, fill_defaults=False).arguments == value


ROWS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("a required property", {"a": S}, {"a": S}),
    (
        "an enum",
        {"b": {"type": "string", "enum": ["x"]}},
        {"b": {"type": ["string", "null"], "enum": ["x", None]}},
    ),
    (
        "a constant",
        {"b": {"const": "x"}},
        {"b": {"enum": ["x", None], "type": ["string", "null"]}},
    ),
    (
        "an array",
        {"b": {"type": "array", "items": S}},
        {"b": {"anyOf": [{"type": "array", "items": S}, {"type": "null"}]}},
    ),
    (
        "a default",
        {"b": {"type": "integer", "default": 3}},
        {"b": {"type": ["integer", "null"]}},
    ),
]


@pytest.mark.parametrize(
    ("properties", "strict"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_an_optional_property_becomes_nullable(
    properties: dict[str, Any], strict: dict[str, Any]
) -> None:
    """And each is required, of a closed object."""
    found = to_strict(
        {
            "type": "object",
            "properties": properties,
            "required": ["a"] if "a" in properties else [],
        }
    )

    assert found == {
        "type": "object",
        "properties": strict,
        "required": list(properties),
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(
            {"properties": {"a": {"type": ["string", "null"]}}},
            id="an optional property that may be null",
        ),
        pytest.param(
            {"properties": {"a": {"anyOf": [S, {"type": "null"}]}}},
            id="the same as alternatives",
        ),
        pytest.param(
            {
                "properties": {"a": {"$ref": "#/$defs/N"}},
                "$defs": {"N": {"type": "null"}},
            },
            id="by reference",
        ),
        pytest.param(
            {"properties": {"a": {"type": "object"}}}, id="an object of any keys"
        ),
        pytest.param(
            {"properties": {"a": S}, "additionalProperties": True},
            id="an object that says that it is open",
        ),
        pytest.param(
            {"properties": {"a": {"type": "object", "additionalProperties": S}}},
            id="a map",
        ),
        pytest.param(
            {"properties": {"a": {"type": "array"}}}, id="an array of anything"
        ),
        pytest.param({"properties": {"a": {}}}, id="anything"),
        pytest.param({"properties": {"a": True}}, id="true"),
        pytest.param(
            {"properties": {"a": {"type": "string", "minLength": 1}}},
            id="a keyword that is not supported",
        ),
        pytest.param(
            {"properties": {"a": {"type": "string", "format": "uri"}}},
            id="a format that is not supported",
        ),
        pytest.param({"properties": {"a": {"oneOf": [S]}}}, id="exactly one of"),
        pytest.param(
            {"properties": {"a": S}, "required": ["b"]},
            id="a required property that is not declared",
        ),
        pytest.param(
            {"properties": {"a": {"enum": [str(n) for n in range(1_001)]}}},
            id="too many options",
        ),
    ],
)
def test_what_strict_mode_has_no_form_for_is_not_strict(schema: dict[str, Any]) -> None:
    """The tool is sent as it is, and its contract checks the calls."""
    contract = Contract.from_schema({"type": "object", **schema}, name="tool")

    assert to_strict({"type": "object", **schema}) is None
    assert to_openai(contract, strict="auto") == to_openai(contract)


def test_a_tool_without_parameters_is_strict() -> None:
    """It takes an empty object."""
    function = to_openai(Contract.from_dict({"name": "now"}), strict="auto")["function"]

    assert function["strict"] is True
    assert function["parameters"] == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_more_than_ten_levels_are_not_strict() -> None:
    """Objects inside objects."""
    schema: dict[str, Any] = S
    for _ in range(10):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}

    assert to_strict(schema) is not None
    assert (
        to_strict({"type": "object", "properties": {"a": schema}, "required": ["a"]})
        is None
    )


def test_a_definition_that_contains_itself_is_strict() -> None:
    """By either name of definitions, and a call of it comes back."""
    tree = {
        "type": "object",
        "properties": {"name": S, "child": {"$ref": "#/definitions/T"}},
        "required": ["name"],
    }
    contract = Contract.from_schema(
        {
            "type": "object",
            "properties": {"root": {"$ref": "#/definitions/T"}},
            "definitions": {"T": tree},
        }
    )
    strict = to_openai(contract, name="grow", strict="auto", api="responses")

    assert strict["strict"] is True
    assert obeys_the_guide(strict["parameters"])
    comes_back(
        contract, strict["parameters"], {"root": {"name": "a", "child": {"name": "b"}}}
    )


def test_generated_schemas_obey_the_guide_and_lose_nothing() -> None:
    """Whatever kind of schema it is: a call in strict form is the call."""
    strict_ones = 0
    for seed in range(600):
        random = Random(seed)
        document = {**make_object(random), "$defs": DEFINITIONS}
        contract = Contract.from_schema(document, name="tool")
        function = to_openai(contract, strict="auto")["function"]
        if "strict" not in function:
            continue
        strict_ones += 1
        assert obeys_the_guide(function["parameters"]), document
        value = make_value(random, document, DEFINITIONS)
        declared = {
            name: each for name, each in value.items() if name in document["properties"]
        }
        if contract.input.is_valid(declared):
            comes_back(contract, function["parameters"], declared)

    assert strict_ones > 30


@pytest.mark.slow
@needs.with_data("calls/dev_calls.jsonl")
def test_the_development_schemas_obey_the_guide_and_lose_nothing() -> None:
    """Of 464 functions; those that are not strict have objects of any keys."""
    for line in (
        needs.data("calls/dev_calls.jsonl").read_text(encoding="utf-8").splitlines()
    ):
        case = json.loads(line)
        contract = Contract.from_schema(case["schema"], name="tool", formats="assert")
        function = to_openai(contract, strict="auto")["function"]
        if "strict" not in function:
            assert any(
                each.get("type") == "object" and not each.get("properties")
                for each in objects(case["schema"])
            )
            continue
        assert obeys_the_guide(function["parameters"])
        if case["expect"] == "ok" and "default" not in case["category"]:
            comes_back(contract, function["parameters"], case["value"])


@pytest.mark.parametrize(
    "beside",
    [
        {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "string", "minimum": 1},
    ],
)
def test_what_stands_beside_alternatives_is_not_strict(beside: dict[str, Any]) -> None:
    """It holds together with a branch, and the guide shows `anyOf` alone: closed
    `properties` would forbid those of every branch.
    """
    branch = {"type": "object", "properties": {"b": S}, "additionalProperties": False}
    part = {"anyOf": [branch, {"type": "null"}], "description": "One of them."}

    def strict(inner: dict[str, Any]) -> dict[str, Any] | None:
        return to_strict(
            {"type": "object", "properties": {"part": inner}, "required": ["part"]}
        )

    assert strict({**part, **beside}) is None
    assert strict(part) is not None


def test_keywords_of_another_type_are_left_out() -> None:
    """They say nothing about a string, and strict mode would look at the schemas in
    them.
    """
    part = {"type": "string", "properties": {"a": False}, "items": False}
    schema = {"type": "object", "properties": {"n": part}, "required": ["n"]}

    strict = to_strict(schema)

    assert strict is not None
    assert strict["properties"] == {"n": {"type": "string"}}
