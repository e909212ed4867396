"""The messages of section 6, field by field, and the table of status transitions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.remote import Execution, MessageError, WireCode
from skillruntime.remote.protocol import (
    FINAL,
    TRANSITIONS,
    ExecutionStatus,
    InvocationRequest,
    Progress,
    can_follow,
    can_reach,
)
from skillruntime.remote.wire_errors import ErrorDocument, RetryHint, to_skill_error

REQUEST: dict[str, Any] = {
    "caller": {
        "id": "ifay-instance-001",
        "type": "ifay",
        "credentials": {"api_key": "sk-xxxxx"},
    },
    "skill_id": "com.example.translate-v1",
    "inputs": {"text": "Hello, world!", "target_language": "zh-CN"},
    "context": {"trace_id": "trace-abc-123", "priority": "normal", "timeout_ms": 30000},
}
COMPLETED: dict[str, Any] = {
    "execution_id": "exec-789-xyz",
    "status": "completed",
    "skill_id": "com.example.translate-v1",
    "output": {
        "translated_text": "你好,世界!",
        "source_language": "en",
        "target_language": "zh-CN",
        "confidence": 0.98,
    },
    "timestamps": {
        "created_at": "2025-03-20T14:30:00Z",
        "updated_at": "2025-03-20T14:30:02Z",
        "completed_at": "2025-03-20T14:30:02Z",
    },
}
TIMED_OUT: dict[str, Any] = {
    "execution_id": "exec-789-xyz",
    "status": "timeout",
    "skill_id": "com.example.translate-v1",
    "error": {
        "code": "EXECUTION_TIMEOUT",
        "message": "Skill execution exceeded the configured timeout of 30000ms",
        "retry": {"suggested_delay_ms": 5000, "max_attempts": 3},
    },
    "timestamps": {
        "created_at": "2025-03-20T14:30:00Z",
        "updated_at": "2025-03-20T14:30:30Z",
    },
}
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=10,
)


def test_the_protocols_request_is_read_field_by_field() -> None:
    """Section 6.3's example; the credentials do not show in a representation."""
    request = InvocationRequest.from_dict(REQUEST)

    assert request.caller.id == "ifay-instance-001"
    assert request.caller.type == "ifay"
    assert request.caller.credentials == {"api_key": "sk-xxxxx"}
    assert request.skill_id == "com.example.translate-v1"
    assert request.inputs == REQUEST["inputs"]
    assert request.context.trace_id == "trace-abc-123"
    assert request.context.timeout_ms == 30000
    assert "sk-xxxxx" not in repr(request)
    assert request.to_dict() == {
        **REQUEST,
        "context": {"trace_id": "trace-abc-123", "timeout_ms": 30000},
    }


@pytest.mark.parametrize(
    "document", [COMPLETED, TIMED_OUT], ids=["completed", "timeout"]
)
def test_the_protocols_executions_round_trip(document: dict[str, Any]) -> None:
    """Section 6.4's completed document and section 6.6's timeout."""
    assert Execution.from_dict(document).to_dict() == document


def test_an_output_of_null_is_an_output() -> None:
    """``"output": null`` and no output are two things."""
    document = {**COMPLETED, "output": None}

    assert Execution.from_dict(document).has_output
    assert Execution.from_dict(document).to_dict() == document


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("caller",), ..., "/caller"),
        (("caller",), "me", "/caller"),
        (("caller", "id"), ..., "/caller/id"),
        (("caller", "id"), "x" * 501, "/caller/id"),
        (("caller", "id"), "a\x00b", "/caller/id"),
        (("caller", "type"), "robot", "/caller/type"),
        (("caller", "type"), ..., "/caller/type"),
        (("caller", "credentials"), "sk-1", "/caller/credentials"),
        (("skill_id",), ..., "/skill_id"),
        (("skill_id",), 5, "/skill_id"),
        (("inputs",), ..., "/inputs"),
        (("inputs",), [], "/inputs"),
        (("context",), "later", "/context"),
        (("context", "priority"), "urgent", "/context/priority"),
        (("context", "timeout_ms"), 0, "/context/timeout_ms"),
        (("context", "timeout_ms"), True, "/context/timeout_ms"),
        (("context", "timeout_ms"), "30000", "/context/timeout_ms"),
        (("context", "trace_id"), 7, "/context/trace_id"),
    ],
)
def test_each_field_of_the_request_is_checked(
    path: tuple[str, ...], value: Any, field: str
) -> None:
    """Section 6.3's table: which are required, of what type, among what values."""
    document: dict[str, Any] = {
        key: dict(item) if isinstance(item, dict) else item
        for key, item in REQUEST.items()
    }
    place = document
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value

    with pytest.raises(MessageError) as raised:
        InvocationRequest.from_dict(document)

    assert [violation["field"] for violation in raised.value.violations] == [field]


def test_all_violations_are_reported_at_once() -> None:
    """Section 9's ``details.violations``: one for each field, with what was expected
    and what came.
    """
    with pytest.raises(MessageError) as raised:
        InvocationRequest.from_dict({"caller": {"type": "robot"}, "inputs": 5})

    document = raised.value.to_document()
    assert document.code == "VALIDATION_ERROR"
    assert document.details is not None
    assert document.details["violations"] == [
        {
            "field": "/caller/id",
            "expected": "a string of 1 to 500 characters without NUL",
            "actual": "nothing",
        },
        {
            "field": "/caller/type",
            "expected": "ifay, service or user",
            "actual": '"robot"',
        },
        {
            "field": "/skill_id",
            "expected": "a string of 1 to 500 characters without NUL",
            "actual": "nothing",
        },
        {"field": "/inputs", "expected": "an object", "actual": "5"},
    ]


@given(json_values)
def test_no_request_breaks_the_reader(document: Any) -> None:
    """Whatever JSON comes, it is a request or a list of violations."""
    try:
        InvocationRequest.from_dict(document)
    except MessageError as error:
        assert error.violations


@given(json_values, st.sampled_from([status.value for status in ExecutionStatus]))
def test_no_execution_breaks_the_reader(value: Any, status: str) -> None:
    """With an id and a status, anything else is read as far as it can be."""
    document = {
        "execution_id": "e",
        "status": status,
        "error": value,
        "progress": value,
        "timestamps": {"a": value},
    }

    try:
        assert Execution.from_dict(document).status == status
    except MessageError as error:
        assert [violation["field"] for violation in error.violations] == ["/progress"]


def test_the_table_has_every_status_and_final_ones_have_no_successor() -> None:
    """Client and server read the same table."""
    assert set(TRANSITIONS) == set(ExecutionStatus)
    assert {status for status, after in TRANSITIONS.items() if not after} == FINAL


@pytest.mark.parametrize(
    ("before", "after", "follows", "reaches"),
    [
        ("accepted", "running", True, True),
        ("accepted", "completed", False, True),
        ("running", "accepted", False, False),
        ("running", "timeout", True, True),
        ("completed", "failed", False, False),
        ("completed", "completed", False, True),
        ("cancelled", "running", False, False),
    ],
)
def test_what_may_follow_and_what_may_be_seen_next(
    before: str, after: str, follows: bool, reaches: bool
) -> None:
    """A server goes step by step; a client that polls may miss steps, and never sees
    one undone.
    """
    assert can_follow(ExecutionStatus(before), ExecutionStatus(after)) is follows
    assert can_reach(ExecutionStatus(before), ExecutionStatus(after)) is reaches


def test_plain_peers_see_a_cancelled_execution_as_failed() -> None:
    """The protocol document knows five statuses; ours is the sixth."""
    error = ErrorDocument(WireCode.EXECUTION_CANCELLED, "Cancelled by its caller")
    document = {**COMPLETED, "status": "cancelled", "error": error.to_dict()}
    execution = Execution.from_dict(document)

    assert execution.to_dict()["status"] == "cancelled"
    assert execution.to_dict(plain=True)["status"] == "failed"
    assert execution.to_dict(plain=True)["error"]["code"] == "EXECUTION_CANCELLED"


@pytest.mark.parametrize("code", list(WireCode))
def test_every_code_has_an_http_status_and_a_meaning_for_a_model(
    code: WireCode,
) -> None:
    """The one table of codes is whole."""
    document = ErrorDocument(code, "so it is")

    assert 400 <= document.http_status < 600
    assert to_skill_error(document).message == "so it is"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("AUTH_REQUIRED", 401),
        ("PERMISSION_DENIED", 403),
        ("SKILL_NOT_FOUND", 404),
        ("EXECUTION_TIMEOUT", 504),
        ("ENDPOINT_UNREACHABLE", 503),
        ("VERSION_INCOMPATIBLE", 422),
        ("EXECUTION_EXPIRED", 410),
        ("EXECUTION_NOT_FOUND", 404),
    ],
)
def test_the_codes_of_section_9_have_its_http_statuses(code: str, status: int) -> None:
    """Section 9's table."""
    assert ErrorDocument(code, "").http_status == status


def test_a_model_is_reported_no_more_than_it_can_read() -> None:
    """A peer's details may have any length; what is left out is said."""
    error = to_skill_error(
        ErrorDocument("QUOTA_OF_MARS", "Used up", {"left": 0, "log": "x" * 100_000})
    )

    assert error.details == {
        "left": 0,
        "log": "(100,002 characters left out)",
        "code": "QUOTA_OF_MARS",
    }


def test_a_peers_words_steer_no_terminal() -> None:
    """They are printed and shown to a model as they are."""
    error = ErrorDocument.from_dict({"code": "X\x1b[31m", "message": "a\x1b[2Jb\nc"})

    execution = Execution.from_dict(
        {
            "execution_id": "e",
            "status": "running",
            "progress": {"done": 1, "message": "half\x1b[2J"},
        }
    )

    assert error == ErrorDocument("X\ufffd[31m", "a\ufffd[2Jb\nc")
    assert execution.progress == Progress(1, None, "half\ufffd[2J")


def test_a_code_that_no_caller_knows_is_kept_in_the_details() -> None:
    """A skill's own code reaches the model, next to one that it can understand."""
    error = to_skill_error(
        ErrorDocument("QUOTA_OF_MARS", "Used up", {"left": 0}, RetryHint(1000))
    )

    assert error.code.value == "TOOL_EXECUTION_FAILED"
    assert error.details == {"left": 0, "code": "QUOTA_OF_MARS"}
