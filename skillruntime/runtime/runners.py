"""Define runners, async callables from arguments to output, and the runner around a
Python function.

A runner states by ``stops_when_cancelled`` that a cancelled call does not continue.
Only then is it safe to repeat a call that passed its deadline.
"""

from __future__ import annotations

import inspect
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from skillruntime.catalog.skill import Skill
from skillruntime.contract.response import to_plain
from skillruntime.contract.schemas.plain_json import rebuilt
from skillruntime.errors import ToolExecutionError
from skillruntime.runtime.files.skill_copy import SkillCopy
from skillruntime.runtime.grants import Grants

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract

__all__ = [
    "CallContext",
    "FunctionRunner",
    "ReportedFailureError",
    "Runner",
    "RunnerFactory",
    "is_context",
    "is_coroutine_function",
    "to_plain_result",
]


def _none(words: Iterable[str]) -> Grants:
    return Grants()


@dataclass(frozen=True, slots=True)
class CallContext:
    """The values that a runner gets from the host in addition to the arguments; never a
    value from the model.

    ``deadline`` is a point of ``time.monotonic()``, or None; ``config`` is the host's
    own value (such as a LangChain ``RunnableConfig``); ``call_id`` is the model's id of
    the tool call, or a new one, and is unique only within ``message`` of
    ``conversation``. The workspace is created at its first use; files that change in it
    from then on are listed in the envelope's ``metadata.files``.
    """

    name: str
    open_workspace: Callable[[], Path] = field(repr=False)
    caller: str | None = None
    config: Mapping[str, Any] | None = field(default=None, repr=False)
    deadline: float | None = None
    call_id: str = field(default_factory=lambda: os.urandom(16).hex())
    conversation: str | None = None
    message: str | None = None
    execution: dict[str, Any] = field(default_factory=dict, repr=False)
    """The runner's report about the run: ``sandbox`` (its level), ``grants``,
    ``stopped`` after a cancellation; ``exit_code``, ``exit_meaning``, ``stderr``,
    ``still_running`` and ``warnings`` for the metadata, and ``output``, the data of a
    call that failed.
    """
    grants: Grants = field(default_factory=Grants)
    code: SkillCopy | None = field(default=None, repr=False)
    """The approved copy of an untrusted skill's files, from which its script runs.
    """
    has_untrusted_files: Callable[[], bool] = field(default=lambda: False, repr=False)
    """Whether a script of an untrusted skill may have written into the workspace; see
    `shared_workspace`.
    """
    uncopied: Callable[[Iterable[str]], Grants] = field(default=_none, repr=False)
    """Returns the grants that would have given the script the missing files of the
    workspace: the paths among these words, and the files that it works on besides the
    arguments.
    """

    @property
    def workspace(self) -> Path:
        """The session's directory, in which files come and go."""
        return self.open_workspace()

    def idempotency_key(self, arguments: Mapping[str, Any]) -> str:
        """Return the same key for the same call of the same message; a new key if the
        message is unknown.
        """
        if self.conversation is None or self.message is None:
            return os.urandom(16).hex()
        # Include the arguments, because a model may use an id twice in one message.
        parts = [self.conversation, self.message, self.call_id, self.name, arguments]
        text = json.dumps(parts, sort_keys=True, default=str)
        import hashlib  # OpenSSL: not needed for an import

        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, at least 0; None without a deadline."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - time.monotonic())


class Runner(Protocol):
    """Runs one call whose arguments fit the contract.

    A runner may have ``stops_when_cancelled = True``: then a cancelled call does not
    continue. A runner whose server enforces the deadline may state by ``grace`` how
    many seconds later it is cancelled.
    """

    async def __call__(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the output, or raise an exception: a `SkillRuntimeError` keeps its
        code, any other exception is a bug.
        """
        ...


RunnerFactory = Callable[[Skill, "Contract"], Runner | None]
"""Returns the runner for a contract of a skill, or None if it has none: packages above
this one pass theirs in.
"""


class ReportedFailureError(ToolExecutionError):
    """The skill ran, failed, and reported it in the form of the contract document,
    31.2: ``document``.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__("The skill reported a failure")
        self.document: dict[str, Any] = dict(document)


Binding = Callable[
    [dict[str, Any], CallContext | None], tuple[tuple[Any, ...], Mapping[str, Any]]
]
"""Turns the arguments of a call into positional and keyword arguments of a function;
the context is None if the function does not take it.
"""


@dataclass(frozen=True, slots=True)
class FunctionRunner:
    """Runs a Python function of the host.

    A coroutine function runs in the event loop. A plain function runs in a worker
    thread, which Python cannot kill, so it may continue past its deadline.
    ``call_sync`` runs it in the caller's own thread instead.
    """

    function: Callable[..., Any]
    bind: Binding
    is_async: bool
    to_plain: Callable[[Any], Any]
    takes_context: bool

    @classmethod
    def of_mapping(cls, function: Callable[..., Any]) -> FunctionRunner:
        """Return the runner of ``function(arguments)`` or ``function(arguments,
        context)``.

        Raises:
            TypeError: *function* cannot be called in this way.
        """
        # Looked up once: inspect.signature costs more than the whole rest of a call.
        bind: Binding
        takes_context = _wants_context(function)
        if takes_context:
            _require_fit(function, 2)
            bind = _with_context
        else:
            _require_fit(function, 1)
            bind = _without_context
        is_async = is_coroutine_function(function)
        return cls(function, bind, is_async, to_plain_result, takes_context)

    @property
    def stops_when_cancelled(self) -> bool:
        """Whether a cancellation stops the function: a coroutine stops at its next
        await, unless the function has this attribute itself; a thread does not stop.
        """
        return bool(getattr(self.function, "stops_when_cancelled", self.is_async))

    @property
    def grace(self) -> float:
        """The function's own grace: a remote skill may be registered as a function."""
        return float(getattr(self.function, "grace", 0.0))

    async def __call__(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run a coroutine function here, and a plain one in a worker thread."""
        if self.is_async:
            try:
                return await cast("Awaitable[Any]", self._call(arguments, context))
            except SystemExit as exit_:
                raise _exited(exit_) from exit_
        # Imported here, because most functions are called in their caller's thread.
        import anyio.to_thread

        # abandon_on_cancel: at the deadline the caller gets its answer although the
        # thread continues.
        result = await anyio.to_thread.run_sync(
            partial(self.run_here, arguments, context), abandon_on_cancel=True
        )
        if inspect.isawaitable(result):
            return await result
        return result

    def run_here(self, arguments: dict[str, Any], context: CallContext | None) -> Any:
        """Run a plain function in this thread; *context* may be None if the function
        does not take it.
        """
        try:
            return self._call(arguments, context)
        except SystemExit as exit_:
            raise _exited(exit_) from exit_

    def _call(self, arguments: dict[str, Any], context: CallContext | None) -> Any:
        # Pass a copy: a function may change its arguments, and the host keeps the
        # originals in the conversation's history.
        try:
            own = _copied(arguments)
        except RecursionError:  # hundreds of levels
            own = rebuilt(arguments, lambda scalar: scalar)
        positional, named = self.bind(own, context)
        return self.function(*positional, **named)


def _copied(part: Any) -> Any:
    # Every value of every call passes here, so a scalar must not cost a function call.
    own = part.copy()
    for key, member in own.items() if isinstance(own, dict) else enumerate(own):
        if type(member) in _CONTAINERS:
            own[key] = _copied(member)
    return own


_CONTAINERS = (dict, list)


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Return whether calling *function* returns a coroutine; *function* may be a
    callable object.
    """
    if inspect.iscoroutinefunction(function):
        return True
    method = getattr(function, "__call__", None)  # noqa: B004 - it is looked at
    return inspect.iscoroutinefunction(method)


def to_plain_result(result: Any) -> Any:
    """Return *result* as JSON values: a pydantic model or a dataclass is converted,
    anything else stays unchanged.
    """
    if isinstance(result, _PLAIN):
        return result
    return to_plain(result)


_PLAIN = (dict, list, str, int, float, bool, type(None))


def _without_context(
    arguments: dict[str, Any], context: CallContext | None
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    return (arguments,), {}


def _with_context(
    arguments: dict[str, Any], context: CallContext | None
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    return (arguments, context), {}


def _wants_context(function: Callable[..., Any]) -> bool:
    """Return whether the second positional parameter receives the context."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some callables written in C have no signature
        return False
    positional = [
        item
        for item in parameters
        if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
    ]
    if len(positional) < 2:
        return False
    return is_context(positional[1])


def is_context(parameter: inspect.Parameter) -> bool:
    """Return whether *parameter* is annotated `CallContext`, or named ``context``."""
    if parameter.name == "context":
        return True
    type_name = parameter.annotation
    if not isinstance(type_name, str):
        type_name = getattr(type_name, "__name__", "")
    # With `from __future__ import annotations` the annotation is text, and may be
    # qualified ("runtime.CallContext").
    return bool(type_name.rpartition(".")[2] == CallContext.__name__)


def _require_fit(function: Callable[..., Any], count: int) -> None:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError as error:
        raise TypeError(
            f"{function!r} must take the arguments as one mapping, "
            f"function(arguments) or function(arguments, context): {error}"
        ) from None
    except ValueError:  # a callable written in C
        return


def _exited(exit_: SystemExit) -> ToolExecutionError:
    """Return the error of a skill that called ``sys.exit``: the call fails, and the
    host process continues.
    """
    return ToolExecutionError(
        f"The skill called sys.exit({exit_.code!r}) instead of returning a result"
    )
