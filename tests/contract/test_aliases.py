"""Other names of parameters: `skillruntime/contract/document/aliases.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import InvalidSkillError, SkillInputError
from tests import needs

DOCUMENT: dict[str, Any] = {
    "name": "read",
    "version": "2.0.0",
    "input": {
        "type": "object",
        "required": ["path"],
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    },
    "aliases": {"path": ["file_path", "file"], "limit": ["max"]},
}


def contract(*, is_open: bool = False, **changes: Any) -> Contract:
    """Return the contract, whose object is closed unless it *is_open*."""
    return Contract.from_dict(
        {
            **DOCUMENT,
            "input": {**DOCUMENT["input"], "additionalProperties": is_open},
            **changes,
        }
    )


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param({"file_path": "a", "max": 3}, id="mapping"),
        pytest.param({"file": "a", "max": "3"}, id="another repair too"),
        pytest.param('{"file_path": "a", "max": 3}', id="text"),
        pytest.param(
            '{"name": "read", "arguments": {"file": "a", "max": 3}}', id="envelope"
        ),
        pytest.param({"path": "a", "file": "a", "limit": 3}, id="twice the same"),
    ],
)
def test_an_alias_is_renamed_before_validation(sent: Any, is_open: bool) -> None:
    """In an object that takes other keys as well; each is recorded."""
    accepted = contract(is_open=is_open).accept(sent)

    assert accepted.arguments == {"path": "a", "limit": 3}
    assert "alias" in [repair.rule for repair in accepted.repairs]


def test_a_call_by_the_own_names_is_untouched() -> None:
    """It is the same object."""
    sent = {"path": "a", "limit": 3}

    assert contract(is_open=True).accept(sent).arguments is sent


@pytest.mark.parametrize(
    "sent",
    [{"path": "a", "file": "b"}, {"file": "b", "path": "a"}],
    ids=["last", "first"],
)
def test_two_names_with_different_values_are_refused(sent: dict[str, Any]) -> None:
    """Which one was meant cannot be known; the alias is named wherever it stands."""
    with pytest.raises(SkillInputError) as caught:
        contract().accept(sent)
    (error,) = caught.value.to_errors()
    assert (
        error.message
        == "'path' was sent under two names, 'file' too, with different values"
    )


ANY: dict[str, Any] = {"input": {"properties": {"n": {}}}, "aliases": {"n": ["c"]}}


@pytest.mark.parametrize(
    ("own", "other"), [(1, True), ([1], [True]), ({"k": 0}, {"k": False})], ids=str
)
def test_true_and_1_are_different_values(own: Any, other: Any) -> None:
    """Also inside a container: JSON Schema 2020-12, core, 4.2.2."""
    with pytest.raises(SkillInputError):
        Contract.from_dict(ANY).accept({"n": own, "c": other})
    with pytest.raises(SkillInputError):
        Contract.from_dict(ANY).accept({"c": other, "n": own})


@pytest.mark.parametrize(
    "sent", [{"n": 0.5e1, "c": 5}, {"c": 5, "n": 0.5e1}], ids=["first", "last"]
)
def test_of_equal_values_that_of_the_own_name_is_kept(sent: dict[str, Any]) -> None:
    """5 and 5.0 are one number; what the parameter's own name has is what was sent for
    it.
    """
    assert type(Contract.from_dict(ANY).accept(sent).arguments["n"]) is float


def test_an_older_version_keeps_its_names() -> None:
    """An alias belongs to the version that declares it."""
    old = {"properties": {"name": {"type": "string"}}, "additionalProperties": False}
    steps = [{"rename": {"from": "/name", "to": "/path"}}]
    made = contract(
        migrations=[{"from": "1.x", "to": "2.0.0", "accepts": old, "steps": steps}]
    )

    assert made.accept({"name": "a"}, version="1.0.0").arguments == {"path": "a"}
    with pytest.raises(SkillInputError):
        made.accept({"file": "a"}, version="1.0.0")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"aliases": {"path": ["limit"]}}, "'limit' is a parameter itself"),
        ({"aliases": {"path": ["a"], "limit": ["a"]}}, "'a' is an alias of 'path' too"),
        ({"aliases": {"paths": ["a"]}}, "'paths' is not a parameter of the contract"),
        ({"aliases": {"path": "file"}}, "is not an array"),
        (
            {
                "migrations": [
                    {
                        "from": "1.x",
                        "to": "2.0.0",
                        "accepts": {"properties": {"file": {}}},
                        "steps": [],
                    }
                ]
            },
            "'file' is a parameter of an older version",
        ),
    ],
    ids=str,
)
def test_aliases_that_could_mean_two_things_are_a_faulty_contract(
    changes: dict[str, Any], fault: str
) -> None:
    """Where the contract is read, and not at a call."""
    with pytest.raises(InvalidSkillError, match=fault):
        contract(**changes)


def test_a_tool_of_langchain_has_aliases_too() -> None:
    """They are given where it is enforced."""
    tools = needs.package("langchain_core.tools")
    from skillruntime.adapters.enforced_tool import enforce

    @tools.tool
    def read(path: str) -> str:
        """Read a file."""
        return path

    enforced = enforce(read, aliases={"path": ["file_path"]})

    assert enforced.invoke({"file_path": "a"}) == "a"
    assert json.loads(enforce(read).invoke({"file_path": "a"}))["status"] == "failed"
