"""The exceptions that the library raises, and the errors that a model receives.

An exception of this family reaches the model with its own code; any other exception is
a bug: it is logged, and reaches the model as ``INTERNAL_ERROR`` without its text.

The family::

    SkillRuntimeError               code                    recoverable
    ├── SkillInputError             INVALID_INPUT           yes
    │   │                           The arguments do not fit the contract.
    │   ├── TruncatedInputError     TRUNCATED_INPUT         yes
    │   │                           The model's text was cut off.
    │   └── UnsupportedVersionError UNSUPPORTED_VERSION     no
    │                               No contract or migration covers the version.
    ├── SkillNotFoundError          SKILL_NOT_FOUND         yes
    │                               There is no such skill, or it is hidden.
    ├── ResourceNotFoundError       FETCH_FAILED            yes
    │                               The skill has no such file.
    ├── LockfileNotFoundError       LOCKFILE_NOT_FOUND      no
    │                               There is nothing to check the skills against.
    ├── InvalidSkillError           INVALID_SKILL           no
    │                               The skill's own files are wrong.
    ├── SkillOutputError            INVALID_OUTPUT          no
    │                               The output does not fit the contract.
    ├── IncompatibleRuntimeError    INCOMPATIBLE_RUNTIME    no
    │                               The skill needs another runtime version.
    ├── AccessDeniedError           ACCESS_DENIED           no
    │                               The skill is not trusted, or not approved.
    ├── ToolNotAvailableError       TOOL_NOT_AVAILABLE      no
    │                               A command, package or runner is missing.
    ├── ToolExecutionError          TOOL_EXECUTION_FAILED   no
    │                               The skill ran and failed.
    ├── ToolTimeoutError            TOOL_TIMEOUT            no
    │                               The skill ran past its deadline.
    ├── TokenLimitError             TOKEN_LIMIT_EXCEEDED    no
    │                               The conversation's token limit is reached.
    └── RateLimitError              RATE_LIMIT_EXCEEDED     yes
                                    A service asks to wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

__all__ = [
    "AccessDeniedError",
    "ErrorCode",
    "IncompatibleRuntimeError",
    "InvalidSkillError",
    "LockfileNotFoundError",
    "RateLimitError",
    "ResourceNotFoundError",
    "SkillError",
    "SkillInputError",
    "SkillNotFoundError",
    "SkillOutputError",
    "SkillRuntimeError",
    "TokenLimitError",
    "ToolExecutionError",
    "ToolNotAvailableError",
    "ToolTimeoutError",
    "TruncatedInputError",
    "UnsupportedVersionError",
]


class ErrorCode(StrEnum):
    """The error codes of the standard envelope and the invocation protocol, and our
    own.
    """

    # Contract document, 31.4: input
    INVALID_INPUT = "INVALID_INPUT"
    MISSING_REQUIRED_PARAM = "MISSING_REQUIRED_PARAM"
    PARAM_OUT_OF_RANGE = "PARAM_OUT_OF_RANGE"
    # Contract document, 31.4: tools
    TOOL_NOT_AVAILABLE = "TOOL_NOT_AVAILABLE"
    TOOL_EXECUTION_FAILED = "TOOL_EXECUTION_FAILED"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    # Contract document, 31.4: services
    SEARCH_API_ERROR = "SEARCH_API_ERROR"
    FETCH_FAILED = "FETCH_FAILED"
    RATE_LIMIT_EXCEEDED = "RATE_LIMIT_EXCEEDED"
    # Contract document, 31.4: the skill itself
    INTERNAL_ERROR = "INTERNAL_ERROR"
    PARTIAL_SUCCESS = "PARTIAL_SUCCESS"
    # The invocation protocol: these two reach a caller unchanged; remote/wire_errors.py
    # maps the other codes
    AUTH_REQUIRED = "AUTH_REQUIRED"
    EXECUTION_TIMEOUT = "EXECUTION_TIMEOUT"
    # The library's own: cases that need a different next step, and have no code in the
    # contract document
    SKILL_NOT_FOUND = "SKILL_NOT_FOUND"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
    INCOMPATIBLE_RUNTIME = "INCOMPATIBLE_RUNTIME"
    INVALID_SKILL = "INVALID_SKILL"
    INVALID_OUTPUT = "INVALID_OUTPUT"
    TRUNCATED_INPUT = "TRUNCATED_INPUT"
    ACCESS_DENIED = "ACCESS_DENIED"
    CANCELLED = "CANCELLED"
    TOKEN_LIMIT_EXCEEDED = "TOKEN_LIMIT_EXCEEDED"
    LOCKFILE_NOT_FOUND = "LOCKFILE_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class SkillError:
    """One error of the envelope.

    ``details`` of an error about an argument are ``{"path": JSON Pointer, "expected":
    words, "received": ...}``.

    >>> SkillError(ErrorCode.INTERNAL_ERROR, "It failed", recoverable=False).to_dict()
    {'code': 'INTERNAL_ERROR', 'message': 'It failed', 'recoverable': False}
    """

    code: ErrorCode
    message: str
    recoverable: bool
    details: dict[str, Any] | None = None
    suggested_action: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract document, 31.4, with ``details`` and
        ``suggested_action`` only if they are not empty.
        """
        document: dict[str, Any] = {
            "code": self.code.value,
            "message": self.message,
            "recoverable": self.recoverable,
        }
        # Both members are optional there, and an empty one would only cost the model
        # tokens.
        if self.details:
            document["details"] = self.details
        if self.suggested_action:
            document["suggested_action"] = self.suggested_action
        return document


class SkillRuntimeError(Exception):
    """The base of the family: a failure that a model, or the host, can act on.

    *details* and *suggested_action* go to the model unchanged; *recoverable* overrides
    the value of the class.
    """

    code: ClassVar[ErrorCode] = ErrorCode.INTERNAL_ERROR
    recoverable: bool = False

    def __init__(
        self,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        suggested_action: str | None = None,
        recoverable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.details: dict[str, Any] | None = dict(details) if details else None
        self.suggested_action = suggested_action
        if recoverable is not None:
            self.recoverable = recoverable

    def to_errors(self) -> tuple[SkillError, ...]:
        """Return this failure as errors of the envelope: a single one, or one per
        offending parameter.
        """
        error = SkillError(
            self.code, str(self), self.recoverable, self.details, self.suggested_action
        )
        return (error,)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the parts for pickling and copying; the default calls the class with
        ``args`` alone.

        If a worker raises an exception that cannot be unpickled, its process pool fails
        every call.
        """
        return _restored, (type(self), self.args), self.__dict__


class SkillInputError(SkillRuntimeError):
    """The arguments do not fit the contract.

    ``errors`` is the contract document's list of sentences; ``skill_errors`` are the
    same faults as structured errors, one per offending parameter.

    >>> faults = ["'topics' is a required property"]
    >>> SkillInputError("Input validation failed", errors=faults).errors
    ["'topics' is a required property"]
    """

    code = ErrorCode.INVALID_INPUT
    recoverable = True

    def __init__(
        self,
        message: str,
        errors: Sequence[str] | None = None,
        *,
        skill_errors: Sequence[SkillError] = (),
        details: Mapping[str, Any] | None = None,
        suggested_action: str | None = None,
    ) -> None:
        super().__init__(message, details=details, suggested_action=suggested_action)
        self.skill_errors: tuple[SkillError, ...] = tuple(skill_errors)
        # The code and examples of the contract document, 31.3, pass sentences. The
        # library itself passes structured errors.
        if errors is None:
            errors = [error.message for error in self.skill_errors]
        self.errors: list[str] = list(errors)

    def __str__(self) -> str:
        """Return the message and the faults, so that a traceback states them."""
        message = str(self.args[0])
        faults = [fault for fault in self.errors if fault not in message]
        if not faults:
            return message
        return f"{message}: {'; '.join(faults)}"

    def to_errors(self) -> tuple[SkillError, ...]:
        """Return one error per offending parameter, or one error that lists the
        sentences if only these are known.
        """
        if self.skill_errors:
            return self.skill_errors
        details = self.details
        if not details and self.errors:
            # As in the example of the contract document, 31.3: one error, whose details
            # list the sentences.
            details = {"validation_errors": self.errors}
        error = SkillError(
            self.code,
            str(self.args[0]),
            self.recoverable,
            details,
            self.suggested_action,
        )
        return (error,)

    def to_response(self) -> dict[str, Any]:
        """Return the envelope (contract document, 31.4) as a dictionary."""
        return {
            "status": "failed",
            "errors": [error.to_dict() for error in self.to_errors()],
        }


class TruncatedInputError(SkillInputError):
    """The model's text was cut off, so its arguments are incomplete."""

    code = ErrorCode.TRUNCATED_INPUT


class UnsupportedVersionError(SkillInputError):
    """Neither the contract nor a migration covers the version that the arguments were
    written for.
    """

    code = ErrorCode.UNSUPPORTED_VERSION
    recoverable = False


class SkillNotFoundError(SkillRuntimeError):
    """No skill of this name is visible to the caller."""

    code = ErrorCode.SKILL_NOT_FOUND
    recoverable = True


class ResourceNotFoundError(SkillRuntimeError):
    """The skill has no such file, or the file lies outside the skill's directory."""

    code = ErrorCode.FETCH_FAILED
    recoverable = True


class LockfileNotFoundError(SkillRuntimeError):
    """There is no lockfile to check the skills against."""

    code = ErrorCode.LOCKFILE_NOT_FOUND


class InvalidSkillError(SkillRuntimeError):
    """The skill's own files are wrong: its contract, its schema, its frontmatter."""

    code = ErrorCode.INVALID_SKILL


class SkillOutputError(SkillRuntimeError):
    """The skill ran, and its output does not fit its contract."""

    code = ErrorCode.INVALID_OUTPUT


class IncompatibleRuntimeError(SkillRuntimeError):
    """The skill requires another version of this library."""

    code = ErrorCode.INCOMPATIBLE_RUNTIME


class AccessDeniedError(SkillRuntimeError):
    """The call was not allowed: an untrusted script without approval, or a tool outside
    the allowed ones.
    """

    code = ErrorCode.ACCESS_DENIED


class ToolNotAvailableError(SkillRuntimeError):
    """Something the skill needs is missing: a command, a Python package, an
    implementation.
    """

    code = ErrorCode.TOOL_NOT_AVAILABLE


class ToolExecutionError(SkillRuntimeError):
    """The skill ran and failed."""

    code = ErrorCode.TOOL_EXECUTION_FAILED


# Also a TimeoutError, so that code around a call can treat it like a deadline of anyio
# or asyncio.
class ToolTimeoutError(SkillRuntimeError, TimeoutError):
    """The skill ran past its deadline."""

    code = ErrorCode.TOOL_TIMEOUT


class TokenLimitError(SkillRuntimeError):
    """The text does not fit the tokens that the conversation may still spend."""

    code = ErrorCode.TOKEN_LIMIT_EXCEEDED


class RateLimitError(SkillRuntimeError):
    """A service asks to wait *retry_after* seconds before the next call."""

    code = ErrorCode.RATE_LIMIT_EXCEEDED
    recoverable = True

    def __init__(
        self, message: str = "Rate limit exceeded", *, retry_after: float
    ) -> None:
        super().__init__(
            message,
            details={"retry_after_seconds": retry_after},
            suggested_action=f"Please wait {retry_after}s before retrying",
        )
        self.retry_after = retry_after


def _restored(
    kind: type[SkillRuntimeError], args: tuple[Any, ...]
) -> SkillRuntimeError:
    error = kind.__new__(kind)
    error.args = args  # `OSError.__new__` does not set them: `__init__` does
    return error
