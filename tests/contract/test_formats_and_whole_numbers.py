"""What valid calls may still be changed by: whole-number floats; and what `format`
means.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError
from tests.contract.malformed import (
    DATE,
    INTEGER,
    NULL,
    NUMBER,
    TEXT,
    array,
    closed,
    either,
)

MOMENT = {"type": "string", "format": "date-time"}


@pytest.mark.parametrize(
    ("schema", "sent", "expected"),
    [
        (INTEGER, 96230.0, 96230),
        (INTEGER, -0.0, 0),
        (INTEGER, 2.0**53, 2**53),
        (INTEGER, 2.0**53 + 2, 2.0**53 + 2),
        (INTEGER, 1e300, 1e300),
        (NUMBER, 5.0, 5.0),
        ({"type": ["integer", "null"]}, 5.0, 5),
        ({"type": ["integer", "number"]}, 5.0, 5.0),
        ({}, 5.0, 5.0),
        (either(INTEGER, NULL), 5.0, 5),
        (either(INTEGER, TEXT), 5.0, 5),
        (either(INTEGER, NUMBER), 5.0, 5.0),
        (either(INTEGER, {}), 5.0, 5.0),
        ({"allOf": [INTEGER, {"minimum": 1}]}, 5.0, 5),
        ({"$ref": "#/$defs/n"}, 5.0, 5),
        (array(INTEGER), [5.0, 6, 7.0], [5, 6, 7]),
        (array(array(NUMBER)), [[5.0]], [[5.0]]),
        (closed("", a=INTEGER, b=NUMBER), {"a": 5.0, "b": 5.0}, {"a": 5, "b": 5.0}),
        (either(closed("", a=INTEGER), closed("", a=NUMBER)), {"a": 5.0}, {"a": 5.0}),
        (either(closed("", a=INTEGER), closed("", b=NUMBER)), {"a": 5.0}, {"a": 5}),
        ({"type": "object", "additionalProperties": INTEGER}, {"a": 5.0}, {"a": 5}),
    ],
    ids=str,
)
def test_a_whole_number_float_is_an_integer_where_nothing_else_is_asked_for(
    schema: Any, sent: Any, expected: Any
) -> None:
    """JSON Schema takes 5.0 for an integer; strict servers and functions refuse the
    point.
    """
    contract = Contract.from_dict(
        {"input": {**closed("v", v=schema), "$defs": {"n": INTEGER}}}
    )

    accepted = contract.accept({"v": sent})

    assert repr(accepted.arguments) == repr({"v": expected})
    assert {repair.rule for repair in accepted.repairs} == (
        {"whole-number"} if repr(sent) != repr(expected) else set()
    )


def test_the_same_holds_in_a_text() -> None:
    """A text with a point is not the integer's own form."""
    contract = Contract.from_dict({"input": closed("v", v=INTEGER)})

    accepted = contract.accept('{"v": 96230.0}')

    assert repr(accepted.arguments) == "{'v': 96230}"


@pytest.mark.parametrize(
    "sent", [{"at": "2026-03-01T10:00:00"}, {"at": "tomorrow"}, {"at": ""}]
)
def test_a_format_is_an_annotation_where_the_host_says_so(sent: dict[str, Any]) -> None:
    """By JSON Schema itself a format refuses nothing (2020-12, validation, 7.2.1); by a
    contract.json it does.
    """
    schema = closed("at", at=MOMENT)

    accepted = Contract.from_dict({"input": schema}, formats="annotate").accept(sent)

    assert accepted.arguments is sent
    assert accepted.repairs == ()
    with pytest.raises(SkillInputError):
        Contract.from_dict({"input": schema}).accept(sent)


def test_a_format_that_is_an_annotation_still_guides_repairs() -> None:
    """What a repair makes fit the format is repaired; what is wrong without it is
    refused.
    """
    contract = Contract.from_dict(
        {"input": closed("day", day=DATE, until=DATE, n=INTEGER)}, formats="annotate"
    )

    assert contract.accept({"day": "'2026-01-31'", "until": "null"}).arguments == {
        "day": "2026-01-31"
    }
    assert contract.accept({"day": "today", "n": "5"}).arguments == {
        "day": "today",
        "n": 5,
    }
    with pytest.raises(SkillInputError):
        contract.accept({"day": "today", "n": "five"})
    assert pickle.loads(pickle.dumps(contract)).formats == "annotate"


def test_another_word_for_formats_is_refused() -> None:
    """An error of the host, said at once."""
    with pytest.raises(ValueError, match="'assert' or 'annotate'"):
        Contract.from_dict({}, formats="ignore")  # type: ignore[arg-type]  # what is tested
