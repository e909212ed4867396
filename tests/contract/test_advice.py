"""The next step of a refusal works when it is followed, in the form of the call."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import SkillError, SkillInputError
from tests.contract.advice import followed
from tests.contract.generated import Case
from tests.contract.malformed import closed
from tests.contract.templates import claude, glm, kimi, qwen3_coder

STEPS = 6
TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
FLAG = {"type": "boolean"}
LEVEL = {"type": "string", "enum": ["low", "high"]}
ONE_OF = {"oneOf": [{"required": ["yaml"]}, {"required": ["dir"]}]}
SOURCE = {"type": "object", "properties": {"yaml": TEXT, "dir": TEXT}, **ONE_OF}
DETAILS = [
    closed("detail_level", detail_level=LEVEL),
    closed("detailed", detailed=FLAG),
]

Write = Callable[[Any], Any]


def in_template(render: Callable[[str, Any], str]) -> Write:
    """Return what writes arguments as a call of the tool ``t``."""

    def write(value: Any) -> str:
        return render("t", value)

    return write


FORMS: dict[str, Write] = {
    "mapping": lambda value: value,
    "JSON": json.dumps,
    "Qwen": in_template(qwen3_coder),
    "GLM": in_template(glm),
    "Claude": in_template(claude),
    "Kimi": in_template(kimi),
}
# In each form, the arguments of the call as one JSON object.
WHOLE: dict[str, Write] = {
    "JSON": json.dumps,
    "Qwen": lambda value: (
        f"<tool_call>\n<function=t>\n{json.dumps(value)}\n</function>\n</tool_call>"
    ),
    "GLM": lambda value: f"<tool_call>t\n{json.dumps(value)}\n</tool_call>",
    "Claude": lambda value: (
        f'<function_calls>\n<invoke name="t">\n{json.dumps(value)}\n'
        "</invoke>\n</function_calls>"
    ),
    "Hermes": lambda value: (
        "<tool_call>" + json.dumps({"name": "t", "arguments": value}) + "</tool_call>"
    ),
}
form = pytest.mark.parametrize("write", FORMS.values(), ids=FORMS)

REFUSED = [
    ({**closed(yaml=TEXT, dir=TEXT, n=NUMBER), **ONE_OF}, {}),
    ({**closed(yaml=TEXT, dir=TEXT, n=NUMBER), **ONE_OF}, {"yaml": "a", "dir": "b"}),
    ({**closed(yaml=TEXT, dir=TEXT, n=NUMBER), **ONE_OF}, {"n": "x"}),
    (
        {**closed(yaml=TEXT, dir=TEXT), "not": {"required": ["yaml", "dir"]}},
        {"yaml": "a", "dir": "b"},
    ),
    (closed("src", src=SOURCE), {"src": {"yaml": "a", "dir": "b"}}),
    (closed("src", src=SOURCE), {"src": "a"}),
    (closed("src", src=SOURCE), {"src": {"yaml": {}}}),
    (closed("src", src=SOURCE), {}),
    ({"oneOf": DETAILS}, {"detailed": "maybe"}),
    ({"oneOf": DETAILS}, {"detaillevel": {}}),
    ({"oneOf": DETAILS}, {"detailed": True, "detail_level": "low"}),
    (closed(detail_level=LEVEL, detailed=FLAG), {"detaild": "x", "detailed": True}),
    (closed(detail_level=LEVEL), {"detailed": True}),
    (
        closed(opts=closed(detailed=FLAG), detail_level=TEXT),
        {"opts": {"detail_level": "a", "detailed": "x"}},
    ),
    (
        {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "maxProperties": 1},
        {"a": "x", "b": "y"},
    ),
    ({**closed(a=TEXT, b=TEXT), "minProperties": 1}, {"c": 1}),
    (closed("a", a={"type": "array", "contains": {"const": "x"}}), {"a": ["y"]}),
    (
        closed("a", a={"type": "array", "items": TEXT, "uniqueItems": True}),
        {"a": ["x", "x"]},
    ),
    (closed("v", v={"const": {"a": 1}}), {"v": {}}),
    (closed(c={"type": "string", "enum": ["q", "r"]}), {"c": {}}),
    (closed(c={"type": "string", "format": "date"}), {"c": ["x", "y"]}),
    (closed("query", query=TEXT, limit=NUMBER), {"input": {"query": {}, "limit": 1}}),
    (
        {
            "type": "object",
            "properties": {"a": TEXT, "b": TEXT},
            "dependentRequired": {"a": ["b"]},
        },
        {"a": {}},
    ),
]


def errors_of(contract: Contract, sent: Any) -> list[SkillError]:
    """Return the errors of a refused call; none where it is accepted."""
    try:
        contract.accept(sent)
    except SkillInputError as error:
        return list(error.to_errors())
    return []


def follow(schema: dict[str, Any], value: Any, write: Write, seed: int = 3) -> int:
    """Follow the advice until the call is accepted, and return the number of steps.

    Advice about the text as a whole is followed in every form.
    """
    contract, random = Contract.from_schema(schema, name="t"), Random(seed)
    known: list[list[str]] = []
    for step in range(STEPS):
        errors = errors_of(contract, write(value))
        if not errors:
            return step
        messages = [error.message for error in errors]
        assert messages not in known, (schema, value, known)
        known.append(messages)
        if "JSON object" in (errors[0].suggested_action or ""):
            for whole in WHOLE.values():
                again = [error.message for error in errors_of(contract, whole(value))]
                assert again not in known, (schema, value, whole(value), known)
            write = json.dumps
            continue
        value = followed(schema, value, errors, random)
        assert value is not None, (schema, known, errors)
    raise AssertionError((schema, value, known))


@form
@pytest.mark.parametrize(("schema", "sent"), REFUSED)
def test_the_next_step_works_when_it_is_followed(
    schema: dict[str, Any], sent: Any, write: Write
) -> None:
    """Each step is taken literally: the call is accepted, or the errors are new."""
    assert follow(schema, sent, write) < STEPS
    assert follow(schema, sent, FORMS["mapping"]) > 0


def test_the_next_steps_of_generated_calls_do_not_turn_in_a_circle() -> None:
    """No error comes again, whatever the schema; a step that needs more than its words
    (a pattern, say) ends the trial.
    """
    followed_cases = 0
    for seed in range(300):
        case = Case.of(seed)
        if case is None:
            continue
        for _, sent in case.errors(2):
            if isinstance(sent, dict):
                followed_cases += accepted_or_undecided(case.schema, sent, seed)

    assert followed_cases > 10


def accepted_or_undecided(schema: dict[str, Any], sent: Any, seed: int) -> bool:
    """Return whether the advice led to an accepted call."""
    contract, random = Contract.from_schema(schema, name="t"), Random(seed)
    known: list[list[str]] = []
    value = sent
    for step in range(STEPS):
        errors = errors_of(contract, value)
        if not errors:
            return step > 0
        messages = [error.message for error in errors]
        assert messages not in known, (schema, value, known)
        known.append(messages)
        value = followed(schema, value, errors, random)
        if value is None:
            return False
    return False


def test_a_schema_that_contradicts_itself_is_said() -> None:
    """A name that is required and not taken: no call fits, and none is suggested."""
    contract = Contract.from_schema(closed("detailed", detail_level=TEXT))
    action = "Call another tool; this one requires the name and excludes it"

    for sent in ({"detail_level": "a"}, {"detailed": "a"}):
        assert errors_of(contract, sent)[0].suggested_action == action


def test_members_that_exclude_one_another_are_named() -> None:
    """Not all members that an object may have."""
    contract = Contract.from_schema({**closed(yaml=TEXT, dir=TEXT, n=NUMBER), **ONE_OF})

    both = errors_of(contract, {"yaml": "a", "dir": "b", "n": 1})[0]
    none = errors_of(contract, {"n": 1})[0]

    assert both.suggested_action == 'Leave out all of these but one: "yaml", "dir"'
    assert none.message == '{n} is none of: an object with "yaml"; an object with "dir"'
