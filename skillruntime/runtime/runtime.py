"""Calls skills. The path of one call is `SkillRuntime.call`: fixed, and whole on one screen.

Raw text or mapping -> arguments that fit the contract -> permission -> run inside a deadline -> the output checked ->
the envelope. What can be decided without waiting is plain functions: `prepare` before, `finish` after.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack

import anyio

import skillruntime
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.skill import Skill
from skillruntime.contract.contract import Contract
from skillruntime.contract.response import SkillResponse
from skillruntime.contract.versions import check_skill_compatibility
from skillruntime.errors import (
    AccessDeniedError,
    IncompatibleRuntimeError,
    InvalidSkillError,
    SkillError,
    SkillNotFoundError,
    SkillRuntimeError,
    ToolNotAvailableError,
    ToolTimeoutError,
)
from skillruntime.runtime.blocking import run_to_end
from skillruntime.runtime.call import Call, Target
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.call_record import CallRecord, Observer, Operation, around, is_logging, notify
from skillruntime.runtime.error_responses import to_errors, unwrapped
from skillruntime.runtime.path_arguments import with_resolved_paths
from skillruntime.runtime.reported_status import read_reported
from skillruntime.runtime.runners import FunctionRunner, ReportedFailureError, Runner, RunnerFactory
from skillruntime.runtime.sandbox.protocol import Sandbox
from skillruntime.runtime.scripts import ScriptRunner, environment_asked
from skillruntime.runtime.session import SkillSession
from skillruntime.runtime.workspace import Workspace
from skillruntime.tokens.budget import TokenLimits
from skillruntime.tokens.counter import Model

__all__ = ["Approval", "SkillRuntime"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

DEFAULT_TIMEOUT = 60.0
"""Seconds a call may run where neither the caller nor the contract says."""

_MOST_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Approval:
    """What a host is asked to allow: ``skill`` is not trusted, and its ``script`` would run with these arguments."""

    name: str
    skill: Skill
    script: str
    arguments: Mapping[str, Any]
    environment: tuple[str, ...] = ()


class SkillRuntime:
    """Calls the skills of a catalog, and the functions that a host implements.

    *policy* says how far arguments are mended (``"strict"``, ``"safe"``, ``"lenient"``); by default as each contract
    says, which is ``"safe"`` where it says nothing.
    *approve* is asked before an untrusted skill's script is run; without it such a script is refused. *runners* are
    factories that other rooms hand down (a remote one, say). *environment* names variables that scripts may see beside
    the usual ones. *workspace* is the directory for calls outside a session; by default a fresh temporary one.
    *sandbox* is where untrusted scripts run: ``"auto"`` (the best level of this machine), ``"bubblewrap"``,
    ``"landlock"``, or a `Sandbox`; with *sandbox_trusted* trusted ones run there too. *approve* never replaces it.
    *timeout* is the seconds for a call where neither the caller nor the contract says; None is no deadline.
    *on_call* is told of every call, skill loaded and resource read, as a `CallRecord`, when it is over.
    """

    def __init__(
        self,
        catalog: SkillCatalog | None = None,
        *,
        policy: str | None = None,
        approve: Callable[[Approval], bool | Awaitable[bool]] | None = None,
        runners: Sequence[RunnerFactory] = (),
        workspace: str | os.PathLike[str] | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        environment: Sequence[str] = (),
        sandbox: str | Sandbox = "auto",
        sandbox_trusted: bool = False,
        on_call: Observer | Sequence[Observer] = (),
    ) -> None:
        self._catalog = SkillCatalog() if catalog is None else _checked(catalog)
        self._policy = policy
        self._approve = approve
        self._factories = tuple(runners)
        self._workspace = Workspace(workspace)
        self._timeout = timeout
        self._environment = tuple(environment)
        self._sandbox = sandbox
        self._sandbox_trusted = sandbox_trusted
        self._observers: tuple[Observer, ...] = (on_call,) if callable(on_call) else tuple(on_call)
        self._functions: dict[str, tuple[FunctionRunner, Contract | None]] = {}
        self._found: dict[str, tuple[Skill | None, Contract]] = {}
        self._targets: dict[str, Target] = {}

    def implements(self, name: str, *, contract: Contract | None = None) -> Callable[[_Function], _Function]:
        """Register a function of the host as what runs *name*: ``function(arguments)``.

        A second parameter named ``context`` or annotated `CallContext` receives the call's context. With *contract*
        the name needs no skill in the catalog. The function itself is returned unchanged.
        """

        def register(function: _Function) -> _Function:
            self._functions[name] = (FunctionRunner.around(function), contract)
            self._found.pop(name, None)
            self._targets.clear()  # a range may have chosen this name
            return function

        return register

    @property
    def catalog(self) -> SkillCatalog:
        """The catalog whose skills are called. A contract is read at its first call, and kept.

        Give a new one (``runtime.catalog = runtime.catalog.refresh()``) to have changed skills seen.
        """
        return self._catalog

    @catalog.setter
    def catalog(self, catalog: SkillCatalog) -> None:
        self._catalog = _checked(catalog)
        self._found.clear()
        self._targets.clear()

    def contract(self, name: str) -> Contract:
        """Return the contract of the callable *name*.

        Raises:
            SkillNotFoundError: there is no such skill, or nothing in it can be called.
            InvalidSkillError: its contract is faulty.
        """
        return self._find(name)[1]

    def callable_names(self) -> list[str]:
        """Return what can be called, reading every skill's contracts; one whose contract is faulty is left out."""
        names = [name for name, (_, contract) in self._functions.items() if contract is not None]
        for skill_name in self.catalog:
            with suppress(SkillRuntimeError):
                names += self.catalog.activate(skill_name).contracts
        return list(dict.fromkeys(names))

    def session(
        self,
        *,
        workspace: str | os.PathLike[str] | None = None,
        limits: TokenLimits | None = None,
        model: Model = "gpt-4o",
        tell_tokens: bool = False,
    ) -> SkillSession:
        """Return a new session: what one conversation activates and spends, its workspace, what it was refused.

        *limits* is how many tokens of *model* it may spend; see `SkillSession`.
        """
        return SkillSession(self, workspace=workspace, limits=limits, model=model, tell_tokens=tell_tokens)

    def with_observer(self, observer: Observer) -> SkillRuntime:
        """Return this runtime with one more observer, beside those it has; everything else is shared."""
        other = copy.copy(self)
        other._observers = (*self._observers, observer)
        return other

    def notify(self, record: CallRecord) -> None:
        """Tell the log and the observers of *record*."""
        notify(self._observers, record)

    # The path of one call. Everything that decides is in `prepare`, `finish` and `_failed`; `_run` alone waits.

    async def call(
        self, name: str, arguments: Any, *, session: SkillSession | None = None, **options: Unpack[CallOptions]
    ) -> SkillResponse:
        """Call *name* and return the envelope; never raise for what a model sent or a skill did.

        *arguments* is a mapping or the model's raw text; *options* are those of `CallOptions`. A cancellation passes.
        """
        call = Call(name, arguments, session, options)
        with around(self._observers, name):
            try:
                self.prepare(call)
                await self._ask_approval(call)
                output = await _run_within_deadline(call)
                response = self.finish(call, output)
            except Exception as error:
                response = self._failed(call, error)
            return self._told(call, response)

    def call_blocking(
        self, name: str, arguments: Any, *, session: SkillSession | None = None, **options: Unpack[CallOptions]
    ) -> SkillResponse:
        """Call *name* without an event loop: as `call`.

        A plain function runs in this very thread, where no deadline is enforced; anything else runs in an event loop
        of its own until it is done.
        """
        call = Call(name, arguments, session, options)
        with around(self._observers, name):
            try:
                self.prepare(call)
                if isinstance(call.target.runner, FunctionRunner) and not call.target.runner.is_async:
                    output = call.target.runner.run_here(call.arguments, call.context(None))
                    output = run_to_end(_awaited, output) if inspect.isawaitable(output) else output
                else:
                    run_to_end(self._ask_approval, call)
                    output = run_to_end(_run_within_deadline, call)
                response = self.finish(call, output)
            except Exception as error:
                response = self._failed(call, error)
            return self._told(call, response)

    def prepare(self, call: Call) -> None:
        """Decide everything that can be decided without waiting: which contract, which arguments, which runner.

        Raises:
            SkillRuntimeError: the call is refused, and nothing has been run.
        """
        call.workspace = self._workspace
        if call.session is not None:
            call.session.require_room()
            call.workspace = call.session.workspace
        call.target = target = self._target(call.name)
        call.accepted = accepted = target.contract.accept(
            call.sent,
            version=call.options.get("version"),
            policy=self._policy,
            finish_reason=call.options.get("finish_reason"),
        )
        call.arguments = accepted.arguments
        if target.has_paths:
            call.arguments = with_resolved_paths(call.arguments, target.contract.input.document, call.workspace)
        if target.needs_approval and self._approve is None:
            raise _not_trusted(target)
        timeout = call.options.get("timeout")
        call.timeout = timeout if timeout is not None else target.contract.run.get("timeout_seconds", self._timeout)
        call.is_prepared = True

    def finish(self, call: Call, output: Any) -> SkillResponse:
        """Check *output* as it was returned, and put it into the envelope, in the shape that an old caller knows.

        Raises:
            SkillOutputError: it is not what the contract promises.
        """
        contract, version = call.target.contract, call.options.get("version")
        given = output.data if isinstance(output, SkillResponse) else output
        contract.check(given)
        shaped = contract.output_for(given, version)
        if isinstance(output, SkillResponse):
            metadata = {**call.metadata(), **(output.metadata or {})}
            return dataclasses.replace(output, data=shaped, metadata=metadata)
        status, errors = read_reported(given)
        return SkillResponse(status, data=shaped, errors=errors, metadata=call.metadata())

    def _failed(self, call: Call, error: Exception) -> SkillResponse:
        """The envelope of a call that was refused or failed: the only place where an exception becomes an answer."""
        error = unwrapped(error)
        let_through = call.options.get("let_through")
        if let_through is not None and let_through(error):
            raise error
        if isinstance(error, ReportedFailureError):
            status, errors = read_reported({"status": "failed", **error.document})
            says_more = error.document.keys() - {"status", "errors"}  # else it would say the same twice
            data = error.document if says_more else None
            return SkillResponse(status, data=data, errors=errors, metadata=call.metadata())
        errors = to_errors(error, call.name)
        if not call.is_prepared and call.session is not None:
            times = call.session.count_refusal(call.name, call.sent, call.options.get("version"))
            if times > 1:
                errors[0] = _repeated(errors[0], times)
        return SkillResponse.failed(*errors, metadata=call.metadata())

    def _told(self, call: Call, response: SkillResponse) -> SkillResponse:
        """The answer as it may be told within the session's tokens; observers are told of it too."""
        if call.session is not None:
            response = call.session.settle(call.name, call.sent, response)
        if self._observers or is_logging():
            self.notify(
                CallRecord(
                    Operation.CALL,
                    str(call.name),
                    call.started_at,
                    round((time.perf_counter() - call.started) * 1e9),
                    response,
                    call.arguments if call.is_prepared else call.sent,
                    session_id=None if call.session is None else call.session.id,
                    config=call.options.get("config"),
                )
            )
        return response

    async def _ask_approval(self, call: Call) -> None:
        """Ask the host about an untrusted script; a person may take their time, outside the deadline."""
        target = call.target
        if not target.needs_approval or self._approve is None or target.skill is None:
            return
        script = str(target.contract.run["script"])
        answer = self._approve(
            Approval(call.name, target.skill, script, call.arguments, environment_asked(target.contract))
        )
        allowed = await answer if inspect.isawaitable(answer) else answer
        if allowed is not True:
            raise AccessDeniedError(
                f"The host did not approve running {script} of the untrusted skill {target.skill.name!r}",
                suggested_action="Do not repeat the call; ask the user how to go on without it",
            )

    def _target(self, name: str) -> Target:
        """What *name* stands for: its contract and what runs it."""
        known = self._targets.get(name) if isinstance(name, str) else None
        if known is None:
            skill, contract = self._find(name)
            _check_runtime(contract, name)
            # `digest@^1` is the skill that the range chose: what the host registered for that runs it.
            own = contract.name if skill is not None and name not in self._functions and "@" in name else name
            function, _ = self._functions.get(own, (None, None))
            known = self._targets[name] = Target.of(name, skill, contract, function or self._runner(skill, contract))
        return known

    def _find(self, name: str) -> tuple[Skill | None, Contract]:
        if not isinstance(name, str):
            raise SkillNotFoundError(f"A skill's name is a string, not {type(name).__name__}")
        found = self._found.get(name)
        if found is None:
            _, own_contract = self._functions.get(name, (None, None))
            found = (None, own_contract) if own_contract is not None else self.catalog.contract(name)
            if len(self._found) >= _MOST_KEPT:  # skills are few, but a model can write any number of ranges
                self._found.clear()
                self._targets.clear()
            self._found[name] = found
        return found

    def _runner(self, skill: Skill | None, contract: Contract) -> Runner:
        if skill is not None:
            for factory in self._factories:
                if (runner := factory(skill, contract)) is not None:
                    return runner
            if contract.run.get("script"):
                return ScriptRunner(skill, contract, self._environment, self._sandbox, self._sandbox_trusted)
        raise ToolNotAvailableError(
            f"Nothing here runs {contract.name!r}: its contract names no script and the host registered no function",
            suggested_action=f"Tell the user; the host can register one with @runtime.implements({contract.name!r})",
        )


def _checked(catalog: Any) -> SkillCatalog:
    if not isinstance(catalog, SkillCatalog):
        raise TypeError(f"A SkillRuntime takes a catalog, discover(directory), not {catalog!r:.80}")
    return catalog


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


async def _run_within_deadline(call: Call) -> Any:
    """Run the call; the only place that waits for a skill."""
    deadline = None if call.timeout is None else time.monotonic() + call.timeout
    with anyio.move_on_after(call.timeout):
        return await call.target.runner(call.arguments, call.context(deadline))
    raise _ran_out(call)


def _ran_out(call: Call) -> ToolTimeoutError:
    annotations = call.target.contract.annotations
    is_repeatable = bool(annotations.get("idempotent") or annotations.get("read_only"))
    promised = bool(getattr(call.target.runner, "stops_when_cancelled", False))
    has_stopped = bool(call.execution.get("stopped", promised))
    if has_stopped or is_repeatable:
        action = "Try again, or ask for less at once"
    else:
        action = "It may still be running and take effect: check before calling again, or ask the user"
    return ToolTimeoutError(
        f"The skill did not finish within {call.timeout:g} s" + (" and was stopped" if has_stopped else ""),
        details={"timeout_seconds": call.timeout, "stopped": has_stopped},
        suggested_action=action,
        recoverable=has_stopped or is_repeatable,
    )


def _not_trusted(target: Target) -> AccessDeniedError:
    skill = target.name.partition("/")[0]
    return AccessDeniedError(
        f"The skill {skill!r} comes from an untrusted directory, so its script is not run",
        details={"script": str(target.contract.run["script"])},
        suggested_action="Tell the user: the host can approve it (approve=...) or trust the directory "
        "(discover(..., trusted=True))",
    )


def _check_runtime(contract: Contract, name: str) -> None:
    required = contract.requires.get("runtime")
    if required is None:
        return
    current = skillruntime.__version__
    try:
        fits, _ = check_skill_compatibility(str(required), current)
    except ValueError as error:
        raise InvalidSkillError(f"The contract's requires.runtime {required!r} is no range of versions") from error
    if not fits:
        raise IncompatibleRuntimeError(
            f"The skill {name!r} needs skillruntime {required}, and this is {current}",
            details={"required": str(required), "current": current},
            suggested_action="Tell the user to install a fitting version of skillruntime, or of the skill",
        )


def _repeated(error: SkillError, times: int) -> SkillError:
    said = f"This same call was refused before ({times} times now): change it, or ask the user."
    action = f"{said} {error.suggested_action}" if error.suggested_action else said
    return dataclasses.replace(error, suggested_action=action)
