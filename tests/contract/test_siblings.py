"""What one repair says about the rest of the call: keys in another spelling, and texts
in quotes.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError
from tests.contract.malformed import (
    BOOLEAN,
    DATE,
    INTEGER,
    OBJECT,
    REFUSED,
    TEXT,
    array,
    assert_outcome,
    closed,
    either,
)


def opened(required: str = "", **properties: Any) -> dict[str, Any]:
    """Return the schema of an object that takes any key, as MCP servers write it."""
    return {"type": "object", "properties": properties, "required": required.split()}


UNIT = {"enum": ["line", "byte"]}
ROW = opened("row_id", row_id=INTEGER, max_size=INTEGER)
COPY = opened(
    "file_path",
    file_path=TEXT,
    dry_run=BOOLEAN,
    count=INTEGER,
    unit=UNIT,
    options=opened(keep_all=BOOLEAN),
    rows=array(ROW),
)
TEXTS = {"type": "object", "additionalProperties": TEXT}
KEYS: list[tuple[Any, Any, Any]] = [
    (COPY, {"filePath": "a", "dryRun": True}, {"file_path": "a", "dry_run": True}),
    (COPY, {"FILE_PATH": "a", "DRY_RUN": "no"}, {"file_path": "a", "dry_run": False}),
    (COPY, {"file-path": "a", "dry-run": True}, {"file_path": "a", "dry_run": True}),
    (COPY, {"filePath": "a", "extraKey": 1}, {"file_path": "a", "extraKey": 1}),
    (
        COPY,
        {"filePath": "a", "options": {"keepAll": "true"}},
        {"file_path": "a", "options": {"keep_all": True}},
    ),
    (
        COPY,
        {"filePath": "a", "Options": {"keepAll": True}},
        {"file_path": "a", "options": {"keep_all": True}},
    ),
    (
        COPY,
        {"filePath": "a", "rows": [{"rowId": 1}, {"row_id": 2, "maxSize": 3}]},
        {"file_path": "a", "rows": [{"row_id": 1}, {"row_id": 2, "max_size": 3}]},
    ),
    (
        COPY,
        {"file_path": "a", "rows": [{"rowId": 1, "maxSize": "2"}, {"row_id": 2}]},
        {"file_path": "a", "rows": [{"row_id": 1, "max_size": 2}, {"row_id": 2}]},
    ),
    # a value under the key that cannot be repaired
    (COPY, {"filePath": "a", "dryRun": "perhaps"}, REFUSED),
    # two keys for one property, with two values and with one
    (COPY, {"filePath": "a", "dryRun": True, "DRY_RUN": False}, REFUSED),
    (COPY, {"filePath": "a", "dry_run": False, "dryRun": True}, REFUSED),
    (
        COPY,
        {"file_path": "a", "rows": [{"rowId": 1, "max_size": 2, "maxSize": 3}]},
        REFUSED,
    ),
    (
        COPY,
        {"filePath": "a", "dry_run": True, "dryRun": True},
        {"file_path": "a", "dry_run": True, "dryRun": True},
    ),
    # no key is renamed: the tool would not read this one
    (COPY, {"file_path": "a", "dryRun": True, "count": "5"}, REFUSED),
    (COPY, {"file_path": "a", "options": {"keepAll": True}, "count": "5"}, REFUSED),
    (COPY, {"file_path": "a", "options": "{'keepAll': True}"}, REFUSED),
    (COPY, {"input": {"file_path": "a", "dryRun": True}}, REFUSED),
    (COPY, {"file_path": "a", "other": 1, "count": "5"}, {"other": 1, "count": 5}),
    # a compatibility form is not renamed, and not passed over
    (COPY, {"filePath": "a", "\uff44ry_run": True}, REFUSED),
    (closed("x2", x2=INTEGER), {"x\u00b2": 5}, REFUSED),
    # the keys of a map are data
    (
        opened("m n", n=INTEGER, m={**TEXTS, "properties": {"path": TEXT}}),
        {"n": "5", "m": {"path": "a", "PATH": "b"}},
        {"n": 5, "m": {"path": "a", "PATH": "b"}},
    ),
    (opened("m", m=TEXTS, n=INTEGER), {"M": {"N": "a"}}, {"m": {"N": "a"}}),
    (
        {**opened("max_n", max_n=TEXT), "additionalProperties": TEXT},
        {"maxN": "a"},
        REFUSED,
    ),
    (
        {**opened("max_n", max_n=TEXT), "patternProperties": {"^max": TEXT}},
        {"maxN": "a"},
        REFUSED,
    ),
    (
        {**opened("max_n", max_n=TEXT), "additionalProperties": True},
        {"maxN": "a"},
        {"max_n": "a"},
    ),
    (
        {**opened("max_n", max_n=TEXT), "additionalProperties": {}},
        {"maxN": "a"},
        {"max_n": "a"},
    ),
    (
        opened("n", n=INTEGER, either=either(closed("", max_n=TEXT), TEXTS)),
        {"n": "5", "either": {"maxN": "a"}},
        REFUSED,
    ),
]


@pytest.mark.parametrize(
    ("schema", "sent", "expected"), KEYS, ids=lambda each: str(each)[:60]
)
def test_where_one_key_is_renamed_so_are_all_that_are_spelt_alike(
    schema: Any, sent: Any, expected: Any
) -> None:
    """DESIGN: all that need it, or none; a key that folds to a declared absent one is
    never left behind in silence.
    """
    if isinstance(expected, dict) and "other" in expected:
        expected = {"file_path": "a", **expected}
    assert_outcome(schema, sent, expected)


def test_a_key_that_is_left_is_named_with_the_property_that_it_may_mean() -> None:
    """The next call succeeds when the advice is followed."""
    contract = Contract.from_dict({"input": COPY})

    with pytest.raises(SkillInputError) as caught:
        contract.accept({"file_path": "a", "options": {"keepAll": True}, "count": "5"})

    [error] = caught.value.to_errors()
    assert error.message == "/options: 'keepAll' is not a known property"
    assert error.suggested_action == 'Did you mean "keep_all"?'
    assert error.details is not None
    assert error.details["path"] == "/options/keepAll"


@pytest.mark.parametrize(
    ("sent", "key", "name"),
    [
        ({"file_path": "a", "dryRun": True}, "dryRun", "dry_run"),
        ({"file_path": "a", "\uff44ry_run": True}, "\uff44ry_run", "dry_run"),
        ({"file_path": "a", "dry_run": False, "dryRun": True}, "dryRun", "dry_run"),
        ({"file_path": "a", "options": {"keepAll": True}}, "keepAll", "keep_all"),
        (
            {"file_path": "a", "rows": [{"row_id": 1, "Max-Size": 2}]},
            "Max-Size",
            "max_size",
        ),
    ],
    ids=str,
)
def test_a_valid_call_with_a_misspelt_key_passes_with_a_warning(
    sent: Any, key: str, name: str
) -> None:
    """An open object takes the key, so the call is valid; the tool may never read
    it.
    """
    accepted = Contract.from_dict({"input": COPY}).accept(sent)

    assert accepted.arguments is sent
    assert accepted.warnings == (
        f"{key!r} is not declared; if {name!r} was meant, send it under that name",
    )


def test_no_default_is_filled_in_beside_a_key_in_a_compatibility_form() -> None:
    """Full-width letters, as an input method for Chinese or Japanese writes them."""
    points = {**INTEGER, "default": 3}
    key = "\uff50\uff4f\uff49\uff4e\uff54\uff53"

    accepted = Contract.from_dict({"input": opened(points=points)}).accept({key: 5})

    assert accepted.arguments == {key: 5}
    assert len(accepted.warnings) == 1
    assert_outcome(opened("points", points=points), {key: 5}, REFUSED)


QUOTED = opened(name=TEXT, unit=UNIT, count=INTEGER, day=DATE, tags=array(TEXT))
QUOTES: list[tuple[Any, Any]] = [
    ({"unit": "'line'", "count": "'5'"}, {"unit": "line", "count": 5}),
    ({"unit": "'line'", "name": "a"}, {"unit": "line", "name": "a"}),
    ({"unit": "'line'", "name": '"a"'}, {"unit": "line", "name": '"a"'}),
    ({"unit": "'line'", "name": "'a'"}, REFUSED),
    ({"unit": "'line'", "name": "'it's'"}, REFUSED),
    ({"unit": "\u201cline\u201d", "name": "\u201ca\u201d"}, REFUSED),
    ({"count": '"5"', "tags": ["x", '"a"']}, REFUSED),
    ({"day": "'2026-01-31'", "name": "'a'"}, REFUSED),
    ({"day": "'2026-01-31'", "name": "a"}, {"day": "2026-01-31", "name": "a"}),
    ({"count": "'5'", "other": "'a'"}, REFUSED),
    ({"tags": "'[\"x\"]'", "name": "'a'"}, REFUSED),
    ({"count": "5", "name": "'a'"}, {"count": 5, "name": "'a'"}),
]


@pytest.mark.parametrize(("sent", "expected"), QUOTES, ids=str)
def test_quotes_are_taken_off_one_value_only_if_no_other_text_is_in_them(
    sent: Any, expected: Any
) -> None:
    """A text that fits is never changed, so the call is refused."""
    assert_outcome(QUOTED, sent, expected)


def test_both_readings_of_a_text_in_quotes_are_named() -> None:
    """Either call that the error proposes is accepted."""
    contract = Contract.from_dict({"input": QUOTED})

    with pytest.raises(SkillInputError) as caught:
        contract.accept({"unit": "'line'", "name": "'a'"})

    [error] = caught.value.to_errors()
    assert error.message == (
        """/name: the quotes in "'a'" may be a part of the text or not, as those in """
        "/unit are not"
    )
    assert error.suggested_action == (
        """Send /unit without quotes of its own, and here "a" or "'a'\""""
    )
    for name in ("a", "'a'"):
        sent = {"unit": "line", "name": name}
        assert contract.accept(sent).arguments is sent


def test_a_quoted_secret_is_not_shown() -> None:
    """Nor in the error about its quotes."""
    schema = opened(unit=UNIT, api_key=TEXT)

    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict({"input": schema}).accept(
            {"unit": "'line'", "api_key": "'sk-12345678'"}
        )

    assert "12345678" not in str(caught.value.to_response())


NOTHING: list[tuple[Any, Any, Any]] = [
    (closed("", n=INTEGER), {"": {}}, {}),
    (closed("", n=INTEGER), {"_": {}}, {}),
    (closed(""), {"": {}}, {}),
    (closed(""), {"_": ""}, {}),
    (closed("n", n=INTEGER), {"": {}}, REFUSED),
    (closed("", n=INTEGER), {"": {"m": 1}}, REFUSED),
    (closed("", _=INTEGER), {"_": {}}, REFUSED),
    (opened(n=INTEGER), {"": {}}, {"": {}}),
    (OBJECT, {"_": {}}, {"_": {}}),
]


@pytest.mark.parametrize(("schema", "sent", "expected"), NOTHING, ids=str)
def test_a_blank_key_with_an_empty_value_stands_for_no_arguments(
    schema: Any, sent: Any, expected: Any
) -> None:
    """gpt-oss sends it for tools without parameters; in an open object it is valid."""
    assert_outcome(schema, sent, expected)


def test_the_end_of_arguments_whose_beginning_was_lost_is_refused() -> None:
    """``{"id": 5}}`` is what a lost first delta leaves of ``{"filter": {"id": 5}}``."""
    schema = opened(city=TEXT, filter=OBJECT)

    assert_outcome(schema, '{"id": 5}}', REFUSED)
    assert_outcome(schema, '{"city": "Paris"}}', {"city": "Paris"})


def test_an_object_where_a_text_is_wanted_is_asked_for_as_json() -> None:
    """Followed literally, the advice gives a call that is accepted."""
    contract = Contract.from_dict({"input": closed("q", q=TEXT)})

    with pytest.raises(SkillInputError) as caught:
        contract.accept({"q": {"a": 1}})

    [error] = caught.value.to_errors()
    assert error.suggested_action == "Send a string, as one JSON text"
    assert contract.accept({"q": '{"a": 1}'}).arguments == {"q": '{"a": 1}'}


def test_a_value_that_a_repair_left_without_members_is_refused() -> None:
    """There are no keys to look at (found by malformed input)."""
    contract = Contract.from_dict(
        {"input": {"anyOf": [{"enum": ["today"]}, {"type": "null"}]}}
    )

    with pytest.raises(SkillInputError):
        contract.accept({"value": "today"})
