"""What a result reports about itself: `skillruntime/runtime/error_responses.py`."""

from __future__ import annotations

import pytest

from skillruntime.errors import ErrorCode, SkillError
from skillruntime.runtime.error_responses import data_of, read_reported


@pytest.mark.parametrize(
    "output",
    [None, [], "failed", {"state": 1}, {"status": "running"}, {"errors": [{}]}],
)
def test_a_result_without_a_status_of_the_contract_document_is_a_success(
    output,
) -> None:
    """31.2 names three statuses; anything else is data."""
    assert read_reported(output) == ("success", [])


def test_status_and_errors_are_copied() -> None:
    """The contract document's own errors become the envelope's, field by field."""
    output = {
        "status": "partial_success",
        "errors": [
            {
                "code": "FETCH_FAILED",
                "message": "bbc is down",
                "recoverable": True,
                "details": {"feed": "bbc"},
                "suggested_action": "Try later",
            }
        ],
    }

    assert read_reported(output) == (
        "partial_success",
        [
            SkillError(
                ErrorCode.FETCH_FAILED,
                "bbc is down",
                True,
                {"feed": "bbc"},
                "Try later",
            )
        ],
    )


@pytest.mark.parametrize(
    "item",
    ["just words", 5, None, {}, {"code": [], "message": 3, "recoverable": "yes"}],
)
def test_errors_of_any_shape_become_errors(item) -> None:
    """A malformed failure report is still reported."""
    status, errors = read_reported({"status": "failed", "errors": [item]})

    assert status == "failed"
    assert errors[0].code is ErrorCode.TOOL_EXECUTION_FAILED
    assert errors[0].message
    assert errors[0].recoverable is False


def test_a_failure_without_a_reason_gets_one() -> None:
    """A failed envelope never comes without an error."""
    status, errors = read_reported({"status": "failed"})

    assert (status, [error.code for error in errors or []]) == (
        "failed",
        [ErrorCode.TOOL_EXECUTION_FAILED],
    )
    assert errors[0].suggested_action == (
        "Tell the user that the skill failed and did not say why"
    )


def test_the_errors_of_a_skill_are_short_and_few() -> None:
    """They are shown to a model whatever its limits: a script cannot fill the
    conversation with them.
    """
    item = {
        "code": "QUOTA",
        "message": "m" * 100_000,
        "suggested_action": "a" * 100_000,
        "details": {"d": "x" * 9_000},
    }

    _, errors = read_reported({"status": "failed", "errors": [item] * 1_000})

    assert len(errors) == 20
    assert (len(errors[0].message), len(errors[0].suggested_action or "")) == (
        1_000,
        500,
    )
    assert errors[0].details == {"cut": True}


@pytest.mark.parametrize(
    ("output", "data"),
    [
        ({"status": "failed", "errors": [{"message": "e" * 100_000}]}, None),
        ({"status": "failed", "errors": [], "pages": 3}, {"pages": 3}),
        ({"status": "failed", "rows": ["x" * 100_000]}, {"rows": ["x" * 100_000]}),
    ],
)
def test_the_data_of_a_failure_is_what_remains(output, data) -> None:
    """Its errors are in the envelope once; the limits of results hold for the rest."""
    assert data_of(output, "failed") == data


@pytest.mark.parametrize("status", ["success", "partial_success"])
def test_the_data_of_a_success_keeps_what_output_may_require(status) -> None:
    """The contract document's own example requires `status` in the output."""
    output = {
        "status": status,
        "errors": [{"code": "FETCH_FAILED", "message": "bbc is down"}],
        "topics": 2,
    }

    assert data_of(output, status) == output
