"""The messages of the invocation protocol (section 6), and the one table of status
transitions. No I/O.

Client and server read the same table: the server lets an execution go nowhere else, and
the client names it an error when a server claims so.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NoReturn

from skillruntime.contract.schemas.plain_json import is_unicode
from skillruntime.remote.json_form import write
from skillruntime.remote.wire_errors import ErrorDocument, WireCode, printable

__all__ = ["Caller", "Execution", "MessageError", "parse_json"]

MAX_ID: Final = 500
"""Characters of an id: of a caller, a skill, an execution, a trace."""


class ExecutionStatus(StrEnum):
    """The status of an execution (6.4), and our ``cancelled``, shown as failed to peers
    that do not know it.
    """

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
    """Return whether an execution may step from *before* to *after*: what a server
    obeys.
    """
    return after in TRANSITIONS[before]


def can_reach(before: ExecutionStatus, after: ExecutionStatus) -> bool:
    """Return whether a client that saw *before* may next see *after*: a client that
    polls misses steps.

    >>> can_reach(ExecutionStatus.ACCEPTED, ExecutionStatus.COMPLETED)
    True
    >>> can_reach(ExecutionStatus.RUNNING, ExecutionStatus.ACCEPTED)
    False
    """
    # Following every step that may lie between two polls.
    return before is after or any(
        can_reach(step, after) for step in TRANSITIONS[before]
    )


class MessageError(Exception):
    """A message breaks the protocol: ``violations`` are ``{field: JSON Pointer,
    expected, actual}``.
    """

    def __init__(
        self, violations: list[dict[str, Any]], message: str | None = None
    ) -> None:
        first = violations[0]
        named = first["field"] or "the message"
        super().__init__(
            message or f"{named} should be {first['expected']}, not {first['actual']}"
        )
        self.violations = violations

    @classmethod
    def at(
        cls, field: str, expected: str, actual: str = "something else"
    ) -> MessageError:
        """Return the error of one field."""
        return cls([{"field": field, "expected": expected, "actual": actual}])

    def to_document(self) -> ErrorDocument:
        """Return the refusal of a request with these violations."""
        message = "The request does not follow the protocol"
        return ErrorDocument(
            WireCode.VALIDATION_ERROR, message, {"violations": self.violations}
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls (6.3). ``credentials`` are for ``custom`` authentication alone, and are
    never stored or shown.
    """

    id: str
    type: str = "service"
    credentials: Mapping[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class InvocationContext:
    """What else a caller may say (6.3); ``webhook`` is an extension: where to report
    the end.
    """

    trace_id: str | None = None
    priority: str = "normal"
    timeout_ms: float | None = None
    webhook: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object, without what is not said."""
        document = write(self)
        if self.priority == "normal":
            del document["priority"]
        return document


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
            "caller": write(self.caller),
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
        _check(document, _REQUEST)
        caller, context = document["caller"], document.get("context") or {}
        return cls(
            Caller(caller["id"], caller["type"], caller.get("credentials")),
            document["skill_id"],
            document["inputs"],
            InvocationContext(
                context.get("trace_id"),
                context.get("priority") or "normal",
                context.get("timeout_ms"),
                context.get("webhook"),
            ),
        )


@dataclass(frozen=True, slots=True)
class Timestamps:
    """When what happened (6.4), in ISO 8601, UTC; ``expires_at`` is when the result is
    no longer kept.
    """

    created_at: str
    updated_at: str
    completed_at: str | None = None
    expires_at: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an execution is: *done* of *total*, where that is known."""

    done: float
    total: float | None = None
    message: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON object, without what is not said."""
        return write(self)


@dataclass(frozen=True, slots=True)
class Execution:
    """The current state of one execution (6.4).

    ``has_output`` distinguishes an output of null from no output. ``metadata`` is that
    of the skill's envelope.
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
        """Return the JSON object of 6.4; *plain* for a peer that knows only the
        protocol document's five statuses.
        """
        # 6.4 lists five statuses: a client that matches on them would not know when to
        # stop.
        status = (
            ExecutionStatus.FAILED
            if plain and self.status is ExecutionStatus.CANCELLED
            else self.status
        )
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
        return {**document, "timestamps": write(self.timestamps)}

    @classmethod
    def from_dict(cls, document: Any) -> Execution:
        """Return the execution that *document* shows. Only its id and status are
        insisted on: peers differ.

        Raises:
            MessageError: it has no id, or no status that is known.
        """
        _check(document, _EXECUTION)
        stamps, progress = (
            document.get("timestamps") or {},
            document.get("progress") or {},
        )
        done = _number(progress.get("done"))
        return cls(
            execution_id=document["execution_id"],
            status=ExecutionStatus(document["status"]),
            skill_id=document.get("skill_id") or "",
            # Peers write dates in many forms; nothing is decided by them here.
            timestamps=Timestamps(
                _shown_text(stamps.get("created_at")) or "",
                _shown_text(stamps.get("updated_at")) or "",
                *(
                    _shown_text(stamps.get(name))
                    for name in ("completed_at", "expires_at")
                ),
            ),
            output=document.get("output"),
            has_output="output" in document,
            error=ErrorDocument.from_dict(document.get("error")),
            progress=None
            if done is None
            else Progress(
                done,
                _number(progress.get("total")),
                _shown_text(progress.get("message")),
            ),
            metadata=document.get("metadata"),
        )


def to_timestamp(seconds: float) -> str:
    """Return *seconds* since the epoch in ISO 8601.

    >>> to_timestamp(1742481000.5)
    '2025-03-20T14:30:00.500Z'
    """
    return (
        datetime.fromtimestamp(seconds, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def from_timestamp(text: str) -> float:
    """Return the seconds since the epoch that *text* names.

    Raises:
        ValueError: it is not a date and time.
    """
    return datetime.fromisoformat(text).timestamp()


def parse_json(data: bytes) -> Any:
    """Return the JSON value of *data*: UTF-8, no NaN or infinity, no name twice, no
    depth that would break the reader.

    A byte order mark is ignored (RFC 8259, section 8.1). Half a surrogate pair is
    refused: UTF-8 cannot write it.

    Raises:
        MessageError: it is not one.
    """
    try:
        text = data.decode("utf-8-sig")
        value = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_refuse_repeated,
        )
        if b"\\u" in data and not is_unicode(value):
            raise ValueError(
                "a string holds half of a surrogate pair, which is not a Unicode "
                "character"
            )
        return value
    except (ValueError, RecursionError) as error:
        # What the reader says of it is a reason and not a value: "should be JSON, not
        # Expecting value" says nothing.
        reason = " ".join(str(error).split())[:200]
        violation = _violation("", "one JSON value in UTF-8", reason)
        raise MessageError(
            [violation], f"it cannot be read as JSON: {reason}"
        ) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's names must be unique (RFC 7493, 2.3): which of two values a proxy or
    a log took is not known here.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        repeated, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"an object has the name {repeated[:40]!r} twice")
    return found


def _finite(text: str) -> float:
    # Python reads 1e999 as infinity, which no other JSON reader need know.
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is larger than the largest number supported")
    return number


@dataclass(frozen=True, slots=True)
class _Rule:
    """What is *expected* of a field; null, as many serializers write for a field
    without a value, is its absence.
    """

    expected: str
    fits: Callable[[Any], bool]
    is_required: bool = False


def _text(limit: int, *, is_required: bool = False) -> _Rule:
    # PostgreSQL holds NUL in no text, and other programs that read a log end the text
    # there.
    def fits(value: Any) -> bool:
        return isinstance(value, str) and 0 < len(value) <= limit and "\0" not in value

    return _Rule(f"a string of 1 to {limit} characters without NUL", fits, is_required)


def _choice(*among: str, is_required: bool = False) -> _Rule:
    return _Rule(
        f"{', '.join(among[:-1])} or {among[-1]}", among.__contains__, is_required
    )


def _object(*, is_required: bool = False) -> _Rule:
    return _Rule("an object", lambda value: isinstance(value, Mapping), is_required)


def _number(value: Any) -> float | None:
    """Return *value* if it is a number: Python takes True for 1, JSON does not."""
    return (
        value
        if isinstance(value, int | float) and not isinstance(value, bool)
        else None
    )


def _is_duration(value: Any) -> bool:
    number = _number(value)
    # 1e15 ms are 30,000 years; dates end long before a float does.
    return number is not None and 0 < number < 1e15


def _shown_text(value: Any) -> str | None:
    # Shown to people and models, and cut: a peer may send any length.
    return printable(value[:MAX_ID]) if isinstance(value, str) else None


# Section 6.3's table, and the webhook of ours: 2,000 is the usual limit of browsers and
# proxies for a URL.
_REQUEST: Final[Mapping[tuple[str, ...], _Rule]] = {
    ("caller",): _object(is_required=True),
    ("caller", "id"): _text(MAX_ID, is_required=True),
    ("caller", "type"): _choice("ifay", "service", "user", is_required=True),
    ("caller", "credentials"): _object(),
    ("caller", "credentials", "api_key"): _Rule(
        "a string", lambda value: isinstance(value, str)
    ),
    ("skill_id",): _text(MAX_ID, is_required=True),
    ("inputs",): _object(is_required=True),
    ("context",): _object(),
    ("context", "trace_id"): _text(MAX_ID),
    ("context", "priority"): _choice("low", "normal", "high"),
    ("context", "timeout_ms"): _Rule("a number of milliseconds above 0", _is_duration),
    ("context", "webhook"): _text(2000),
}
_EXECUTION: Final[Mapping[tuple[str, ...], _Rule]] = {
    ("execution_id",): _text(MAX_ID, is_required=True),
    ("status",): _choice(
        *(status.value for status in ExecutionStatus), is_required=True
    ),
    ("skill_id",): _text(MAX_ID),
    ("timestamps",): _object(),
    ("progress",): _object(),
    ("metadata",): _object(),
}


def _check(document: Any, rules: Mapping[tuple[str, ...], _Rule]) -> None:
    """Raise a `MessageError` with all fields of *document* that break *rules*."""
    if not isinstance(document, Mapping):
        raise MessageError([_violation("", "an object", document)])
    found = []
    for path, rule in rules.items():
        place: Any = document
        for name in path[:-1]:
            place = place.get(name) if isinstance(place, Mapping) else None
        # What is wrong with the object around it is said of that object.
        if not isinstance(place, Mapping):
            continue
        value = place.get(path[-1])
        if (value is not None or rule.is_required) and not rule.fits(value):
            actual = (
                "something else" if "credentials" in path else value
            )  # a violation quotes no credential
            found.append(_violation("/" + "/".join(path), rule.expected, actual))
    if found:
        raise MessageError(found)


def _violation(field_: str, expected: str, actual: Any) -> dict[str, Any]:
    # Cut to 80 characters: an answer must not grow with what was sent.
    said = (
        actual
        if field_ == "" and isinstance(actual, str)
        else json.dumps(actual, ensure_ascii=False, default=str)
    )
    shown = said if len(said) <= 80 else said[:79] + "…"
    return {
        "field": field_,
        "expected": expected,
        "actual": "nothing" if actual is None else shown,
    }
