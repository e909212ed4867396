"""The client's side of one invocation, as a generator that yields steps and is sent
their results. No I/O.

    plan -> POST -> accepted -> GET status, pause, ... -> GET result -> the final
    `Execution`

The driver owns sockets, time and credentials; every decision is here: which request may
be sent again without running the skill twice, how long to pause, and whether an answer
follows the protocol.
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
"""Seconds, at most, of one pause of our own backoff or polling."""

_FIRST_POLL: Final = 0.1
_LAST_POLL: Final = 5.0
"""Seconds between two polls, where the server does not say how long to wait."""
_MOST_ATTEMPTS: Final = 10
"""Attempts at a call that timed out, even if the server suggests more."""
_RETRIED: Final = frozenset({408, 429, 502, 503, 504})
_REFUSED_ADDRESS: Final = (
    "Report to the user that this program does not send calls to this address; "
    "continue without this skill"
)
# With these statuses the server did not accept the request; by RFC 9110, 15.5.9, a
# request may be repeated after 408.
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
    """Report the current state of the execution, to store its id or show its progress.
    Send back None.
    """

    execution: Execution


StepResult: TypeAlias = WireResponse | UnreachableError | None
InvocationFlow: TypeAlias = Generator[Send | Pause | Saw, StepResult, Execution]


@dataclass(frozen=True, slots=True)
class Plan:
    """One invocation, and how long and how often to try it.

    ``key`` is the idempotency key; ``repeatable`` says that the skill may run twice
    without harm; ``jitter`` gives numbers from 0 to 1; ``patience`` is how many seconds
    requests may fail in a row, with pauses and slow answers counted, and for how long a
    server may ask us to stay away; ``clock`` measures them.
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
        """How often to try a POST that the server did not receive."""
        return self.descriptor.endpoint.retry or RetryPolicy()

    @property
    def has_key(self) -> bool:
        """Whether the server recognizes a repeated request by its key."""
        return self.descriptor.extensions.idempotency_key

    @property
    def may_repeat(self) -> bool:
        """Whether a POST whose answer was lost may be sent again: the server recognizes
        it, or a second run does no harm.
        """
        return self.repeatable or self.has_key


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failed POST that may be sent again.

    ``may_have_run`` says that the skill may have run because of it; ``hint`` is the
    server's suggestion of when to try again.
    """

    document: ErrorDocument
    may_have_run: bool
    hint: RetryHint | None = None


def check_protocol(descriptor: SkillDescriptor) -> None:
    """Check before any request that the descriptor's protocol has our MAJOR version
    (invocation protocol, section 8).

    Raises:
        RemoteError: the MAJOR versions differ.
    """
    # MINOR versions add fields, which are ignored where they are unknown.
    stated = descriptor.protocol.version
    ours = Version.parse(PROTOCOL_VERSION).major
    if Version.parse(stated).major == ours:
        return
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
    """Return the refusal of a protocol version (invocation protocol, section 8)."""
    message = (
        f"Protocol {details['descriptor_version']} is not "
        f"{details['consumer_supported_range']}"
    )
    return ErrorDocument(WireCode.VERSION_INCOMPATIBLE, message, details)


def invoke(plan: Plan) -> InvocationFlow:
    """Invoke the skill and follow the execution to its end.

    After a timeout the skill is invoked again, with the delay that the server suggests,
    if a second run does no harm.

    Raises:
        RemoteError: the server refused, was unreachable, or did not follow the
            protocol.
    """
    check_protocol(plan.descriptor)
    attempt = 0
    while True:
        execution, next_poll = yield from _submit(plan)
        final = yield from _follow(plan, execution, next_poll)
        attempt += 1
        hint = final.error.retry if final.error is not None else None
        if final.status is not ExecutionStatus.TIMEOUT:
            return final
        if not _may_try_again(plan, attempt, hint):
            return final
        yield Pause(_backoff(plan, attempt - 1, hint))
        # Another attempt is another execution, and needs another key.
        plan = replace(plan, key=f"{plan.key}-{attempt}")


def _may_try_again(plan: Plan, attempts: int, hint: RetryHint | None) -> bool:
    """Return whether a skill that timed out may be invoked again after so many
    *attempts*.
    """
    if not plan.repeatable:
        return False
    # 6.6: the timeout document itself says how often.
    if hint is None or hint.max_attempts is None:
        return False
    if attempts >= min(hint.max_attempts, _MOST_ATTEMPTS):
        return False
    return not _is_too_long(plan, hint)


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
    """POST until the call is accepted, refused, or no longer safe to repeat.

    Return the execution, and the seconds until the server wants to be asked again.
    """
    request = _submission(plan)
    may_have_run = False  # by any attempt so far
    waited = 0.0
    for attempt in itertools.count():
        sent_at = plan.clock()
        answer = yield Send(request)
        # Count the time of the attempt too: a server that sends an answer byte by byte
        # takes a minute for each.
        waited += plan.clock() - sent_at
        try:
            failure = _submission_failure(answer)
            if failure is None:
                assert isinstance(answer, WireResponse)
                return _read_execution(answer, plan, None), _next_poll(answer)
        except RemoteError as error:
            # If the answer is unreadable or too long, the request was still sent.
            may_have_run = may_have_run or error.may_have_run
            raise _given_up(plan, error.document, may_have_run) from None
        may_have_run = may_have_run or failure.may_have_run
        pause = _backoff(plan, attempt, failure.hint)
        is_last = waited + pause > plan.patience or _is_too_long(plan, failure.hint)
        # Once an answer was lost, the server may hold the execution, and only the same
        # key finds it. Giving up would leave the caller to order a second time with a
        # new key: only the plan's patience counts then, not the attempts that the
        # descriptor allows for plain refusals.
        if not (may_have_run and plan.has_key):
            is_last = is_last or attempt + 1 >= plan.retry.max_attempts
        if may_have_run and not plan.may_repeat:
            is_last = True
        if is_last:
            raise _given_up(plan, failure.document, may_have_run)
        waited += pause
        yield Pause(pause)
    raise AssertionError("unreachable")


def _submission(plan: Plan) -> WireRequest:
    """Return the POST that begins the execution."""
    endpoint = plan.descriptor.endpoint
    headers = {
        **plan.headers,
        "content-type": endpoint.content_type,
        "accept": "application/json",
    }
    if plan.has_key:
        headers["idempotency-key"] = plan.key
    headers |= _wait_header(plan)
    document = plan.request.to_dict()
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return WireRequest("POST", endpoint.url, headers, text.encode())


def _given_up(plan: Plan, document: ErrorDocument, may_have_run: bool) -> RemoteError:
    """Return the error for a submission that will not be repeated."""
    if may_have_run and plan.has_key:
        # A repeated request with this key is the same execution.
        details = {**(document.details or {}), "idempotency_key": plan.key}
        document = replace(document, details=details)
    return RemoteError(document, may_have_run=may_have_run and not plan.repeatable)


def _submission_failure(answer: StepResult) -> _Failure | None:
    """Return the failure of a POST that may be repeated; None if *answer* accepts it.

    Raises: RemoteError: the POST was not accepted and must not be repeated.
    """
    if isinstance(answer, UnreachableError):
        # We refused to send the request, for example to a private address.
        if answer.is_refused:
            raise _unreachable(answer, may_have_run=answer.was_sent)
        error = _unreachable(answer, may_have_run=False)
        return _Failure(error.document, answer.was_sent)
    assert isinstance(answer, WireResponse)
    if answer.status not in _RETRIED:
        return None
    document = read_error(answer)
    if document is None:
        message = f"The endpoint answered {answer.status}"
        document = ErrorDocument(WireCode.ENDPOINT_UNREACHABLE, message)
    elif document.code == WireCode.EXECUTION_TIMEOUT and _has_execution(answer):
        # The request was accepted, and its execution timed out before the answer.
        return None
    hint = document.retry or RetryHint()
    delay = _retry_after(answer)
    if delay is not None:
        hint = replace(hint, suggested_delay_ms=int(delay * 1000))
    # A skillruntime server whose database did not answer reports that it may have
    # accepted the request.
    is_unknown = (document.details or {}).get("accepted") == "unknown"
    may_have_run = is_unknown or answer.status not in _NOT_TAKEN
    shown = replace(document, retry=None if hint == RetryHint() else hint)
    return _Failure(shown, may_have_run, hint)


def _follow(
    plan: Plan, execution: Execution, next_poll: float | None
) -> InvocationFlow:
    """Poll until the execution has ended, then fetch its result if the status did not
    contain it.

    *next_poll* is the delay that the server asked for, in seconds, or None.
    """
    endpoint = plan.descriptor.endpoint
    polls = 0
    while True:
        yield Saw(execution)
        # 6.2, step 3: a status may omit the output, which is at the result's address.
        if execution.status is ExecutionStatus.COMPLETED and not execution.has_output:
            response = yield from _get(plan, endpoint.result_of(execution.execution_id))
            result = _read_result(response, plan, execution)
            if result.is_final:
                return result
        elif execution.is_final:
            return execution
        yield Pause(min(MAX_PAUSE, _poll_interval(plan, polls, next_poll)))
        status_url = endpoint.status_of(execution.execution_id)
        response = yield from _get(plan, status_url, _wait_header(plan))
        next_poll = _next_poll(response)
        update = _read_execution(response, plan, execution.execution_id)
        # A server that shows an execution as running after its end has lost its data,
        # or serves another execution under this id.
        if not can_reach(execution.status, update.status):
            why = (
                f"an execution cannot become {update.status} once it was "
                f"{execution.status}"
            )
            raise _bad_response(response, why)
        execution = update
        polls += 1


def _get(
    plan: Plan, url: str, more: Mapping[str, str] | None = None
) -> Generator[Send | Pause | Saw, StepResult, WireResponse]:
    """Repeat a GET until a usable answer arrives."""
    headers = {**plan.headers, **(more or {}), "accept": "application/json"}
    request = WireRequest("GET", url, headers)
    # A GET may be repeated sooner than a POST.
    first_pause = min(plan.retry.backoff_ms / 1000, 0.5) or 0.1
    waited = 0.0
    failures = 0
    while True:
        sent_at = plan.clock()
        answer = yield Send(request)
        hint = None
        if isinstance(answer, WireResponse):
            # A final refusal is an answer; with 408 and 429 the server did not process
            # the request.
            if answer.status < 500 and answer.status not in (408, 429):
                return answer
            delay = _retry_after(answer)
            if delay is not None:
                hint = RetryHint(int(delay * 1000))
        elif isinstance(answer, UnreachableError) and answer.is_refused:
            raise _unreachable(answer, may_have_run=True)
        waited += plan.clock() - sent_at
        pause = _backoff(plan, failures, hint, first=first_pause)
        if waited + pause > plan.patience:
            if isinstance(answer, WireResponse):
                document = read_error(answer) or _bad_response(answer, "").document
                raise RemoteError(document, may_have_run=True)
            raise _unreachable(answer, may_have_run=True)
        waited += pause
        failures += 1
        yield Pause(pause)


def _backoff(
    plan: Plan, attempt: int, hint: RetryHint | None, *, first: float | None = None
) -> float:
    """Return the seconds before the next attempt (6.6): *first* x 2^attempt, of which
    the upper half is random, but never less than the server suggests.
    """
    if first is None:
        first = plan.retry.backoff_ms / 1000
    pause: float = min(MAX_PAUSE, first * 2.0 ** min(attempt, 16))
    # Clients that failed at the same time must not all return at the same time, so half
    # of the pause is random.
    pause = pause * (0.5 + 0.5 * plan.jitter())
    if hint is not None and hint.suggested_delay_ms is not None:
        pause = max(pause, hint.suggested_delay_ms / 1000)
    return pause


def _is_too_long(plan: Plan, hint: RetryHint | None) -> bool:
    """Return whether the server asks for a longer pause than the plan's patience, such
    as a day of maintenance; the call then fails at once.
    """
    if hint is None or hint.suggested_delay_ms is None:
        return False
    return hint.suggested_delay_ms / 1000 > plan.patience


def _wait_header(plan: Plan) -> dict[str, str]:
    """Return the header ``Prefer: wait`` (RFC 7240), with at most the seconds that the
    server announces; nothing if it announces none.
    """
    # A server that does not announce it might close the connection before it answers.
    seconds = min(plan.wait_seconds, plan.descriptor.extensions.wait_seconds)
    if seconds < 1:
        return {}
    return {"prefer": f"wait={seconds:.0f}"}


def _poll_interval(plan: Plan, polls: int, next_poll: float | None) -> float:
    """Return the seconds before the next poll; *next_poll* is the delay that the last
    answer asked for, or None.
    """
    announced = plan.descriptor.extensions.poll_interval_ms
    # ``Retry-After`` cannot be less than a second; the descriptor's interval can.
    if next_poll is not None and (next_poll != 1 or announced is None):
        # Pause even if the server asks for 0 seconds.
        return max(next_poll, _FIRST_POLL)
    if announced is not None:
        return announced / 1000
    return min(_LAST_POLL, _FIRST_POLL * 1.5 ** min(polls, 20))


def _read_execution(
    response: WireResponse, plan: Plan, execution_id: str | None
) -> Execution:
    """Parse the execution in *response*; without *execution_id* it has just begun.

    Raises: RemoteError: *response* is a refusal, or breaks the protocol.
    """
    is_success = 200 <= response.status < 300
    # The server waited with its answer until the execution had timed out.
    is_timeout = response.status == 504 and _has_execution(response)
    if not is_success and not is_timeout:
        may_have_run = execution_id is not None and not plan.repeatable
        raise _refusal(response, may_have_run=may_have_run)
    try:
        execution = Execution.from_dict(_read_json(response))
    except MessageError as error:
        raise _bad_response(response, str(error)) from None
    if execution_id is not None and execution.execution_id != execution_id:
        raise _bad_response(
            response, "it shows a different execution than the one requested"
        )
    expected_id = plan.descriptor.id
    if execution.skill_id and execution.skill_id != expected_id:
        raise _bad_response(
            response,
            f"it is about the skill {execution.skill_id!r}, not {expected_id!r}",
        )
    return replace(execution, skill_id=expected_id)


def _read_result(response: WireResponse, plan: Plan, execution: Execution) -> Execution:
    """Return *execution* with its result. *response* is the complete document or, as in
    6.2, only ``{output}``.
    """
    if response.status == 200:
        document = _read_json(response)
        is_object = isinstance(document, dict)
        if is_object and "output" in document and "status" not in document:
            return replace(execution, output=document["output"], has_output=True)
    result = _read_execution(response, plan, execution.execution_id)
    if result.status is ExecutionStatus.COMPLETED and not result.has_output:
        # A skill that completes without an output returns null.
        return replace(result, has_output=True)
    return result


def _refusal(response: WireResponse, *, may_have_run: bool) -> RemoteError:
    """Return the error for a refusal; an accepted execution may have run."""
    document = read_error(response)
    if document is not None:
        return RemoteError(document, may_have_run=may_have_run)
    if "location" in response.headers:
        # The transport follows redirects to the same origin, except those that would
        # turn a POST into a GET.
        why = (
            "this redirect is not followed (another origin, a POST that becomes a "
            "GET, or one of many)"
        )
        return _bad_response(
            response, f"{why}; put the final address into the descriptor"
        )
    return _bad_response(response, "it carries no protocol error")


def _bad_response(response: WireResponse, why: str) -> RemoteError:
    """Return the error for an answer that breaks the protocol; it describes the answer
    and the reason.
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
    details = None
    # An answer that is too long is refused too, but its address was asked.
    if (
        isinstance(answer, UnreachableError)
        and answer.is_refused
        and not answer.was_sent
    ):
        details = {"recoverable": False, "suggested_action": _REFUSED_ADDRESS}
    return RemoteError(
        ErrorDocument(WireCode.ENDPOINT_UNREACHABLE, str(answer), details),
        may_have_run=may_have_run,
    )


def _read_json(response: WireResponse) -> Any:
    try:
        return parse_json(response.body)
    except MessageError as error:
        start = response.body[:40].decode("utf-8", "replace").strip()
        reason = error.violations[0]["actual"]
        raise _bad_response(
            response, f"the body is not JSON ({reason}): {start!r}"
        ) from None


def read_error(response: WireResponse) -> ErrorDocument | None:
    """Return the error that *response* carries in the protocol's envelope; None if it
    carries none.
    """
    try:
        document = parse_json(response.body)
    except MessageError:
        return None
    if not isinstance(document, dict):
        return None
    return ErrorDocument.from_dict(document.get("error"))


def _has_execution(response: WireResponse) -> bool:
    """Return whether *response* looks like the document of an execution."""
    try:
        document = parse_json(response.body)
    except MessageError:
        return False
    if not isinstance(document, dict):
        return False
    return "execution_id" in document and "status" in document


def _next_poll(response: WireResponse) -> float | None:
    """Return the seconds until the server wants to be asked again: 0 if it has just
    held its answer back as requested.
    """
    if "preference-applied" in response.headers:
        return 0.0
    return _retry_after(response)


def _retry_after(response: WireResponse) -> float | None:
    """Return the seconds that ``Retry-After`` asks for (RFC 9110, 10.2.3); its other
    form, a date, counts as absent.
    """
    text = response.headers.get("retry-after", "")
    if not text.isascii() or not text.isdecimal():
        return None
    return float(text[:9])
