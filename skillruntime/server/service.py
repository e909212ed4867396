"""Implement the server's side of the protocol: `SkillService.handle` takes a request
and returns its response.

The service is itself a transport: a client connected to it in memory uses the whole
server except the sockets. This module does not depend on Starlette; `app.py` puts the
service on the network.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

import anyio

from skillruntime.remote.descriptor import AuthType, Provider
from skillruntime.remote.http_message import WireRequest, WireResponse
from skillruntime.remote.protocol import Execution, MessageError
from skillruntime.remote.tracing import new_traceparent, trace_id_of
from skillruntime.remote.wire_errors import ErrorDocument, WireCode
from skillruntime.server.callers.access import (
    ANONYMOUS,
    INVOKE,
    READ,
    Authenticator,
    BadCredentialsError,
    Principal,
    identify,
    owner_of,
)
from skillruntime.server.callers.authorization import (
    Call,
    check_operator,
    check_scope,
    find_all,
    find_callable,
    find_skill,
)
from skillruntime.server.callers.rate_limits import Limits, RateLimiter, counted_address
from skillruntime.server.database_health import DatabaseHealth
from skillruntime.server.decisions import DecidedError, Decisions
from skillruntime.server.executions import errors as faults
from skillruntime.server.executions.executions import Executions, is_expired
from skillruntime.server.executions.ticket import Ticket
from skillruntime.server.http import request_parsing as parsing
from skillruntime.server.http import responses
from skillruntime.server.http.openapi import build_openapi
from skillruntime.server.metrics import Metrics
from skillruntime.server.published_skill import PublishedSkill, discovery_document
from skillruntime.server.readiness import Readiness
from skillruntime.server.webhooks import Webhooks

__all__ = ["SkillService"]

_access_log = logging.getLogger("skillruntime.access")
_JSON: Final = {**responses.SECURITY_HEADERS, "content-type": "application/json"}
_PLAIN_TEXT: Final = {
    **responses.SECURITY_HEADERS,
    "content-type": "text/plain; charset=utf-8",
}
_LONGEST_ID: Final = 200
"""The most characters of an execution id; a longer id is not looked up."""
_Handler = Callable[["Call"], Awaitable[WireResponse]]
_Route = tuple[str, re.Pattern[str], dict[str, _Handler]]
"""The name of a route, the pattern of its path, and the handler of each method."""


class SkillService:
    """Serves *skills*, whose executions are in *executions*.

    *authenticate* identifies the caller; without it every caller is anonymous and can
    call public skills only. *secret* derives execution ids from idempotency keys, so
    that they cannot be guessed: keep it with the executions. *metrics* are shared with
    the executions. ``is_ready`` says whether new work is accepted.
    """

    def __init__(
        self,
        skills: Iterable[PublishedSkill],
        executions: Executions,
        *,
        provider: Provider | None = None,
        authenticate: Authenticator | None = None,
        limits: Limits | None = None,
        secret: bytes = b"",
        webhooks: Webhooks | None = None,
        policy: str | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.skills: dict[str, PublishedSkill] = {skill.id: skill for skill in skills}
        self.executions = executions
        self.provider: Provider = provider or Provider("skillruntime")
        self.limits: Limits = limits or Limits()
        self.metrics: Metrics = metrics or Metrics()
        self.is_ready: bool = True
        self._is_stopped = False
        self._waits: set[anyio.CancelScope] = set()
        self._authenticate = authenticate
        self._secret = secret or secrets.token_bytes(32)
        self.decisions: Decisions = Decisions(executions, self._secret)
        self.health: DatabaseHealth = DatabaseHealth(executions)
        self.readiness: Readiness = Readiness()
        self._webhooks = webhooks
        self._policy = policy
        # The descriptor names the header for the key.
        self._key_headers = frozenset(
            skill.descriptor.auth.key_header.lower()
            for skill in self.skills.values()
            if skill.descriptor.auth.type in (AuthType.API_KEY, AuthType.CUSTOM)
        )
        self._invocations = RateLimiter(self.limits.invocations_per_minute)
        # Use two buckets: a client that polls often must still be able to begin
        # executions.
        self._requests = RateLimiter(self.limits.requests_per_minute)
        self._failures = RateLimiter(self.limits.failed_logins_per_minute)
        self._routes: tuple[_Route, ...] = (
            _route("discovery", r"/\.well-known/skill-sharing", GET=self._discovery),
            _route("descriptor", r"/skills/([^/]+)", GET=self._descriptor),
            _route("invoke", r"/skills/([^/]+)/invoke", POST=self._invoke),
            _route("executions", r"/executions", GET=self._list),
            _route(
                "execution",
                r"/executions/([^/]+)",
                GET=self._status,
                DELETE=self._cancel,
            ),
            _route("result", r"/executions/([^/]+)/result", GET=self._status),
            _route("complete", r"/executions/([^/]+)/complete", POST=self._complete),
            _route("release", r"/executions/([^/]+)/release", POST=self._release),
            _route("leave", r"/executions/([^/]+)/leave", POST=self._leave),
            _route("webhook-secret", r"/webhook-secret", GET=self._webhook_secret),
            _route("openapi", r"/openapi\.json", GET=self._openapi),
            _route("health", r"/health", GET=self._health),
            _route("ready", r"/ready", GET=self._ready),
            _route("metrics", r"/metrics", GET=self._metrics),
        )
        self.metrics.announce(self.skills, self._methods())

    def _methods(self) -> Iterator[tuple[str, str]]:
        """Yield each route's methods with its name."""
        for name, _, handlers in self._routes:
            for method in handlers:
                yield method, name

    async def handle(self, request: WireRequest) -> WireResponse:
        """Return the response to *request*; an unexpected exception becomes a 500."""
        started = time.perf_counter()
        name = "none"
        call = Call(request, ())
        try:
            name, handler, call.parts = self._find(request)
            # Monitoring has no key, and must be answered while the database is
            # unavailable.
            if name not in ("health", "ready"):
                await self._identify_caller(call)
                self._count_request(call)
            response = await handler(call)
        except Exception as error:
            response = responses.answer_to(error, request)
        if request.method == "HEAD":
            response = responses.without_content(response)
        seconds = time.perf_counter() - started
        # If the address does not exist, the method may be any text that the caller
        # chose.
        method = request.method if name != "none" else "?"
        self.metrics.count_request(method, name, response.status, seconds)
        _log_request(call, name, response.status, seconds)
        return response

    async def identify(self, request: WireRequest) -> Call:
        """Return *request* with its caller, for the pages of the console.

        Raises:
            RefusedError: too many requests, or too many failed attempts.
        """
        call = Call(request, ())
        # The page itself is not counted in the caller's rate, but its later requests
        # are.
        await self._identify_caller(call)
        return call

    def refuse_work(self) -> None:
        """Refuse new executions with 503 from now on; other requests are answered as
        before.
        """
        self.is_ready = False

    def stop(self) -> None:
        """Stop accepting work and wake every waiting client; accepted executions
        continue, here or later.
        """
        self.is_ready = False
        self._is_stopped = True
        for scope in tuple(self._waits):
            scope.cancel()

    async def _identify_caller(
        self, call: Call, credentials: Mapping[str, Any] | None = None
    ) -> None:
        """Set the caller of *call*, from the headers and from *credentials*, the
        credentials in the body.

        Raises:
            RefusedError: too many failed attempts.
        """
        try:
            principal = await self._authenticated(call.request, credentials)
        except BadCredentialsError:
            # Only failures are counted here: an attacker's guesses never delay valid
            # credentials.
            wait = self._failures.take(counted_address(call.request.peer))
            if wait:
                raise responses.refuse_rate(
                    wait, "Too many failed attempts to authenticate"
                ) from None
            call.was_bad = True
            return
        if principal is not None:
            call.principal = principal

    def _count_request(self, call: Call) -> None:
        """Count *call* towards its caller's rate.

        Raises:
            RefusedError: too many requests.
        """
        wait = self._requests.take(call.rated)
        if wait:
            raise responses.refuse_rate(wait)

    async def _authenticated(
        self, request: WireRequest, credentials: Mapping[str, Any] | None
    ) -> Principal | None:
        """Return the caller of *request*; None without credentials, or if the service
        does not authenticate.

        Raises:
            BadCredentialsError: the credentials are not valid.
        """
        if self._authenticate is None:
            return None
        return await identify(
            self._authenticate,
            parsing.with_key_header(request, self._key_headers),
            credentials,
        )

    async def _is_still(
        self,
        owner: str,
        request: WireRequest,
        credentials: Mapping[str, Any] | None = None,
    ) -> bool:
        """Return whether *request* still authenticates as *owner*: a caller's key or
        token may be revoked while the caller waits.
        """
        try:
            principal = await self._authenticated(request, credentials)
        except BadCredentialsError:
            return False
        except responses.RefusedError:  # cannot be checked now
            return True
        return owner == owner_of(principal)

    async def _find_execution(self, call: Call) -> tuple[Ticket, Execution]:
        """Return the execution in the call's path, and its ticket; another caller's
        execution counts as absent.

        Raises:
            RefusedError: the execution does not exist, or its result has expired.
        """
        # A caller whose key was revoked must not conclude that its execution is lost.
        if call.was_bad:
            raise responses.refuse_login(None)
        _check_execution_scope(call)
        execution_id = call.parts[0]
        if len(execution_id) > _LONGEST_ID:
            raise _refuse_unknown_execution()
        stored = await self.executions.get(execution_id)
        if stored is None or not _may_see(call, stored[0]):
            raise _refuse_unknown_execution()
        ticket, execution = stored
        call.skill_id = ticket.skill_id
        call.trace_id = ticket.trace_id or ""
        if is_expired(execution, self.executions.now()):
            raise responses.refuse_expired(execution)
        return stored

    async def _discovery(self, call: Call) -> WireResponse:
        """Return the discovery document (invocation protocol, section 5) with the
        skills that this caller may see; with ``?tag=`` only the skills with one of
        these tags.
        """
        wanted = parsing.read_tags(call.request)
        visible = find_all(call, self.skills)
        if wanted:
            visible = [skill for skill in visible if _has_tag(skill, wanted)]
        return responses.answer_json(
            call.request, discovery_document(self.provider, visible)
        )

    async def _descriptor(self, call: Call) -> WireResponse:
        return responses.answer_json(
            call.request, find_skill(call, self.skills).descriptor.to_dict()
        )

    async def _invoke(self, call: Call) -> WireResponse:
        """Begin an execution (invocation protocol, section 6.2, step 1). Once the 202 is
        sent, the execution is not lost.
        """
        request = call.request
        # Check this before reading the body: another MAJOR version may give the same
        # fields other meanings (invocation protocol, section 8).
        parsing.check_protocol_header(request)
        # Read the body before identifying the caller: credentials of a custom scheme
        # are in the body.
        document = parsing.read_body(request)
        # Record this for the log now, because the request may still be refused.
        call.trace_id = parsing.stated_trace(document)
        credentials = parsing.credentials_in(document)
        # A GET has no body. So an execution that was begun with credentials in the body
        # is open to anyone who knows its id.
        is_open = (
            call.principal is None
            and credentials is not None
            and "api_key" not in credentials
        )
        # If both the header and the body have credentials, they must agree.
        if credentials is not None and not call.was_bad:
            await self._identify_caller(call, credentials)
        served = find_callable(call, self.skills)
        invocation = parsing.read_invocation(served, document, principal=call.principal)
        wait = self._invocations.take(call.rated)
        if wait:
            raise responses.refuse_rate(wait)
        # Refuse new work only after the checks, so that a draining server still reports
        # a request's errors.
        if not self.is_ready:
            raise responses.refuse_for_now(2, "The server is stopping")
        ticket = parsing.make_ticket(
            request,
            served,
            invocation,
            principal=call.principal,
            secret=self._secret,
            longest=self.limits.timeout_seconds,
            policy=self._policy,
            is_open=is_open,
        )
        if ticket.webhook is not None:
            await self._check_webhook(ticket.webhook, call)
        execution = await self._submit(ticket)
        # RFC 9110, 15.3.3: a 202 should say where to look.
        headers = {
            "location": served.descriptor.endpoint.status_of(execution.execution_id)
        }
        parent = new_traceparent(ticket.trace_id)
        if parent is not None:
            headers["traceparent"] = parent
        seconds = parsing.preferred_wait(request, self.limits.wait_seconds)
        if seconds > 0:
            headers["preference-applied"] = f"wait={seconds:g}"  # RFC 7240, section 3
            waited = await self._wait(execution, seconds)
            # A caller whose key was revoked meanwhile learns that the work was accepted,
            # and does not receive the result.
            if await self._is_still(call.owner, request, credentials):
                execution = waited
        return _show(call, execution, headers, is_first=True)

    async def _check_webhook(self, address: str, call: Call) -> None:
        """Check that the caller may have an execution's end reported to *address*.

        Raises:
            MessageError: *address* is not allowed, or the caller is anonymous.
        """
        is_allowed = (
            self._webhooks is not None
            and call.principal is not None
            and await self._webhooks.allows(address)
        )
        if not is_allowed:
            raise MessageError.at(
                "/context/webhook",
                "a public address, from an authenticated caller",
                "another",
            )

    async def _submit(self, ticket: Ticket) -> Execution:
        """Return the execution of *ticket*: a new one, or an earlier request's
        execution under the same idempotency key.

        Raises:
            RefusedError: the ticket was not accepted, or the result has expired.
        """
        try:
            submitted = await self.executions.submit(
                ticket, most_unfinished=self.limits.unfinished_per_caller
            )
        except faults.TooManyError:
            raise responses.refuse_rate(
                5, "You have too many unfinished executions"
            ) from None
        except faults.DatabaseAwayError as error:
            raise responses.refuse_for_database(
                error, "the same Idempotency-Key finds the execution"
            ) from None
        except faults.KeyReusedError:
            # The IETF draft of the Idempotency-Key header, section 2.7, requires 422,
            # not 409.
            message = "This Idempotency-Key was used before with a different request"
            raise responses.refuse(WireCode.IDEMPOTENCY_KEY_REUSED, message) from None
        execution = submitted.execution
        if submitted.is_new:
            self.metrics.count_accepted(ticket.skill_id)
        elif is_expired(execution, self.executions.now()):
            # The key belongs to an execution whose result is no longer kept. It must
            # not run again, and cannot be shown.
            raise responses.refuse_expired(execution)
        return execution

    async def _status(self, call: Call) -> WireResponse:
        """Return the execution as it is now, with ``Retry-After`` until it has ended;
        the result's address gives the same answer.
        """
        _, execution = await self._find_execution(call)
        seconds = parsing.preferred_wait(call.request, self.limits.wait_seconds)
        headers = {}
        if seconds > 0:
            headers["preference-applied"] = f"wait={seconds:g}"
            execution = await self._wait(execution, seconds)
            # A caller whose key was revoked meanwhile does not receive the result.
            if not await self._is_still(call.owner, call.request):
                raise responses.refuse_login(None)
        return _show(call, execution, headers)

    async def _cancel(self, call: Call) -> WireResponse:
        _, current = await self._find_execution(call)
        responses.check_match(
            call.request, current.to_dict(plain=not call.knows_cancelled)
        )
        execution = await self.executions.cancel(call.parts[0])
        if execution is None:
            raise _refuse_unknown_execution()
        return _show(call, execution)

    async def _complete(self, call: Call) -> WireResponse:
        """End a task from outside: the worker reports its result."""
        check_operator(call, "complete a task")
        ticket, _ = await self._find_execution(call)
        outcome = parsing.read_completion(
            self.skills.get(ticket.skill_id), parsing.read_body(call.request)
        )
        try:
            execution = await self.executions.complete(ticket.execution_id, outcome)
        except faults.NotATaskError:
            raise responses.refuse(
                WireCode.CONFLICT,
                "The execution is not a task that waits for completion",
            ) from None
        return _show(call, execution)

    async def _release(self, call: Call) -> WireResponse:
        """Run an interrupted execution again as a new execution (an extension)."""
        check_operator(call, "release an execution")
        ticket, execution = await self._find_execution(call)
        try:
            # Operators who release an execution at the same time, or again after a lost
            # answer, get the same new execution.
            again = await self.decisions.run_again(ticket, execution)
        except (faults.NotHeldError, DecidedError) as error:
            raise _refuse_decision(error) from None
        return _show(call, again, is_first=True)

    async def _leave(self, call: Call) -> WireResponse:
        """Decide that an interrupted execution does not run again (an extension)."""
        check_operator(call, "leave an execution")
        ticket, execution = await self._find_execution(call)
        try:
            await self.decisions.leave(ticket, execution)
        except (faults.NotHeldError, DecidedError) as error:
            raise _refuse_decision(error) from None
        return _show(call, execution)

    async def _list(self, call: Call) -> WireResponse:
        """Return the caller's own executions, the newest first; an operator may ask for
        everyone's with ``all=1``. With ``interrupted=1``, return only interrupted
        executions that are not decided.
        """
        if call.principal is None:
            raise responses.refuse_login(None)
        check_scope(call.principal.may_read, READ)
        asked = parsing.read_page_query(call.request)
        owner: str | None = call.owner
        if asked.wants_all and call.principal.is_operator:
            owner = None
        try:
            if asked.wants_interrupted:
                page = await self.decisions.undecided(
                    owner, limit=asked.limit, cursor=asked.cursor
                )
            else:
                page = await self.executions.list(
                    owner, limit=asked.limit, cursor=asked.cursor
                )
        except ValueError:
            raise MessageError.at("/cursor", "a next_cursor of this list") from None
        shown = [
            execution.to_dict(plain=not call.knows_cancelled)
            for execution in page.executions
        ]
        for document in shown:
            document.pop("output", None)
        answer: dict[str, Any] = {"executions": shown}
        if page.next_cursor is not None:
            answer["next_cursor"] = page.next_cursor
        return responses.answer_json(call.request, answer)

    async def _webhook_secret(self, call: Call) -> WireResponse:
        """Return the secret that signs the caller's webhooks."""
        if call.principal is None:
            raise responses.refuse_login(None)
        if self._webhooks is None:
            raise responses.refuse(WireCode.NOT_FOUND, "Nothing exists at this address")
        return responses.answer_json(
            call.request, {"secret": self._webhooks.secret_of(call.owner)}
        )

    async def _openapi(self, call: Call) -> WireResponse:
        visible = [skill.descriptor for skill in find_all(call, self.skills)]
        return responses.answer_json(
            call.request, build_openapi(visible, self.provider)
        )

    async def _health(self, call: Call) -> WireResponse:
        return WireResponse(200, _JSON, b'{"status":"ok"}')

    async def _ready(self, call: Call) -> WireResponse:
        status = "ready"
        try:
            # Any read will do; an execution with this id does not exist.
            await self.executions.get("none")
        except faults.DatabaseAwayError:
            status = "database away"
        else:
            if not self.health.takes_writes:
                status = "database takes no writes"
            elif not self.is_ready:
                status = "stopping"
        is_ready = status == "ready"
        self.readiness.note(call.request, is_ready=is_ready)
        body = json.dumps({"status": status}, separators=(",", ":")).encode()
        return WireResponse(200 if is_ready else 503, _JSON, body)

    async def _metrics(self, call: Call) -> WireResponse:
        if self._authenticate is not None and call.principal is None:
            raise responses.refuse_login(None)
        counts: Mapping[str, int] | None = None
        with suppress(faults.DatabaseAwayError):
            counts = await self.executions.counts()
        text = self.metrics.to_text(counts, takes_writes=self.health.takes_writes)
        return WireResponse(200, _PLAIN_TEXT, text.encode())

    def _find(self, request: WireRequest) -> tuple[str, _Handler, tuple[str, ...]]:
        """Return the route of a request: its name, its handler, and the variable parts
        of the path.

        Raises:
            RefusedError: the address does not exist.
        """
        path = request.path
        # HEAD is GET without the content (RFC 9110, 9.3.2).
        method = "GET" if request.method == "HEAD" else request.method
        for name, pattern, handlers in self._routes:
            match = pattern.fullmatch(path)
            if match is None:
                continue
            handler = handlers.get(method)
            if handler is None:
                raise _refuse_method(handlers)
            return name, handler, tuple(unquote(part) for part in match.groups())
        raise responses.refuse(WireCode.NOT_FOUND, "Nothing exists at this address")

    async def _wait(self, execution: Execution, seconds: float) -> Execution:
        """Wait for the execution's end, but not longer than *seconds*."""
        last = execution
        # A long poll must not delay a stopping server, so it returns the latest state.
        with anyio.move_on_after(0 if self._is_stopped else seconds) as scope:
            self._waits.add(scope)
            try:
                async for state in self.executions.watch(execution.execution_id):
                    last = state
            finally:
                self._waits.discard(scope)
        return last


def _route(name: str, pattern: str, **handlers: _Handler) -> _Route:
    return name, re.compile(pattern), handlers


def _refuse_method(handlers: Iterable[str]) -> responses.RefusedError:
    """Return the 405 of an address that accepts only these methods."""
    methods = list(handlers)
    if "GET" in methods:
        methods.append("HEAD")
    allowed = ", ".join(methods)
    refusal = ErrorDocument(
        WireCode.METHOD_NOT_ALLOWED, f"This address takes {allowed}"
    )
    return responses.RefusedError(refusal, {"allow": allowed})


def _refuse_decision(
    error: faults.NotHeldError | DecidedError,
) -> responses.RefusedError:
    """Return the 409 for a decision that cannot be made."""
    message = "The execution is neither interrupted nor held"
    if isinstance(error, DecidedError):
        message = str(error)
    return responses.refuse(WireCode.CONFLICT, message)


def _refuse_unknown_execution() -> responses.RefusedError:
    return responses.refuse(
        WireCode.EXECUTION_NOT_FOUND, "The execution does not exist"
    )


def _check_execution_scope(call: Call) -> None:
    """Check that the caller's scopes allow this request for an execution.

    Raises:
        RefusedError: the scopes do not allow the request.
    """
    principal = call.principal
    if call.request.method in ("DELETE", "POST"):
        check_scope(principal is None or principal.may_invoke, INVOKE)
    else:
        check_scope(principal is None or principal.may_read, READ)


def _may_see(call: Call, ticket: Ticket) -> bool:
    """Return whether the caller may see the execution of *ticket*."""
    if call.principal is not None and call.principal.is_operator:
        return True
    if ticket.is_open:
        return True
    # Unguessable ids protect an anonymous caller's executions.
    return ticket.owner in (call.owner, ANONYMOUS)


def _has_tag(skill: PublishedSkill, wanted: set[str]) -> bool:
    """Return whether *skill* has one of the *wanted* tags, in lower case."""
    tags = {tag.lower() for tag in skill.descriptor.tags}
    return not wanted.isdisjoint(tags)


def _show(
    call: Call,
    execution: Execution,
    headers: Mapping[str, str] | None = None,
    *,
    is_first: bool = False,
) -> WireResponse:
    plain = not call.knows_cancelled
    return responses.show_execution(
        call.request, execution, headers or {}, plain=plain, is_first=is_first
    )


def _log_request(call: Call, route: str, status: int, seconds: float) -> None:
    """Log one request as a line of JSON. The line never contains a key, an input, an
    output, or a path that a caller made up.
    """
    # Building the line costs as much as a poll, so build it only if it is logged.
    if not _access_log.isEnabledFor(logging.INFO):
        return
    stated_trace = trace_id_of(call.request.headers.get("traceparent", ""))
    entry = {
        "method": call.request.method[:10],
        "route": route,
        "status": status,
        "ms": round(seconds * 1000, 1),
        "caller": call.owner,
        "skill": call.skill_id,
        "peer": call.request.peer,
        "trace_id": call.trace_id or stated_trace,
    }
    known = {name: value for name, value in entry.items() if value not in ("", None)}
    _access_log.info(json.dumps(known))
