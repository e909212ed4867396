"""Contract documents are checked wholly: `skillruntime/contract/document/check.py` and
its schema.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies

from skillruntime.contract import CONTRACT_SCHEMA, Contract, Schema, check_document
from skillruntime.diagnostic import Severity
from skillruntime.errors import InvalidSkillError

ROOT = Path(__file__).parents[2]
CONTRACTS = sorted(
    [*ROOT.glob("skills/**/contract*/*.json"), *ROOT.glob("skills/*/contract.json")]
)


def messages(document: Any) -> list[str]:
    return [
        finding.message for finding in check_document(document, path="contract.json")
    ]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"script": "a.py"}, "'script' belongs under 'run'"),
        ({"timeout_seconds": 3}, "'timeout_seconds' belongs under 'run'"),
        (
            {"run": {"timeout": 3}},
            "/run/timeout is called 'timeout_seconds' in a contract",
        ),
        ({"timeout": 3}, "'timeout' belongs under 'run', as 'timeout_seconds'"),
        ({"run": {"read_only": True}}, "/run/read_only belongs under 'annotations'"),
        (
            {"run": {"version": "1.0.0"}},
            "/run/version belongs at the top of the contract",
        ),
        (
            {"requires": {"bins": ["git"]}},
            "/requires/bins is called 'commands' in a contract",
        ),
        ({"parameters": {}}, "'parameters' is called 'input' in a contract"),
        (
            {"properties": {}},
            "'properties' belongs under 'input': the file is a plain JSON Schema",
        ),
        ({"vresion": "1.0.0"}, "'vresion' is not a field of a contract"),
        (
            {"run": {"timeout_seconds": "ten"}},
            '/run/timeout_seconds: "ten" is not a number',
        ),
        (
            {"run": {"timeout_seconds": True}},
            "/run/timeout_seconds: true is not a number",
        ),
        ({"run": []}, "/run: [] is not an object"),
        (
            {"requires": {"environment": "TOKEN"}},
            '/requires/environment: "TOKEN" is not an array',
        ),
        (
            {"version": "1.0"},
            "/version: '1.0' is not a semantic version; write MAJOR.MINOR.PATCH, such "
            "as 1.4.0",
        ),
        ({"migrations": [{"steps": []}]}, "/migrations/0: 'to' is a required property"),
        (
            {"migrations": [{"to": "1.0.0", "steps": [{"warp": "/a"}]}]},
            "/migrations/0/steps/0/warp is not a field",
        ),
        ([], "a contract is a JSON object, not list"),
    ],
)
def test_a_fault_is_reported_with_its_place(document: Any, expected: str) -> None:
    """Unknown and misplaced keys and wrong types, each as one sentence."""
    assert messages(document)[0].startswith(expected)


def test_an_author_sees_all_faults_at_once() -> None:
    """A wrong type does not hide a misplaced key, nor either of them a schema that
    cannot be used.
    """
    document = {
        "script": "a.py",
        "run": {"timeout_seconds": "ten"},
        "input": {"type": "nonsense"},
        "output": {"type": "string", "minLength": 3, "maxLength": 1},
    }

    rules = {finding.rule for finding in check_document(document, path="contract.json")}

    assert rules == {
        "contract-misplaced",
        "contract-value",
        "contract-schema",
        "contract-impossible",
    }


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "required": ["a"],
            "properties": {},
            "additionalProperties": False,
        },
        {"type": "integer", "minimum": 3, "maximum": 1},
        {"enum": []},
    ],
)
def test_a_schema_that_no_value_fits_is_an_error(schema: dict[str, Any]) -> None:
    """Every call would fail: the author has made a mistake."""
    (finding,) = check_document({"output": schema}, path="contract.json")

    assert finding.rule in ("contract-impossible", "contract-schema")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "min": 3}, "'minimum'"),
        ({"type": "string", "maxlength": 3}, "'maxLength'"),
        ({"type": "string", "choices": ["a"]}, "'enum'"),
        ({"type": "string", "values": ["a"]}, "'enum'"),
        ({"type": "string", "optional": True}, "required, a list"),
        ({"type": "array", "item": {"type": "string"}}, "'items'"),
        ({"type": "string", "regex": "^a"}, "'pattern'"),
        ({"type": "object", "propertys": {"a": {}}}, "'properties'"),
        ({"type": "string", "requird": True}, "'required'"),
    ],
    ids=str,
)
def test_a_misspelt_keyword_is_an_error_that_names_the_one_meant(
    schema: dict[str, Any], expected: str
) -> None:
    """It would check nothing; at any depth."""
    for place, input_schema in (
        ("/input/properties/p", {"properties": {"p": schema}}),
        (
            "/input/properties/l/items/anyOf/1",
            {"properties": {"l": {"items": {"anyOf": [{}, schema]}}}},
        ),
    ):
        (finding,) = check_document({"input": input_schema}, path="contract.json")
        assert (finding.rule, finding.severity) == ("contract-keyword", Severity.ERROR)
        assert finding.message.startswith(place)
        assert (
            (finding.hint or "").replace('"', "").startswith("did you mean " + expected)
        )


def test_what_looks_like_a_keyword_where_there_is_none_is_not_one() -> None:
    """The name of a property, the members of an enum and of a default, and a word of
    the author's own.
    """
    properties = {
        "min": {"enum": [{"choices": 1}]},
        "values": {"default": {"regex": 1}},
        "o": {"x-min": 3, "unit": "m"},
    }

    assert messages({"input": {"properties": properties}}) == []


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            {
                "input": {
                    "properties": {"n": {"type": "integer", "examples": [5, "five"]}}
                }
            },
            '/input/properties/n/examples/1: "five" is not an integer',
        ),
        (
            {
                "output": {
                    "items": {
                        "properties": {"n": {"type": "integer", "default": "five"}}
                    }
                }
            },
            '/output/items/properties/n/default: "five" is not an integer',
        ),
        (
            {"input": {"properties": {"n": {"minimum": 5, "maximum": 3}}}},
            "/input/properties/n: minimum 5 is above maximum 3",
        ),
        (
            {"requires": {"packages": ["pypdf>=5", "not a package!"]}},
            "/requires/packages/1: 'not a package!' is not",
        ),
        (
            {"run": {"timeout_ms": 500}},
            "/run/timeout_ms is called 'timeout_seconds' in a contract",
        ),
    ],
)
def test_values_that_the_schema_itself_refuses_are_errors(
    document: Any, expected: str
) -> None:
    """Examples, defaults at any depth, empty ranges, requirements."""
    assert messages(document)[0].startswith(expected)


def test_a_default_must_fit_its_own_parameter() -> None:
    """Filled in, it would make a valid call fail."""
    schema = {
        "type": "object",
        "properties": {"limit": {"type": "integer", "default": "five"}},
    }

    assert messages({"input": schema}) == [
        '/input/properties/limit/default: "five" is not an integer'
    ]


def test_a_default_may_use_the_definitions_of_the_contract() -> None:
    """References are followed as they are for a call."""
    schema = {
        "type": "object",
        "properties": {"limit": {"$ref": "#/definitions/limit", "default": 5}},
    }
    document = {"input": schema, "definitions": {"limit": {"type": "integer"}}}

    assert messages(document) == []


def test_an_unknown_key_is_a_warning_and_one_of_the_authors_own_is_nothing() -> None:
    """A newer version of the library may know the key; names with "x-" are never
    read.
    """
    (finding,) = check_document(
        {"input": {}, "colour": "red", "x-colour": "red"}, path="contract.json"
    )

    assert (finding.severity, finding.message) == (
        Severity.WARNING,
        "'colour' is not a field of a contract",
    )


@pytest.mark.parametrize(
    "path", CONTRACTS, ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_the_bundled_contracts_have_no_faults(path: Path) -> None:
    """By the check and by the published schema."""
    document = json.loads(path.read_text(encoding="utf-8"))

    assert messages(document) == []
    assert Schema(CONTRACT_SCHEMA).is_valid(document)


def test_the_document_of_31_6_is_valid_as_it_is() -> None:
    """The contract document's own example has no field that we do not know."""
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Digest",
        "description": "Collects news.",
        "version": "2.0.0",
        "input": {"$ref": "#/definitions/Input"},
        "output": {"type": "object"},
        "definitions": {
            "Input": {"type": "object", "properties": {"topics": {"type": "array"}}}
        },
    }

    assert messages(document) == []


def test_the_schema_for_editors_may_be_named_in_the_contract() -> None:
    """``$schema`` then describes the document, and not the dialect of its parts."""
    document = {
        "$schema": "../contract.schema.json",
        "input": {"properties": {"n": {"type": "integer"}}},
    }

    assert messages(document) == []
    assert Contract.from_dict(document).accept({"n": "3"}).arguments == {"n": 3}


def test_the_reference_page_has_a_row_for_every_field() -> None:
    """docs/contract.md, section by section."""
    page = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    fields = CONTRACT_SCHEMA["properties"]
    policy = fields["policy"]["anyOf"][1]
    inner = [fields[name] for name in ("run", "requires", "annotations")] + [
        policy,
        fields["migrations"]["items"],
    ]
    names = [*fields, *(name for schema in inner for name in schema["properties"])]
    steps = fields["migrations"]["items"]["properties"]["steps"]["items"]["properties"]

    rows = "\n".join(line for line in page.splitlines() if line.startswith("| `"))
    assert [name for name in names if f"`{name}`" not in rows] == []
    assert [kind for kind in steps if f"`{kind}`" not in page] == []


@pytest.mark.parametrize("place", [("x",), ("run", "environment"), ("migrations",)])
def test_a_document_that_is_nested_too_deep_is_an_error(place: tuple[str, ...]) -> None:
    """Not a crash of the engine."""
    document: Any = {}
    for _ in range(300):
        document = {"a": [document]}
    for key in reversed(place):
        document = {key: document}

    assert (
        next(
            finding.severity
            for finding in check_document(document, path="contract.json")
        )
        is Severity.ERROR
    )


_JSON = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats(allow_nan=False)
    | strategies.text(max_size=5),
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(
            strategies.sampled_from(
                [*CONTRACT_SCHEMA["properties"], "script", "type", "$ref"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_JSON)
def test_any_json_value_can_be_checked(document: Any) -> None:
    """Nothing raises, and what cannot be used as a contract has an error."""
    found = check_document(document, path="contract.json")

    try:
        Contract.from_dict(document)
    except InvalidSkillError:
        assert any(finding.severity is Severity.ERROR for finding in found)


def test_defaults_are_checked_beside_the_schema_that_editors_read() -> None:
    """A `$schema` for editors is not a dialect; a default below it is tried against its
    own parameter all the same.
    """
    properties = {"day": {"$ref": "#/$defs/day", "default": 10}}
    schema = {
        "properties": properties,
        "$defs": {"day": {"type": "integer", "maximum": 7}},
    }
    document = {"$schema": "../contract.schema.json", "input": schema}

    assert messages(document) == [
        "/input/properties/day/default: 10 is more than the maximum 7"
    ]


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"inputs": {}}, "'inputs' is not a field of a contract; is 'input' meant?"),
        ({"input": {}, "Output": {}}, "is 'output' meant?"),
        ({"input": {}, "migration": []}, "is 'migrations' meant?"),
        ({"input_schema": {}}, "it has 'input_schema', and no field of one"),
        ({"foo": 1, "bar": 2}, "it has 'foo', 'bar', and no field of one"),
    ],
)
def test_a_document_with_a_misspelt_field_is_refused(
    document: dict[str, Any], fault: str
) -> None:
    """Without its field the contract would take anything."""
    with pytest.raises(InvalidSkillError, match=re.escape(fault)):
        Contract.from_dict(document)


@pytest.mark.parametrize(
    "key", ["author", "tags", "id", "title_de", "x-own", "license"]
)
def test_any_other_key_of_a_document_is_let_through(key: str) -> None:
    """Documents of other tools have more fields; `check_document` names them."""
    contract = Contract.from_dict({"input": {"required": ["a"]}, key: "b"})

    assert contract.input.document == {"required": ["a"]}


@pytest.mark.parametrize(
    ("referred", "unevaluated", "rules"),
    [
        (True, False, ["contract-impossible"]),
        (False, True, ["contract-impossible"]),
        (True, True, []),
    ],
)
def test_only_references_with_unevaluated_members_are_not_judged(
    referred: bool, unevaluated: bool, rules: list[str]
) -> None:
    """Both together can overflow the stack of jsonschema-rs, which ends the process."""
    never: Any = {"allOf": [{"type": "string"}, {"type": "integer"}]}
    schema: dict[str, Any] = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"$ref": "#/$defs/n"} if referred else never},
        "$defs": {"n": never},
    }
    if unevaluated:
        schema["unevaluatedProperties"] = False

    found = check_document({"name": "a", "input": schema}, path="contract.json")

    assert [each.rule for each in found] == rules
