"""The contract document (31): its examples run as written, and give the results that it
says.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillruntime import (
    Contract,
    ErrorCode,
    RateLimitError,
    SkillError,
    SkillInputError,
    SkillInputValidator,
    SkillResponse,
    check_skill_compatibility,
    handle_skill_error,
)

HERE = Path(__file__).parent
DOCUMENT: dict[str, Any] = json.loads((HERE / "contract_document.json").read_text())
NEWS_DIGEST_INPUT_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12",
    "type": "object",
    "title": "DailyNewsDigestInput",
    "required": ["topics"],
    "additionalProperties": False,
    "properties": {
        "topics": {
            "type": "array",
            "items": {"type": "string", "minLength": 2, "maxLength": 100},
            "minItems": 1,
            "maxItems": 5,
            "examples": [
                ["AI regulation in Europe"],
                ["quantum computing", "space exploration"],
            ],
        },
        "time_range": {
            "type": "string",
            "enum": ["today", "24h", "this_week", "this_month"],
            "default": "today",
        },
        "max_articles_per_topic": {
            "type": "integer",
            "minimum": 1,
            "maximum": 10,
            "default": 5,
        },
        "output_language": {
            "type": "string",
            "default": "auto",
            "pattern": "^(auto|[a-z]{2})$",
        },
        "output_format": {
            "type": "string",
            "enum": ["prose", "bullets", "structured", "brief"],
            "default": "structured",
        },
        "save_to_file": {"type": "boolean", "default": False},
        "file_path": {"type": "string", "pattern": '^[^<>:"\\|?*]+\\.md$'},
    },
    "if": {"properties": {"save_to_file": {"const": True}}},
    "then": {"properties": {"file_path": {"type": "string"}}},
}


def test_valid_input_is_valid() -> None:
    """31.3: ``validate`` answers ``(True, [])`` for the document's normal input."""
    validator = SkillInputValidator(NEWS_DIGEST_INPUT_SCHEMA)

    assert validator.validate(
        {"topics": ["AI regulation"], "max_articles_per_topic": 3}
    ) == (True, [])


def test_an_integer_written_as_text_is_coerced() -> None:
    """31.3: the common error of a model, an integer as text, becomes the integer 5."""
    validator = SkillInputValidator(NEWS_DIGEST_INPUT_SCHEMA)

    coerced = validator.coerce_and_validate(
        {"topics": ["AI news"], "max_articles_per_topic": "5"}
    )

    assert coerced == {"topics": ["AI news"], "max_articles_per_topic": 5}
    assert type(coerced["max_articles_per_topic"]) is int


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("Yes", True), ("1", True), ("no", False), ("0", False)],
)
def test_a_boolean_written_as_a_word_is_coerced(text: str, value: bool) -> None:
    """31.3: the words that the document reads as booleans."""
    validator = SkillInputValidator(NEWS_DIGEST_INPUT_SCHEMA)

    assert (
        validator.coerce_and_validate({"topics": ["AI"], "save_to_file": text})[
            "save_to_file"
        ]
        is value
    )


def test_a_single_value_becomes_an_array_of_one() -> None:
    """31.3: a single value where an array is wanted."""
    validator = SkillInputValidator(NEWS_DIGEST_INPUT_SCHEMA)

    assert validator.coerce_and_validate({"topics": "AI news"}) == {
        "topics": ["AI news"]
    }


def test_a_missing_required_parameter_is_said_in_the_words_of_the_document() -> None:
    """31.3: the very sentence of the document."""
    validator = SkillInputValidator(NEWS_DIGEST_INPUT_SCHEMA)

    assert validator.validate({"time_range": "today"}) == (
        False,
        ["'topics' is a required property"],
    )


def test_a_fault_inside_is_said_with_its_path() -> None:
    """31.3: the path stands in brackets before the sentence."""
    validator = SkillInputValidator(NEWS_DIGEST_INPUT_SCHEMA)

    assert validator.validate({"topics": ["A"]}) == (
        False,
        ["[topics -> 0] 'A' is too short"],
    )


def test_validate_and_raise_carries_the_sentences_and_the_structured_errors() -> None:
    """31.3 ``errors`` stays a list of sentences; the errors of 31.4 stand beside it."""
    validator = SkillInputValidator(NEWS_DIGEST_INPUT_SCHEMA)

    with pytest.raises(SkillInputError, match="Input validation failed") as caught:
        validator.validate_and_raise({"time_range": "today"})

    assert caught.value.errors == ["'topics' is a required property"]
    assert [error.code for error in caught.value.skill_errors] == [
        ErrorCode.MISSING_REQUIRED_PARAM
    ]
    assert caught.value.to_response()["status"] == "failed"
    assert caught.value.to_response()["errors"][0]["code"] == "MISSING_REQUIRED_PARAM"


def test_an_input_error_of_sentences_alone_gives_the_envelope_of_31_4() -> None:
    """One shape everywhere: a list of errors, not the single ``error`` of 31.3."""
    error = SkillInputError(
        "Input validation failed", errors=["'topics' is a required property"]
    )

    assert error.to_response() == {
        "status": "failed",
        "errors": [
            {
                "code": "INVALID_INPUT",
                "message": "Input validation failed",
                "recoverable": True,
                "details": {"validation_errors": ["'topics' is a required property"]},
            }
        ],
    }


def test_the_envelope_leaves_out_what_is_absent() -> None:
    """31.4: ``to_dict`` has only what there is."""
    error = SkillError(
        code=ErrorCode.FETCH_FAILED, message="No answer", recoverable=True
    )
    response = SkillResponse(
        status="partial_success", data=[1], errors=[error], metadata={"took": 3}
    )

    assert response.to_dict() == {
        "status": "partial_success",
        "data": [1],
        "errors": [
            {"code": "FETCH_FAILED", "message": "No answer", "recoverable": True}
        ],
        "metadata": {"took": 3},
    }
    assert SkillResponse(status="success").to_dict() == {"status": "success"}


@pytest.mark.parametrize(
    ("exception", "context", "expected"),
    [
        (
            SkillInputError(
                "Input validation failed", errors=["'topics' is a required property"]
            ),
            {},
            {
                "code": "INVALID_INPUT",
                "message": "Input parameters are invalid",
                "recoverable": True,
                "details": {"validation_errors": ["'topics' is a required property"]},
                "suggested_action": "Please check the parameter types and values",
            },
        ),
        (
            TimeoutError(),
            {"timeout": 30},
            {
                "code": "TOOL_TIMEOUT",
                "message": "Operation timed out after 30s",
                "recoverable": True,
                "suggested_action": "Try again or reduce the number of topics",
            },
        ),
        (
            RateLimitError(retry_after=60),
            {},
            {
                "code": "RATE_LIMIT_EXCEEDED",
                "message": "Search API rate limit exceeded",
                "recoverable": True,
                "details": {"retry_after_seconds": 60},
                "suggested_action": "Please wait 60s before retrying",
            },
        ),
        (
            KeyError("a secret from inside"),
            {},
            {
                "code": "INTERNAL_ERROR",
                "message": "An unexpected error occurred",
                "recoverable": False,
                "details": {"exception_type": "KeyError"},
            },
        ),
    ],
)
def test_handle_skill_error_gives_the_dictionaries_of_the_document(
    exception: Exception, context: dict[str, Any], expected: dict[str, Any]
) -> None:
    """31.4 ``handle_skill_error``: each of its four branches, to the letter."""
    assert handle_skill_error(exception, context).to_dict() == {
        "status": "failed",
        "errors": [expected],
    }


def test_compatibility_is_said_as_in_the_document() -> None:
    """31.5 ``check_skill_compatibility``, to the letter."""
    assert check_skill_compatibility(">=3.0.0,<4.0.0", "3.1.2") == (True, "")
    assert check_skill_compatibility(">=3.0.0,<4.0.0", "4.0.0") == (
        False,
        "Skill requires Hermes >=3.0.0,<4.0.0, but current version is 4.0.0",
    )


def test_the_complete_contract_document_loads_unchanged() -> None:
    """31.6: the document is a contract as it stands, references, dialect and all."""
    contract = Contract.from_dict(DOCUMENT)

    assert contract.name == "Daily News Digest Skill API Contract"
    assert contract.version == "1.0.0"
    assert contract.to_dict() == DOCUMENT
    assert contract.accept({"topics": ["AI"]}).arguments == {
        "topics": ["AI"],
        "time_range": "today",
        "max_articles_per_topic": 5,
        "output_language": "auto",
        "output_format": "structured",
        "save_to_file": False,
    }


def test_the_complete_contract_document_judges_output() -> None:
    """31.6: success and failure are both outputs that the contract promises; anything
    else is not.
    """
    contract = Contract.from_dict(DOCUMENT)
    article = {"title": "T", "source": "S", "url": "https://example.com/a"}
    topic = {"topic": "AI", "summary": "Much.", "articles": [article]}

    contract.check(
        {
            "status": "success",
            "generated_at": "2026-01-01T00:00:00Z",
            "topics_covered": [topic],
        }
    )
    contract.check(
        {
            "status": "failed",
            "errors": [
                {"code": "FETCH_FAILED", "message": "No answer", "recoverable": True}
            ],
        }
    )
    with pytest.raises(Exception, match="does not fit"):
        contract.check(
            {"status": "success", "generated_at": "yesterday", "topics_covered": []}
        )


def test_arguments_of_version_1_are_migrated() -> None:
    """31.5: ``topics`` was a text in 1.x; as version 2 it is an array, and the caller
    is reported.
    """
    document = {
        "version": "2.0.0",
        "input": NEWS_DIGEST_INPUT_SCHEMA,
        "migrations": [
            {
                "from": ">=1.0.0,<2.0.0",
                "to": "2.0.0",
                "accepts": {
                    "type": "object",
                    "required": ["topics"],
                    "additionalProperties": False,
                    "properties": {"topics": {"type": "string"}},
                },
                "steps": [{"wrap": "/topics"}],
            }
        ],
    }

    accepted = Contract.from_dict(document).accept(
        {"topics": "AI"}, fill_defaults=False
    )

    assert accepted.arguments == {"topics": ["AI"]}
    assert accepted.migrated_from == ">=1.0.0,<2.0.0"
    assert accepted.repairs == ()
