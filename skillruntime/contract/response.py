"""Define the response envelope that every call returns, whether it succeeded or
failed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, get_args

from skillruntime.contract.schemas.plain_json import is_plain_json
from skillruntime.errors import (
    ErrorCode,
    RateLimitError,
    SkillError,
    SkillInputError,
    SkillRuntimeError,
)

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Data = TypeVar("Data", default=Any)
else:
    # Python 3.11 and 3.12 have no default for a type variable.
    from typing import TypeVar

    Data = TypeVar("Data")

__all__ = [
    "STATUSES",
    "SkillResponse",
    "Status",
    "handle_skill_error",
    "holds_iterator",
    "to_plain",
]

Status = Literal["success", "partial_success", "failed"]

STATUSES: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class SkillResponse(Generic[Data]):
    """The answer to one call; an MCP client receives a failed call as a tool execution
    error (SEP-1303).

    ``data`` is the skill's result. A typed function returns its own model or dataclass,
    which `to_dict` converts to JSON.

    >>> SkillResponse("success", data={"pages": 3}).to_dict()
    {'status': 'success', 'data': {'pages': 3}}

    Raises:
        ValueError: ``status`` is not one of `STATUSES`.
    """

    status: Status
    data: Data | None = None
    errors: list[SkillError] = field(default_factory=list)
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(
                f"status must be one of {', '.join(STATUSES)}; got {self.status!r:.80}"
            )
        errors: Any = self.errors
        if errors is None:  # the contract document writes `errors=None` for "no errors"
            object.__setattr__(self, "errors", [])

    def __repr__(self) -> str:
        errors = [f"{error.code.value} {error.message}" for error in self.errors]
        content = "; ".join(errors) or repr(self.data)
        return f"<SkillResponse {self.status}: {content[:200]}>"

    @property
    def ok(self) -> bool:
        """Whether there is a usable result, whole or partial."""
        return self.status != "failed"

    @classmethod
    def failed(
        cls, *errors: SkillError, metadata: dict[str, Any] | None = None
    ) -> SkillResponse[Any]:
        """Return the envelope of a call that failed with *errors*."""
        return cls("failed", errors=list(errors), metadata=metadata)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of the contract document, 31.4, without the fields
        that have no value.
        """
        return self._document(to_plain(self.data))

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook: the repairs, the errors and the data."""
        from skillruntime.contract.response_page import response_page

        return response_page(
            self.status, to_plain(self.data), self.errors, self.metadata or {}
        )

    def to_json(self) -> str:
        """Return the envelope as compact JSON text for a model."""
        try:
            # The encoder itself converts each value that is not JSON when it reaches
            # it.
            return _ENCODE(self._document(self.data))
        except TypeError:  # a date as a key of a mapping
            return _ENCODE(self.to_dict())

    def _document(self, data: Any) -> dict[str, Any]:
        document: dict[str, Any] = {"status": self.status}
        if data is not None:
            document["data"] = data
        if self.errors:
            document["errors"] = [error.to_dict() for error in self.errors]
        if self.metadata:
            document["metadata"] = self.metadata
        return document


def handle_skill_error(
    exception: BaseException, context: Mapping[str, Any]
) -> SkillResponse:
    """Return the envelope for *exception*, written for a model.

    *context* may have ``timeout``, the allowed time in seconds. A `SkillRuntimeError`
    keeps its code; any other exception becomes ``INTERNAL_ERROR`` with only its type,
    because its text may contain secrets.

    >>> handle_skill_error(TimeoutError(), {"timeout": 30}).errors[0].message
    'Operation timed out after 30s'
    """
    # The messages below are the contract document's own, word for word: its examples
    # assert them.
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
                suggested_action=f"Please wait {exception.retry_after}s before "
                "retrying",
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


def to_plain(data: Any) -> Any:
    """Return *data* with each model, dataclass, enum, date or set converted to JSON
    values; if it has none of these, return *data* itself.

    >>> import datetime
    >>> to_plain([datetime.date(2026, 1, 2)]), to_plain({"n": 1})
    (['2026-01-02'], {'n': 1})
    """
    if isinstance(data, str | int | float | None) and not hasattr(data, "_value_"):
        return data
    if type(data) in (dict, list) and is_plain_json(data):
        return data
    # Imported here, because a host without typed functions never needs it.
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        if holds_iterator(data):
            return data
        return to_jsonable_python(data, fallback=str)
    # *data* has bytes that are not text, a cycle, or more than 255 levels.
    except (PydanticSerializationError, ValueError, RecursionError):
        return data


def holds_iterator(data: Any) -> bool:
    """Return whether *data* contains an iterator, such as a generator: it can be read
    only once, but the envelope is read more often.
    """
    if isinstance(data, Iterator):
        return True
    if isinstance(data, Mapping):
        return any(holds_iterator(member) for member in data.values())
    if isinstance(data, list | tuple | set):
        return any(holds_iterator(item) for item in data)
    return False


def _to_json(value: Any) -> Any:
    """Convert *value*, which is not JSON, to JSON; ``json.dumps`` calls this."""
    plain = to_plain(value)
    if plain is value:
        return str(value)
    return plain


# Shared, because `json.dumps` with options creates an encoder for each call, which
# takes longer than encoding a typical envelope.
_ENCODE = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=_to_json
).encode
