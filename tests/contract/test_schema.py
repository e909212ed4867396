"""One Schema: what fits, what is wrong and where, and what is refused before it is
compiled.
"""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema
from jsonschema import Draft202012Validator

from skillruntime import Contract, InvalidSkillError, Schema
from tests import needs

SUITE = needs.DATA / "json-schema-test-suite"

DIGEST = {
    "type": "object",
    "required": ["topics"],
    "additionalProperties": False,
    "properties": {
        "topics": {
            "type": "array",
            "items": {"type": "string", "minLength": 2},
            "minItems": 1,
            "maxItems": 3,
        },
        "range": {"enum": ["today", "week"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10},
        "options": {"$ref": "#/$defs/options"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "$defs": {
        "options": {
            "type": "object",
            "required": ["lang"],
            "properties": {
                "lang": {"type": "string", "pattern": "^[a-z]{2}$"},
                "since": {"format": "date"},
            },
            "dependentRequired": {"since": ["until"]},
            "propertyNames": {"maxLength": 5},
        }
    },
}


def found(schema: Schema, value: Any) -> list[tuple[str, str, Any, tuple[str, ...]]]:
    """Return what an engine says, in an order of its own."""
    said = schema.violations(value)
    return sorted(((v.keyword, v.pointer, v.expected, v.names) for v in said), key=repr)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"topics": ["AI"]}, []),
        ({}, [("required", "", ["topics"], ("topics",))]),
        (
            {"topics": ["AI"], "x": 1, "y": 2},
            [("additionalProperties", "", False, ("x", "y"))],
        ),
        ({"topics": "AI"}, [("type", "/topics", "array", ())]),
        ({"topics": ["A"]}, [("minLength", "/topics/0", 2, ())]),
        (
            {"topics": [], "limit": 11},
            [("maximum", "/limit", 10, ()), ("minItems", "/topics", 1, ())],
        ),
        (
            {"topics": ["AI"], "range": "year"},
            [("enum", "/range", ["today", "week"], ())],
        ),
        (
            {"topics": ["AI"], "options": {}},
            [("required", "/options", ["lang"], ("lang",))],
        ),
        (
            {"topics": ["AI"], "options": {"lang": "EN"}},
            [("pattern", "/options/lang", "^[a-z]{2}$", ())],
        ),
        (
            {
                "topics": ["AI"],
                "options": {"lang": "en", "since": "2026-13-01", "until": 1},
            },
            [("format", "/options/since", "date", ())],
        ),
        (
            {"topics": ["AI"], "options": {"lang": "en", "since": "2026-01-01"}},
            [("dependentRequired", "/options", {"since": ["until"]}, ("until",))],
        ),
        (
            {"topics": ["AI"], "options": {"lang": "en", "too_long": 1}},
            [("propertyNames", "/options", {"maxLength": 5}, ())],
        ),
        (
            {"topics": ["AI"], "either": "x"},
            [("anyOf", "/either", [{"type": "integer"}, {"type": "null"}], ())],
        ),
    ],
)
def test_a_violation_says_what_and_where(value: Any, expected: list[Any]) -> None:
    """Keyword, JSON Pointer, what was expected, which names: each violation has
    them.
    """
    assert found(Schema(DIGEST), value) == expected


def test_a_union_reports_what_is_wrong_with_each_branch() -> None:
    """``branches`` has the violations of each alternative, in their order."""
    [violation] = Schema(DIGEST).violations({"topics": ["AI"], "either": "x"})

    assert [
        [(each.keyword, each.pointer) for each in branch]
        for branch in violation.branches
    ] == [[("type", "/either")], [("type", "/either")]]


def test_a_violation_knows_its_subschema() -> None:
    """``location`` leads to the subschema, through ``$ref``; ``fits`` judges by it
    alone.
    """
    schema = Schema(DIGEST)
    [violation] = schema.violations({"topics": ["AI"], "options": {"lang": "EN"}})

    assert violation.location == ("$defs", "options", "properties", "lang")
    assert schema.fits("en", violation.location)
    assert not schema.fits("EN", violation.location)


def small_schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of the kinds that tools use, two levels deep."""
    leaf = st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "minLength": 2},
            {"type": "integer", "minimum": 0},
            {"type": ["number", "null"]},
            {"enum": ["a", "b", 3, None]},
            {"type": "boolean"},
            {"const": "x"},
            {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]},
        ]
    )
    names = st.sampled_from(["a", "b", "c"])

    def holder(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        objects = st.builds(
            lambda properties, required, closed: {
                "type": "object",
                "properties": properties,
                "required": required,
                **({"additionalProperties": False} if closed else {}),
            },
            st.dictionaries(names, inner, max_size=3),
            st.lists(names, unique=True, max_size=2),
            st.booleans(),
        )
        arrays = st.builds(
            lambda items, few: {"type": "array", "items": items, "maxItems": few},
            inner,
            st.just(2),
        )
        return st.one_of(objects, arrays)

    return st.recursive(leaf, holder, max_leaves=6)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "x", "a", "ab", "5"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(document=small_schemas(), value=JSON)
@settings(
    max_examples=2 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_the_reference_implementation_agrees_on_random_schemas(
    document: dict[str, Any], value: Any
) -> None:
    """The engine judges as the reference implementation does, and what does not fit has
    a violation.
    """
    schema = Schema(document)

    assert schema.is_valid(value) == Draft202012Validator(document).is_valid(value)
    assert schema.is_valid(value) == (found(schema, value) == [])


@given(data=st.data())
@settings(
    max_examples=settings.default.max_examples // 2,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_generated_values_fit(data: st.DataObject) -> None:
    """What hypothesis-jsonschema generates from a schema fits it."""
    document = data.draw(small_schemas())
    value = data.draw(from_schema(document))

    assert Schema(document).is_valid(value)


@pytest.mark.parametrize(
    "dialect",
    [
        "https://json-schema.org/draft/2020-12",
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
    ],
)
def test_the_dialect_may_be_written_as_the_contract_document_writes_it(
    dialect: str,
) -> None:
    """31.1 leaves out ``/schema``; draft 7 is often written without its ``#``."""
    assert Schema({"$schema": dialect, "type": "integer"}).is_valid(5)


def chain(length: int, link: Any) -> dict[str, Any]:
    """Return definitions of which each is made of the next."""
    definitions: dict[str, Any] = {
        f"d{i}": link({"$ref": f"#/$defs/d{i + 1}"}) for i in range(length)
    }
    return {
        "$ref": "#/$defs/d0",
        "$defs": {**definitions, f"d{length}": {"type": "integer"}},
    }


def nested(levels: int) -> dict[str, Any]:
    """Return a schema *levels* deep."""
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (chain(30, lambda ref: {"anyOf": [ref, ref]}), "branches into more than"),
        (
            chain(
                30,
                lambda ref: {
                    "anyOf": [{"properties": {"a": ref}}, {"properties": {"a": ref}}]
                },
            ),
            "branches into",
        ),
        (chain(3000, lambda ref: ref), "chain of references"),
        ({"$ref": "#"}, "without end"),
        (chain(1, lambda ref: {"allOf": [{"$ref": "#/$defs/d0"}]}), "without end"),
        (nested(5000), "levels deep"),
        ({"enum": ["x" * 10_000_000]}, "larger than"),
        ({"properties": {f"p{i}": {} for i in range(60_000)}}, "larger than"),
        ({"type": "strng"}, "strng"),
        ({"$schema": "http://127.0.0.1/mine"}, r"\$schema is"),
        ({"minimum": float("nan")}, "which JSON cannot express"),
        ({"const": {1: 2}}, "not a string"),
        ({"const": {1, 2}}, "a set at /const"),
        ([], "is list"),
        ({"$ref": "#/$defs/none"}, "none"),
    ],
)
def test_a_hostile_or_broken_schema_is_refused(document: Any, reason: str) -> None:
    """Size, depth, references and branches are bounded before an engine sees the
    schema.
    """
    with pytest.raises(InvalidSkillError, match=reason):
        Schema(document)


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(a{1000}){1000}", "("])
def test_a_pattern_that_cannot_be_matched_in_linear_time_is_refused(
    pattern: str,
) -> None:
    """Look-around, back references and explosions of repeats are none of the engine's
    linear-time patterns.
    """
    with pytest.raises(InvalidSkillError, match="regex"):
        Schema({"pattern": pattern})


def test_a_catastrophic_pattern_is_matched_in_linear_time() -> None:
    """What would take a backtracking engine years is answered: the test would not end
    otherwise.
    """
    assert not Schema({"pattern": "^(a+)+$"}).is_valid("a" * 5000 + "!")


@pytest.mark.parametrize(
    "reference",
    ["http://127.0.0.1:{port}/x.json", "file:///etc/hostname", "other.json#/a"],
)
def test_a_reference_outside_the_document_is_never_followed(reference: str) -> None:
    """No network, no disk: a listener on loopback is never asked."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        target = reference.format(port=server.getsockname()[1])
        with pytest.raises(InvalidSkillError):
            Schema({"$ref": target})
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_recursive_schema_is_fine() -> None:
    """A tree refers to itself through its children, which ends with the value."""
    tree = {
        "type": "object",
        "properties": {
            "left": {"$ref": "#"},
            "right": {"$ref": "#"},
            "n": {"type": "integer"},
        },
    }

    schema = Schema(tree)

    assert schema.is_valid({"left": {"right": {"n": 1}}})
    assert not schema.is_valid({"left": {"right": {"n": "1"}}})


def deep(levels: int, leaf: Any, key: str = "a") -> Any:
    """Return an object in an object, *levels* deep, around *leaf*."""
    for _ in range(levels):
        leaf = {key: leaf}
    return leaf


ANY_JSON = {
    "anyOf": [
        {"type": ["null", "boolean", "number", "string"]},
        {"type": "array", "items": {"$ref": "#/$defs/Json"}},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/Json"}},
    ]
}


@pytest.mark.parametrize("uses", [1, 2, 5, 12])
def test_a_recursive_type_does_not_bound_the_depth_of_values_however_often_it_is_used(
    uses: int,
) -> None:
    """Siblings are judged side by side: their costs add up, and do not multiply."""
    properties: dict[str, Any] = {
        f"p{index}": {"$ref": "#/$defs/Json"} for index in range(uses)
    }
    properties["cfg"] = {"type": "object"}
    schema = Schema(
        {"type": "object", "properties": properties, "$defs": {"Json": ANY_JSON}}
    )

    assert schema.is_valid({"p0": deep(60, 1), "cfg": deep(60, 1)})
    assert not schema.is_valid({"p0": deep(60, 1), "cfg": 5})
    assert [
        violation.pointer
        for violation in schema.violations({"p0": deep(60, 1), "cfg": 5})
    ] == ["/cfg"]


WAYS = {
    "pointer": ({}, {"$ref": "#"}),
    "anchor": ({"$anchor": "x"}, {"$ref": "#x"}),
    "identifier": (
        {"$id": "http://example.org/tree"},
        {"$ref": "http://example.org/tree"},
    ),
    "relative identifier": (
        {"$id": "http://example.org/a/tree"},
        {"$ref": "../a/tree"},
    ),
    "dynamic anchor": ({"$dynamicAnchor": "x"}, {"$dynamicRef": "#x"}),
    "recursive anchor": (
        {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
        },
        {"$recursiveRef": "#"},
    ),
    "draft 7 anchor": (
        {"$schema": "http://json-schema.org/draft-07/schema#", "$id": "#x"},
        {"$ref": "#x"},
    ),
    "draft 4 anchor": (
        {"$schema": "http://json-schema.org/draft-04/schema#", "id": "#x"},
        {"$ref": "#x"},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_reference_counts_as_one(way: str) -> None:
    """Two branches that both go on into the same child: deep values are judged, and
    reported by one violation.
    """
    around, reference = WAYS[way]
    branch = {"type": "object", "properties": {"a": reference}}
    schema = Schema({**around, "anyOf": [branch, branch]})

    assert schema.is_valid(deep(90, {}))
    assert not schema.is_valid(deep(90, 1))
    assert [
        (each.keyword, each.pointer) for each in schema.violations(deep(90, 1))
    ] == [("anyOf", "")]


@pytest.mark.parametrize(
    "definitions",
    [
        {
            **{
                f"d{i}": {"$anchor": f"a{i}", "anyOf": [{"$ref": f"#a{i + 1}"}] * 2}
                for i in range(22)
            },
            "d22": {"$anchor": "a22", "type": "integer"},
        },
        {
            **{
                f"d{i}": {
                    "$id": f"http://e.org/{i}",
                    "anyOf": [{"$ref": f"{i + 1}"}] * 2,
                }
                for i in range(22)
            },
            "d22": {"$id": "http://e.org/22", "type": "integer"},
        },
        {
            **{
                f"d{i}": {
                    "$dynamicAnchor": f"a{i}",
                    "allOf": [{"$dynamicRef": f"#a{i + 1}"}] * 2,
                }
                for i in range(22)
            },
            "d22": {"$dynamicAnchor": "a22", "type": "integer"},
        },
    ],
)
def test_branches_by_any_kind_of_reference_are_counted_when_the_schema_is_read(
    definitions: dict[str, Any],
) -> None:
    """A kilobyte of ``anyOf`` over anchors would cost seconds for each refused call."""
    with pytest.raises(InvalidSkillError, match="branches into more than"):
        Schema({"$ref": "#/$defs/d0", "$defs": definitions})


DIALECTS_WITH_DEFS = (
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
)
# Schemas that judge a child twice for each time that they judge its parent: 2**30
# questions for 30 levels.
KINDS = {"type": ["object", "array", "integer"]}
DOUBLING: dict[str, tuple[dict[str, Any], Any]] = {
    "items that are contained too": (
        {"items": {"$ref": "#"}, "contains": {"$ref": "#"}},
        [0],
    ),
    "two branches, one child": (
        {"anyOf": [{"properties": {"a": {"$ref": "#"}}}] * 2},
        {"a": 0},
    ),
    "twice at the child": (
        {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}},
        {"a": 0},
    ),
    "a pattern beside a name": (
        {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"": {"$ref": "#"}}},
        {"a": 0},
    ),
    "two ways through two definitions": (
        {
            "$ref": "#/$defs/A",
            "$defs": {
                "A": {
                    "anyOf": [
                        {"properties": {"a": {"$ref": f"#/$defs/{name}"}}}
                        for name in "BC"
                    ],
                    **KINDS,
                },
                "B": {"properties": {"a": {"$ref": "#/$defs/A"}}},
                "C": {"properties": {"a": {"$ref": "#/$defs/A"}}},
            },
        },
        {"a": 0},
    ),
}


@pytest.mark.parametrize("case", DOUBLING)
@pytest.mark.parametrize("dialect", [None, *DIALECTS_WITH_DEFS])
def test_a_part_is_judged_once_by_what_a_reference_leads_to(
    case: str, dialect: str | None
) -> None:
    """The engine does not take twice as long with every level of a value: 30 levels
    would take hours.
    """
    document, value = DOUBLING[case]
    schema = Schema({**document, **KINDS, **({"$schema": dialect} if dialect else {})})
    good: Any = 5
    bad: Any = "five"
    for _ in range(30):
        good, bad = (
            ([good], [bad]) if isinstance(value, list) else ({"a": good}, {"a": bad})
        )

    assert schema.is_valid(good)
    assert not schema.is_valid(bad)


def test_thousands_of_missing_names_are_listed_one_by_one() -> None:
    """The engine copies the object for each missing name, which is quadratic: 4,000 of
    8,000 took it 9 s.
    """
    names = [f"k{index}" for index in range(8000)]
    schema = Schema({"type": "object", "required": names})

    assert schema.is_valid(dict.fromkeys(names, 1))
    assert len(schema.violations({})) == 8000
    assert [
        each.names for each in schema.violations(dict.fromkeys(names[:4000], 1), most=2)
    ] == [("k4000",), ("k4001",)]


def test_a_reference_is_resolved_against_the_same_base_everywhere() -> None:
    """``.#/$defs/x`` is the document itself (RFC 3986, 5.4), for the whole and for each
    of its parts.
    """
    schema = Schema(
        {
            "properties": {"a": {"$ref": ".#/$defs/x"}},
            "$defs": {"x": {"type": "integer"}},
        }
    )

    assert schema.is_valid({"a": 5})
    assert not schema.is_valid({"a": "5"})
    assert schema.fits(5, ("properties", "a"))
    assert not schema.fits("5", ("properties", "a"))


def test_the_same_content_is_compiled_once() -> None:
    """Compiling is cached by content, not by object."""
    one, other = (
        Schema({"type": "integer", "title": "once"}),
        Schema({"type": "integer", "title": "once"}),
    )

    assert one._engine is other._engine


def suite_cases(draft: str) -> list[Any]:
    """Return the required groups of the official suite, as parameters; none where it is
    absent.
    """
    paths = sorted((SUITE / "tests" / draft).glob("*.json")) if SUITE.is_dir() else []
    groups = [
        (path.name, group) for path in paths for group in json.loads(path.read_text())
    ]
    return [
        pytest.param(group, id=f"{draft}-{name}-{group['description']}"[:80])
        for name, group in groups
    ]


@needs.with_data("json-schema-test-suite")
@pytest.mark.parametrize("draft", ["draft2020-12", "draft7"])
def test_the_official_suite_passes(draft: str) -> None:
    """All required tests of the draft: json-schema-org/JSON-Schema-Test-Suite."""
    wrong, total = [], 0
    for case in suite_cases(draft):
        [group] = case.values
        document = group["schema"]
        if isinstance(document, dict) and draft == "draft7":
            document = {
                "$schema": "http://json-schema.org/draft-07/schema#",
                **document,
            }
        try:
            schema = Schema(document, assert_formats=False)
        except InvalidSkillError:
            assert "localhost:1234" in json.dumps(
                document
            )  # another document, which is never read
            continue
        for test in group["tests"]:
            total += 1
            if not (
                schema.is_valid(test["data"])
                == (not schema.violations(test["data"]))
                == test["valid"]
            ):
                wrong.append((case.id, test["description"]))

    assert wrong == []
    assert total == {"draft2020-12": 1250, "draft7": 904}[draft]


DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def test_draft_4_is_read_as_it_was_meant() -> None:
    """There ``exclusiveMinimum`` is true or false, 1.0 is not an integer, and ``id`` is
    the identifier.
    """
    limited = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "default": 1}
    document = {
        "$schema": DRAFT_4,
        "id": "http://example.org/root",
        "properties": {
            "n": limited,
            "i": {"type": "integer"},
            "r": {"$ref": "root#/properties/n"},
        },
    }
    schema = Schema(document)

    assert schema.is_valid({"n": 0.5, "i": 1, "r": 1})
    assert [schema.is_valid(value) for value in ({"n": 0}, {"i": 1.0}, {"r": 0})] == [
        False,
        False,
        False,
    ]
    assert found(schema, {"n": 0}) == [("schema", "/n", None, ())]
    assert schema.fits(0.5, ("properties", "n"))
    assert not schema.fits(0, ("properties", "n"))


def test_a_contract_in_draft_4_fills_its_defaults_and_repairs() -> None:
    """A limit and a default on the same property are both read."""
    number = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "default": 1}
    contract = Contract.from_dict(
        {"input": {"$schema": DRAFT_4, "type": "object", "properties": {"n": number}}}
    )

    assert contract.accept({}).arguments == {"n": 1}
    assert contract.accept({"n": "2"}).arguments == {"n": 2}


def test_an_older_draft_is_refused_by_name() -> None:
    """Draft 3 is not read."""
    with pytest.raises(
        InvalidSkillError,
        match=r"draft-03/schema'; known are http://json-schema.org/draft-04/schema#",
    ):
        Schema({"$schema": "http://json-schema.org/draft-03/schema#"})
