"""Call remote skills: `RemoteClient` speaks to one skill, and `RemoteRunner` makes it a
runner for the runtime.

The flow makes every decision. This module drives it: it sends requests, waits, and
shows credentials only to the skill's own origin.
"""

from __future__ import annotations

import json
import math
import random
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import anyio

from skillruntime.catalog.skill import Skill
from skillruntime.catalog.visibility import visible_text
from skillruntime.contract.contract import Contract
from skillruntime.contract.document.form import may_be_repeated
from skillruntime.errors import (
    ErrorCode,
    InvalidSkillError,
    SkillError,
    SkillInputError,
)
from skillruntime.remote import invocation_flow
from skillruntime.remote.credentials import Credentials, from_environment
from skillruntime.remote.descriptor import (
    AuthConfig,
    AuthType,
    CapabilityType,
    SkillDescriptor,
)
from skillruntime.remote.descriptor_file import read_descriptor_file
from skillruntime.remote.descriptor_parts import PROTOCOL_VERSION
from skillruntime.remote.hosts import origin_of
from skillruntime.remote.http_message import (
    Transport,
    UnreachableError,
    WireRequest,
    WireResponse,
)
from skillruntime.remote.http_transport import HttpTransport, send
from skillruntime.remote.invocation_flow import (
    InvocationFlow,
    Pause,
    Plan,
    Saw,
    Send,
    StepResult,
    read_error,
)
from skillruntime.remote.protocol import (
    Caller,
    Execution,
    ExecutionStatus,
    InvocationContext,
    InvocationRequest,
    MessageError,
    parse_json,
)
from skillruntime.remote.ssrf_guard import AddressGuard
from skillruntime.remote.tracing import new_traceparent
from skillruntime.remote.wire_errors import (
    ErrorDocument,
    RemoteError,
    WireCode,
    shortened,
)
from skillruntime.runtime.error_responses import read_reported
from skillruntime.runtime.runners import CallContext, Runner, RunnerFactory
from skillruntime.runtime.runtime import SkillRuntime

__all__ = ["RemoteClient", "attach_remote_skills", "fetch_descriptor", "to_output"]

_FETCH_CODES = {
    401: WireCode.AUTH_REQUIRED,
    403: WireCode.PERMISSION_DENIED,
    404: WireCode.SKILL_NOT_FOUND,
    410: WireCode.SKILL_NOT_FOUND,
}
_END_CODES = {
    ExecutionStatus.TIMEOUT: WireCode.EXECUTION_TIMEOUT,
    ExecutionStatus.CANCELLED: WireCode.EXECUTION_CANCELLED,
}
_ANSWER_SECONDS = 30.0
"""The seconds for one complete answer, in addition to the time that the server may hold
it back.
"""
_ENDING_SECONDS = 5.0
"""The seconds that a server has to stop a skill at its deadline, and to answer."""
_CANCEL_SECONDS = 1.0
"""The seconds for asking the server to stop a cancelled execution."""


@dataclass(frozen=True, slots=True)
class RemoteClient:
    """Calls one remote skill.

    *transport* replaces HTTP (a `SkillService.handle`, say); *guard* says where HTTP
    may connect. *wait_seconds* is how long a server may hold an answer back until the
    execution changes, if the server supports that; with 0 the client polls. A complete
    answer may take 30 seconds more. *patience* is how many seconds a server may be
    unreachable, or too slow, while an execution is begun or followed. *grace* is how
    many seconds after the requested timeout a server may still take to report how the
    execution ended.
    """

    descriptor: SkillDescriptor
    credentials: Credentials | None = None
    transport: Transport | None = None
    guard: AddressGuard | None = None
    caller: Caller = Caller("skillruntime")  # noqa: RUF009 - frozen
    wait_seconds: float = 20.0
    patience: float = 300.0
    grace: float = 30.0
    jitter: Callable[[], float] = random.random

    async def invoke(
        self,
        arguments: Mapping[str, Any],
        *,
        key: str | None = None,
        timeout: float | None = None,
        trace_id: str | None = None,
        caller: Caller | None = None,
        on_change: Callable[[Execution], None] | None = None,
    ) -> Execution:
        """Invoke the skill and return the finished execution.

        *key* is the idempotency key: the same key means the same execution. The server
        is asked to stop after *timeout* seconds; if it does not, the client gives up
        after `grace`. *on_change* receives the execution at every step; pass its id to
        `resume`.

        Raises:
            RemoteError: the call was refused, or could not be followed to its end.
            SkillOutputError: its output is not what the descriptor promises.
        """
        repeatable = may_be_repeated(self.descriptor.extensions.annotations)
        timeout_ms: float | None = None
        deadline: float | None = None
        if timeout is not None:
            # At least one second: the protocol refuses 0, and a call without time left
            # is still a call.
            timeout_ms = max(1.0, round(timeout * 1000))
            # The server enforces the timeout; our own is for a server that does not.
            deadline = timeout + self.grace
        context = InvocationContext(trace_id, timeout_ms=timeout_ms)
        request = InvocationRequest(
            caller or self.caller, self.descriptor.id, arguments, context
        )
        plan = self._plan(request, key or secrets.token_hex(16), trace_id, repeatable)
        last: Execution | None = None

        def note(execution: Execution) -> None:
            nonlocal last
            last = execution
            if on_change is not None:
                on_change(execution)

        with anyio.move_on_after(deadline):
            flow = invocation_flow.invoke(plan)
            return self._checked(await self._drive(plan, flow, note))
        message = (
            f"The server was asked to end within {timeout:g} s, and had not "
            f"{self.grace:g} s later"
        )
        details = None
        if last is not None:
            message += f"; the execution is {last.execution_id}"
            details = {"execution_id": last.execution_id}
        elif self.descriptor.extensions.idempotency_key:
            # With this key the execution can be found, if the server began one.
            details = {"idempotency_key": plan.key}
        # The skill may still run on the server: the error must not suggest a second
        # call.
        raise RemoteError(
            ErrorDocument(WireCode.EXECUTION_TIMEOUT, message, details),
            may_have_run=True,
        )

    async def resume(
        self, execution_id: str, *, on_change: Callable[[Execution], None] | None = None
    ) -> Execution:
        """Follow an execution that was begun earlier, perhaps by another process, and
        return it when it has ended.
        """
        plan = self._plan_for_known()
        flow = invocation_flow.resume(plan, execution_id)
        return self._checked(await self._drive(plan, flow, on_change))

    async def cancel(self, execution_id: str) -> Execution:
        """Ask the server to stop an execution, and return its new state."""
        plan = self._plan_for_known()
        flow = invocation_flow.cancel(plan, execution_id)
        return await self._drive(plan, flow, None)

    def _plan_for_known(self) -> Plan:
        """Return a plan for requests about an existing execution; it invokes
        nothing.
        """
        request = InvocationRequest(self.caller, self.descriptor.id, {})
        return self._plan(request, "", None, False)

    def _checked(self, execution: Execution) -> Execution:
        """Return *execution* if its output fits the descriptor.

        Raises:
            SkillOutputError: the output does not fit.
        """
        schema = self.descriptor.output.schema
        # An output that breaks the descriptor must not reach a model as a result,
        # although a third party wrote both.
        if execution.status is ExecutionStatus.COMPLETED and schema is not None:
            document = {"input": {"type": "object"}, "output": schema}
            contract = Contract.from_dict(document, name=self.descriptor.id)
            contract.check(execution.output)
        return execution

    def _plan(
        self,
        request: InvocationRequest,
        key: str,
        trace_id: str | None,
        repeatable: bool,
    ) -> Plan:
        headers = {
            "skill-protocol": PROTOCOL_VERSION,
            "skill-extensions": "cancelled",
            "user-agent": "skillruntime",
        }
        parent = new_traceparent(trace_id)
        if parent is not None:
            headers["traceparent"] = parent
        return Plan(
            self.descriptor,
            request,
            key,
            repeatable=repeatable,
            wait_seconds=self.wait_seconds,
            headers=headers,
            jitter=self.jitter,
            patience=self.patience,
        )

    async def _drive(
        self,
        plan: Plan,
        flow: InvocationFlow,
        on_change: Callable[[Execution], None] | None,
    ) -> Execution:
        """Carry out the steps of *flow* until it returns an execution; if this call is
        cancelled, ask the server to cancel the execution.
        """
        # Read again for each call, because a key may be rotated while the process runs.
        credentials = self.credentials or from_environment(self.descriptor)
        seen: Execution | None = None
        answer: StepResult = None
        async with self._opened() as transport:
            sender = _Sender(transport, credentials, self.descriptor)
            try:
                while True:
                    match flow.send(answer):
                        case Send(request):
                            answer = await sender.send(request)
                        case Pause(seconds):
                            await anyio.sleep(seconds)
                            answer = None
                        case Saw(execution):
                            seen, answer = execution, None
                            if on_change is not None:
                                on_change(execution)
            except StopIteration as end:
                result: Execution = end.value
                return result
            except anyio.get_cancelled_exc_class():
                can_cancel = self.descriptor.extensions.cancel
                if can_cancel and seen is not None and not seen.is_final:
                    await _request_cancel(sender, plan, seen.execution_id)
                raise

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Transport]:
        if self.transport is not None:
            yield self.transport
            return
        timeout = self.wait_seconds + _ANSWER_SECONDS
        async with HttpTransport(self.guard, timeout=timeout) as transport:
            yield transport


@dataclass(frozen=True, slots=True)
class _Sender:
    """Sends requests. Credentials go only to the origin of the endpoint; if they are
    refused, they are renewed once.
    """

    transport: Transport
    credentials: Credentials
    descriptor: SkillDescriptor

    async def send(self, request: WireRequest) -> WireResponse | UnreachableError:
        # A status_url of another origin never receives the credentials.
        if origin_of(request.url) != origin_of(self.descriptor.endpoint.url):
            return await self._carry(request)
        signed = await self._signed(request, False)
        answer = await self._carry(signed)
        if isinstance(answer, WireResponse) and answer.status == 401:
            renewed = await self._signed(request, True)
            if (renewed.headers, renewed.body) != (signed.headers, signed.body):
                return await self._carry(renewed)
        return answer

    async def _signed(self, request: WireRequest, is_refused: bool) -> WireRequest:
        shown = await self.credentials(self.descriptor.auth, is_refused)
        body = request.body
        if shown.body is not None and request.method == "POST":
            document = json.loads(body)
            document["caller"]["credentials"] = dict(shown.body)
            text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
            body = text.encode()
        headers = {**request.headers, **shown.headers}
        return replace(request, headers=headers, body=body)

    async def _carry(self, request: WireRequest) -> WireResponse | UnreachableError:
        try:
            return await self.transport(request)
        except UnreachableError as error:
            return error


async def _request_cancel(sender: _Sender, plan: Plan, execution_id: str) -> None:
    """Ask the server to cancel the execution, shielded and bounded; failures are
    ignored.
    """
    # This task is being cancelled: without the shield nothing would be sent, and without
    # the time limit we could hang.
    with anyio.CancelScope(shield=True), anyio.move_on_after(_CANCEL_SECONDS):
        request = next(invocation_flow.cancel(plan, execution_id))
        assert isinstance(request, Send)
        await sender.send(request.request)


@dataclass(frozen=True, slots=True)
class RemoteRunner:
    """A remote skill as a runner, which the runtime calls like any other."""

    client: RemoteClient

    # The server was asked to stop the skill, which may still be running.
    stops_when_cancelled = False

    @property
    def grace(self) -> float:
        """The seconds after the deadline in which the server may answer with the output
        that the skill had printed by then.
        """
        return min(self.client.grace, _ENDING_SECONDS)

    async def __call__(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Invoke the skill and return its output.

        Raises:
            RemoteError: the skill refused, failed, ran out of time or could not be
                reached.
        """
        timeout = context.remaining
        if timeout is not None:
            # Whole seconds: a server may compare a request with the one that it
            # repeats, to the millisecond.
            timeout = math.ceil(timeout)
        caller = self.client.caller
        if context.caller:
            # A server that trusts this client can distinguish its users by this id.
            caller = replace(caller, id=context.caller)
        try:
            execution = await self.client.invoke(
                arguments,
                # The key identifies the call, which therefore runs once, however often
                # the request is repeated by us or by our callers.
                key=context.idempotency_key(arguments),
                timeout=timeout,
                trace_id=context.call_id,
                caller=caller,
            )
        except RemoteError as error:
            raise as_input_error(error) or error from None
        _note_end(execution, context)
        return to_output(execution)


def _note_end(execution: Execution, context: CallContext) -> None:
    """Note for the envelope the partial output of a failed skill, and how its script
    ended, if the server reports them.
    """
    if execution.status is not ExecutionStatus.COMPLETED and execution.has_output:
        context.execution["output"] = execution.output
    stated = execution.metadata or {}
    exit_code = stated.get("exit_code")
    if isinstance(exit_code, int) and not isinstance(exit_code, bool):
        context.execution["exit_code"] = exit_code
    # From a peer: the text is read by models, and may have any length.
    for name, limit in (("exit_meaning", 200), ("stderr", 2_000)):
        text = stated.get(name)
        if isinstance(text, str) and text:
            context.execution[name] = visible_text(text[-limit:])


def to_output(execution: Execution) -> Any:
    """Return the output of an ended execution.

    Raises:
        RemoteError: the execution did not complete; the error has the skill's own
            errors, if it sent any.
    """
    if execution.status is ExecutionStatus.COMPLETED:
        return execution.output
    document = execution.error
    if document is None:
        code = _END_CODES.get(execution.status, ErrorCode.TOOL_EXECUTION_FAILED)
        message = f"The execution is {execution.status} and does not say why"
        document = ErrorDocument(code, message)
    # The skill's own errors, one for each parameter, help a model more than one sentence.
    listed = (document.details or {}).get("errors")
    errors: tuple[SkillError, ...] = ()
    if isinstance(listed, list):
        _, reported = read_reported({"status": "failed", "errors": listed[:20]})
        errors = tuple(reported or ())
    raise RemoteError(document, errors=errors)


def as_input_error(error: RemoteError) -> SkillInputError | None:
    """Return *error* as a `SkillInputError` if the server's contract refused the
    arguments; None if it is another error.
    """
    if error.document.code != WireCode.VALIDATION_ERROR:
        return None
    violations = (error.document.details or {}).get("violations")
    if not isinstance(violations, list):
        return None
    errors = [
        _violation_error(violation)
        for violation in violations[:20]
        if isinstance(violation, Mapping)
    ]
    if not errors:
        return None
    return SkillInputError(
        "The remote skill refused the arguments", skill_errors=errors
    )


def _violation_error(violation: Mapping[str, Any]) -> SkillError:
    """Return one violation in a server's error (invocation protocol, section 9) as an
    error for the model.
    """
    # The model knows its arguments, not the protocol's request around them.
    path = str(violation.get("field") or "").removeprefix("/inputs")
    expected = violation.get("expected")
    actual = violation.get("actual")
    message = violation.get("message")
    if not message:
        message = (
            f"expected {json.dumps(expected)[:100]}, got {json.dumps(actual)[:100]} - "
            f"at {path[:100]}"
        )
    document = {
        **violation,
        "message": str(message)[:500],
        "recoverable": True,
        "code": violation.get("code") or ErrorCode.INVALID_INPUT.value,
        "details": shortened({"path": path, "expected": expected, "received": actual}),
    }
    _, (error, *_) = read_reported({"status": "failed", "errors": [document]})
    return error


def remote_runners(
    *,
    credentials: Callable[[SkillDescriptor], Credentials] = from_environment,
    transport: Transport | None = None,
    guard: AddressGuard | None = None,
) -> RunnerFactory:
    """Return the factory for `SkillRuntime(runners=[...])`.

    It runs the skills whose descriptor.json says api or task; plugins run locally and
    knowledge is read locally, so neither gets a remote runner.
    """

    def factory(skill: Skill, contract: Contract) -> Runner | None:
        # A skill's own script runs locally, even if the descriptor names an endpoint.
        if contract.name != skill.name or contract.run.get("script"):
            return None
        descriptor = _remote_descriptor(skill)
        if descriptor is None:
            return None
        client = RemoteClient(descriptor, credentials(descriptor), transport, guard)
        return RemoteRunner(client)

    return factory


def attach_remote_skills(
    runtime: SkillRuntime,
    *,
    credentials: Callable[[SkillDescriptor], Credentials] = from_environment,
    transport: Transport | None = None,
    guard: AddressGuard | None = None,
) -> list[str]:
    """Make the skills that have a descriptor.json and no contract callable, and return
    their names.

    The descriptor becomes their contract; `remote_runners` runs a skill that has both.

    Raises:
        InvalidSkillError: a descriptor is invalid.
    """
    attached = []
    for name in runtime.catalog:
        skill = runtime.catalog.activate(name)
        if name in skill.contracts:
            continue
        descriptor = _remote_descriptor(skill)
        if descriptor is None:
            continue
        client = RemoteClient(descriptor, credentials(descriptor), transport, guard)
        runner = RemoteRunner(client)
        runtime.implements(name, contract=descriptor.to_contract(name))(runner)
        attached.append(name)
    return attached


def _remote_descriptor(skill: Skill) -> SkillDescriptor | None:
    """Return the descriptor of a skill that is called over the network."""
    descriptor = read_descriptor_file(skill)
    if descriptor is None:
        return None
    # A plugin is embedded and knowledge is read (4.3): neither is called over the
    # network.
    if descriptor.capability_type in (CapabilityType.API, CapabilityType.TASK):
        return descriptor
    return None


async def fetch_descriptor(
    url: str,
    *,
    credentials: Credentials | None = None,
    transport: Transport | None = None,
    guard: AddressGuard | None = None,
) -> SkillDescriptor:
    """Return the descriptor at *url*; that of a private skill needs *credentials*, such
    as an API key.

    Raises:
        RemoteError: the descriptor cannot be fetched.
        InvalidSkillError: the address does not hold a descriptor.
    """
    headers = {"accept": "application/json"}
    if credentials is not None:
        # The descriptor is not known yet, so the usual scheme is assumed.
        shown = await credentials(AuthConfig(AuthType.API_KEY), False)
        headers |= shown.headers
    request = WireRequest("GET", url, headers)
    try:
        response = await send(request, transport, guard)
    except UnreachableError as error:
        raise RemoteError(
            ErrorDocument(WireCode.ENDPOINT_UNREACHABLE, str(error))
        ) from None
    if response.status != 200:
        document = read_error(response)
        if document is None:
            message = f"The address of the descriptor answered {response.status}"
            code = _FETCH_CODES.get(response.status, WireCode.ENDPOINT_UNREACHABLE)
            document = ErrorDocument(code, message)
        raise RemoteError(document)
    try:
        return SkillDescriptor.from_dict(parse_json(response.body))
    except MessageError as error:
        raise InvalidSkillError(
            f"The address does not hold a descriptor: {error}"
        ) from None
