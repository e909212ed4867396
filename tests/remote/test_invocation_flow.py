"""The client's side of an invocation, decided without I/O: every answer a server can
give, written out.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from skillruntime.remote import RemoteError, UnreachableError, WireCode
from skillruntime.remote.descriptor_parts import ProtocolVersion
from skillruntime.remote.invocation_flow import Plan, invoke, resume
from tests.remote.invoking import Walk, answer, plan, shown
from tests.remote.parts import WireResponse

ACCEPTED = answer(shown("accepted"), 202)
RUNNING = answer(shown("running"))
OUTPUT = {"translated_text": "你好,世界!"}
COMPLETED = answer(shown("completed", output=OUTPUT))
LOST = UnreachableError("The connection was reset", was_sent=True)
REFUSED_CONNECTION = UnreachableError("Connection refused", was_sent=False)


def failure_of(plan: Plan, *answers: WireResponse | UnreachableError) -> RemoteError:
    """Walk a flow that must fail, and return its error."""
    with pytest.raises(RemoteError) as raised:
        Walk(invoke(plan), list(answers))
    return raised.value


def test_the_protocols_steps() -> None:
    """Section 6.2: POST, status, status, result; the last is an object with nothing but
    ``output``.
    """
    walk = Walk(
        invoke(plan()),
        [ACCEPTED, RUNNING, answer(shown("completed")), answer({"output": OUTPUT})],
    )

    assert walk.lines == [
        "POST /invoke",
        "GET /status/exec-789-xyz",
        "GET /status/exec-789-xyz",
        "GET /result/exec-789-xyz",
    ]
    assert walk.seen == ["accepted", "running", "completed"]
    assert walk.result is not None and walk.result.output == OUTPUT
    assert json.loads(walk.sent[0].body) == {
        "caller": {"id": "me", "type": "service"},
        "skill_id": "com.example.translate-v1",
        "inputs": {"text": "hi"},
    }


def test_a_status_that_brings_the_output_spares_the_result() -> None:
    """Section 6.4's document contains the output: the client sends no further
    request.
    """
    walk = Walk(invoke(plan()), [ACCEPTED, COMPLETED])

    assert walk.lines == ["POST /invoke", "GET /status/exec-789-xyz"]
    assert walk.result is not None and walk.result.output == OUTPUT


def test_a_server_may_answer_at_once() -> None:
    """A POST answered with the final document is the whole flow, and no pause was
    made.
    """
    walk = Walk(invoke(plan()), [COMPLETED])

    assert walk.lines == ["POST /invoke"]
    assert walk.pauses == []


def test_a_result_that_is_not_there_yet_is_polled_on() -> None:
    """GET result before the end is the current document: the client continues
    polling.
    """
    answers = [
        ACCEPTED,
        answer(shown("completed")),
        answer(shown("running")),
        COMPLETED,
    ]

    walk = Walk(invoke(plan()), answers)

    assert walk.result is not None and walk.result.output == OUTPUT


def test_a_completed_execution_without_output_gives_null() -> None:
    """``output`` is optional in 6.4: none from either address is null, not an endless
    poll.
    """
    walk = Walk(
        invoke(plan()),
        [ACCEPTED, answer(shown("completed")), answer(shown("completed"))],
    )

    assert (
        walk.result is not None
        and walk.result.output is None
        and walk.result.has_output
    )


def test_a_lost_202_is_sent_again_with_the_same_key() -> None:
    """Where the server knows idempotency keys, a lost answer never runs the skill
    twice.
    """
    walk = Walk(invoke(plan(idempotency_key=True)), [LOST, ACCEPTED, COMPLETED])

    assert walk.lines[:2] == ["POST /invoke", "POST /invoke"]
    assert [request.headers["idempotency-key"] for request in walk.sent[:2]] == [
        "key-1",
        "key-1",
    ]
    assert walk.sent[0].body == walk.sent[1].body


def test_a_lost_202_is_asked_for_again_while_the_server_is_away() -> None:
    """A server that needs long to come back is given the plan's patience: a second
    order must never be suggested.
    """
    away = [LOST, *[REFUSED_CONNECTION] * 12]

    walk = Walk(invoke(plan(idempotency_key=True)), [*away, ACCEPTED, COMPLETED])

    assert walk.lines[:14] == ["POST /invoke"] * 14
    assert {request.headers["idempotency-key"] for request in walk.sent[:14]} == {
        "key-1"
    }


def test_a_lost_202_that_is_given_up_names_its_key_and_suggests_no_second_order() -> (
    None
):
    """The request may have been accepted: what is known is reported, with the key that
    finds the execution.
    """
    error = failure_of(
        plan(idempotency_key=True, patience=60.0), LOST, *[REFUSED_CONNECTION] * 20
    )

    assert error.may_have_run and not error.recoverable
    assert error.document.details == {"idempotency_key": "key-1"}


@pytest.mark.parametrize(
    "unreadable",
    [
        WireResponse(202, {}, b'{"exec'),
        UnreachableError(
            "The response is longer than 10,485,760 bytes",
            was_sent=True,
            is_refused=True,
        ),
    ],
    ids=["half", "too_long"],
)
def test_an_answer_that_cannot_be_read_may_be_that_of_a_run(
    unreadable: WireResponse | UnreachableError,
) -> None:
    """The request was sent: a second order is not suggested, and the key that finds the
    first is named.
    """
    error = failure_of(plan(idempotency_key=True), unreadable)
    harmless = failure_of(plan(repeatable=True), unreadable)

    assert error.may_have_run and not error.recoverable
    assert error.document.details == {"idempotency_key": "key-1"}
    assert not harmless.may_have_run and harmless.recoverable


def test_an_address_that_is_refused_was_not_asked() -> None:
    """Nothing was sent to an address inside, so nothing ran, and nothing is gained by
    another attempt.
    """
    error = failure_of(
        plan(idempotency_key=True),
        UnreachableError("inside", was_sent=False, is_refused=True),
    )

    assert not error.may_have_run
    assert error.document.details is not None
    assert error.document.details["recoverable"] is False


def test_a_refusal_after_a_lost_202_may_have_run() -> None:
    """The first request may have been accepted before the credentials were revoked."""
    refused = answer({"error": {"code": "AUTH_REQUIRED", "message": "No"}}, 401)

    error = failure_of(plan(idempotency_key=True), LOST, refused)

    assert error.may_have_run and not error.recoverable


def test_without_keys_a_lost_202_is_not_sent_again() -> None:
    """A plain server could run it twice: the error says that it may have run, and is
    not recoverable.
    """
    error = failure_of(plan(), LOST)

    assert error.may_have_run
    assert not error.recoverable
    assert "may have run" in str(error.to_errors()[0].suggested_action)


def test_without_keys_a_skill_that_may_run_twice_is_sent_again() -> None:
    """An idempotent skill does no harm when it runs twice."""
    walk = Walk(invoke(plan(repeatable=True)), [LOST, ACCEPTED, COMPLETED])

    assert walk.lines[:2] == ["POST /invoke", "POST /invoke"]


def test_a_refused_connection_is_always_tried_again() -> None:
    """What never left cannot have run; the pauses double (6.6: initial x 2^n)."""
    walk = Walk(
        invoke(plan()), [REFUSED_CONNECTION, REFUSED_CONNECTION, ACCEPTED, COMPLETED]
    )

    assert walk.pauses[:2] == [1.0, 2.0]


def test_a_refused_connection_ends_after_the_attempts_of_the_descriptor() -> None:
    """``retry.max_attempts`` is 3: then the endpoint is unreachable, and trying later
    may help.
    """
    error = failure_of(plan(), *[REFUSED_CONNECTION] * 3)

    assert error.document.code == WireCode.ENDPOINT_UNREACHABLE
    assert error.recoverable


def test_jitter_keeps_the_pause_between_half_and_whole() -> None:
    """Many clients do not come back at the same moment."""
    walk = Walk(
        invoke(replace(plan(), jitter=lambda: 0.0)),
        [REFUSED_CONNECTION, ACCEPTED, COMPLETED],
    )

    assert walk.pauses[0] == 0.5


@pytest.mark.parametrize("status", [408, 429, 503])
def test_a_server_that_is_too_busy_is_asked_again_when_it_says(status: int) -> None:
    """``Retry-After`` counts where it is longer than our own pause; nothing has run."""
    busy = answer(
        {"error": {"code": "RATE_LIMIT_EXCEEDED", "message": "slow down"}},
        status,
        retry_after="7",
    )

    walk = Walk(invoke(plan()), [busy, ACCEPTED, COMPLETED])

    assert walk.pauses[0] == 7.0


def test_a_suggested_delay_in_the_envelope_counts_too() -> None:
    """Section 9's ``retry.suggested_delay_ms``."""
    error = {
        "code": "RATE_LIMIT_EXCEEDED",
        "message": "slow down",
        "retry": {"suggested_delay_ms": 5000},
    }

    walk = Walk(invoke(plan()), [answer({"error": error}, 429), ACCEPTED, COMPLETED])

    assert walk.pauses[0] == 5.0


@pytest.mark.parametrize("wish", ["301", "99999999"])
def test_a_server_that_asks_for_more_than_our_patience_is_reported_of_at_once(
    wish: str,
) -> None:
    """It is never asked sooner than it wishes, so the caller learns when to try again
    instead of waiting for it.
    """
    error = failure_of(plan(patience=300), answer({}, 503, retry_after=wish))

    assert error.recoverable and not error.may_have_run
    assert (error.to_errors()[0].suggested_action or "").startswith("Try again in")


def test_a_longer_wish_than_our_own_backoff_is_kept() -> None:
    """RFC 9110, 10.2.3: not before it is over."""
    walk = Walk(
        invoke(plan()), [answer({}, 503, retry_after="120"), ACCEPTED, COMPLETED]
    )

    assert walk.pauses[0] == 120.0


@pytest.mark.parametrize(
    "wish", ["", "soon", "-5", "nan", "Sat, 01 Jan 2000 00:00:05 GMT"]
)
def test_a_wish_that_cannot_be_read_is_none(wish: str) -> None:
    """The client's own backoff is used."""
    busy = answer({}, 503, retry_after=wish)

    walk = Walk(invoke(plan()), [busy, ACCEPTED, COMPLETED])

    assert walk.pauses[0] == 1.0


@pytest.mark.parametrize(
    "headers", [{"retry_after": "0"}, {"preference_applied": "wait=20"}]
)
def test_a_server_that_says_now_each_time_is_not_flooded(
    headers: dict[str, str],
) -> None:
    """There is a pause between two polls, for any ``Retry-After``."""
    walk = Walk(
        invoke(plan()),
        [ACCEPTED, answer(shown("running"), **headers), RUNNING, COMPLETED],
    )

    assert walk.pauses[1] == 0.1


def test_a_server_cannot_have_us_try_for_ever() -> None:
    """A timeout that suggests a million attempts is tried ten times."""
    error = {
        "code": "EXECUTION_TIMEOUT",
        "message": "late",
        "retry": {"suggested_delay_ms": 0, "max_attempts": 10**6},
    }

    walk = Walk(
        invoke(plan(repeatable=True)), [answer(shown("timeout", error=error))] * 12
    )

    assert len(walk.sent) == 10


def test_a_bare_500_may_have_run() -> None:
    """What failed behind a page of HTML is unknown, so the error does not suggest
    trying again.
    """
    error = failure_of(
        plan(), WireResponse(500, {"content-type": "text/html"}, b"<html>")
    )

    assert error.may_have_run and not error.recoverable


@pytest.mark.parametrize("status", [502, 504])
def test_a_gateway_error_is_a_lost_answer(status: int) -> None:
    """Behind a gateway the skill may have been started: without a key it is not sent
    again.
    """
    assert failure_of(plan(), answer({}, status)).may_have_run


def test_polling_survives_a_server_that_is_away() -> None:
    """Refused connections, resets and 5xx while polling are waited out: the execution
    lives on the server.
    """
    away = [REFUSED_CONNECTION, LOST, answer({}, 500), answer({}, 503)]

    walk = Walk(invoke(plan()), [ACCEPTED, *away, RUNNING, COMPLETED])

    assert walk.lines.count("POST /invoke") == 1
    assert walk.result is not None and walk.result.output == OUTPUT


def test_patience_with_a_server_that_stays_away_ends() -> None:
    """After so many seconds of nothing, polling ends; the skill may have run."""
    error = failure_of(plan(patience=3), ACCEPTED, *[REFUSED_CONNECTION] * 10)

    assert error.document.code == WireCode.ENDPOINT_UNREACHABLE
    assert error.may_have_run


def test_the_servers_interval_is_kept() -> None:
    """``poll_interval_ms`` from the descriptor, and ``Retry-After`` of the last answer
    before it.
    """
    answers = [ACCEPTED, answer(shown("running"), retry_after="3"), COMPLETED]

    walk = Walk(invoke(plan(poll_interval_ms=250)), answers)

    assert walk.pauses == [0.25, 3.0]


def test_the_202_itself_says_when_to_come_back() -> None:
    """RFC 9110, 10.2.3: a plain server's only way to say it."""
    walk = Walk(
        invoke(plan()), [answer(shown("accepted"), 202, retry_after="4"), COMPLETED]
    )

    assert walk.pauses == [4.0]


def test_our_own_interval_grows() -> None:
    """Where the server says nothing, polling starts at a tenth of a second and grows by
    half.
    """
    walk = Walk(invoke(plan()), [ACCEPTED, RUNNING, RUNNING, COMPLETED])

    assert walk.pauses == pytest.approx([0.1, 0.15, 0.225])


def test_a_timeout_is_tried_again_as_the_server_suggests() -> None:
    """Section 6.6's document, for a skill that may run twice: after its delay, as a new
    execution.
    """
    error = {
        "code": "EXECUTION_TIMEOUT",
        "message": "Skill execution exceeded the configured timeout of 30000ms",
        "retry": {"suggested_delay_ms": 5000, "max_attempts": 3},
    }
    timed_out = answer(shown("timeout", error=error))

    walk = Walk(
        invoke(plan(repeatable=True, idempotency_key=True)),
        [ACCEPTED, timed_out, ACCEPTED, COMPLETED],
    )

    assert walk.pauses[1] == 5.0
    keys = [
        request.headers["idempotency-key"]
        for request in walk.sent
        if request.method == "POST"
    ]
    assert keys == ["key-1", "key-1-1"]


def test_a_timeout_of_what_must_not_run_twice_is_the_answer() -> None:
    """It may have taken effect: the caller decides."""
    error = {
        "code": "EXECUTION_TIMEOUT",
        "message": "late",
        "retry": {"suggested_delay_ms": 10, "max_attempts": 3},
    }

    walk = Walk(invoke(plan()), [ACCEPTED, answer(shown("timeout", error=error))])

    assert walk.result is not None and walk.result.status.value == "timeout"


def test_another_major_of_the_protocol_is_refused_before_any_post() -> None:
    """Section 8: compatible if and only if the same MAJOR, checked before any POST."""
    other = plan()
    other_caller = replace(
        other.descriptor,
        protocol=ProtocolVersion("2.0.0", "https://example.com/changelog"),
    )

    error = failure_of(replace(other, descriptor=other_caller))

    assert error.document.code == WireCode.VERSION_INCOMPATIBLE
    assert error.document.details == {
        "descriptor_version": "2.0.0",
        "consumer_supported_range": ">=1.0.0,<2.0.0",
        "upgrade_url": "https://example.com/changelog",
    }


def test_where_to_upgrade_is_reported_also_without_a_changelog() -> None:
    """Section 8's ``upgrade_url``: else the documentation, else the provider."""
    other = plan()
    documented = replace(
        other.descriptor,
        protocol=ProtocolVersion("2.0.0"),
        documentation_url="https://docs.example.com/translate",
    )

    error = failure_of(replace(other, descriptor=documented))

    assert (error.document.details or {})[
        "upgrade_url"
    ] == "https://docs.example.com/translate"


def test_a_newer_minor_of_the_protocol_is_spoken_to() -> None:
    """Section 8: a MINOR is compatible."""
    other = plan()
    newer = replace(
        other, descriptor=replace(other.descriptor, protocol=ProtocolVersion("1.9.0"))
    )

    assert Walk(invoke(newer), [COMPLETED]).result is not None


def test_a_401_keeps_its_code_and_details() -> None:
    """Section 6.5's document reaches the caller."""
    document = {
        "error": {
            "code": "AUTH_REQUIRED",
            "message": "Authentication is required to invoke this skill",
            "details": {
                "required_auth_type": "oauth2",
                "authorization_url": "https://example.com/oauth/authorize",
            },
        }
    }

    error = failure_of(plan(), answer(document, 401))

    assert error.document.to_envelope() == document
    assert error.to_errors()[0].code.value == "AUTH_REQUIRED"


NONSENSE: list[tuple[WireResponse, str]] = [
    (
        WireResponse(
            200, {"content-type": "text/html"}, b"<html><body>It works!</body></html>"
        ),
        "text/html.*not JSON",
    ),
    (WireResponse(200, {}, b""), "not JSON"),
    (WireResponse(200, {}, b'{"execution_id": "e", "status"'), "not JSON"),
    (WireResponse(200, {}, b"\xff\xfe"), "not JSON"),
    (WireResponse(200, {}, b"[" * 100_000), "not JSON"),
    (WireResponse(200, {}, b'{"execution_id": NaN}'), "NaN"),
    (answer([]), "an object"),
    (answer({"status": "running"}), "/execution_id"),
    (answer({"execution_id": 5, "status": "running"}), "/execution_id"),
    (answer({"execution_id": "", "status": "running"}), "/execution_id"),
    (answer({"execution_id": "e" * 1000, "status": "running"}), "/execution_id"),
    (answer({"execution_id": "e", "status": "done"}), '/status.*"done"'),
    (answer({"execution_id": "e"}), "/status"),
    (answer({"execution_id": "e", "status": "running", "skill_id": "other"}), "other"),
    (answer({"detail": "Not Found"}, 404), "404.*no protocol error"),
    (
        WireResponse(302, {"location": "http://169.254.169.254/"}, b""),
        "302.*another origin",
    ),
    (WireResponse(304, {"etag": '"1"'}, b""), "304.*no protocol error"),
]


@pytest.mark.parametrize(("response", "said"), NONSENSE)
def test_nonsense_is_named(response: WireResponse, said: str) -> None:
    """Wrong JSON, an unknown status, a missing id, HTML: the error names what was
    wrong.
    """
    error = failure_of(plan(), response)

    assert error.document.code == WireCode.ENDPOINT_UNREACHABLE
    with pytest.raises(RemoteError, match=said):
        raise error


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (shown("accepted"), "cannot become accepted once it was running"),
        ({**shown("running"), "execution_id": "exec-other"}, "different execution"),
    ],
)
def test_a_server_that_contradicts_itself_is_named(
    later: dict[str, Any], said: str
) -> None:
    """The client checks the same transition table that the server obeys."""
    with pytest.raises(RemoteError, match=said):
        Walk(invoke(plan()), [ACCEPTED, RUNNING, answer(later)])


def test_an_execution_is_resumed_by_its_id() -> None:
    """After the client's own restart nothing is posted: the execution is followed."""
    walk = Walk(resume(plan(), "exec-789-xyz"), [RUNNING, COMPLETED])

    assert walk.lines == ["GET /status/exec-789-xyz", "GET /status/exec-789-xyz"]
    assert walk.result is not None and walk.result.output == OUTPUT


def test_an_execution_that_is_gone_is_reported() -> None:
    """410 and 404 while polling are answers, not failures to answer."""
    gone = answer(
        {
            "error": {
                "code": "EXECUTION_EXPIRED",
                "message": "The result was kept until yesterday",
            }
        },
        410,
    )

    error = failure_of(plan(), ACCEPTED, gone)

    assert error.document.code == WireCode.EXECUTION_EXPIRED
    assert error.may_have_run  # it was accepted: calling again could repeat its effect


def test_prefer_wait_is_sent_only_where_it_is_understood() -> None:
    """``Prefer: wait`` asks for no more than the server announces."""
    patient = replace(plan(wait_seconds=10), wait_seconds=30)

    walk = Walk(invoke(patient), [COMPLETED])
    plain = Walk(invoke(replace(plan(), wait_seconds=30)), [COMPLETED])

    assert walk.sent[0].headers["prefer"] == "wait=10"
    assert "prefer" not in plain.sent[0].headers


def test_a_synchronous_wait_that_timed_out_is_an_execution() -> None:
    """504 with a timeout document is the execution's end, not a gateway's failure."""
    error = {"code": "EXECUTION_TIMEOUT", "message": "late"}

    walk = Walk(invoke(plan()), [answer(shown("timeout", error=error), 504)])

    assert walk.result is not None and walk.result.status.value == "timeout"
