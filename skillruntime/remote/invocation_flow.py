"""The client's side of one invocation as a generator: it yields what to do and is sent
what came of it. No I/O.

    plan -> POST -> accepted -> GET status, pause, ... -> GET result -> the final
    `Execution`

The driver owns sockets, time and credentials; every decision is here: what may be sent
again without running the skill twice, how long to pause, and what is wrong with an
answer.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from skillruntime.contract.versions import Version
from skillruntime.remote.descriptor import SkillDescriptor
from skillruntime.remote.descriptor_parts import PROTOCOL_VERSION, RetryPolicy
from skillruntime.remote.http_message import UnreachableError, WireRequest, WireResponse
from skillruntime.remote.protocol import (
    Execution,
    ExecutionStatus,
    InvocationRequest,
    MessageError,
    can_reach,
    parse_json,
)
from skillruntime.remote.wire_errors import (
    ErrorDocument,
    RemoteError,
    RetryHint,
    WireCode,
)

__all__ = ["read_error"]

MAX_PAUSE: Final = 30.0
"""Seconds, at most, that our own backoff, or the interval of polling, makes us pause at
once.
"""

_FIRST_POLL, _LAST_POLL = (
    0.1,
    5.0,
)  # seconds: our own polling, where the server says nothing
_MOST_ATTEMPTS: Final = (
    10  # for a call that timed out, even if the server suggests more
)
_RETRIED: Final = frozenset({408, 429, 502, 503, 504})
# The server says that it did not take the request; of 408, RFC 9110, 15.5.9, says that
# it may be repeated.
_NOT_TAKEN: Final = frozenset({408, 429, 503})


@dataclass(frozen=True, slots=True)
class Send:
    """Send this request, and send back its `WireResponse` or `UnreachableError`."""

    request: WireRequest


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for *seconds*, and send back nothing."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Saw:
    """The current state of the execution, to store its id or show its progress. Send
    back None.
    """

    execution: Execution


StepResult: TypeAlias = WireResponse | UnreachableError | None
InvocationFlow: TypeAlias = Generator[Send | Pause | Saw, StepResult, Execution]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be invoked, and how patiently.

    ``key`` is the idempotency key; ``repeatable`` says that the skill may run twice
    without harm; ``jitter`` gives numbers from 0 to 1; ``patience`` is how many seconds
    of failed requests in a row are borne, pauses and answers that came too slowly
    included, and for how long a server may ask us to stay away; ``clock`` measures
    them.
    """

    descriptor: SkillDescriptor
    request: InvocationRequest
    key: str
    repeatable: bool = False
    wait_seconds: float = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    jitter: Callable[[], float] = lambda: 1.0
    patience: float = 300.0
    clock: Callable[[], float] = time.monotonic

    @property
    def retry(self) -> RetryPolicy:
        """How often to try a POST that did not get through."""
        return self.descriptor.endpoint.retry or RetryPolicy()

    @property
    def may_repeat(self) -> bool:
        """Whether a POST whose answer was lost may be sent again: the server would know
        it, or it does no harm.
        """
        return self.repeatable or self.descriptor.extensions.idempotency_key


def check_protocol(descriptor: SkillDescriptor) -> None:
    """Check that we speak the descriptor's protocol: the same MAJOR (section 8), before
    anything is sent.

    Raises:
        RemoteError: we do not.
    """
    # MINOR versions add fields, which are ignored where they are unknown.
    stated = descriptor.protocol.version
    ours = Version.parse(PROTOCOL_VERSION).major
    if Version.parse(stated).major != ours:
        details = {
            "descriptor_version": stated,
            "consumer_supported_range": f">={ours}.0.0,<{ours + 1}.0.0",
        }
        upgrade_url = (
            descriptor.protocol.changelog_url
            or descriptor.documentation_url
            or descriptor.provider.url
        )
        if upgrade_url:
            details["upgrade_url"] = upgrade_url
        raise RemoteError(version_incompatible(details))


def version_incompatible(details: Mapping[str, Any]) -> ErrorDocument:
    """Return the refusal of a protocol version (section 8)."""
    message = (
        f"Protocol {details['descriptor_version']} is not "
        f"{details['consumer_supported_range']}"
    )
    return ErrorDocument(WireCode.VERSION_INCOMPATIBLE, message, details)


def invoke(plan: Plan) -> InvocationFlow:
    """Invoke the skill and follow the execution to its end.

    An execution that timed out is tried again, after the delay that the server
    suggests, where that does no harm.

    Raises:
        RemoteError: refused, unreachable, or an answer that is not the protocol.
    """
    check_protocol(plan.descriptor)
    attempt = 0
    while True:
        execution, asked = yield from _submit(plan)
        final = yield from _follow(plan, execution, asked)
        # 6.6: the timeout document itself says how often and when.
        hint = final.error.retry if final.error is not None else None
        allowed = (
            hint.max_attempts
            if hint is not None and hint.max_attempts is not None
            else 0
        )
        attempt += 1
        may_repeat = (
            plan.repeatable
            and attempt < min(allowed, _MOST_ATTEMPTS)
            and not _is_too_long(plan, hint)
        )
        if final.status is not ExecutionStatus.TIMEOUT or not may_repeat:
            return final
        yield Pause(_backoff(plan, attempt - 1, hint))
        plan = replace(
            plan, key=f"{plan.key}-{attempt}"
        )  # another attempt is another execution


def resume(plan: Plan, execution_id: str) -> InvocationFlow:
    """Follow an execution that was begun before, by its id."""
    check_protocol(plan.descriptor)
    response = yield from _get(plan, plan.descriptor.endpoint.status_of(execution_id))
    execution = _read_execution(response, plan, execution_id)
    return (yield from _follow(plan, execution, _next_poll(response)))


def cancel(plan: Plan, execution_id: str) -> InvocationFlow:
    """Ask for an execution to be cancelled (an extension), and return its new state."""
    url = plan.descriptor.endpoint.status_of(execution_id)
    # An extension: a plain peer answers 404 or 405, which is reported as it is.
    answer = yield Send(WireRequest("DELETE", url, plan.headers))
    if not isinstance(answer, WireResponse):
        raise _unreachable(answer, may_have_run=True)
    return _read_execution(answer, plan, execution_id)


def _submit(
    plan: Plan,
) -> Generator[Send | Pause | Saw, StepResult, tuple[Execution, float | None]]:
    """POST until the call is accepted, refused, or no longer safe to repeat; return
    also when to ask again.
    """
    headers = {
        **plan.headers,
        "content-type": plan.descriptor.endpoint.content_type,
        "accept": "application/json",
    }
    if plan.descriptor.extensions.idempotency_key:
        headers["idempotency-key"] = plan.key
    headers |= _wait_header(plan)
    body = json.dumps(
        plan.request.to_dict(), ensure_ascii=False, separators=(",", ":")
    ).encode()
    request = WireRequest("POST", plan.descriptor.endpoint.url, headers, body)
    unsure = False
    waited = 0.0
    for attempt in itertools.count():
        sent_at = plan.clock()
        answer = yield Send(request)
        # Also the time of the attempt: a server that sends its answers byte by byte
        # takes a minute for each.
        waited += plan.clock() - sent_at
        try:
            failure, may_have_run, hint = _submission_failure(answer)
            unsure = unsure or may_have_run
            if failure is None:
                assert isinstance(answer, WireResponse)
                return _read_execution(answer, plan, None), _next_poll(answer)
        except RemoteError as error:
            # An answer that cannot be read, or is too long, is one to a request that
            # was sent.
            unsure = unsure or error.may_have_run
            document = _with_key(error.document, plan, unsure)
            raise RemoteError(
                document, may_have_run=unsure and not plan.repeatable
            ) from None
        pause = _backoff(plan, attempt, hint)
        # Once an answer was lost, the server may hold the execution, and only the same
        # key finds it. Giving up would leave the caller to order a second time with a
        # new key: the plan's patience counts then, not the attempts that the descriptor
        # allows for plain refusals.
        is_last = waited + pause > plan.patience
        if not (unsure and plan.descriptor.extensions.idempotency_key):
            is_last = (
                is_last
                or (unsure and not plan.may_repeat)
                or attempt + 1 >= plan.retry.max_attempts
            )
        if is_last or _is_too_long(plan, hint):
            raise RemoteError(
                _with_key(failure, plan, unsure),
                may_have_run=unsure and not plan.repeatable,
            )
        waited += pause
        yield Pause(pause)
    raise AssertionError("unreachable")


def _with_key(failure: ErrorDocument, plan: Plan, unsure: bool) -> ErrorDocument:
    """Name the key of a lost submission: sent again under it, the request is the same
    execution.
    """
    if not unsure or not plan.descriptor.extensions.idempotency_key:
        return failure
    return replace(
        failure, details={**(failure.details or {}), "idempotency_key": plan.key}
    )


def _submission_failure(
    answer: StepResult,
) -> tuple[ErrorDocument | None, bool, RetryHint | None]:
    """What stood in the way of a POST and may pass: the error, whether the skill may
    run, and when to try again.
    """
    # What we would not send at all, such as an address inside, is not tried again.
    if isinstance(answer, UnreachableError):
        if answer.is_refused:
            raise _unreachable(answer, may_have_run=answer.was_sent)
        return _unreachable(answer, may_have_run=False).document, answer.was_sent, None
    assert isinstance(answer, WireResponse)
    if answer.status not in _RETRIED:
        return None, False, None
    document = read_error(answer)
    if (
        document is not None
        and document.code == WireCode.EXECUTION_TIMEOUT
        and _has_execution(answer)
    ):
        return (
            None,
            False,
            None,
        )  # a synchronous wait that ended in a timeout: the document says all
    hint = (document.retry if document is not None else None) or RetryHint()
    asked = _retry_after(answer)
    if asked is not None:
        hint = replace(hint, suggested_delay_ms=int(asked * 1000))
    shown = document or ErrorDocument(
        WireCode.ENDPOINT_UNREACHABLE, f"The endpoint answered {answer.status}"
    )
    # A skillruntime server whose database did not answer reports that it may have
    # accepted the request.
    is_unknown = (shown.details or {}).get("accepted") == "unknown"
    may_have_run = is_unknown or answer.status not in _NOT_TAKEN
    return (
        replace(shown, retry=hint if hint != RetryHint() else None),
        may_have_run,
        hint,
    )


def _follow(plan: Plan, execution: Execution, asked: float | None) -> InvocationFlow:
    """Poll until the end, then fetch the result where the status did not bring it."""
    endpoint = plan.descriptor.endpoint
    polls = 0
    while True:
        yield Saw(execution)
        # 6.2, step 3: a status may leave the output to the result's address.
        if execution.status is ExecutionStatus.COMPLETED and not execution.has_output:
            response = yield from _get(plan, endpoint.result_of(execution.execution_id))
            result = _read_result(response, plan, execution)
            if result.is_final:
                return result
        elif execution.is_final:
            return execution
        yield Pause(min(MAX_PAUSE, _poll_interval(plan, polls, asked)))
        response = yield from _get(
            plan, endpoint.status_of(execution.execution_id), _wait_header(plan)
        )
        asked = _next_poll(response)
        seen = _read_execution(response, plan, execution.execution_id)
        # A server that shows an execution running after its end has lost its data, or
        # serves another one under this id.
        if not can_reach(execution.status, seen.status):
            raise _bad_response(
                response,
                f"an execution cannot become {seen.status} once it was "
                f"{execution.status}",
            )
        execution = seen
        polls += 1


def _get(
    plan: Plan, url: str, more: Mapping[str, str] | None = None
) -> Generator[Send | Pause | Saw, StepResult, WireResponse]:
    """GET until there is a usable answer; repeat the request while no answer
    arrives.
    """
    waited, failures = 0.0, 0
    while True:
        sent_at = plan.clock()
        answer = yield Send(
            WireRequest(
                "GET",
                url,
                {**plan.headers, **(more or {}), "accept": "application/json"},
            )
        )
        # What a server refuses for good is an answer; 408 and 429 say that it did not
        # look.
        if (
            isinstance(answer, WireResponse)
            and answer.status < 500
            and answer.status not in (408, 429)
        ):
            return answer
        if isinstance(answer, UnreachableError) and answer.is_refused:
            raise _unreachable(answer, may_have_run=True)
        asked = _retry_after(answer) if isinstance(answer, WireResponse) else None
        hint = RetryHint(int(asked * 1000)) if asked is not None else None
        waited += plan.clock() - sent_at
        pause = _backoff(
            plan, failures, hint, first=min(plan.retry.backoff_ms / 1000, 0.5) or 0.1
        )
        if waited + pause > plan.patience:
            if isinstance(answer, WireResponse):
                raise RemoteError(
                    read_error(answer) or _bad_response(answer, "").document,
                    may_have_run=True,
                )
            raise _unreachable(answer, may_have_run=True)
        waited, failures = waited + pause, failures + 1
        yield Pause(pause)


def _backoff(
    plan: Plan, attempt: int, hint: RetryHint | None, *, first: float | None = None
) -> float:
    """The pause before the next try (6.6): first x 2^n with full jitter in its upper
    half; never below the wish.
    """
    base: float = plan.retry.backoff_ms / 1000 if first is None else first
    pause: float = min(MAX_PAUSE, base * 2.0 ** min(attempt, 16))
    # Clients that failed together must not come back together; half of the pause stays
    # certain.
    pause = pause * (0.5 + 0.5 * plan.jitter())
    if hint is not None and hint.suggested_delay_ms is not None:
        pause = max(pause, hint.suggested_delay_ms / 1000)
    return pause


def _is_too_long(plan: Plan, hint: RetryHint | None) -> bool:
    """Whether the server asks us to stay away for longer than we wait: then the call
    fails at once and says so.
    """
    # A day of maintenance is not worth waiting for inside a call.
    delay = hint.suggested_delay_ms if hint is not None else None
    return delay is not None and delay / 1000 > plan.patience


def _wait_header(plan: Plan) -> dict[str, str]:
    """``Prefer: wait`` (RFC 7240), where the server announces that it waits, and no
    longer than it does.
    """
    # A server that was never asked to wait may close the connection before it answers.
    seconds = min(plan.wait_seconds, plan.descriptor.extensions.wait_seconds)
    return {"prefer": f"wait={seconds:.0f}"} if seconds >= 1 else {}


def _poll_interval(plan: Plan, polls: int, asked: float | None) -> float:
    """The pause before the next poll; *asked* is the server's ``Retry-After``, which
    cannot say less than a second.
    """
    wished = plan.descriptor.extensions.poll_interval_ms
    if asked is not None and (asked != 1 or wished is None):
        return max(
            asked, _FIRST_POLL
        )  # a server that says "now" each time is still not asked without a pause
    if wished is not None:
        return wished / 1000
    return min(_LAST_POLL, _FIRST_POLL * 1.5 ** min(polls, 20))


def _read_execution(
    response: WireResponse, plan: Plan, execution_id: str | None
) -> Execution:
    """Read the execution that *response* shows, or raise what it says, or what is wrong
    with it.
    """
    if not (
        200 <= response.status < 300
        or (response.status == 504 and _has_execution(response))
    ):
        raise _refusal(
            response, may_have_run=execution_id is not None and not plan.repeatable
        )
    try:
        execution = Execution.from_dict(_read_json(response))
    except MessageError as error:
        raise _bad_response(response, str(error)) from None
    if execution_id is not None and execution.execution_id != execution_id:
        raise _bad_response(
            response, "it shows a different execution than the one requested"
        )
    if execution.skill_id and execution.skill_id != plan.descriptor.id:
        raise _bad_response(
            response,
            f"it is about the skill {execution.skill_id!r}, not {plan.descriptor.id!r}",
        )
    return replace(execution, skill_id=plan.descriptor.id)


def _read_result(response: WireResponse, plan: Plan, execution: Execution) -> Execution:
    """Read what the result's address answers: the whole document, or, as in 6.2,
    nothing but ``{output}``.
    """
    if response.status == 200:
        document = _read_json(response)
        if (
            isinstance(document, dict)
            and "output" in document
            and "status" not in document
        ):
            return replace(execution, output=document["output"], has_output=True)
    result = _read_execution(response, plan, execution.execution_id)
    if result.status is ExecutionStatus.COMPLETED and not result.has_output:
        return replace(
            result, has_output=True
        )  # a completed skill that gives nothing gives null
    return result


def _refusal(response: WireResponse, *, may_have_run: bool) -> RemoteError:
    """Return the error for a refusal; an accepted execution may have run."""
    document = read_error(response)
    if document is None:
        if "location" in response.headers:
            # The transport follows a few to the same origin, and none of a POST that
            # would become a GET.
            why = (
                "this redirect is not followed (another origin, a POST that becomes a "
                "GET, or one of many)"
            )
            return _bad_response(
                response, f"{why}; put the final address into the descriptor"
            )
        return _bad_response(response, "it carries no protocol error")
    return RemoteError(document, may_have_run=may_have_run)


def _bad_response(response: WireResponse, why: str) -> RemoteError:
    """The error for an answer that is not the protocol: says what came, and what was
    wrong with it.
    """
    kind = response.headers.get("content-type", "no content type")[:60]
    message = (
        f"The endpoint answered {response.status} ({kind}, {len(response.body)} "
        f"bytes): {why or 'no answer'}"
    )
    may_have_run = response.status < 400 or response.status >= 500
    return RemoteError(
        ErrorDocument(WireCode.ENDPOINT_UNREACHABLE, message), may_have_run=may_have_run
    )


def _unreachable(answer: StepResult, *, may_have_run: bool) -> RemoteError:
    return RemoteError(
        ErrorDocument(WireCode.ENDPOINT_UNREACHABLE, str(answer)),
        may_have_run=may_have_run,
    )


def _read_json(response: WireResponse) -> Any:
    try:
        return parse_json(response.body)
    except MessageError as error:
        start = response.body[:40].decode("utf-8", "replace").strip()
        raise _bad_response(
            response,
            f"the body is not JSON ({error.violations[0]['actual']}): {start!r}",
        ) from None


def read_error(response: WireResponse) -> ErrorDocument | None:
    """Return the error that *response* carries in the protocol's envelope; None if it
    carries none.
    """
    try:
        document = parse_json(response.body)
    except MessageError:
        return None
    return (
        ErrorDocument.from_dict(document.get("error"))
        if isinstance(document, dict)
        else None
    )


def _has_execution(response: WireResponse) -> bool:
    try:
        document = parse_json(response.body)
    except MessageError:
        return False
    return (
        isinstance(document, dict)
        and "execution_id" in document
        and "status" in document
    )


def _next_poll(response: WireResponse) -> float | None:
    """When the server wants to be asked again: at once where it has just waited for
    news, as it was asked to.
    """
    return 0.0 if "preference-applied" in response.headers else _retry_after(response)


def _retry_after(response: WireResponse) -> float | None:
    """The seconds that ``Retry-After`` asks for (RFC 9110, 10.2.3); its other form, a
    date, counts as nothing said.
    """
    text = response.headers.get("retry-after", "")
    return float(text[:9]) if text.isascii() and text.isdecimal() else None
