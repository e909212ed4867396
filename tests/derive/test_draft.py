"""Contract files to start from, the advice on them, and contracts of Python
functions.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from skillruntime.contract import Contract, lint_contract
from skillruntime.derive import Derivation, derive
from skillruntime.derive.draft import draft_contracts
from skillruntime.errors import SkillInputError

SCRIPTS = Path(__file__).parent / "scripts"


def derived(script: str) -> Derivation:
    """Return what is read of one of the scripts."""
    derivation = derive((SCRIPTS / script).read_bytes(), path=f"scripts/{script}")
    assert derivation is not None
    return derivation


def test_one_script_is_contract_json_and_several_are_a_file_each() -> None:
    """The files lie where the catalog looks for them, and each loads."""
    one = draft_contracts([derived("a01_plain.py")], {"description": "Copies"})
    two = draft_contracts(
        [derived("a01_plain.py"), derived("a05_actions.py")], {"version": "2.0.0"}
    )

    assert list(one) == ["contract.json"]
    assert list(two) == ["contracts/a01-plain.json", "contracts/a05-actions.json"]
    assert [document["version"] for document in (*one.values(), *two.values())] == [
        "0.1.0",
        "2.0.0",
        "2.0.0",
    ]
    for document in (*one.values(), *two.values()):
        Contract.from_dict(document)


def test_nothing_comes_of_nothing() -> None:
    """A skill of instructions alone gets no file."""
    assert draft_contracts([], {"description": "Only words"}) == {}


ADVICE = [
    ({"properties": {"n": {"type": "integer"}}}, "parameter-no-range"),
    (
        {
            "properties": {
                "f": {"type": "string", "description": "Format: json, csv or md"}
            }
        },
        "parameter-free-string",
    ),
    ({"properties": {"f": {"type": "string"}}}, "parameter-no-description"),
    (
        {"properties": {"date_range": {"type": "string", "description": "Date range"}}},
        "parameter-description-empty",
    ),
    (
        {
            "properties": {
                "maxItems": {"type": "string", "description": "The max items."}
            }
        },
        "parameter-description-empty",
    ),
    ({"properties": {"f": {"type": "string"}}}, "contract-no-required"),
    ({"properties": {"f": {"type": "string"}}}, "contract-open"),
    (
        {
            "properties": {n: {"type": "string"} for n in "abcdef"},
            "required": list("abcdef"),
        },
        "contract-many-required",
    ),
]


@pytest.mark.parametrize(("schema", "rule"), ADVICE)
def test_each_principle_of_31_1_is_a_rule(schema: dict[str, Any], rule: str) -> None:
    """What a model will miss is said, with what would be better."""
    found = {
        each.rule: each
        for each in lint_contract({"input": schema}, path="contract.json")
    }

    assert rule in found
    assert found[rule].hint


def test_a_careful_contract_gets_no_advice() -> None:
    """The good example of the contract document gets no advice."""
    topic = {"type": "string", "description": "The news topic to research"}
    count = {
        "type": "integer",
        "minimum": 1,
        "maximum": 10,
        "default": 5,
        "description": "Articles to return",
    }
    schema = {"type": "object", "required": ["topic"], "additionalProperties": False}
    document = {
        "description": "News",
        "version": "1.0.0",
        "input": {**schema, "properties": {"topic": topic, "n": count}},
    }

    assert lint_contract(document, path="contract.json") == []


class Color(enum.Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


@dataclass
class Window:
    """A nested object."""

    width: int
    title: str = "main"


def paint(
    color: Color,
    size: Annotated[int, "In pixels"],
    window: Window | None = None,
    *,
    mode: Literal["a", "b"] = "a",
) -> dict[str, int]:
    """Paint it.

    Args:
        color: Which one.
        mode (str): How,
            in which way.
    """
    return {}


def test_a_functions_signature_and_docstring_are_its_contract() -> None:
    """Types from annotations, words from the docstring, defaults from the signature."""
    contract = Contract.from_function(paint, version="1.0.0")

    assert contract.to_dict()["input"] == {
        "type": "object",
        "properties": {
            "color": {
                "enum": ["red", "blue"],
                "type": "string",
                "description": "Which one.",
            },
            "size": {"type": "integer", "description": "In pixels"},
            "window": {
                "anyOf": [
                    {
                        "description": "A nested object.",
                        "type": "object",
                        "properties": {
                            "width": {"type": "integer"},
                            "title": {"type": "string", "default": "main"},
                        },
                        "required": ["width"],
                        "additionalProperties": False,
                    },
                    {"type": "null"},
                ],
                "default": None,
            },
            "mode": {
                "enum": ["a", "b"],
                "type": "string",
                "description": "How, in which way.",
                "default": "a",
            },
        },
        "required": ["color", "size"],
        "additionalProperties": False,
    }
    assert contract.accept({"color": "RED", "size": "3"}).arguments["size"] == 3
    with pytest.raises(SkillInputError):
        contract.accept({"color": "green", "size": 3})
