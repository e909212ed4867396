"""The messages of the invocation protocol (section 6), and the one table of status
transitions. No I/O.

Client and server read the same table: the server makes no other transition, and the
client reports an error when a server shows one.
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
"""The most characters in the id of a caller, skill, execution or trace."""


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
    # A timeout before the start: all places stayed occupied.
    _S.ACCEPTED: frozenset({_S.RUNNING, _S.FAILED, _S.TIMEOUT, _S.CANCELLED}),
    _S.RUNNING: FINAL,
    **dict.fromkeys(FINAL, frozenset()),
}


def can_follow(before: ExecutionStatus, after: ExecutionStatus) -> bool:
    """Return whether a server may change an execution's status from *before* to *after*
    in one step.
    """
    return after in TRANSITIONS[before]


def can_reach(before: ExecutionStatus, after: ExecutionStatus) -> bool:
    """Return whether a client may see *after* as the next status after *before*:
    several steps may lie between two polls.

    >>> can_reach(ExecutionStatus.ACCEPTED, ExecutionStatus.COMPLETED)
    True
    >>> can_reach(ExecutionStatus.RUNNING, ExecutionStatus.ACCEPTED)
    False
    """
    if before is after:
        return True
    return any(can_reach(step, after) for step in TRANSITIONS[before])


class MessageError(Exception):
    """A message breaks the protocol: ``violations`` are ``{field: JSON Pointer,
    expected, actual}``.
    """

    def __init__(
        self, violations: list[dict[str, Any]], message: str | None = None
    ) -> None:
        if message is None:
            first = violations[0]
            place = first["field"] or "the message"
            message = f"{place} should be {first['expected']}, not {first['actual']}"
        super().__init__(message)
        self.violations = violations

    @classmethod
    def at(
        cls, field: str, expected: str, actual: str = "something else"
    ) -> MessageError:
        """Return the error for one field."""
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
    """The optional part of an invocation (6.3). ``webhook`` is an extension: the server
    reports the end to this address.
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

    >>> InvocationRequest.from_dict({"caller": {"id": "a", "type": "service"}})
    Traceback (most recent call last):
        ...
    skillruntime.remote.protocol.MessageError: /skill_id should be a string ...
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
        if context:
            document["context"] = context
        return document

    @classmethod
    def from_dict(cls, document: Any) -> InvocationRequest:
        """Parse *document* into a request; unknown fields are ignored.

        Raises:
            MessageError: it is not an invocation; lists all violations at once.
        """
        _check(document, _REQUEST)
        caller = document["caller"]
        context = document.get("context") or {}
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
    """The times of an execution (6.4), in ISO 8601, UTC; the result is deleted at
    ``expires_at``.
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
        """Whether the status can no longer change."""
        return self.status in FINAL

    def to_dict(self, *, plain: bool = False) -> dict[str, Any]:
        """Return the JSON object of 6.4; *plain* for a peer that knows only the
        protocol document's five statuses.
        """
        status = self.status
        # The invocation protocol, section 6.4, lists five statuses. A client that
        # matches on them would not know when to stop at a sixth.
        if plain and status is ExecutionStatus.CANCELLED:
            status = ExecutionStatus.FAILED
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
        document["timestamps"] = write(self.timestamps)
        return document

    @classmethod
    def from_dict(cls, document: Any) -> Execution:
        """Parse *document* into an execution. Because peers differ, only the id and the
        status are required.

        Raises:
            MessageError: the id is missing, or the status is missing or unknown.
        """
        _check(document, _EXECUTION)
        return cls(
            execution_id=document["execution_id"],
            status=ExecutionStatus(document["status"]),
            skill_id=document.get("skill_id") or "",
            timestamps=_read_timestamps(document.get("timestamps") or {}),
            output=document.get("output"),
            has_output="output" in document,
            error=ErrorDocument.from_dict(document.get("error")),
            progress=_read_progress(document.get("progress") or {}),
            metadata=document.get("metadata"),
        )


def _read_timestamps(document: Mapping[str, Any]) -> Timestamps:
    # Peers write dates in many forms, and the client does not depend on them.
    return Timestamps(
        _shown_text(document.get("created_at")) or "",
        _shown_text(document.get("updated_at")) or "",
        _shown_text(document.get("completed_at")),
        _shown_text(document.get("expires_at")),
    )


def _read_progress(document: Mapping[str, Any]) -> Progress | None:
    done = _number(document.get("done"))
    if done is None:
        return None
    total = _number(document.get("total"))
    return Progress(done, total, _shown_text(document.get("message")))


def to_timestamp(seconds: float) -> str:
    """Return *seconds* since the epoch in ISO 8601.

    >>> to_timestamp(1742481000.5)
    '2025-03-20T14:30:00.500Z'
    """
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def from_timestamp(text: str) -> float:
    """Return the seconds since the epoch that *text* names.

    Raises:
        ValueError: it is not a date and time.
    """
    return datetime.fromisoformat(text).timestamp()


def parse_json(data: bytes) -> Any:
    """Parse *data* into a JSON value: UTF-8, without NaN or infinity, without a
    repeated name, and not too deep for the reader.

    A byte order mark is ignored (RFC 8259, section 8.1). Half a surrogate pair is
    refused: UTF-8 cannot write it.

    Raises:
        MessageError: *data* is not such a value.
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
        # The parser's message is a reason, not a value: "should be JSON, not Expecting
        # value" would be nonsense.
        reason = " ".join(str(error).split())[:200]
        violation = _violation("", "one JSON value in UTF-8", reason)
        raise MessageError(
            [violation], f"it cannot be read as JSON: {reason}"
        ) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object with these names and values.

    Raises:
        ValueError: a name occurs twice (RFC 7493, 2.3), so a proxy or a log may have
            used the other value.
    """
    members = dict(pairs)
    if len(members) != len(pairs):
        repeated, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"an object has the name {repeated[:40]!r} twice")
    return members


def _finite(text: str) -> float:
    # Python reads 1e999 as infinity, which other JSON readers may not know.
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is larger than the largest number supported")
    return number


@dataclass(frozen=True, slots=True)
class _Rule:
    """The rule for one field; *expected* describes it in words. Null counts as the
    absence of the field: many serializers write it for a field without a value.
    """

    expected: str
    fits: Callable[[Any], bool]
    is_required: bool = False


def _text(limit: int, *, is_required: bool = False) -> _Rule:
    def fits(value: Any) -> bool:
        if not isinstance(value, str):
            return False
        # PostgreSQL cannot store NUL in a text, and programs that read a log may end
        # the text there.
        return 0 < len(value) <= limit and "\0" not in value

    return _Rule(f"a string of 1 to {limit} characters without NUL", fits, is_required)


def _choice(*choices: str, is_required: bool = False) -> _Rule:
    expected = f"{', '.join(choices[:-1])} or {choices[-1]}"
    return _Rule(expected, choices.__contains__, is_required)


def _object(*, is_required: bool = False) -> _Rule:
    return _Rule("an object", lambda value: isinstance(value, Mapping), is_required)


def _number(value: Any) -> float | None:
    """Return *value* if it is a number: Python takes True for 1, JSON does not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value


def _is_duration(value: Any) -> bool:
    number = _number(value)
    # 1e15 ms are 30,000 years; dates end long before a float does.
    return number is not None and 0 < number < 1e15


def _shown_text(value: Any) -> str | None:
    """Return *value* in a form that is safe to show to people and models, if it is a
    string.
    """
    if not isinstance(value, str):
        return None
    # A peer may send any length.
    return printable(value[:MAX_ID])


# The table of the invocation protocol, section 6.3, and this library's own field
# `webhook`, whose limit of 2,000 characters is usual in browsers and proxies.
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
    violations = []
    for path, rule in rules.items():
        parent = _parent_of(path, document)
        # There is a violation already where the parent itself is not an object.
        if not isinstance(parent, Mapping):
            continue
        value = parent.get(path[-1])
        if value is None and not rule.is_required:
            continue
        if rule.fits(value):
            continue
        if "credentials" in path:
            value = "something else"  # a violation quotes no credential
        violations.append(_violation("/" + "/".join(path), rule.expected, value))
    if violations:
        raise MessageError(violations)


def _parent_of(path: tuple[str, ...], document: Any) -> Any:
    """Return the value that the field at *path* is a member of."""
    for name in path[:-1]:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def _violation(field_: str, expected: str, actual: Any) -> dict[str, Any]:
    return {"field": field_, "expected": expected, "actual": _in_words(field_, actual)}


def _in_words(field_: str, actual: Any) -> str:
    """Return how a violation shows the value of a field."""
    if actual is None:
        return "nothing"
    if field_ == "" and isinstance(actual, str):
        text = actual  # the reason why the message is not JSON
    else:
        text = json.dumps(actual, ensure_ascii=False, default=str)
    # Truncated, so that the answer does not grow with the request.
    if len(text) > 80:
        return text[:79] + "…"
    return text
