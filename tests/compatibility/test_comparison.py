"""Compatibility: the verdict on a table of pairs, counterexamples, soundness, suggested
migrations and their proof.
"""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.compatibility_pairs import CONTRACT, INPUT, OUTPUT, arr, obj, shut
from skillruntime.compatibility import (
    NO_COUNTEREXAMPLE,
    Bump,
    Verdict,
    compare,
    prove_migrations,
    suggest_migration,
)
from skillruntime.compatibility.containment import Containment
from skillruntime.compatibility.migration_proof import migration_diagnostics
from skillruntime.compatibility.normal_form import closed, normal_form
from skillruntime.compatibility.sampling import samples
from skillruntime.contract import Contract, Version
from skillruntime.errors import InvalidSkillError
from tests import needs

ROWS = (
    [
        pytest.param({"input": old}, {"input": new}, *rest, id=f"input: {name}")
        for name, old, new, *rest in INPUT
    ]
    + [
        pytest.param({"output": old}, {"output": new}, *rest, id=f"output: {name}")
        for name, old, new, *rest in OUTPUT
    ]
    + [pytest.param(*rest, id=f"contract: {name}") for name, *rest in CONTRACT]
)
S, I = {"type": "string"}, {"type": "integer"}  # noqa: E741 - the types, as in the table


def inputs(old: Any, new: Any) -> Verdict:
    return compare({"input": old}, {"input": new})


def admitted(schema: Any, value: Any) -> bool:
    """Return what both engines say, which must be the same."""
    if "date-time" in json.dumps(schema):
        needs.package(
            "rfc3339_validator"
        )  # without it the reference takes any date and time
    fast = jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)
    reference = jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.FormatChecker()
    )
    assert fast is reference.is_valid(value)
    return bool(fast)


@pytest.mark.parametrize(("old", "new", "bump", "set_theory"), ROWS)
def test_the_verdict_is_that_of_the_table(
    old: Any, new: Any, bump: str, set_theory: str
) -> None:
    """The contract document's rules (31.5) by name, and every keyword of JSON Schema,
    by both readings.
    """
    verdict = compare(old, new)

    assert (str(verdict.bump), str(verdict.set_theory)) == (bump, set_theory), (
        verdict.to_dict()
    )


@pytest.mark.parametrize(
    ("name", "old", "new"), [row[:3] for row in INPUT], ids=[row[0] for row in INPUT]
)
def test_a_counterexample_is_accepted_by_the_old_and_refused_by_the_new(
    name: str, old: Any, new: Any
) -> None:
    """Every counterexample is checked again here, by both engines, by the reading it
    names.
    """
    before, after = normal_form(old), normal_form(new)

    for change in inputs(old, new).changes:
        if change.counterexample is NO_COUNTEREXAMPLE:
            broken = Bump.MAJOR in (change.practical, change.set_theory)
            assert not broken or "undecided" in name
            continue
        if change.counterexample_reading in ("set theory", "both"):
            assert admitted(
                old | {"$schema": old.get("$schema", DIALECT)}, change.counterexample
            )
            assert not admitted(
                new | {"$schema": new.get("$schema", DIALECT)}, change.counterexample
            )
        if change.counterexample_reading in ("practical", "both"):
            assert admitted(closed(before), change.counterexample)
            assert not admitted(closed(after), change.counterexample)


DIALECT = "https://json-schema.org/draft/2020-12/schema"


def test_a_change_names_its_place_rule_reason_and_readings() -> None:
    """A verdict is data that a report can be made from."""
    verdict = inputs(
        shut({"rows": arr(shut({"n": I}))}),
        shut({"rows": arr(shut({"n": {**I, "maximum": 3}}))}),
    )

    assert verdict.to_dict() == {
        "bump": "major",
        "readings": {"practical": "major", "set_theory": "major"},
        "changes": [
            {
                "side": "input",
                "path": "/rows/*/n",
                "rule": "constraint-tightened",
                "bump": "major",
                "why": "maximum was not limited and is 3",
                "readings": {"practical": "major", "set_theory": "major"},
                "counterexample": {"rows": [{"n": 4}]},
                "counterexample_reading": "both",
            }
        ],
    }


def test_all_changes_are_reported_the_gravest_first() -> None:
    """Two changes to one contract are two entries."""
    verdict = inputs(
        shut({"a": S, "b": S, "c": S}),
        shut({"a": {**S, "description": "A"}, "b": I, "c": S, "d": S}),
    )

    assert [(change.path, str(change.bump)) for change in verdict.changes] == [
        ("/b", "major"),
        ("/d", "minor"),
        ("/a", "patch"),
    ]


def test_the_contract_document_decides_where_it_has_a_rule() -> None:
    """31.5: a new enum value in the output is MINOR, though by set theory a reader may
    meet the unknown.
    """
    verdict = compare(
        {"output": obj({"s": {"enum": ["a"]}})},
        {"output": obj({"s": {"enum": ["a", "b"]}})},
    )

    change = verdict.changes[0]
    assert (change.bump, change.ruling, change.set_theory) == (
        Bump.MINOR,
        Bump.MINOR,
        Bump.MAJOR,
    )
    assert change.counterexample == {"s": "b"}
    assert not change.is_breaking


@pytest.mark.parametrize(
    ("old", "new", "bump", "allowed"),
    [
        ("1.2.3", "2.0.0", Bump.MAJOR, True),
        ("1.2.3", "2.0.0-rc.1", Bump.MAJOR, True),
        ("1.2.3", "1.3.0", Bump.MAJOR, False),
        ("1.2.3", "1.3.0", Bump.MINOR, True),
        ("1.2.3", "1.2.4", Bump.MINOR, False),
        ("1.2.3", "1.2.4", Bump.PATCH, True),
        ("1.2.3", "1.2.3", Bump.PATCH, False),
        ("1.2.3", "1.2.3", Bump.NONE, True),
        ("1.2.3", "1.2.2", Bump.NONE, False),
        ("0.2.3", "0.3.0", Bump.MAJOR, True),
        ("0.2.3", "0.2.4", Bump.MAJOR, False),
        ("0.2.3", "0.2.4", Bump.MINOR, True),
    ],
)
def test_a_version_must_be_raised_far_enough(
    old: str, new: str, bump: Bump, allowed: bool
) -> None:
    """SemVer 2.0.0, sections 4 and 6 to 8."""
    changes = compare({"input": {}}, {"input": {"type": "string"}}).changes
    change = next(change for change in changes if change.is_breaking)
    from dataclasses import replace

    verdict = Verdict(
        () if bump is Bump.NONE else (replace(change, practical=bump, ruling=None),)
    )

    assert verdict.allows(Version.parse(old), Version.parse(new)) is allowed


def test_schemas_that_cannot_be_followed_are_compared_as_a_whole() -> None:
    """An anchor hides where a reference leads: what cannot be decided counts as
    breaking.
    """
    old = {"$ref": "#a", "$defs": {"a": {"$anchor": "a", "type": "object"}}}

    verdict = inputs(old, {**old, "maxProperties": 3})

    assert verdict.bump is Bump.MAJOR
    assert "only as a whole" in verdict.changes[0].why
    assert inputs(old, dict(old)).bump is Bump.NONE


# Soundness
# ------------------------------------------------------------

leaves = st.sampled_from(
    [
        {},
        True,
        {"type": "string"},
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "null"},
        {"enum": ["a", "b"]},
        {"enum": ["a"]},
        {"enum": [1, 2, "a"]},
        {"const": 1},
        {"type": ["string", "null"]},
        {"type": "integer", "minimum": 1},
        {"type": "integer", "minimum": 2, "maximum": 5},
        {"type": "number", "maximum": 3},
        {"type": "string", "minLength": 1},
        {"type": "string", "maxLength": 1},
        {"type": "integer", "multipleOf": 2},
        {"type": "string", "pattern": "^a"},
        {"type": "string", "format": "date"},
        {"not": {"type": "string"}},
    ]
)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "c"])
    return (
        st.builds(
            lambda properties, required, more: (
                {"type": "object", "properties": properties, "required": required}
                | more
            ),
            st.dictionaries(names, inner, max_size=3),
            st.lists(names, max_size=2, unique=True),
            st.sampled_from(
                [
                    {},
                    {},
                    {"additionalProperties": False},
                    {"additionalProperties": {"type": "integer"}},
                ]
            ),
        )
        | st.builds(
            lambda items, more: {"type": "array", "items": items, **more},
            inner,
            st.sampled_from([{}, {"minItems": 1}, {"maxItems": 1}]),
        )
        | st.builds(
            lambda keyword, branches: {keyword: branches},
            st.sampled_from(["anyOf", "oneOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=3),
        )
    )


schemas = st.recursive(leaves, grown, max_leaves=5)


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two schemas that share most of what they say."""
    old = draw(schemas)

    def changed(node: Any, depth: int) -> Any:
        if depth > 4 or draw(st.integers(0, 3)) == 0 or not isinstance(node, dict):
            return draw(schemas)
        found = dict(node)
        if "properties" in node:
            found["required"] = draw(
                st.lists(st.sampled_from(["a", "b", "c"]), max_size=2, unique=True)
            )
            found["properties"] = {
                name: changed(child, depth + 1) if draw(st.booleans()) else child
                for name, child in node["properties"].items()
                if draw(st.integers(0, 4))
            }
        elif "items" in node:
            found["items"] = changed(node["items"], depth + 1)
        else:
            for keyword in ("anyOf", "oneOf", "allOf"):
                if keyword in node:
                    found[keyword] = [
                        changed(child, depth + 1) for child in node[keyword]
                    ]
        return found

    return old, changed(old, 0)


@given(neighbours(), st.booleans())
def test_what_is_called_harmless_harms_no_value(
    pair: tuple[Any, Any], is_output: bool
) -> None:
    """If set theory finds no break, every value of the giving side fits the taking
    side: the engines are asked.
    """
    old, new = pair
    side = "output" if is_output else "input"
    verdict = compare({side: old}, {side: new})
    assume(verdict.set_theory is not Bump.MAJOR)
    giver, taker = (new, old) if is_output else (old, new)

    for value in samples(giver, 20):
        if jsonschema_rs.is_valid(giver, value, validate_formats=True):
            assert jsonschema_rs.is_valid(taker, value, validate_formats=True), (
                value,
                verdict.to_dict(),
            )


@given(neighbours())
def test_what_is_called_breaking_is_shown_or_undecided(pair: tuple[Any, Any]) -> None:
    """The old accepts a counterexample and the new refuses it; without one the reason
    says that it is undecided.
    """
    old, new = pair

    for change in inputs(old, new).changes:
        if change.counterexample is NO_COUNTEREXAMPLE:
            assert (
                change.practical is not Bump.MAJOR
                or "cannot be proven harmless" in change.why
            )
        elif change.counterexample_reading != "practical":
            assert jsonschema_rs.is_valid(
                old, change.counterexample, validate_formats=True
            )
            assert not jsonschema_rs.is_valid(
                new, change.counterexample, validate_formats=True
            )


@given(schemas)
def test_a_schema_is_compatible_with_itself(schema: Any) -> None:
    """Comparing a schema with itself finds nothing."""
    assert inputs(schema, schema).bump is Bump.NONE


def test_no_value_of_the_official_suite_contradicts_a_verdict() -> None:
    """Of schemas that other people wrote: what is called harmless harms none of their
    values.
    """
    suite = needs.data("json-schema-test-suite/tests/draft2020-12")
    compared, wrong = 0, []
    for path in sorted(suite.glob("*.json")):
        groups = json.loads(path.read_text(encoding="utf-8"))
        values = [test["data"] for group in groups for test in group["tests"]]
        contracts = [
            found
            for group in groups
            if (found := readable(group["schema"])) is not None
        ]
        for old, new in list(permutations(contracts, 2))[:20]:
            compared += 1
            if compare(old, new).set_theory is not Bump.MAJOR:
                wrong += [
                    (path.name, value)
                    for value in values
                    if old.input.is_valid(value) > new.input.is_valid(value)
                ]

    assert compared > 300
    assert wrong == []


def readable(schema: Any) -> Contract | None:
    try:
        return Contract.from_dict({"input": schema})
    except InvalidSkillError:  # it leads outside the document
        return None


# Suggestions and proofs
# ------------------------------------------------------------

V1 = {
    "version": "1.4.0",
    "input": shut(
        {
            "topics": {**S, "minLength": 2},
            "count": I,
            "days": I,
            "legacy": S,
            "level": I,
        },
        ("topics",),
    ),
}
V2 = {
    "version": "2.0.0",
    "input": shut(
        {
            "topics": arr({**S, "minLength": 2}, minItems=1),
            "max_count": I,
            "days": S,
            "level": {"type": "number"},
            "format": {"enum": ["a", "b"], "default": "a"},
        },
        ("topics", "format"),
    ),
}


def test_a_migration_is_suggested_for_what_can_be_inferred() -> None:
    """Renames, wraps, types, dropped parameters and new defaults."""
    suggestion = suggest_migration(V1, V2)

    assert suggestion.is_complete
    assert suggestion.document["from"] == ">=1.0.0,<2.0.0"
    assert suggestion.document["to"] == "2.0.0"
    assert sorted(map(str, suggestion.document["steps"])) == sorted(
        map(
            str,
            [
                {"wrap": "/topics"},
                {"rename": {"from": "/count", "to": "/max_count"}},
                {"convert": {"at": "/days", "from": "integer", "to": "string"}},
                {"drop": "/legacy"},
                {"set_default": {"at": "/format", "value": "a"}},
            ],
        )
    )


def test_a_migration_is_suggested_to_the_version_that_is_required() -> None:
    """A declared version that is too small must be raised before the migration can lead
    to it.
    """
    assert suggest_migration(V1, {**V2, "version": "1.5.0"}).document["to"] == "2.0.0"


def test_a_suggested_migration_is_proven_on_generated_values() -> None:
    """The suggestion works for every value that the old schema admits."""
    document = suggest_migration(V1, V2).document

    proof = prove_migrations({**V2, "migrations": [document]}, examples=50)

    assert proof.holds, proof.failures
    assert proof.cases > 20


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (shut({"a": S}), shut({"a": I})),  # a text is seldom a number
        (shut({"a": {"enum": ["x", "y"]}}), shut({"a": {"enum": ["x"]}})),
        (shut({}), shut({"a": S}, ("a",))),
        (shut({"a": {**I, "maximum": 9}}), shut({"a": {**I, "maximum": 5}})),
        (S, I),
    ],
)
def test_what_cannot_be_inferred_is_listed(old: Any, new: Any) -> None:
    """A suggestion never guesses."""
    suggestion = suggest_migration({"input": old}, {"input": new})

    assert not suggestion.is_complete
    assert suggestion.document["steps"] == []
    assert suggestion.document["to"] == "2.0.0"


def contract_with(*steps: dict[str, Any], accepts: Any, to: Any) -> Contract:
    migration = {"from": "1.x", "to": "2.0.0", "accepts": accepts, "steps": list(steps)}
    return Contract.from_dict(
        {"version": "2.0.0", "input": to, "migrations": [migration]}
    )


def test_a_migration_that_fails_names_the_input_that_breaks_it() -> None:
    """A text of any length does not fit a bounded one: the proof finds such a text."""
    contract = contract_with(
        accepts=shut({"a": S}), to=shut({"a": {**S, "maxLength": 3}})
    )

    proof = prove_migrations(contract, examples=100)

    assert not proof.holds
    failure = proof.failures[0]
    assert len(failure["input"]["a"]) > 3
    assert failure["why"].startswith("the contract does not accept the result: /a: ")
    assert failure["why"].endswith("is longer than 3 characters")
    (finding,) = migration_diagnostics(contract, "contract.json", examples=100)
    assert (finding.rule, finding.path) == ("migration-fails", "contract.json")


def test_a_counterexample_of_the_difference_is_tried_too() -> None:
    """The values that a comparison found are the first to be tried."""
    contract = contract_with(accepts=shut({"a": I}), to=shut({"a": I}, ("a",)))
    counterexamples = [
        change.counterexample
        for change in inputs(shut({"a": I}), shut({"a": I}, ("a",))).changes
    ]

    assert (
        prove_migrations(
            contract, examples=1, counterexamples=counterexamples
        ).failures[0]["input"]
        == {}
    )


def test_a_chain_of_migrations_is_proven_link_by_link() -> None:
    """1 -> 2 -> 3: what comes out of each is what the next accepts."""
    document = {
        "version": "3.0.0",
        "input": shut({"topics": arr(S), "hours": I}),
        "migrations": [
            {
                "to": "2.0.0",
                "accepts": shut({"topics": S, "days": I}),
                "steps": [{"wrap": "/topics"}],
            },
            {
                "to": "3.0.0",
                "accepts": shut({"topics": arr(S), "days": I}),
                "steps": [
                    {"rename": {"from": "/days", "to": "/hours"}},
                    {"convert": {"at": "/hours", "factor": 24}},
                ],
            },
        ],
    }

    assert prove_migrations(document, examples=50).failures == ()


def test_a_proof_repairs_what_accept_repairs() -> None:
    """A null for what may be left out means that it is absent, in a proof as in a
    call.
    """
    contract = contract_with(
        {"rename": {"from": "/a", "to": "/b"}},
        accepts=shut({"a": {"type": ["string", "null"]}}),
        to=shut({"b": S}),
    )

    assert contract.accept({"a": None}, version="1.0.0").arguments == {}
    assert prove_migrations(contract, examples=50).holds


def test_a_migration_without_an_old_schema_is_unproven() -> None:
    """Nothing says what to try it on, so the proof does not claim to hold."""
    contract = Contract.from_dict(
        {
            "version": "2.0.0",
            "input": shut({"b": S}),
            "migrations": [{"to": "2.0.0", "steps": [{"drop": "/a"}]}],
        }
    )

    proof = prove_migrations(contract)

    assert (proof.holds, proof.unproven, proof.cases) == (False, ("2.0.0",), 0)
    (finding,) = migration_diagnostics(contract, "contract.json")
    assert finding.rule == "migration-unproven"


@pytest.mark.parametrize(
    ("old", "new", "bump"),
    [
        (obj({"a": S}, ("a",)), {"allOf": [obj({"a": S}, ("a",))]}, Bump.PATCH),
        (shut({"a": S}), {"allOf": [shut({"a": S})]}, Bump.PATCH),
        (shut({"a": S}), {"allOf": [shut({"a": S})], "description": "A."}, Bump.PATCH),
        ({"allOf": [shut({"a": S})]}, shut({"a": S}), Bump.PATCH),
        (obj({"a": S}, unevaluatedProperties=False), shut({"a": S}), Bump.PATCH),
        (
            arr(unevaluatedItems=False, prefixItems=[S]),
            arr(False, prefixItems=[S]),
            Bump.PATCH,
        ),
        (arr(S, unevaluatedItems=False), arr(S), Bump.PATCH),
        (
            {"unevaluatedItems": False},
            {"prefixItems": [True], "unevaluatedItems": False},
            Bump.MINOR,
        ),
        (
            {"unevaluatedProperties": False},
            {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
            Bump.MINOR,
        ),
        (arr(I, prefixItems=[I, I]), arr(I), Bump.PATCH),
        (
            arr(obj({"b": S}), prefixItems=[S]),
            arr(obj({"b": S}), prefixItems=[{"type": ["string", "null"]}]),
            Bump.MINOR,
        ),
    ],
)
def test_the_same_written_in_another_way_is_no_more_than_a_patch(
    old: Any, new: Any, bump: Bump
) -> None:
    """``allOf`` of one, and unevaluated members without another subschema for the
    value; admitting more is MINOR.
    """
    assert inputs(old, new).bump is bump


@pytest.mark.parametrize("side", ["input", "output"])
def test_a_schema_that_moves_into_an_all_of_is_a_patch_on_either_side(
    side: str,
) -> None:
    """Nothing changes for a caller that sends or reads the values."""
    schema = obj({"a": S, "b": arr(I)}, ("a",))

    assert compare({side: schema}, {side: {"allOf": [schema]}}).bump is Bump.PATCH


def test_an_optional_field_of_an_output_with_a_schema_for_other_members_is_minor() -> (
    None
):
    """31.5: an optional field added; it was allowed under any name before."""
    old, new = (
        obj(members, additionalProperties=S) for members in ({"a": S}, {"a": S, "b": S})
    )

    verdict = compare({"output": old}, {"output": new})

    assert (verdict.bump, verdict.set_theory) == (Bump.MINOR, Bump.PATCH)


@pytest.mark.parametrize(
    ("declared", "set_theory", "counterexample"),
    [
        (S, Bump.PATCH, None),
        (I, Bump.MAJOR, {"ab": "a"}),
        ({"type": ["string", "null"]}, Bump.PATCH, None),
    ],
)
def test_a_literal_name_is_compared_with_the_pattern_that_it_matches(
    declared: Any, set_theory: Bump, counterexample: Any
) -> None:
    """A member that is declared now fell under ``^a`` before, and still does."""
    old = {
        "type": "object",
        "patternProperties": {"^a": S},
        "additionalProperties": False,
    }

    verdict = inputs(old, {**old, "properties": {"ab": declared}})

    assert verdict.set_theory is set_theory
    assert verdict.changes[0].to_dict().get("counterexample") == counterexample


@pytest.mark.parametrize(
    ("old", "new", "counterexample"),
    [
        (
            {"type": "number", "minimum": 0, "maximum": 1},
            {"type": "integer", "minimum": 0, "maximum": 1},
            0.5,
        ),
        (
            {"type": "number", "minimum": 1, "maximum": 1.2},
            {"type": "integer", "minimum": 1},
            1.1,
        ),
        (arr(I, maxItems=2), arr(I, maxItems=1), [0, 0]),
        (arr({"enum": ["a"]}), arr({"enum": ["a"]}, uniqueItems=True), ["a", "a"]),
        (
            arr(S, prefixItems=[I, {"type": "number"}]),
            arr(S, prefixItems=[I, I]),
            [0, 0.5],
        ),
        (
            {"patternProperties": {"^x-": S}},
            {"patternProperties": {"^x-": {**S, "maxLength": 0}}},
            {"x-": "a"},
        ),
    ],
)
def test_a_trivial_break_is_shown(old: Any, new: Any, counterexample: Any) -> None:
    """A fraction, one item too many, an item twice, one item or member of another
    schema.
    """
    verdict = inputs(shut({"v": old}), shut({"v": new}))

    assert verdict.bump is Bump.MAJOR
    assert verdict.changes[0].counterexample == {"v": counterexample}


@pytest.mark.parametrize(
    ("taker", "giver", "expected"),
    [
        (arr(obj({"b": S})), arr(obj({"b": S}), prefixItems=[obj({"b": S})]), "yes"),
        (
            {"contains": S, "items": obj({"b": S})},
            {"contains": S, "minContains": 0, "items": obj({"b": S})},
            "unknown",
        ),
        (
            {"if": S, "then": {"pattern": "a"}, "items": True},
            {"if": I, "then": {"pattern": "a"}},
            "unknown",
        ),
        (
            obj({"a": {"$ref": "#/$defs/x"}}),
            obj({"a": {"$ref": "#/$defs/x"}}),
            "unknown",
        ),
        (
            {"patternProperties": {"^a": S}},
            {"patternProperties": {"^[a-c]$": S}, "additionalProperties": False},
            "yes",
        ),
        (
            {"patternProperties": {"^a": S}},
            {"patternProperties": {"^[a-c]$": I}, "additionalProperties": False},
            "no",
        ),
    ],
)
def test_containment_is_proven_part_by_part_only_where_parts_stand_alone(
    taker: Any, giver: Any, expected: str
) -> None:
    """``contains`` means another thing next to ``minContains``, ``then`` next to
    another ``if``, ``$ref`` elsewhere.
    """
    answer = Containment().answer(taker, giver)

    assert (answer == "yes") is (expected == "yes"), answer


@pytest.mark.parametrize(
    ("side", "bump"), [("input", Bump.MAJOR), ("output", Bump.MINOR)]
)
def test_a_constant_that_is_not_in_the_enum_next_to_it_leaves_nothing(
    side: str, bump: Bump
) -> None:
    """Nothing fits both keywords, so the old constant is gone."""
    old, new = (
        {"properties": {"p": node}, "required": ["p"]}
        for node in ({"const": 2}, {"const": 2, "enum": [1]})
    )

    assert compare({side: old}, {side: new}).bump is bump


def test_definitions_that_all_refer_to_one_another_are_compared_in_bounded_time() -> (
    None
):
    """Twelve of them have more ways down than can be followed; it once did not end."""

    def document(kind: str) -> dict[str, Any]:
        members = {f"c{number}": {"$ref": f"#/$defs/n{number}"} for number in range(12)}
        node = {"type": "object", "properties": {**members, "value": {"type": kind}}}
        definitions = {f"n{number}": node for number in range(12)}
        return {
            "$defs": definitions,
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/n0"}},
        }

    (change,) = compare(
        {"input": document("string")}, {"input": document("integer")}
    ).changes

    assert change.bump is Bump.MAJOR
    assert "more than 4000 parts" in change.why
