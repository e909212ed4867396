"""A skill that cannot be read takes no other with it, wherever skills are gone through.

The files are a third party's, so what they make PyYAML or this library raise is refused
in words: `skillruntime/catalog/unforeseen.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import discover
from skillruntime.contract import Contract, check_document
from skillruntime.errors import InvalidSkillError, SkillInputError
from skillruntime.runtime import SkillRuntime
from tests.skill_files import write_skill_files


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A directory with the sound skill ``sound``, which has a tool."""
    contract = {"description": "Says it.", "input": {"type": "object"}}
    files = {"contracts/say.json": json.dumps(contract)}
    write_skill_files(tmp_path, "sound", "Sound. Use when testing.", files)
    yield tmp_path


@pytest.mark.parametrize("value", ["!!bool x", "!!timestamp x", '!!int ""', ".nan"])
def test_a_contract_that_yaml_cannot_read_is_refused_in_words(
    root: Path, value: str
) -> None:
    """Its skill stays, without it, and the tools of the other are offered."""
    contract = f"input:\n  type: object\n  default: {value}\n"
    write_skill_files(root, "odd", "Odd.", {"contract.yaml": contract})
    runtime = SkillRuntime(discover(root))

    names = runtime.callable_names()

    assert [*names] == ["sound/say"]
    with pytest.raises(InvalidSkillError, match=r"contract\.yaml is not valid YAML"):
        runtime.contract("odd")


@pytest.mark.parametrize(
    ("function", "where"),
    [
        ("skillruntime.catalog.discovery.skill_file.read_summary", "discovery"),
        (
            "skillruntime.catalog.contracts.contract_files.read_contract_files",
            "contracts",
        ),
        ("skillruntime.catalog.search.search._beginning", "search"),
    ],
)
def test_an_unforeseen_exception_is_one_skill_s_alone(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    function: str,
    where: str,
) -> None:
    """A fault of this library, which the log shows with its traceback."""
    module, _, name = function.rpartition(".")
    imported = __import__(module, fromlist=[name])
    original = getattr(imported, name)

    def faulty(*arguments: Any, **options: Any) -> Any:
        if any("odd" in str(argument) for argument in arguments):
            raise KeyError("unforeseen")
        return original(*arguments, **options)

    write_skill_files(root, "odd", "Odd. Use when testing.", {"scripts/a.py": "0\n"})
    monkeypatch.setattr(imported, name, faulty)

    runtime = SkillRuntime(discover(root, use_index=False))
    found = runtime.catalog.search("sound body", wait=True)

    assert "sound/say" in [*runtime.callable_names()]
    assert next(hit.name for hit in found) == "sound"
    assert "KeyError: 'unforeseen'" in caplog.text
    if where == "discovery":
        assert [each.rule for each in runtime.catalog.diagnostics] == [
            "skill-unreadable"
        ]


def test_a_list_where_a_union_has_a_list_is_refused_in_words() -> None:
    """The arguments of a tool are an object, whatever its schema says of lists."""
    schema = {"type": ["integer", "array"], "items": {"type": "string"}}
    contract = Contract.from_dict({"input": schema})

    with pytest.raises(SkillInputError, match="the arguments are a list"):
        contract.accept('[["a"]]')


def test_a_contract_that_overflows_the_engine_is_checked() -> None:
    """jsonschema-rs would end the process of whoever checks this contract."""
    part = {"unevaluatedProperties": {}, "$ref": "#"}
    schema = {"oneOf": [{}, {"patternProperties": {"^a": {}}, "contains": part}]}

    found = check_document({"name": "a", "input": schema}, path="contract.json")

    assert [each.rule for each in found if each.severity == "error"] == []
