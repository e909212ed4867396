"""Build the server's answers as values: JSON, entity tags, and refusals."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Mapping
from typing import Any, Final

from skillruntime.remote.descriptor import AuthConfig, AuthType, SkillDescriptor
from skillruntime.remote.http_message import WireRequest, WireResponse
from skillruntime.remote.protocol import Execution, ExecutionStatus, MessageError
from skillruntime.remote.wire_errors import ErrorDocument, RetryHint, WireCode
from skillruntime.server.executions.errors import DatabaseAwayError

_log = logging.getLogger("skillruntime.remote")
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
}
_VARY: Final = "authorization, x-api-key, skill-extensions"


class RefusedError(Exception):
    """The request is answered with this error and these headers."""

    def __init__(
        self, document: ErrorDocument, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(document.message)
        self.document = document
        self.headers: dict[str, str] = dict(headers or {})

    def answer(self) -> WireResponse:
        """Return the response with the error document (invocation protocol, section
        9).
        """
        headers = {**self.headers, "content-type": "application/json"}
        retry = self.document.retry
        if retry is not None and retry.suggested_delay_ms is not None:
            seconds = math.ceil(retry.suggested_delay_ms / 1000)
            headers.setdefault("retry-after", str(seconds))
        document = self.document.to_envelope()
        return _response(self.document.http_status, document, headers)


def answer_to(error: Exception, request: WireRequest) -> WireResponse:
    """Return the response to *request*, whose handler raised *error*; an unexpected
    error is logged.
    """
    if isinstance(error, RefusedError):
        return error.answer()
    if isinstance(error, MessageError):
        return RefusedError(error.to_document()).answer()
    if isinstance(error, DatabaseAwayError):
        return refuse_for_database(error).answer()
    _log.error("%s failed with an unexpected exception", request.method, exc_info=error)
    return refuse(
        WireCode.INTERNAL_ERROR, "The server failed with an internal error"
    ).answer()


def refuse(
    code: WireCode, message: str, details: Mapping[str, Any] | None = None
) -> RefusedError:
    """Return a refusal with this code."""
    return RefusedError(ErrorDocument(code, message, details))


def refuse_login(descriptor: SkillDescriptor | None) -> RefusedError:
    """Return the response 401, which names the required credentials and where to get
    them (invocation protocol, section 6.5).
    """
    auth = descriptor.auth if descriptor is not None else AuthConfig()
    kind = auth.type
    if kind is AuthType.NONE:
        kind = AuthType.API_KEY
    details: dict[str, Any] = {"required_auth_type": kind.value}
    if auth.oauth2 is not None and auth.oauth2.authorization_url:
        details["authorization_url"] = auth.oauth2.authorization_url
    # RFC 9110, 11.6.1: a 401 must have a challenge.
    challenge = f'ApiKey header="{auth.key_header}"'
    if kind is AuthType.OAUTH2:
        challenge = "Bearer"
    message = "Authentication is required to invoke this skill"
    return RefusedError(
        ErrorDocument(WireCode.AUTH_REQUIRED, message, details),
        {"www-authenticate": challenge},
    )


def refuse_rate(seconds: float, message: str = "Too many requests") -> RefusedError:
    """Return the 429 with the time to retry."""
    return _refuse_until(seconds, WireCode.RATE_LIMIT_EXCEEDED, message)


def refuse_for_now(seconds: float, message: str) -> RefusedError:
    """Return the 503 of a server that cannot answer now, with the time to retry."""
    return _refuse_until(seconds, WireCode.ENDPOINT_UNREACHABLE, message)


def _refuse_until(seconds: float, code: WireCode, message: str) -> RefusedError:
    hint = RetryHint(suggested_delay_ms=max(1, round(seconds * 1000)))
    return RefusedError(ErrorDocument(code, message, None, hint))


def refuse_for_database(
    error: DatabaseAwayError, finds_it: str = "the execution's state shows it"
) -> RefusedError:
    """Return the 503 of a server without its database; if a commit's answer was lost,
    it says that the result is unknown.
    """
    hint = RetryHint(suggested_delay_ms=1000)
    message = "The server's database does not answer"
    details = None
    if error.is_unknown:
        message += f"; whether the request took effect is unknown, and {finds_it}"
        details = {"accepted": "unknown"}
    return RefusedError(
        ErrorDocument(WireCode.ENDPOINT_UNREACHABLE, message, details, hint)
    )


def answer_json(
    request: WireRequest,
    document: Any,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> WireResponse:
    """Return *document* with its entity tag, or a 304 if the caller already has it (RFC
    9110, 13.1.2).

    Raises:
        RefusedError: the request is for another state of *document*.
    """
    response = _response(
        status, document, {"content-type": "application/json", **(headers or {})}
    )
    if request.method not in ("GET", "HEAD") or status != 200:
        return response
    check_match(request, document)
    tag = _tag_of(response.body)
    # Private: shared caches must not keep one caller's answer.
    tagged = {
        **response.headers,
        "etag": tag,
        "cache-control": "private, no-cache",
        "vary": _VARY,
    }
    # RFC 9110, 13.1.2: weak comparison ignores the mark of weakness.
    stated = request.headers.get("if-none-match", "").split(",")
    known = {text.strip().removeprefix("W/") for text in stated}
    if tag in known or "*" in known:
        del tagged["content-type"]
        return WireResponse(304, tagged)
    return WireResponse(200, tagged, response.body)


def show_execution(
    request: WireRequest,
    execution: Execution,
    headers: Mapping[str, str],
    *,
    plain: bool,
    is_first: bool,
) -> WireResponse:
    """Return the document of *execution*; *is_first* is true in the answer to the
    invocation.
    """
    document = execution.to_dict(plain=plain)
    if execution.is_final:
        # Invocation protocol, section 6.6: the timeout document is a normal 200
        # response. Only a client that waited here gets 504.
        has_waited = is_first and "preference-applied" in headers
        status = 200
        if has_waited and execution.status is ExecutionStatus.TIMEOUT:
            status = 504
        return answer_json(request, document, status=status, headers=headers)
    # The header cannot state less than a second (RFC 9110, 10.2.3); poll_interval_ms
    # can.
    headers = {**headers, "retry-after": "1"}
    status = 202 if is_first else 200
    return answer_json(request, document, status=status, headers=headers)


def refuse_expired(execution: Execution) -> RefusedError:
    """Return the 410 of a result that is no longer kept."""
    return refuse(
        WireCode.EXECUTION_EXPIRED,
        f"The result expired at {execution.timestamps.expires_at}",
    )


def check_match(request: WireRequest, document: Any) -> None:
    """Refuse a request whose ``If-Match`` does not name this state of *document* (RFC
    9110, 13.1.1).

    Raises:
        RefusedError: the header names another state.
    """
    stated = request.headers.get("if-match")
    if stated is None:
        return
    # Strong comparison: a weak tag never matches.
    tags = {text.strip() for text in stated.split(",")}
    if "*" in tags or _tag_of(_to_bytes(document)) in tags:
        return
    raise refuse(
        WireCode.PRECONDITION_FAILED,
        "The state that If-Match names is not the current one",
    )


def without_content(response: WireResponse) -> WireResponse:
    """Turn *response*, the answer to GET, into the answer to HEAD: keep the length,
    drop the content (RFC 9110, 9.3.2).
    """
    headers = dict(response.headers)
    if response.status != 304:
        headers["content-length"] = str(len(response.body))
    return WireResponse(response.status, headers)


def _response(status: int, document: Any, headers: Mapping[str, str]) -> WireResponse:
    return WireResponse(status, {**SECURITY_HEADERS, **headers}, _to_bytes(document))


def _to_bytes(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )


def _tag_of(body: bytes) -> str:
    return '"' + hashlib.sha256(body).hexdigest()[:32] + '"'
