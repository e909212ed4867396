"""How deep a value is nested decides only whether it is repaired: a valid call is
accepted at any depth.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError, SkillOutputError

LEVELS = 500
CLOSED = {"type": "object", "additionalProperties": False}
OPEN = {
    **CLOSED,
    "properties": {"cfg": {"type": "object"}, "n": {"type": "integer"}},
    "required": ["cfg"],
}
TREE = {
    **CLOSED,
    "properties": {"cfg": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {
            **CLOSED,
            "properties": {"a": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}},
        }
    },
}
ANY_JSON = {
    "type": "object",
    "properties": {"cfg": {"$ref": "#/$defs/json"}},
    "$defs": {
        "json": {
            "anyOf": [
                {"type": ["string", "integer", "boolean", "null"]},
                {"type": "array", "items": {"$ref": "#/$defs/json"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
            ]
        }
    },
}


def nested(levels: int, inside: Any = None) -> dict[str, Any]:
    value: dict[str, Any] = {} if inside is None else inside
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "schema",
    [OPEN, TREE, ANY_JSON],
    ids=["open object", "recursive object", "any JSON"],
)
@pytest.mark.parametrize(
    "around",
    ["%s", "```json\n%s\n```", "Here it is: %s"],
    ids=["text", "fence", "prose"],
)
def test_a_valid_call_of_hundreds_of_levels_is_accepted(
    schema: dict[str, Any], around: str
) -> None:
    """As a mapping it is the same object; as a text it has no repair but of what is
    around it.
    """
    contract = Contract.from_dict({"input": schema})
    call = {"cfg": nested(LEVELS)}

    as_mapping = contract.accept(call)
    as_text = contract.accept(around % json.dumps(call))

    assert as_mapping.arguments is call
    assert json.dumps(as_text.arguments) == json.dumps(call)
    assert {repair.path for repair in as_text.repairs} <= {""}


def test_a_call_of_hundreds_of_levels_is_migrated() -> None:
    """The steps copy the arguments without a limit of their own."""
    old = {
        **CLOSED,
        "properties": {"config": {"type": "object"}},
        "required": ["config"],
    }
    step = {"rename": {"from": "/config", "to": "/cfg"}}
    migration = {"from": "1.x", "to": "2.0.0", "accepts": old, "steps": [step]}
    contract = Contract.from_dict(
        {"version": "2.0.0", "input": OPEN, "migrations": [migration]}
    )
    call = {"config": nested(LEVELS)}

    for version in (None, "1.2.0"):
        accepted = contract.accept(call, version=version)

        assert list(accepted.arguments) == ["cfg"]
        assert json.dumps(accepted.arguments["cfg"]) == json.dumps(call["config"])


def test_an_output_of_hundreds_of_levels_is_checked() -> None:
    """What is wrong deep inside is found; what fits passes."""
    contract = Contract.from_dict({"output": TREE})

    contract.check({"cfg": nested(LEVELS)})
    with pytest.raises(SkillOutputError, match="does not fit its contract"):
        contract.check({"cfg": nested(LEVELS, {"n": "five"})})


@pytest.mark.parametrize("levels", [60, 150, 500])
def test_only_values_of_usual_depth_are_repaired(levels: int) -> None:
    """A text for a number is repaired at 60 levels, and refused with its place where
    there are more than 100.
    """
    contract = Contract.from_dict({"input": TREE})
    call = {"cfg": nested(levels, {"n": "5"})}

    if levels == 60:
        assert json.dumps(contract.accept(call).arguments) == json.dumps(
            {"cfg": nested(levels, {"n": 5})}
        )
        return
    with pytest.raises(SkillInputError) as caught:
        contract.accept(call)

    [error] = caught.value.to_errors()
    assert "nested too deep to be explained" in error.message


@pytest.mark.parametrize(
    "schema",
    [OPEN, TREE, ANY_JSON],
    ids=["open object", "recursive object", "any JSON"],
)
def test_what_json_cannot_read_is_refused_with_a_clear_message(
    schema: dict[str, Any],
) -> None:
    """No value, nor a cycle, makes the interpreter run out of stack."""
    contract = Contract.from_dict({"input": schema, "output": schema})
    cycle: dict[str, Any] = {}
    cycle["a"] = cycle
    text = '{"a":' * 50_000 + "1" + "}" * 50_000

    for call in (
        {"cfg": nested(50_000)},
        {"cfg": cycle},
        text,
        f"```\n{text}\n```",
        f"Here it is: {text}",
    ):
        with pytest.raises(SkillInputError, match="nested"):
            contract.accept(call)
    for output in ({"cfg": nested(50_000)}, {"cfg": cycle}):
        with pytest.raises(SkillOutputError, match="nested"):
            contract.check(output)


def test_malformed_text_of_too_many_levels_is_named_as_such() -> None:
    """A text that is not JSON is read by our own parser, which has a limit."""
    with pytest.raises(
        SkillInputError, match="not JSON, and nested more than 100 levels deep"
    ):
        Contract.from_dict({"input": OPEN}).accept(
            json.dumps({"cfg": nested(150)})[:-1] + ",}"
        )


def test_a_fault_deep_inside_is_named_with_its_place() -> None:
    """NaN is not JSON at any depth."""
    with pytest.raises(SkillInputError, match="NaN at /cfg/a/a/a"):
        Contract.from_dict({"input": OPEN}).accept(
            {"cfg": nested(LEVELS, {"n": float("nan")})}
        )


def test_a_recursive_schema_with_long_chains_bounds_the_depth_by_the_stack() -> None:
    """The engine calls itself for each subschema on the way, so that the two multiply;
    it would end the process.
    """
    steps: dict[str, Any] = {
        f"step{n}": {"anyOf": [{"type": "null"}, {"$ref": f"#/$defs/step{n + 1}"}]}
        for n in range(100)
    }
    last = {"type": "object", "additionalProperties": {"$ref": "#/$defs/step0"}}
    contract = Contract.from_dict(
        {"input": {"$ref": "#/$defs/step0", "$defs": {**steps, "step100": last}}}
    )

    assert contract.accept(nested(150)).arguments == nested(150)
    with pytest.raises(SkillInputError, match="nested"):
        contract.accept(nested(300))
