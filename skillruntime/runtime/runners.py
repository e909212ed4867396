"""What runs a call: an async callable, arguments -> output; and the runner around a Python function.

A runner that is asked to stop stops, or says that it cannot: ``stops_when_cancelled``. Only then may a call that ran
past its deadline be sent again without a second thought.
"""

from __future__ import annotations

import inspect
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import anyio
import anyio.to_thread

from skillruntime.catalog.skill import Skill
from skillruntime.contract.contract import Contract
from skillruntime.errors import ToolExecutionError

__all__ = ["CallContext", "FunctionRunner", "ReportedFailureError", "Runner", "RunnerFactory"]


@dataclass(frozen=True, slots=True)
class CallContext:
    """What the host gives a runner beside the arguments; never anything a model supplied.

    ``deadline`` is a point of ``time.monotonic()``, or None; ``config`` is whatever the host passed along (a LangChain
    ``RunnableConfig``, say). The workspace is made when it is first asked for, and what changes in it from then on is
    told in the envelope's ``metadata.files``.
    """

    name: str
    open_workspace: Callable[[], Path] = field(repr=False)
    caller: str | None = None
    config: Mapping[str, Any] | None = field(default=None, repr=False)
    deadline: float | None = None
    call_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    execution: dict[str, Any] = field(default_factory=dict, repr=False)
    """What a runner says of how it ran: ``sandbox`` (its level), and ``stopped`` after a cancellation."""

    @property
    def workspace(self) -> Path:
        """The session's directory, in which files come and go."""
        return self.open_workspace()

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, never below 0; None where there is no deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())


class Runner(Protocol):
    """Runs one call whose arguments fit the contract.

    A runner may say ``stops_when_cancelled = True``: once it has been cancelled, nothing of the call goes on.
    """

    async def __call__(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the output, or raise: an error of our family keeps its code, any other is a bug."""
        ...


RunnerFactory = Callable[[Skill, Contract], Runner | None]
"""Gives the runner for a contract of a skill, or None where it knows none: how other rooms hand theirs down."""


class ReportedFailureError(ToolExecutionError):
    """The skill ran, failed, and said so in the form of the contract chapter's 31.2: ``document`` is what it said."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__("The skill reported a failure")
        self.document = dict(document)


@dataclass(frozen=True, slots=True)
class FunctionRunner:
    """Runs a Python function of the host: ``function(arguments)``, or ``function(arguments, context)``.

    A coroutine function runs in the event loop. A plain one runs in a worker thread, which Python cannot kill: past
    its deadline it may go on, unheard. ``call_blocking`` runs it in the caller's own thread instead.
    """

    function: Callable[..., Any]
    wants_context: bool
    is_async: bool

    @classmethod
    def around(cls, function: Callable[..., Any]) -> FunctionRunner:
        """Return the runner for *function*, having looked at its signature once.

        Raises:
            TypeError: it cannot be called with the arguments, or with the arguments and the context.
        """
        wants_context = _wants_context(function)
        _require_fit(function, 2 if wants_context else 1)
        is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  an object whose call is a coroutine function
        )
        return cls(function, wants_context, is_async)

    @property
    def stops_when_cancelled(self) -> bool:
        """A coroutine stops where it stands, unless it says otherwise; a thread does not."""
        return bool(getattr(self.function, "stops_when_cancelled", self.is_async))

    async def __call__(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run the function where it belongs: here, or in a worker thread."""
        if self.is_async:
            try:
                return await cast("Awaitable[Any]", self._call(arguments, context))
            except SystemExit as exit_:
                raise _exited(exit_) from exit_
        result = await anyio.to_thread.run_sync(partial(self.run_here, arguments, context), abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result

    def run_here(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run a plain function in this very thread."""
        try:
            return self._call(arguments, context)
        except SystemExit as exit_:
            raise _exited(exit_) from exit_

    def _call(self, arguments: dict[str, Any], context: CallContext) -> Any:
        return self.function(arguments, context) if self.wants_context else self.function(arguments)


def _wants_context(function: Callable[..., Any]) -> bool:
    """Whether the second positional parameter is annotated CallContext, or named ``context``."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some callables of C have no signature
        return False
    positional = [item for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)]
    if len(positional) < 2:
        return False
    second = positional[1]
    annotation = second.annotation
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return second.name == "context" or named.rpartition(".")[2] == CallContext.__name__


def _require_fit(function: Callable[..., Any], count: int) -> None:
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError as error:
        raise TypeError(
            f"{function!r} must take the arguments as one mapping, function(arguments) or "
            f"function(arguments, context): {error}"
        ) from None
    except ValueError:  # no signature to look at
        return


def _exited(exit_: SystemExit) -> ToolExecutionError:
    """A skill that calls ``sys.exit`` has failed; it does not end its host."""
    return ToolExecutionError(f"The skill ended itself with exit code {exit_.code!r} instead of returning a result")
