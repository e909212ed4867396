"""The laws of accepting, over random schemas, random values and random damage."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema

from skillruntime import Contract, Schema, SkillInputError
from skillruntime.contract.coercion.coercion import coerce

FEW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["", "null", "5", "true", "[1]", "{'a': 1}", "\ud800", b"x", {1: 2}, {1, 2}, (1, 2)]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)

LEAVES: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 2, "pattern": "^[a-z]*$"},
    {"type": "string", "format": "date"},
    {"type": "integer", "minimum": -9, "maximum": 99},
    {"type": "number"},
    {"type": "boolean"},
    {"type": ["integer", "null"]},
    {"enum": ["today", "this_week", "This-Month"]},
    {"const": "fixed"},
    {"type": "array", "items": {"type": "integer"}, "maxItems": 4},
    {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    {"oneOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "boolean"}}]},
    {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    {"type": "object", "properties": {"x_y": {"type": "integer"}}, "additionalProperties": {"type": "string"}},
    {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
    {"$ref": "#/$defs/point"},
]
DEFINITIONS = {
    "point": {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "max_size": {"type": "number"}},
        "required": ["x"],
        "additionalProperties": False,
    }
}
NAMES = ["topic", "max_articles", "outputFormat", "save-to-file"]


@st.composite
def tools(draw: st.DrawFn) -> dict[str, Any]:
    """The input schemas of tools: closed objects of a few properties."""
    properties = draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(LEAVES), min_size=1, max_size=4))
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    closed = draw(st.booleans())
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "$defs": DEFINITIONS,
        **({"additionalProperties": False} if closed else {}),
    }


def resolved(schema: Any) -> Any:
    """Return *schema* with its references put in place, as the generator of values needs it."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return DEFINITIONS["point"]
        return {key: resolved(value) for key, value in schema.items() if key != "$defs"}
    return [resolved(item) for item in schema] if isinstance(schema, list) else schema


def contract_of(schema: dict[str, Any]) -> Contract:
    """Return a contract that accepts *schema*."""
    return Contract.from_dict({"version": "1.0.0", "input": schema})


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal; ``true`` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(data=st.data())
@FEW
def test_a_valid_call_comes_back_untouched(data: st.DataObject) -> None:
    """The same object, with nothing repaired, when no default is filled in."""
    schema = data.draw(tools())
    value = data.draw(from_schema(resolved(schema)))

    accepted = contract_of(schema).accept(value, fill_defaults=False)

    assert accepted.arguments is value
    assert accepted.repairs == ()


@given(data=st.data())
@FEW
def test_a_valid_text_comes_back_as_it_says(data: st.DataObject) -> None:
    """What JSON says is what is accepted."""
    schema = data.draw(tools())
    value = data.draw(from_schema(resolved(schema)))

    accepted = contract_of(schema).accept(json.dumps(value), fill_defaults=False)

    assert same(accepted.arguments, value)
    assert accepted.repairs == ()


@given(schema=tools(), value=ANYTHING | st.text(max_size=30), policy=st.sampled_from(["strict", "safe", "lenient"]))
@FEW
def test_nothing_raises_but_an_input_error(schema: dict[str, Any], value: Any, policy: str) -> None:
    """Whatever a host or a model hands over; and what is accepted fits in both engines, and is accepted again."""
    contract = contract_of(schema)

    try:
        accepted = contract.accept(value, policy=policy)
    except SkillInputError as error:
        assert error.to_errors()
        json.dumps(error.to_response()).encode()
        return

    assert Schema(schema, engine="rust").is_valid(accepted.arguments)
    assert Schema(schema, engine="reference").is_valid(accepted.arguments)
    again = contract.accept(accepted.arguments, policy=policy)
    assert again.arguments is accepted.arguments
    assert again.repairs == ()


def as_python_text(value: Any) -> Any:
    """Write a container as a Python literal."""
    return repr(value) if isinstance(value, list | dict) else value


DAMAGE = {
    "number as text": lambda v: str(v) if isinstance(v, int) and not isinstance(v, bool) else v,
    "boolean as text": lambda v: str(v) if isinstance(v, bool) else v,
    "one of an array": lambda v: v[0] if isinstance(v, list) and len(v) == 1 and not isinstance(v[0], str) else v,
    "array of one": lambda v: [v] if isinstance(v, int | bool) else v,
    "container as JSON": lambda v: json.dumps(v) if isinstance(v, list | dict) else v,
    "container as Python": as_python_text,
    "capitals": lambda v: v.upper() if v in ("today", "this_week", "This-Month") else v,
}


@given(data=st.data())
@FEW
def test_damage_is_undone_or_refused(data: st.DataObject) -> None:
    """A valid value with one member damaged comes back as it was, or not at all."""
    schema = data.draw(tools())
    value = data.draw(from_schema(resolved({**schema, "additionalProperties": False})))
    names = [name for name in value if not same(value[name], None)]
    if not names:
        return
    name, damage = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(sorted(DAMAGE)))
    damaged = {**value, name: DAMAGE[damage](value[name])}
    if Schema(schema).is_valid(damaged):
        return  # no damage to this schema: nobody can tell

    try:
        accepted = contract_of(schema).accept(damaged, fill_defaults=False)
    except SkillInputError:
        return

    assert same(accepted.arguments, value), (damage, accepted)


@given(data=st.data())
@FEW
def test_what_was_sent_is_never_changed(data: st.DataObject) -> None:
    """Coercion works on a copy: the host's own value stays as it came."""
    schema = data.draw(tools())
    value = data.draw(from_schema(resolved(schema)))
    damaged = {key: str(member) if isinstance(member, int) else member for key, member in value.items()}
    before = json.dumps(damaged)

    coerce(damaged, Schema(schema))

    assert json.dumps(damaged) == before


@given(data=st.data())
@FEW
def test_a_text_that_was_cut_is_refused(data: st.DataObject) -> None:
    """Every proper beginning of a call is refused, but one that ends after a value that closed itself.

    Nobody can tell that from a call whose last brace is missing.
    """
    schema = data.draw(tools())
    value = data.draw(from_schema(resolved(schema)))
    text = json.dumps(value)
    cut = data.draw(st.integers(1, len(text) - 1))

    try:
        accepted = contract_of(schema).accept(text[:cut], fill_defaults=False)
    except SkillInputError:
        return

    assert text[:cut].rstrip()[-1] in '"]}el', text[:cut]
    assert all(same(value[name], member) for name, member in accepted.arguments.items())
