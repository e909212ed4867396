"""The standard envelope: what every call answers, whatever happened (contract chapter 31.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillruntime.errors import ErrorCode, RateLimitError, SkillError, SkillInputError, SkillRuntimeError

__all__ = ["SkillResponse", "handle_skill_error"]


@dataclass(frozen=True, slots=True)
class SkillResponse:
    """The answer to one call: ``status`` is ``success``, ``partial_success`` or ``failed``.

    >>> SkillResponse("success", data={"pages": 3}).to_dict()
    {'status': 'success', 'data': {'pages': 3}}
    """

    status: str
    data: Any | None = None
    errors: list[SkillError] | None = None
    metadata: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a result to use, whole or partial."""
        return self.status != "failed"

    @classmethod
    def failed(cls, *errors: SkillError, metadata: dict[str, Any] | None = None) -> SkillResponse:
        """Return the envelope of a call that gave nothing but *errors*."""
        return cls("failed", errors=list(errors), metadata=metadata)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of 31.4: absent parts are left out."""
        document: dict[str, Any] = {"status": self.status}
        if self.data is not None:
            document["data"] = self.data
        if self.errors:
            document["errors"] = [error.to_dict() for error in self.errors]
        if self.metadata:
            document["metadata"] = self.metadata
        return document

    def to_json(self) -> str:
        """Return the envelope as compact JSON text, as a model reads it."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), default=str)


def handle_skill_error(exception: BaseException, context: Mapping[str, Any]) -> SkillResponse:
    """Return the envelope that stands for *exception*: the chapter's function, with its own dictionaries.

    *context* may carry ``timeout``, the seconds that were allowed. An exception of our family keeps its code;
    one that nobody foresaw is ``INTERNAL_ERROR`` and says nothing but its type.

    >>> handle_skill_error(TimeoutError(), {"timeout": 30}).errors[0].message
    'Operation timed out after 30s'
    """
    match exception:
        case SkillInputError(code=ErrorCode.INVALID_INPUT):
            error = SkillError(
                code=ErrorCode.INVALID_INPUT,
                message="Input parameters are invalid",
                recoverable=True,
                details={"validation_errors": exception.errors},
                suggested_action="Please check the parameter types and values",
            )
        case RateLimitError():
            error = SkillError(
                code=ErrorCode.RATE_LIMIT_EXCEEDED,
                message="Search API rate limit exceeded",
                recoverable=True,
                details={"retry_after_seconds": exception.retry_after},
                suggested_action=f"Please wait {exception.retry_after}s before retrying",
            )
        case SkillRuntimeError():
            return SkillResponse.failed(*exception.to_errors())
        case TimeoutError():
            error = SkillError(
                code=ErrorCode.TOOL_TIMEOUT,
                message=f"Operation timed out after {context.get('timeout', '?')}s",
                recoverable=True,
                suggested_action="Try again or reduce the number of topics",
            )
        case _:
            error = SkillError(
                code=ErrorCode.INTERNAL_ERROR,
                message="An unexpected error occurred",
                recoverable=False,
                details={"exception_type": type(exception).__name__},
            )
    return SkillResponse.failed(error)
