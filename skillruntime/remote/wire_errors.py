"""The protocol's errors: one envelope, and one table of codes with the error that a
model sees for each.

The envelope is ``{"error": {code, message, details?, retry?}}`` (invocation protocol,
sections 6.5 and 9).
`WireCode` alone maps a code to its HTTP status and `ErrorCode`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from skillruntime.errors import ErrorCode, SkillError, SkillRuntimeError
from skillruntime.remote.json_form import write
from skillruntime.runtime.error_responses import with_next_step

__all__ = [
    "ErrorDocument",
    "RemoteError",
    "RetryHint",
    "WireCode",
    "printable",
    "shortened",
    "to_skill_error",
]


class WireCode(StrEnum):
    """The codes of the invocation protocol (section 9), then those of this library.

    Each has the HTTP status of a refusal, the code that a model sees, and whether it
    may try again.
    """

    http_status: int
    error_code: ErrorCode
    recoverable: bool

    def __new__(
        cls, text: str, http_status: int, error_code: ErrorCode, recoverable: bool
    ) -> WireCode:
        """Return the member that *text* names."""
        member = str.__new__(cls, text)
        member._value_ = text
        member.http_status = http_status
        member.error_code = error_code
        member.recoverable = recoverable
        return member

    VALIDATION_ERROR = "VALIDATION_ERROR", 400, ErrorCode.INVALID_INPUT, True
    AUTH_REQUIRED = "AUTH_REQUIRED", 401, ErrorCode.AUTH_REQUIRED, False
    PERMISSION_DENIED = "PERMISSION_DENIED", 403, ErrorCode.ACCESS_DENIED, False
    SKILL_NOT_FOUND = "SKILL_NOT_FOUND", 404, ErrorCode.SKILL_NOT_FOUND, False
    EXECUTION_TIMEOUT = "EXECUTION_TIMEOUT", 504, ErrorCode.EXECUTION_TIMEOUT, True
    ENDPOINT_UNREACHABLE = (
        "ENDPOINT_UNREACHABLE",
        503,
        ErrorCode.TOOL_NOT_AVAILABLE,
        True,
    )
    VERSION_INCOMPATIBLE = (
        "VERSION_INCOMPATIBLE",
        422,
        ErrorCode.UNSUPPORTED_VERSION,
        False,
    )
    # Ours
    EXECUTION_NOT_FOUND = (
        "EXECUTION_NOT_FOUND",
        404,
        ErrorCode.TOOL_EXECUTION_FAILED,
        False,
    )
    EXECUTION_EXPIRED = "EXECUTION_EXPIRED", 410, ErrorCode.TOOL_EXECUTION_FAILED, False
    EXECUTION_CANCELLED = "EXECUTION_CANCELLED", 409, ErrorCode.CANCELLED, False
    EXECUTION_INTERRUPTED = (
        "EXECUTION_INTERRUPTED",
        500,
        ErrorCode.TOOL_EXECUTION_FAILED,
        True,
    )
    EXECUTION_HELD = "EXECUTION_HELD", 500, ErrorCode.TOOL_EXECUTION_FAILED, False
    # The same status as the IETF draft of the header asks for.
    IDEMPOTENCY_KEY_REUSED = (
        "IDEMPOTENCY_KEY_REUSED",
        422,
        ErrorCode.TOOL_EXECUTION_FAILED,
        False,
    )
    RATE_LIMIT_EXCEEDED = (
        "RATE_LIMIT_EXCEEDED",
        429,
        ErrorCode.RATE_LIMIT_EXCEEDED,
        True,
    )
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE", 413, ErrorCode.INVALID_INPUT, True
    HEAD_TOO_LARGE = "HEAD_TOO_LARGE", 431, ErrorCode.TOOL_EXECUTION_FAILED, False
    REQUEST_TIMEOUT = "REQUEST_TIMEOUT", 408, ErrorCode.TOOL_EXECUTION_FAILED, True
    NOT_FOUND = "NOT_FOUND", 404, ErrorCode.TOOL_EXECUTION_FAILED, False
    METHOD_NOT_ALLOWED = (
        "METHOD_NOT_ALLOWED",
        405,
        ErrorCode.TOOL_EXECUTION_FAILED,
        False,
    )
    CONFLICT = "CONFLICT", 409, ErrorCode.TOOL_EXECUTION_FAILED, False
    PRECONDITION_FAILED = (
        "PRECONDITION_FAILED",
        412,
        ErrorCode.TOOL_EXECUTION_FAILED,
        False,
    )
    INTERNAL_ERROR = "INTERNAL_ERROR", 500, ErrorCode.INTERNAL_ERROR, False


_CODES: Mapping[str, WireCode] = {code.value: code for code in WireCode}


@dataclass(frozen=True, slots=True)
class RetryHint:
    """When, in milliseconds, and how often to try again (6.6)."""

    suggested_delay_ms: int | None = None
    max_attempts: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object, without what is not said."""
        return write(self)

    @classmethod
    def from_dict(cls, document: Any) -> RetryHint | None:
        """Parse *document* into a hint; return None if it has no usable number."""
        if not isinstance(document, Mapping):
            return None
        # A field that is not a number is left out; the error is still an error.
        delay = _whole(document.get("suggested_delay_ms"))
        attempts = _whole(document.get("max_attempts"))
        if delay is None and attempts is None:
            return None
        return cls(delay, attempts)


@dataclass(frozen=True, slots=True)
class ErrorDocument:
    """An error as it is sent over the network; ``code`` is a `WireCode`, or another
    code of a peer or skill.

    >>> ErrorDocument("AUTH_REQUIRED", "Authentication is required").to_envelope()
    {'error': {'code': 'AUTH_REQUIRED', 'message': 'Authentication is required'}}
    """

    code: str
    message: str
    details: Mapping[str, Any] | None = None
    retry: RetryHint | None = None

    @property
    def http_status(self) -> int:
        """The HTTP status of a refusal with this code."""
        known = _CODES.get(self.code)
        if known is None:
            return 500
        return known.http_status

    def to_dict(self) -> dict[str, Any]:
        """Return the value of ``error``."""
        return write(self)

    def to_envelope(self) -> dict[str, Any]:
        """Return the error as the invocation protocol writes it (section 9)."""
        return {"error": self.to_dict()}

    @classmethod
    def from_dict(cls, document: Any) -> ErrorDocument | None:
        """Return the error in the field ``error``; None if *document* is not an
        error.
        """
        if not isinstance(document, Mapping):
            return None
        code = document.get("code")
        if not isinstance(code, str):
            return None
        message = str(document.get("message") or "")
        details = document.get("details")
        if not isinstance(details, Mapping):
            details = None
        retry = RetryHint.from_dict(document.get("retry"))
        # From a peer: it is printed to terminals, logged, and read by models.
        return cls(printable(code[:100]), printable(message[:2000]), details, retry)


class RemoteError(SkillRuntimeError):
    """A remote skill refused, failed, or could not be reached: ``document`` is the
    error received, or a substitute.

    ``may_have_run`` says that the skill may or may not have run.
    """

    def __init__(
        self,
        document: ErrorDocument,
        *,
        errors: tuple[SkillError, ...] = (),
        may_have_run: bool = False,
    ):
        super().__init__(document.message)
        self.document = document
        self.may_have_run = may_have_run
        if not errors:
            errors = (to_skill_error(document, may_have_run=may_have_run),)
        self._errors = errors
        self.recoverable: bool = self._errors[0].recoverable

    def to_errors(self) -> tuple[SkillError, ...]:
        """Return the errors for the model: the skill's own, if it sent any."""
        return self._errors


_ACTIONS: Mapping[str, str] = {
    WireCode.AUTH_REQUIRED: "Ask the user to configure credentials for this skill",
    WireCode.PERMISSION_DENIED: (
        "Report to the user that these credentials do not allow the call"
    ),
    WireCode.SKILL_NOT_FOUND: "Continue without this skill",
    WireCode.VERSION_INCOMPATIBLE: (
        "Report to the user that the client or the skill must be upgraded"
    ),
    WireCode.EXECUTION_INTERRUPTED: (
        "Check whether it took effect; if not, the call may be sent again"
    ),
    WireCode.EXECUTION_HELD: (
        "Report to the user that an operator of the server must release the call"
    ),
    WireCode.EXECUTION_CANCELLED: "Do not repeat the call unless the user asks for it",
    WireCode.ENDPOINT_UNREACHABLE: "Try again later, or continue without this skill",
}
_MOST_DETAILS = 20
_LONGEST_DETAIL = 1000  # characters of JSON
_UNSURE = (
    "It may have run and taken effect: check before calling again, or ask the user"
)


def to_skill_error(
    document: ErrorDocument, *, may_have_run: bool = False
) -> SkillError:
    """Return *document* as an error for the model.

    >>> error = to_skill_error(ErrorDocument("PERMISSION_DENIED", "Not you"))
    >>> error.code.value, error.recoverable
    ('ACCESS_DENIED', False)
    """
    details = shortened(document.details) if document.details else {}
    retry = document.retry or RetryHint()
    code, recoverable = _meaning_of(document.code)
    if code.value != document.code:
        details["code"] = document.code
    if isinstance(details.get("recoverable"), bool):
        recoverable = details.pop("recoverable")
    elif document.code == WireCode.EXECUTION_TIMEOUT:
        # 6.6: the server says whether to try again; one attempt in all means that none
        # is left.
        recoverable = document.retry is not None and retry.max_attempts not in (0, 1)
    action = details.pop("suggested_action", None) or _ACTIONS.get(document.code)
    if recoverable and retry.suggested_delay_ms is not None:
        action = f"Try again in {retry.suggested_delay_ms / 1000:g} s"
    # Even if the peer suggests it, a second call could have a second effect.
    if may_have_run:
        action = _UNSURE
        recoverable = False
    if not isinstance(action, str):
        action = None
    return with_next_step(
        SkillError(code, document.message, recoverable, details or None, action)
    )


def _meaning_of(code: str) -> tuple[ErrorCode, bool]:
    """Return the code that a model sees in place of *code*, and whether it may try
    again, unless the error says otherwise.
    """
    known = _CODES.get(code)
    if known is not None:
        return known.error_code, known.recoverable
    # A skill may use one of our codes, or another code, which is kept in the details.
    try:
        return ErrorCode(code), False
    except ValueError:
        return ErrorCode.TOOL_EXECUTION_FAILED, False


def shortened(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return *details*, truncated to a size that a model can read: a peer may send any
    amount.

    >>> shortened({"left": 3, "log": "x" * 5000})
    {'left': 3, 'log': '(5,002 characters left out)'}
    """
    kept: dict[str, Any] = {}
    for name, value in list(details.items())[:_MOST_DETAILS]:
        length = len(json.dumps(value, ensure_ascii=False, default=str))
        if length > _LONGEST_DETAIL:
            value = f"({length:,} characters left out)"
        kept[name[:100]] = value
    return kept


def printable(text: str) -> str:
    """Return *text* with control characters replaced: text from a peer is printed to
    terminals.
    """
    if text.isprintable():
        return text
    return "".join(map(_printable_character, text))


def _printable_character(character: str) -> str:
    if character.isprintable() or character in "\n\t":
        return character
    return "\N{REPLACEMENT CHARACTER}"


def _whole(value: Any) -> int | None:
    """Return *value* as a whole number; None if it is not a number that can be used."""
    # bool is an int in Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A peer may ask for a pause of centuries.
    if not 0 <= value < 1e12:
        return None
    return int(value)
