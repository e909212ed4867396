"""The messages of the invocation protocol (section 6), and the one table of status transitions. No I/O.

Client and server read the same table: the server lets an execution go nowhere else, and the client names it an error
when a server claims so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NoReturn

from skillruntime.contract.plain_json import is_unicode
from skillruntime.remote.wire_errors import ErrorDocument, WireCode, printable

__all__ = [
    "FINAL",
    "TRANSITIONS",
    "Caller",
    "Execution",
    "ExecutionStatus",
    "InvocationContext",
    "InvocationRequest",
    "MessageError",
    "Progress",
    "Timestamps",
    "can_follow",
    "can_reach",
]

MAX_ID: Final = 500
"""Characters of an id: of a caller, a skill, an execution, a trace."""


class ExecutionStatus(StrEnum):
    """The status of an execution (6.4), and our ``cancelled``, shown as failed to peers that do not know it."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


_S = ExecutionStatus
FINAL: Final = frozenset({_S.COMPLETED, _S.FAILED, _S.TIMEOUT, _S.CANCELLED})
TRANSITIONS: Final[Mapping[ExecutionStatus, frozenset[ExecutionStatus]]] = {
    # Timeout without having run: no place became free in time.
    _S.ACCEPTED: frozenset({_S.RUNNING, _S.FAILED, _S.TIMEOUT, _S.CANCELLED}),
    _S.RUNNING: FINAL,
    **dict.fromkeys(FINAL, frozenset()),
}


def can_follow(before: ExecutionStatus, after: ExecutionStatus) -> bool:
    """Return whether an execution may step from *before* to *after*: what a server obeys."""
    return after in TRANSITIONS[before]


def can_reach(before: ExecutionStatus, after: ExecutionStatus) -> bool:
    """Return whether a client that saw *before* may next see *after*: a client that polls misses steps.

    >>> can_reach(ExecutionStatus.ACCEPTED, ExecutionStatus.COMPLETED)
    True
    >>> can_reach(ExecutionStatus.RUNNING, ExecutionStatus.ACCEPTED)
    False
    """
    # Following every step that may lie between two polls.
    return before is after or any(can_reach(step, after) for step in TRANSITIONS[before])


class MessageError(Exception):
    """A message breaks the protocol: ``violations`` are ``{field: JSON Pointer, expected, actual}``."""

    def __init__(self, violations: list[dict[str, Any]], message: str | None = None) -> None:
        first = violations[0]
        named = first["field"] or "the message"
        super().__init__(message or f"{named} should be {first['expected']}, not {first['actual']}")
        self.violations = violations

    def to_document(self) -> ErrorDocument:
        """Return the refusal of a request with these violations."""
        message = "The request does not follow the protocol"
        return ErrorDocument(WireCode.VALIDATION_ERROR, message, {"violations": self.violations})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls (6.3). ``credentials`` are for ``custom`` authentication alone, and are never stored or shown."""

    id: str
    type: str = "service"
    credentials: Mapping[str, Any] | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        # Credentials go to the server and nowhere else: `repr` leaves them out too.
        document: dict[str, Any] = {"id": self.id, "type": self.type}
        return document if self.credentials is None else {**document, "credentials": dict(self.credentials)}


@dataclass(frozen=True, slots=True)
class InvocationContext:
    """What else a caller may say (6.3); ``webhook`` is an extension: where to report the end."""

    trace_id: str | None = None
    priority: str = "normal"
    timeout_ms: float | None = None
    webhook: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object, without what is not said."""
        said = {"trace_id": self.trace_id, "timeout_ms": self.timeout_ms, "webhook": self.webhook}
        document = {name: value for name, value in said.items() if value is not None}
        return document if self.priority == "normal" else {**document, "priority": self.priority}


@dataclass(frozen=True, slots=True)
class InvocationRequest:
    """The body of a POST (6.3).

    >>> InvocationRequest.from_dict({"caller": {"id": "a", "type": "robot"}, "skill_id": "s", "inputs": {}})
    Traceback (most recent call last):
    skillruntime.remote.protocol.MessageError: /caller/type should be ifay, service or user, not "robot"
    """

    caller: Caller
    skill_id: str
    inputs: Mapping[str, Any]
    context: InvocationContext = InvocationContext()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object of 6.3."""
        document: dict[str, Any] = {
            "caller": self.caller.to_dict(),
            "skill_id": self.skill_id,
            "inputs": dict(self.inputs),
        }
        context = self.context.to_dict()
        return {**document, "context": context} if context else document

    @classmethod
    def from_dict(cls, document: Any) -> InvocationRequest:
        """Return the request that *document* writes; unknown fields are ignored.

        Raises:
            MessageError: it is not an invocation; lists all violations at once.
        """
        reading = _FieldReader(document)
        caller = reading.inner("caller", required=True)
        context = reading.inner("context")
        request = cls(
            Caller(
                caller.text("id"),
                caller.choice("type", ("ifay", "service", "user"), default=None),
                caller.credentials(),
            ),
            reading.text("skill_id"),
            reading.mapping("inputs") or {},
            InvocationContext(
                context.text("trace_id", required=False) or None,
                context.choice("priority", ("low", "normal", "high"), default="normal"),
                context.positive("timeout_ms"),
                # The usual limit of browsers and proxies for a URL.
                context.text("webhook", required=False, limit=2000) or None,
            ),
        )
        reading.finish()
        return request


@dataclass(frozen=True, slots=True)
class Timestamps:
    """When what happened (6.4), in ISO 8601, UTC; ``expires_at`` is when the result is no longer kept."""

    created_at: str
    updated_at: str
    completed_at: str | None = None
    expires_at: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        document = {"created_at": self.created_at, "updated_at": self.updated_at}
        if self.completed_at is not None:
            document["completed_at"] = self.completed_at
        return document if self.expires_at is None else {**document, "expires_at": self.expires_at}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an execution is: *done* of *total*, where that is known."""

    done: float
    total: float | None = None
    message: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object, without what is not said."""
        said = {"done": self.done, "total": self.total, "message": self.message}
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Execution:
    """The current state of one execution (6.4).

    ``has_output`` distinguishes an output of null from no output. ``metadata`` is that of the skill's envelope.
    """

    execution_id: str
    status: ExecutionStatus
    skill_id: str
    timestamps: Timestamps
    output: Any = None
    has_output: bool = False
    error: ErrorDocument | None = None
    progress: Progress | None = None
    metadata: Mapping[str, Any] | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.status in FINAL

    def to_dict(self, *, plain: bool = False) -> dict[str, Any]:
        """Return the JSON object of 6.4; *plain* for a peer that knows only the protocol document's five statuses."""
        # 6.4 lists five statuses: a client that matches on them would not know when to stop.
        status = ExecutionStatus.FAILED if plain and self.status is ExecutionStatus.CANCELLED else self.status
        document: dict[str, Any] = {
            "execution_id": self.execution_id,
            "status": status.value,
            "skill_id": self.skill_id,
        }
        if self.has_output:
            document["output"] = self.output
        if self.error is not None:
            document["error"] = self.error.to_dict()
        if self.progress is not None:
            document["progress"] = self.progress.to_dict()
        if self.metadata:
            document["metadata"] = dict(self.metadata)
        return {**document, "timestamps": self.timestamps.to_dict()}

    @classmethod
    def from_dict(cls, document: Any) -> Execution:
        """Return the execution that *document* shows. Only its id and status are insisted on: peers differ.

        Raises:
            MessageError: it has no id, or no status that is known.
        """
        reading = _FieldReader(document)
        stamps = reading.inner("timestamps")
        progress = reading.inner("progress")
        done = progress.number("done")
        execution = cls(
            execution_id=reading.text("execution_id"),
            status=ExecutionStatus(reading.choice("status", tuple(status.value for status in ExecutionStatus), None)),
            skill_id=reading.text("skill_id", required=False),
            # Peers write dates in many forms; nothing is decided by them here.
            timestamps=Timestamps(
                stamps.loose_text("created_at") or "",
                stamps.loose_text("updated_at") or "",
                stamps.loose_text("completed_at"),
                stamps.loose_text("expires_at"),
            ),
            output=reading.get("output"),
            has_output=reading.has("output"),
            error=ErrorDocument.from_dict(reading.get("error")),
            progress=Progress(done, progress.number("total"), progress.loose_text("message"))
            if done is not None
            else None,
            metadata=reading.mapping("metadata", required=False),
        )
        reading.finish()
        return execution


def to_timestamp(seconds: float) -> str:
    """Return *seconds* since the epoch in ISO 8601.

    >>> to_timestamp(1742481000.5)
    '2025-03-20T14:30:00.500Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_timestamp(text: str) -> float:
    """Return the seconds since the epoch that *text* names.

    Raises:
        ValueError: it is not a date and time.
    """
    return datetime.fromisoformat(text).timestamp()


def parse_json(data: bytes) -> Any:
    """Return the JSON value of *data*: UTF-8, no NaN or infinity, no name twice, no depth that would break the reader.

    A byte order mark is ignored (RFC 8259, section 8.1). Half a surrogate pair is refused: UTF-8 cannot write it.

    Raises:
        MessageError: it is not one.
    """
    try:
        text = data.decode("utf-8-sig")
        value = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_refuse_repeated
        )
        if b"\\u" in data and not is_unicode(value):
            raise ValueError("a string holds half of a surrogate pair, which is not a Unicode character")
        return value
    except (ValueError, RecursionError) as error:
        # What the reader says of it is a reason and not a value: "should be JSON, not Expecting value" says nothing.
        reason = " ".join(str(error).split())[:200]
        violation = _violation("", "one JSON value in UTF-8", reason)
        raise MessageError([violation], f"it cannot be read as JSON: {reason}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's names must be unique (RFC 7493, 2.3): which of two values a proxy or a log took is not known here."""
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        repeated = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"an object has the name {repeated[:40]!r} twice")
    return found


def _finite(text: str) -> float:
    # Python reads 1e999 as infinity, which no other JSON reader need know.
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is larger than the largest number supported")
    return number


class _FieldReader:
    """Reads a JSON object field by field and remembers everything that is wrong."""

    def __init__(self, value: Any, at: str = "", violations: list[dict[str, Any]] | None = None) -> None:
        self._at = at
        self.violations: list[dict[str, Any]] = [] if violations is None else violations
        self._document: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        self._is_absent = False
        if not isinstance(value, Mapping):
            self._is_absent = True
            self.violations.append(_violation(at, "an object", value))

    def finish(self) -> None:
        """Raise what was found."""
        if self.violations:
            raise MessageError(self.violations)

    def has(self, name: str) -> bool:
        return name in self._document

    def get(self, name: str) -> Any:
        return self._document.get(name)

    def inner(self, name: str, *, required: bool = False) -> _FieldReader:
        value = self._document.get(name)
        # null too: many serializers write it for a field without a value.
        if value is None and not required:
            inner = _FieldReader({}, f"{self._at}/{name}", self.violations)
            inner._is_absent = True
            return inner
        return _FieldReader(value, f"{self._at}/{name}", self.violations)

    def text(self, name: str, *, required: bool = True, limit: int = MAX_ID) -> str:
        value = self._document.get(name)
        # PostgreSQL holds NUL in no text, and other programs that read a log end the text there.
        if isinstance(value, str) and value and len(value) <= limit and "\0" not in value:
            return value
        if value is None and (not required or self._is_absent):
            return ""
        self._wrong(name, f"a string of 1 to {limit} characters without NUL")
        return ""

    def loose_text(self, name: str) -> str | None:
        # Shown to people and models, and cut: a peer may send any length.
        value = self._document.get(name)
        return printable(value[:MAX_ID]) if isinstance(value, str) else None

    def choice(self, name: str, among: tuple[str, ...], default: str | None) -> str:
        value = self._document.get(name)
        if isinstance(value, str) and value in among:
            return value
        if value is None and default is not None:
            return default
        if not self._is_absent:
            self._wrong(name, f"{', '.join(among[:-1])} or {among[-1]}")
        return among[0]

    def mapping(self, name: str, *, required: bool = True) -> Mapping[str, Any] | None:
        value = self._document.get(name)
        if isinstance(value, Mapping):
            return value
        if value is not None or required:
            self._wrong(name, "an object")
        return None

    def credentials(self) -> Mapping[str, Any] | None:
        """6.3: an ``api_key`` is a string; a violation quotes no credential."""
        value = self.mapping("credentials", required=False)
        if value is not None and not isinstance(value.get("api_key", ""), str):
            violation = {"field": f"{self._at}/credentials/api_key", "expected": "a string", "actual": "something else"}
            self.violations.append(violation)
        return value

    def number(self, name: str) -> float | None:
        # Python takes True for 1; JSON does not.
        value = self._document.get(name)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def positive(self, name: str) -> float | None:
        value = self._document.get(name)
        # 1e15 ms are 30,000 years; dates end long before a float does.
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15):
            return value
        self._wrong(name, "a number of milliseconds above 0")
        return None

    def _wrong(self, name: str, expected: str) -> None:
        self.violations.append(_violation(f"{self._at}/{name}", expected, self._document.get(name)))


def _violation(field_: str, expected: str, actual: Any) -> dict[str, Any]:
    # Cut to 80 characters: an answer must not grow with what was sent.
    said = actual if field_ == "" and isinstance(actual, str) else json.dumps(actual, ensure_ascii=False, default=str)
    shown = said if len(said) <= 80 else said[:79] + "…"
    return {"field": field_, "expected": expected, "actual": "nothing" if actual is None else shown}
