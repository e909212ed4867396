"""Parse a request's body and headers into the ticket of an execution. This module does
no I/O and does not begin executions.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qs

from skillruntime.contract.versions import Version
from skillruntime.errors import SkillInputError, SkillOutputError, SkillRuntimeError
from skillruntime.remote.descriptor import CapabilityType
from skillruntime.remote.descriptor_parts import PROTOCOL_VERSION
from skillruntime.remote.http_message import WireRequest
from skillruntime.remote.invocation_flow import version_incompatible
from skillruntime.remote.protocol import (
    MAX_ID,
    ExecutionStatus,
    InvocationRequest,
    MessageError,
    parse_json,
)
from skillruntime.remote.tracing import trace_id_of
from skillruntime.remote.wire_errors import ErrorDocument
from skillruntime.server.callers.access import (
    ANONYMOUS,
    BadCredentialsError,
    Principal,
    owner_of,
)
from skillruntime.server.executions.outcomes import Outcome
from skillruntime.server.executions.ticket import Ticket, fingerprint_of
from skillruntime.server.http.responses import RefusedError
from skillruntime.server.published_skill import PublishedSkill

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


def read_body(request: WireRequest) -> Any:
    """Parse the body as a JSON value.

    Raises:
        MessageError: the body or its content type is not JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise MessageError.at(
            "Content-Type", "application/json", kind[:60] or "nothing"
        )
    return parse_json(request.body)


def credentials_in(document: Any) -> Mapping[str, Any] | None:
    """Return ``caller.credentials`` of an invocation for ``custom`` authentication, or
    None.
    """
    credentials = _member(_member(document, "caller"), "credentials")
    return credentials if isinstance(credentials, dict) else None


def stated_trace(document: Any) -> str:
    """Return ``context.trace_id`` of a possibly malformed invocation; empty if it is
    missing.
    """
    trace_id = _member(_member(document, "context"), "trace_id")
    return trace_id[:MAX_ID] if isinstance(trace_id, str) else ""


def _member(document: Any, name: str) -> Any:
    """Return a member of *document*; None if *document* is not an object."""
    if not isinstance(document, dict):
        return None
    return document.get(name)


def with_key_header(request: WireRequest, names: Collection[str]) -> WireRequest:
    """Return *request* with its API key in ``X-API-Key``; *names* are the other headers
    that descriptors name for it.

    Raises:
        BadCredentialsError: the request has two different keys.
    """
    keys = set()
    for name in ("x-api-key", *names):
        key = request.headers.get(name, "")
        if name == "authorization":
            # A descriptor may ask for the key in this header, without a scheme before
            # it.
            key, _, rest = key.partition(" ")
            if rest:
                continue
        if key:
            keys.add(key)
    if len(keys) > 1:
        raise BadCredentialsError
    if not keys:
        return request
    return replace(request, headers={**request.headers, "x-api-key": keys.pop()})


def check_protocol_header(request: WireRequest) -> None:
    """Check that a client that names its protocol speaks ours (invocation protocol,
    section 8).

    Raises:
        RefusedError: the client speaks another protocol.
    """
    stated = request.headers.get("skill-protocol")
    if stated is None:
        return
    # A client without the header is assumed to speak ours, because the documents do not
    # show such a header.
    ours = Version.parse(PROTOCOL_VERSION)
    try:
        fits = Version.parse(stated).major == ours.major
    except ValueError:
        fits = False
    if not fits:
        supported = f">={ours.major}.0.0,<{ours.major + 1}.0.0"
        raise RefusedError(
            version_incompatible(
                {
                    "descriptor_version": PROTOCOL_VERSION,
                    "consumer_supported_range": supported,
                }
            )
        )


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The requested page of executions: its size, where it begins, whether it shows
    everyone's executions, and whether it shows only interrupted ones.
    """

    limit: int
    cursor: str | None
    wants_all: bool
    wants_interrupted: bool


def read_page_query(request: WireRequest) -> PageQuery:
    """Parse the query into the requested page of executions.

    Raises:
        MessageError: the limit is not a number from 1 to 200, or a parameter occurs
            twice.
    """
    query = read_fields(request.query, "query", keeps_blank=True)
    # If a parameter has two values, a proxy may read the first and this server the
    # last. Other parameters are ignored.
    for name in ("limit", "cursor", "all", "interrupted"):
        if len(query.get(name, ())) > 1:
            raise MessageError.at(f"/{name}", "one value", f"{len(query[name])} values")
    text = query.get("limit", ["50"])[0]
    # Do not use isdecimal, which accepts digits of every script. Leading zeros are
    # allowed, but int() refuses 5,000 of them.
    number = re.fullmatch(r"0*([0-9]{1,3})", text)
    if number is None or not 1 <= int(number[1]) <= 200:
        raise MessageError.at("/limit", "a number from 1 to 200", text[:20])
    return PageQuery(
        int(number[1]),
        query.get("cursor", [None])[0],
        query.get("all") == ["1"],
        query.get("interrupted") == ["1"],
    )


def read_tags(request: WireRequest) -> set[str]:
    """Return the values of ``tag`` in the query, in lower case."""
    return {tag.lower() for tag in read_fields(request.query, "query").get("tag", ())}


def read_fields(
    text: str, kind: str, most: int = 100, *, keeps_blank: bool = False
) -> dict[str, list[str]]:
    """Return the values of each name in *text*, a query or the body of a form; error
    messages call the text *kind*.

    Raises:
        MessageError: *text* has more than *most* values.
    """
    try:
        return parse_qs(text, keep_blank_values=keeps_blank, max_num_fields=most)
    except ValueError:
        sent = text.count("&") + 1
        raise MessageError.at(
            kind, f"at most {most:,} fields", f"{sent:,} fields"
        ) from None


def preferred_wait(request: WireRequest, longest: float) -> float:
    """Return the seconds of ``Prefer: wait=N`` (RFC 7240, section 4.3), at most
    *longest*; 0 without the header.
    """
    for preference in request.headers.get("prefer", "").split(","):
        name, _, value = preference.strip().partition("=")
        # RFC 7240, 2: unknown preferences in this header are ignored, never refused.
        if name.strip().lower() == "wait" and value.strip().isdecimal():
            return min(float(value.strip()[:9]), longest)
    return 0.0


def read_invocation(
    served: PublishedSkill, document: Any, *, principal: Principal | None
) -> InvocationRequest:
    """Parse *document* into an invocation of the skill *served* by *principal*.

    The address names the skill and the credentials name the caller, so the document
    may leave both out.

    Raises:
        MessageError: *document* is not an invocation, or invokes another skill.
    """
    if isinstance(document, dict):
        document = {"caller": {}, "skill_id": served.id, **document}
        if isinstance(document["caller"], dict):
            named = {"id": owner_of(principal), "type": "service"}
            document["caller"] = named | document["caller"]
    invocation = InvocationRequest.from_dict(document)
    if invocation.skill_id != served.id:
        raise MessageError.at("/skill_id", served.id, invocation.skill_id)
    return invocation


def make_ticket(
    request: WireRequest,
    served: PublishedSkill,
    invocation: InvocationRequest,
    *,
    principal: Principal | None,
    secret: bytes,
    longest: float,
    policy: str | None,
    is_open: bool,
) -> Ticket:
    """Return the ticket of an invocation whose inputs fit the skill's contract; it may
    run *longest* seconds.

    Raises:
        MessageError: the inputs do not fit.
    """
    try:
        accepted = served.contract.accept(invocation.inputs, policy=policy)
    except SkillInputError as error:
        raise MessageError(_violations(error)) from None
    metadata: dict[str, Any] = {}
    if accepted.repairs:
        metadata["repairs"] = [repair.to_dict() for repair in accepted.repairs]
    if accepted.migrated_from is not None:
        metadata["migrated_from"] = accepted.migrated_from
    # The protocol puts the trace into the body (6.3); the header is W3C's, for callers
    # that trace everything.
    trace_id = invocation.context.trace_id or trace_id_of(
        request.headers.get("traceparent", "")
    )
    if trace_id is not None:
        metadata["trace_id"] = trace_id
    # The smallest timeout counts: a caller may ask for less than a skill allows, never
    # for more.
    timeout = longest
    asked = invocation.context.timeout_ms
    declared = served.descriptor.endpoint.timeout_ms
    for limit in (asked, declared):
        if limit is not None:
            timeout = min(timeout, limit / 1000)
    return Ticket(
        execution_id=_execution_id(request, served, principal, invocation, secret),
        owner=owner_of(principal),
        skill_id=served.id,
        line=served.descriptor.line,
        name=served.name,
        arguments=accepted.arguments,
        fingerprint=fingerprint_of(
            {
                "caller": {"id": invocation.caller.id, "type": invocation.caller.type},
                "inputs": invocation.inputs,
                # A retry may have another trace and less time left, so the fingerprint
                # contains neither.
                "context": replace(
                    invocation.context, trace_id=None, timeout_ms=None
                ).to_dict(),
            }
        ),
        timeout=timeout,
        is_task=served.descriptor.capability_type is CapabilityType.TASK,
        repeatable=served.is_repeatable,
        priority=invocation.context.priority,
        trace_id=trace_id,
        webhook=invocation.context.webhook,
        metadata=metadata,
        is_open=is_open,
    )


def released_id(execution_id: str, secret: bytes) -> str:
    """Return the id under which an interrupted execution runs again; it is always the
    same, so the execution is released only once.
    """
    message = b"released " + execution_id.encode()
    return _id_of(hmac.digest(secret, message, hashlib.sha256)[:20])


def read_completion(served: PublishedSkill | None, document: Any) -> Outcome:
    """Return how a task ended, as its worker reports it: ``{"output": ...}`` or
    ``{"error": {...}}``.

    Raises:
        MessageError: *document* has neither or both members, or an output that the
            skill's contract does not promise.
    """
    # With both or neither it would be unclear whether the task was done.
    if not isinstance(document, dict) or ("output" in document) == (
        "error" in document
    ):
        raise MessageError.at("", "an object with either output or error")
    if "error" in document:
        error = ErrorDocument.from_dict(document["error"])
        if error is None:
            raise MessageError.at("/error/code", "a text")
        return Outcome(ExecutionStatus.FAILED, error=error)
    try:
        if served is not None:
            served.contract.check(document["output"])
    except SkillOutputError as broken:
        raise MessageError.at(
            "/output", "what the skill promises", str(broken)
        ) from None
    return Outcome(ExecutionStatus.COMPLETED, document["output"], True)


def _execution_id(
    request: WireRequest,
    served: PublishedSkill,
    principal: Principal | None,
    invocation: InvocationRequest,
    secret: bytes,
) -> str:
    """Return a new id, or always the same id for the same idempotency key of the same
    caller and skill.
    """
    key = request.headers.get("idempotency-key")
    if key is None:
        return _id_of(secrets.token_bytes(20))
    if not _KEY.fullmatch(key):
        raise MessageError.at(
            "Idempotency-Key", "1 to 255 visible characters", key[:40]
        )
    if principal is not None:
        caller = principal.id
    else:
        # The stated name of an anonymous caller separates its keys from other callers'
        # keys, but does not prove anything.
        caller = f"{ANONYMOUS} {invocation.caller.id}"
    # The id is derived from the secret, so that other callers cannot compute it;
    # servers that share the secret derive the same id.
    message = json.dumps([caller, served.id, key]).encode()
    return _id_of(hmac.digest(secret, message, hashlib.sha256)[:20])


def _id_of(digest: bytes) -> str:
    # Use only letters and digits: people type ids, and they appear in file names and
    # URLs.
    return "exec-" + base64.b32encode(digest).decode().lower()


def _violations(error: SkillRuntimeError) -> list[dict[str, Any]]:
    """Return the violations in *error*, each with the parameter, the expected value and
    the sent value (invocation protocol, section 9).
    """
    violations = []
    for fault in error.to_errors():
        details = fault.details or {}
        violation = {
            "field": "/inputs" + str(details.get("path", "")),
            "expected": details.get("expected") or fault.message,
            "actual": details.get("received", "see message"),
            "message": fault.message,
            "code": fault.code.value,
        }
        if fault.suggested_action:
            violation["suggested_action"] = fault.suggested_action
        violations.append(violation)
    return violations
