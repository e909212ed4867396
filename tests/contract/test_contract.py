"""A contract: what it accepts, from which version, with which defaults, and what it
promises.
"""

from __future__ import annotations

import copy
import types
from typing import Any

import pytest

from skillruntime import (
    Contract,
    ErrorCode,
    InvalidSkillError,
    SkillInputError,
    TruncatedInputError,
)
from skillruntime.contract import Migration, Policy, Schema
from skillruntime.errors import SkillOutputError, UnsupportedVersionError

INPUT: dict[str, Any] = {
    "type": "object",
    "required": ["topics"],
    "additionalProperties": False,
    "properties": {
        "topics": {"type": "array", "items": {"type": "string"}},
        "hours": {"type": "integer", "minimum": 1, "default": 24},
        "options": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "lang": {"type": "string", "default": "en"},
                "tags": {"type": "array", "default": []},
            },
        },
        "old": {"type": "string", "deprecated": True},
    },
}
DIGEST: dict[str, Any] = {
    "title": "digest",
    "version": "3.1.0",
    "input": INPUT,
    "output": {
        "type": "object",
        "required": ["count"],
        "properties": {"count": {"type": "integer"}},
    },
    "migrations": [
        {
            "from": "1.x",
            "to": "2.0.0",
            "accepts": {
                "type": "object",
                "required": ["topic"],
                "additionalProperties": False,
                "properties": {
                    "topic": {"type": "string"},
                    "days": {"type": "integer"},
                },
            },
            "steps": [
                {"rename": {"from": "/topic", "to": "/topics"}},
                {"wrap": "/topics"},
            ],
        },
        {
            "from": "2.x",
            "to": "3.0.0",
            "accepts": {
                "type": "object",
                "required": ["topics"],
                "additionalProperties": False,
                "properties": {
                    "topics": {"type": "array", "items": {"type": "string"}},
                    "days": {"type": "integer"},
                },
            },
            "steps": [
                {"convert": {"at": "/days", "factor": 24}},
                {"rename": {"from": "/days", "to": "/hours"}},
            ],
        },
    ],
}


@pytest.fixture
def digest() -> Contract:
    return Contract.from_dict(DIGEST)


def test_valid_arguments_come_back_as_the_same_object(digest: Contract) -> None:
    """Nothing is copied where nothing is filled in."""
    arguments = {"topics": ["AI"], "hours": 3}

    assert digest.accept(arguments).arguments is arguments


def test_defaults_are_filled_in_where_nothing_stands(digest: Contract) -> None:
    """Also inside an object that is there; one that is absent is not made up; a list is
    a fresh one.
    """
    accepted = digest.accept({"topics": ["AI"], "options": {}})

    assert accepted.arguments == {
        "topics": ["AI"],
        "hours": 24,
        "options": {"lang": "en", "tags": []},
    }
    accepted.arguments["options"]["tags"].append(1)
    assert (
        digest.accept({"topics": ["AI"], "options": {}}).arguments["options"]["tags"]
        == []
    )
    assert digest.accept({"topics": ["AI"]}).arguments == {
        "topics": ["AI"],
        "hours": 24,
    }


def test_a_default_that_the_schema_refuses_is_none() -> None:
    """``default: null`` where null is not allowed means no default."""
    schema = {
        "properties": {
            "a": {"type": "string", "default": None},
            "b": {"type": ["null"], "default": None},
        }
    }

    assert Contract.from_dict({"input": schema}).accept({}).arguments == {"b": None}


def test_defaults_that_would_break_the_schema_together_are_left_out() -> None:
    """Filling in never makes a call invalid."""
    schema = {"properties": {"a": {"default": 1}}, "dependentRequired": {"a": ["b"]}}

    assert Contract.from_dict({"input": schema}).accept({}).arguments == {}


@pytest.mark.parametrize(
    ("arguments", "version", "expected", "migrated_from"),
    [
        ({"topic": "AI", "days": 7}, None, {"topics": ["AI"], "hours": 168}, "1.x"),
        ({"topic": "AI", "days": "7"}, None, {"topics": ["AI"], "hours": 168}, "1.x"),
        (
            {"topic": "AI", "days": "7"},
            "1.4.2",
            {"topics": ["AI"], "hours": 168},
            "1.4.2",
        ),
        ({"topics": ["AI"], "days": 2}, None, {"topics": ["AI"], "hours": 48}, "2.x"),
        (
            {"topics": "AI", "days": "2"},
            "2.0.0",
            {"topics": ["AI"], "hours": 48},
            "2.0.0",
        ),
        ({"topics": ["AI"], "hours": 2}, "3.0.0", {"topics": ["AI"], "hours": 2}, None),
        ({"topics": ["AI"], "hours": 2}, "3.9.0", {"topics": ["AI"], "hours": 2}, None),
    ],
)
def test_arguments_of_older_versions_are_coerced_then_migrated(
    digest: Contract,
    arguments: Any,
    version: str | None,
    expected: Any,
    migrated_from: str | None,
) -> None:
    """To the old shape first: ``days: "7"`` written for 1.x is a week of hours."""
    accepted = digest.accept(arguments, version=version, fill_defaults=False)

    assert accepted.arguments == expected
    assert accepted.migrated_from == migrated_from


def test_an_untouched_older_shape_beats_a_repaired_newer_one() -> None:
    """``topics: "AI"``, valid as 1.x, is migrated, though the current shape could have
    wrapped it.
    """
    old = {
        "type": "object",
        "properties": {"topics": {"type": "string"}},
        "additionalProperties": False,
    }
    document = {
        "version": "2.0.0",
        "input": INPUT,
        "migrations": [
            {
                "from": "1.x",
                "to": "2.0.0",
                "accepts": old,
                "steps": [{"wrap": "/topics"}],
            }
        ],
    }

    accepted = Contract.from_dict(document).accept(
        {"topics": "AI"}, fill_defaults=False
    )

    assert (accepted.arguments, accepted.migrated_from, accepted.repairs) == (
        {"topics": ["AI"]},
        "1.x",
        (),
    )


def test_a_quoted_call_is_read_as_the_exact_one_is() -> None:
    """7 is of the current version, which takes it as it is; so are ``"7"`` and a
    wrapped 7.
    """
    new = {
        "type": "object",
        "properties": {"span": {"type": "integer"}},
        "additionalProperties": False,
    }
    document = {
        "version": "2.0.0",
        "input": new,
        "migrations": [
            {
                "from": "1.x",
                "to": "2.0.0",
                "accepts": new,
                "steps": [{"convert": {"at": "/span", "factor": 24}}],
            }
        ],
    }
    contract = Contract.from_dict(document)

    for call in (
        {"span": 7},
        {"span": "7"},
        {"input": {"span": 7}},
        {"arguments": {"span": "7"}},
    ):
        assert contract.accept(call).arguments == {"span": 7}
    assert contract.accept({"span": "7"}, version="1.0.0").arguments == {"span": 168}
    assert contract.accept({"span": "7"}, version="2.0.0").arguments == {"span": 7}


@pytest.mark.parametrize("version", ["0.9.0", "4.0.0", "four", "1"])
def test_a_version_that_nothing_covers_is_unsupported(
    digest: Contract, version: str
) -> None:
    """A newer MAJOR, one before the first migration, and what is not a version at
    all.
    """
    with pytest.raises(UnsupportedVersionError) as caught:
        digest.accept({"topics": ["AI"]}, version=version)

    assert caught.value.to_errors()[0].code is ErrorCode.UNSUPPORTED_VERSION


def test_the_hosts_own_function_is_a_migration() -> None:
    """31.5 ``migrate_from_v1``: registered by the program, never by the skill."""

    def migrate_from_v1(v1_input: dict[str, Any]) -> dict[str, Any]:
        v2_input = dict(v1_input)
        if isinstance(v1_input.get("topics"), str):
            v2_input["topics"] = [v1_input["topics"]]
        return v2_input

    contract = Contract.from_dict({"version": "2.0.0", "input": INPUT})
    contract = contract.with_migration(
        Migration.from_function(migrate_from_v1, source="1.x", to="2.0.0")
    )

    assert contract.accept(
        {"topics": "AI"}, version="1.0.0", fill_defaults=False
    ).arguments == {"topics": ["AI"]}


def test_a_migrated_value_that_does_not_fit_is_refused_with_its_place(
    digest: Contract,
) -> None:
    """Migrations are checked, not trusted."""
    with pytest.raises(SkillInputError) as caught:
        digest.accept({"topic": "AI", "days": 0}, version="1.0.0")

    assert [(e.code, (e.details or {})["path"]) for e in caught.value.skill_errors] == [
        (ErrorCode.PARAM_OUT_OF_RANGE, "/hours")
    ]


def test_deprecated_parameters_work_and_say_so(digest: Contract) -> None:
    """JSON Schema's ``deprecated``: the call works, the caller is warned."""
    assert digest.accept({"topics": [], "old": "x"}).warnings == (
        "the parameter 'old' is deprecated",
    )
    assert digest.accept({"topics": []}).warnings == ()


def test_all_faults_are_reported_at_once(digest: Contract) -> None:
    """One structured error for each offending parameter."""
    with pytest.raises(SkillInputError) as caught:
        digest.accept({"hours": 0, "topcs": ["AI"], "options": {"lang": 5.5e300}})

    reported = {
        (error.code.value, (error.details or {}).get("path"))
        for error in caught.value.skill_errors
    }
    assert reported == {
        ("MISSING_REQUIRED_PARAM", "/topics"),
        ("INVALID_INPUT", "/topcs"),
        ("PARAM_OUT_OF_RANGE", "/hours"),
        ("INVALID_INPUT", "/options/lang"),
    }


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("", "MISSING_REQUIRED_PARAM"),
        (None, "MISSING_REQUIRED_PARAM"),
        ("[1, 2]", "INVALID_INPUT"),
        ("5", "INVALID_INPUT"),
        (5, "INVALID_INPUT"),
        (b"\xff", "INVALID_INPUT"),
        ('{"topics": ["AI', "TRUNCATED_INPUT"),
        ({"topics": {1, 2}}, "INVALID_INPUT"),
        ({"topics": ["AI"], "hours": float("nan")}, "INVALID_INPUT"),
        ({1: 2}, "INVALID_INPUT"),
        ('{"topics": ["\\ud800"]}', "INVALID_INPUT"),
        ({"topics": ["AI"], "hours": 10**5000}, "INVALID_INPUT"),
    ],
)
def test_what_is_not_a_object_of_json_is_refused(
    digest: Contract, raw: Any, code: str
) -> None:
    """Whatever a host hands over, the answer is an input error with a code."""
    with pytest.raises(SkillInputError) as caught:
        digest.accept(raw)

    assert caught.value.to_errors()[0].code.value == code


def test_a_value_without_end_is_refused() -> None:
    """A cycle, which only a host can make, is not a JSON."""
    cycle: dict[str, Any] = {}
    cycle["again"] = cycle

    with pytest.raises(SkillInputError, match="nested deeper"):
        Contract.from_dict({"input": {"type": "object"}}).accept(cycle)


def test_any_mapping_is_read(digest: Contract) -> None:
    """A read-only mapping says the same as a dictionary."""
    expected = {"topics": ["新闻"], "hours": 24}

    assert (
        digest.accept(types.MappingProxyType({"topics": ["新闻"]})).arguments
        == expected
    )


def test_a_model_that_was_cut_off_is_refused_whatever_it_wrote(
    digest: Contract,
) -> None:
    """``finish_reason`` ``length``: even a whole object may be less than was meant."""
    mapping = {"topics": ["AI"]}
    for raw in ('{"topics": ["AI"]}', mapping, types.MappingProxyType(mapping)):
        with pytest.raises(TruncatedInputError):
            digest.accept(raw, finish_reason="length")
    assert digest.accept('{"topics": ["AI"]}', finish_reason="stop").arguments[
        "topics"
    ] == ["AI"]


def test_the_policy_is_the_contracts_or_the_calls(digest: Contract) -> None:
    """Strict repairs nothing, not even syntax; lenient drops what is unknown and
    records it.
    """
    strict = Contract.from_dict({**DIGEST, "policy": "strict"})

    for raw in ({"topics": ["AI"], "hours": "3"}, '{"topics": ["AI"],}'):
        with pytest.raises(SkillInputError):
            strict.accept(raw)
        assert strict.accept(raw, policy="safe").arguments["topics"] == ["AI"]
    dropped = digest.accept(
        {"topics": ["AI"], "mood": 1}, policy="lenient", fill_defaults=False
    )
    assert dropped.arguments == {"topics": ["AI"]}
    assert [
        (repair.path, repair.rule, repair.before) for repair in dropped.repairs
    ] == [("/mood", "unknown-key", 1)]
    assert (
        digest.accept(
            {"topics": ["AI"], "mood": 1}, policy=Policy(on_unknown="drop")
        ).arguments["hours"]
        == 24
    )
    with pytest.raises(ValueError, match="known are strict, safe, lenient"):
        digest.accept({}, policy="bold")


def test_output_is_checked(digest: Contract) -> None:
    """What the contract promises, where, and what is not a JSON at all."""
    digest.check({"count": 3})
    with pytest.raises(SkillOutputError, match="/count") as caught:
        digest.check({"count": "3"})
    assert caught.value.details is not None
    assert caught.value.details["violations"][0]["path"] == "/count"
    with pytest.raises(SkillOutputError, match="not JSON"):
        digest.check({"count": {3}})


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "JSON object"),
        ({"type": "object", "properties": {}}, "under 'input'"),
        ({"version": "two"}, "semantic version"),
        ({"version": 2}, "/version: 2 is not a string"),
        ({"input": {"type": "strng"}}, "strng"),
        ({"input": 5}, "is not an object or a boolean"),
        ({"run": {"timeout_seconds": -1}}, "is not more than 0"),
        ({"run": {"exit_codes": {"0": "fine"}}}, "/run/exit_codes"),
        ({"run": {"exit_codes": {"1": 3}}}, "/run/exit_codes/1"),
        ({"policy": "bold"}, "policy"),
        ({"migrations": [{"to": "2.0.0", "steps": [{"fly": "/a"}]}]}, "fly"),
        (
            {"version": "1.0.0", "migrations": [{"to": "2.0.0", "steps": []}]},
            "above the contract's version",
        ),
    ],
)
def test_a_broken_contract_is_an_invalid_skill(document: Any, reason: str) -> None:
    """All that is wrong with the document is said when it is read, not at the first
    call.
    """
    with pytest.raises(InvalidSkillError, match=reason):
        Contract.from_dict(document)


def test_definitions_serve_input_output_and_older_shapes() -> None:
    """``definitions`` and ``$defs`` of the document stand around each of its
    schemas.
    """
    document = {
        "version": "2.0.0",
        "$defs": {"name": {"type": "string"}},
        "input": {
            "type": "object",
            "properties": {"name": {"$ref": "#/$defs/name"}},
            "additionalProperties": False,
        },
        "output": {"$ref": "#/$defs/name"},
        "migrations": [
            {
                "to": "2.0.0",
                "accepts": {
                    "type": "object",
                    "properties": {"title": {"$ref": "#/$defs/name"}},
                    "additionalProperties": False,
                },
                "steps": [{"rename": {"from": "/title", "to": "/name"}}],
            }
        ],
    }
    contract = Contract.from_dict(document)

    assert contract.accept({"title": "x"}).arguments == {"name": "x"}
    contract.check("x")


def test_a_known_document_is_compiled_at_its_first_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until then it has its texts and its documents; after that it is as one of
    `from_dict`.
    """
    real, compiled = Schema._compile, []
    monkeypatch.setattr(
        Schema,
        "_compile",
        lambda self, *options: (compiled.append(self.where), real(self, *options)),
    )

    contract = Contract.from_known_dict(DIGEST)

    assert (contract.name, contract.version, contract.input.document["required"]) == (
        "digest",
        "3.1.0",
        ["topics"],
    )
    assert not hasattr(contract, "unknown") and not hasattr(contract.input, "unknown")
    assert compiled == []
    assert contract.accept('{"topics": "AI",}') == Contract.from_dict(DIGEST).accept(
        '{"topics": "AI",}'
    )
    assert contract.accept({"topic": "AI"}).migrated_from == "1.x"
    assert copy.copy(contract).accept({"topics": []}).arguments == {
        "topics": [],
        "hours": 24,
    }
    with pytest.raises(SkillOutputError):
        contract.check({})
