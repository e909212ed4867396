"""Calls skills. The path of one call is `SkillRuntime.call`; it is fixed, and fits on
one screen.

Raw text or mapping -> arguments that fit the contract -> permission -> run inside a
deadline -> the output checked -> the envelope. What needs no waiting is in two plain
functions: `prepare` before the run, `finish` after it.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, Unpack, overload

from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.skill import Skill
from skillruntime.contract.repairs.state import policy_named
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import InvalidSkillError
from skillruntime.runtime.activation import ActiveSkill
from skillruntime.runtime.approval import Approval, Approve, not_trusted, run_approved
from skillruntime.runtime.blocking import run_to_end
from skillruntime.runtime.call import (
    CallRequest,
    Prepared,
    Target,
    WatchedWorkspace,
    call_metadata,
    require_seconds,
)
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.call_record import (
    CallRecord,
    Observer,
    around,
    is_logging,
    notify,
)
from skillruntime.runtime.callables import Callables
from skillruntime.runtime.error_responses import (
    data_of,
    read_reported,
    repeated,
    to_errors,
    unwrapped,
)
from skillruntime.runtime.files.workspace import Workspace
from skillruntime.runtime.function_skill import (
    ContractLike,
    FunctionSkill,
    contract_of,
    runner_for,
    skill,
)
from skillruntime.runtime.grants import Grants, granted_to
from skillruntime.runtime.runners import (
    FunctionRunner,
    ReportedFailureError,
    Runner,
    RunnerFactory,
)
from skillruntime.runtime.sandbox.protocol import DEFAULT_LIMITS, Limits, require_level

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract
    from skillruntime.runtime.files.own_directory import CallFiles
    from skillruntime.runtime.sandbox.protocol import Sandbox
    from skillruntime.runtime.scripts.readiness import (
        Missing,
    )  # imports packaging, which only scripts need
    from skillruntime.runtime.session import SkillSession
    from skillruntime.tokens.budget import TokenLimits
    from skillruntime.tokens.counter import Model

__all__ = ["Approval", "SkillRuntime"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Result = TypeVar("_Result")

# For the overloads below: what `skill` makes of a coroutine function gives what the
# coroutine returns.
_Async = FunctionSkill[..., Coroutine[Any, Any, _Result]]
_Plain = FunctionSkill[..., _Result]
_Session: TypeAlias = "SkillSession | None"

DEFAULT_TIMEOUT = 60.0
"""Seconds that a call may run if neither the caller nor the contract sets a timeout."""


class SkillRuntime:
    """Calls the skills of a catalog, and the functions that a host registers.

    Args:
        catalog: The skills, as `discover` finds them. policy: How far malformed
            arguments are repaired: ``"strict"``, ``"safe"`` or ``"lenient"``. By
            default each
            contract's own policy, which is ``"safe"`` unless it states another.
        approve: Is called before an untrusted skill's script runs; without it such a
            script is refused. grants: What the host lets the scripts of each skill use
            beyond their workspace, by the name of the skill or
            the callable. An untrusted script that needs more is refused.
        runners: Factories of runners for other kinds of skills (remote ones, say).
            workspace: The directory in which scripts find and leave files, in every
            session; without one, each session has
            a temporary directory. An untrusted script works in a directory of its own,
            and its new files arrive in ``skill-files/NAME`` of the workspace.
        timeout: Seconds, for calls where neither the caller nor the contract sets any;
            None disables it. environment: Names of variables that every script may see.
            sandbox: Where untrusted scripts run: ``"auto"`` (the best level of this
            machine), ``"bubblewrap"``,
            ``"landlock"``, or a `Sandbox`. *approve* never replaces it.
        sandbox_trusted: Whether trusted scripts run there too. shared_workspace:
            Whether untrusted scripts work in the workspace itself; trusted scripts are
            confined there
            from then on.
        script_limits: What one confined script may use. on_call: Receives a
            `CallRecord` of every call, skill loaded and resource read, after it ended.
            functions: Typed functions to add as skills. definition_tokens: The most
            that the definitions of one untrusted skill's tools take in a request to a
            model;
            the others are called by name.
        image_bytes: The most that the images of one answer have together. What is
            larger stays a path in the text, and
            with 0 every image does.
    """

    def __init__(
        self,
        catalog: SkillCatalog | None = None,
        *,
        policy: str | None = None,
        approve: Approve | None = None,
        grants: Mapping[str, Grants] | None = None,
        runners: Sequence[RunnerFactory] = (),
        workspace: str | os.PathLike[str] | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        environment: Sequence[str] = (),
        sandbox: str | Sandbox = "auto",
        sandbox_trusted: bool = False,
        shared_workspace: bool = False,
        script_limits: Limits = DEFAULT_LIMITS,
        on_call: Observer | Sequence[Observer] = (),
        functions: Iterable[Callable[..., Any]] = (),
        definition_tokens: int | None = 8_000,
        image_bytes: int = 1_000_000,
    ) -> None:
        self.image_bytes = image_bytes
        self.definition_tokens = definition_tokens
        asked = tuple(environment)
        self._grants = dict(grants or {})

        def start(owner: Skill, contract: Contract) -> Runner:
            from skillruntime.runtime.scripts.runner import (
                ScriptRunner,
            )  # sandboxes and processes: only skills with scripts

            own = granted_to(contract.name or owner.name, self._grants)
            return ScriptRunner(
                owner, contract, asked, sandbox, sandbox_trusted, own, script_limits
            )

        self._callables = Callables(
            SkillCatalog() if catalog is None else catalog, runners, start
        )
        self._policy = policy
        self._approve = approve
        self._given, self._workspace = workspace, Workspace(workspace)
        self._shares_workspace = shared_workspace
        self._script_limits = script_limits
        require_level(sandbox)
        require_seconds(timeout)
        self._timeout = timeout
        self.observers: tuple[Observer, ...] = (
            (on_call,) if callable(on_call) else tuple(on_call or ())
        )
        for name, given in (
            ("approve", (approve,) if approve is not None else ()),
            ("on_call", self.observers),
        ):
            if wrong := [each for each in given if not callable(each)]:
                raise TypeError(f"{name} takes a function; got {wrong[0]!r:.80}")
        if policy is not None:
            policy_named(policy)  # refuses an unknown name here, not at the first call
        if callable(functions):
            raise TypeError(
                "functions takes a list: "
                f"functions=[{getattr(functions, '__name__', 'function')}]"
            )
        names = [self.add(function).name for function in functions]
        # `add` replaces a function, as notebooks need it; in one list, two of a name
        # are a mistake.
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(
                f"two functions have the name {twice[0]!r}: rename one, or use "
                "@skill(name=...)"
            )

    def __repr__(self) -> str:
        functions = ", ".join(self._callables.without_catalog())
        return (
            f"<SkillRuntime of {len(self.catalog):,} "
            f"skills{' and ' * bool(functions)}{functions}>"
        )

    def __copy__(self) -> SkillRuntime:
        # what is copied with it (a tool, an agent's configuration) calls the same
        # skills
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> SkillRuntime:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a SkillRuntime cannot be pickled, and neither can a tool, a toolkit or a "
            "middleware that has one: it holds functions, open files and locks of "
            "this process; make it in the other process"
        )

    def add(self, function: Callable[..., Any]) -> FunctionSkill[..., Any]:
        """Add a typed function, or what `skill` made of one, as a callable skill;
        return that skill.

        Raises:
            InvalidSkillError: its signature gives no contract.
            TypeError: it is not a function.
        """
        made = function if isinstance(function, FunctionSkill) else skill(function)
        self._callables.register(made.name, made.runner, made.contract)
        return made

    def implements(
        self, name: str, *, contract: ContractLike | None = None
    ) -> Callable[[_Function], _Function]:
        """Register a function of the host to run *name*; the function itself is
        returned unchanged.

        It is ``function(arguments)``, which takes one mapping, or a typed function,
        whose parameters are the contract's properties. A parameter named ``context`` or
        annotated `CallContext` receives the call's context. The contract is *contract*,
        or that of the catalog's skill of this name, or else the typed function's own.

        Raises:
            InvalidSkillError: the function does not fit the contract, or there is none.
            TypeError: *name* is not a name, or *contract* is not a contract.
        """
        if not isinstance(name, str):
            raise TypeError(
                "implements takes the skill's name first: "
                f"@runtime.implements('name'); got {name!r:.80}"
            )
        given = None if contract is None else contract_of(contract, name)

        def register(function: _Function) -> _Function:
            if isinstance(function, FunctionSkill):
                self._callables.register(
                    name, function.runner, given or function.contract
                )
                return function
            declared = given or self._callables.declared(name)
            runner, found = runner_for(function, declared, name)
            if found is None and name.partition("/")[0] not in self.catalog:
                raise InvalidSkillError(
                    f"{name!r} has no contract: the catalog has no such callable, and "
                    "the function's parameters are not annotated; annotate them, or "
                    "give contract=",
                    suggested_action="Annotate the parameters, or give contract=",
                )
            self._callables.register(
                name, runner, given if declared is not None else found
            )
            return function

        return register

    @property
    def catalog(self) -> SkillCatalog:
        """The catalog whose skills are called. A contract is read at its first call,
        and kept.

        Set a new one (``runtime.catalog = runtime.catalog.refresh()``) to pick up
        changed skills.
        """
        return self._callables.catalog

    @catalog.setter
    def catalog(self, catalog: SkillCatalog) -> None:
        self._callables.catalog = catalog

    @property
    def has_workspace(self) -> bool:
        """Whether the host named a workspace."""
        return self._given is not None

    @property
    def revision(self) -> int:
        """A number that changes when another catalog is set or a function is added:
        what can be called may differ.
        """
        return self._callables.revision

    def contract(self, name: str) -> Contract:
        """Return the contract of the callable *name*.

        Raises:
            SkillNotFoundError: there is no such skill, or nothing in it can be called.
            InvalidSkillError: its contract is faulty.
        """
        return self._callables.contract(name)

    def missing(
        self, name: str, *, grants: Grants | None = None
    ) -> tuple[Missing, ...]:
        """Return what the script of *name* lacks: an interpreter, packages, commands,
        variables or a grant.

        Empty where it is ready, or is not a script. With *grants*, as for a call with
        these.

        Raises:
            SkillRuntimeError: nothing of this name can be called here.
        """
        return self._callables.missing(name, grants or Grants())

    def open_skill(self, name: str) -> ActiveSkill:
        """Return the skill *name*: its instructions, and what can be called of it, by a
        script or by a function.

        Raises:
            SkillNotFoundError: neither the catalog nor the host has such a skill.
            InvalidSkillError: its SKILL.md cannot be read.
        """
        active = self._callables.open_skill(name)
        if active.skill is None or active.skill.trusted:
            return active
        return dataclasses.replace(active, definition_tokens=self.definition_tokens)

    def function_skills(self, query: str | None = None) -> list[str]:
        """Return the skills that are functions of the host alone, without a SKILL.md;
        with *query* those that match.
        """
        return (
            self._callables.without_catalog()
            if query is None
            else self._callables.search_functions(query)
        )

    def callable_names(self) -> list[str]:
        """Return what can be called, reading every skill's contracts; one whose
        contract is faulty is left out.
        """
        return list(self._callables.names())

    def iter_callable_names(self) -> Iterator[str]:
        """Yield what `callable_names` returns; a skill's contracts are read only when
        its names are asked for.
        """
        return self._callables.names()

    def session(
        self,
        *,
        workspace: str | os.PathLike[str] | None = None,
        limits: TokenLimits | None = None,
        model: Model = "gpt-4o",
        report_tokens: bool = False,
        counts_tokens: bool = True,
        key: str | None = None,
    ) -> SkillSession:
        """Return a session, the state of one conversation, which the host calls *key*.

        *workspace* is its directory, by default that of the runtime. *limits* are in
        tokens of *model*, see `SkillSession`.
        """
        from skillruntime.runtime.session import SkillSession

        return SkillSession(
            self,
            workspace=self._given if workspace is None else workspace,
            limits=limits,
            model=model,
            report_tokens=report_tokens,
            counts_tokens=counts_tokens,
            key=key,
        )

    # The path of one call. `prepare`, `finish` and `_failed` decide; only
    # `run_within_deadline` waits for a skill.

    @overload
    async def call(
        self,
        name: _Async[_Result],
        arguments: Any = None,
        *,
        session: _Session = None,
        **options: Unpack[CallOptions],
    ) -> SkillResponse[_Result]: ...

    @overload
    async def call(
        self,
        name: _Plain[_Result],
        arguments: Any = None,
        *,
        session: _Session = None,
        **options: Unpack[CallOptions],
    ) -> SkillResponse[_Result]: ...

    @overload
    async def call(
        self,
        name: str,
        arguments: Any = None,
        *,
        session: _Session = None,
        **options: Unpack[CallOptions],
    ) -> SkillResponse: ...

    async def call(
        self,
        name: str | FunctionSkill[..., Any],
        arguments: Any = None,
        *,
        session: SkillSession | None = None,
        **options: Unpack[CallOptions],
    ) -> SkillResponse[Any]:
        """Call *name* and return the envelope; a malformed argument or a failing skill
        never raises.

        *name* is a callable's name, or what `skill` made: then ``data`` has the type
        that the function returns. *arguments* is a mapping or the model's raw text, or
        None for no arguments; *options* are those of `CallOptions`. A cancellation of
        the surrounding task is raised as usual.
        """
        request = CallRequest.of(name, arguments, session, options)
        prepared = None
        with around(
            self.observers, request.name
        ):  # outside `try`: a span must cover the failure too
            try:
                if session is not None:
                    await session.settle()
                prepared = self.prepare(request)
                output = await run_approved(prepared, self._approve)
                response = self.finish(prepared, output)
            except Exception as error:
                response = self._failed(request, prepared, error)
            if session is not None:
                response = await session.record_answer_aside(
                    request.name, request.sent, response
                )
            return self._noted(request, prepared, response)

    @overload
    def call_sync(
        self,
        name: _Async[_Result],
        arguments: Any = None,
        *,
        session: _Session = None,
        **options: Unpack[CallOptions],
    ) -> SkillResponse[_Result]: ...

    @overload
    def call_sync(
        self,
        name: _Plain[_Result],
        arguments: Any = None,
        *,
        session: _Session = None,
        **options: Unpack[CallOptions],
    ) -> SkillResponse[_Result]: ...

    @overload
    def call_sync(
        self,
        name: str,
        arguments: Any = None,
        *,
        session: _Session = None,
        **options: Unpack[CallOptions],
    ) -> SkillResponse: ...

    def call_sync(
        self,
        name: str | FunctionSkill[..., Any],
        arguments: Any = None,
        *,
        session: SkillSession | None = None,
        **options: Unpack[CallOptions],
    ) -> SkillResponse[Any]:
        """Call *name* without an event loop, as `call` does.

        A plain function runs in this thread, where no deadline is enforced; anything
        else runs in an event loop of its own until it is done.
        """
        request = CallRequest.of(name, arguments, session, options)
        prepared = None
        with around(self.observers, request.name):
            try:
                prepared = self.prepare(request)
                runner = prepared.target.runner
                if isinstance(runner, FunctionRunner) and not runner.is_async:
                    # In this thread: starting an event loop for a plain function would
                    # cost more than the call.
                    output = runner.run_here(prepared.arguments, prepared.context(None))
                    output = (
                        run_to_end(_awaited, output)
                        if inspect.isawaitable(output)
                        else output
                    )
                else:
                    output = run_to_end(run_approved, prepared, self._approve)
                response = self.finish(prepared, output)
            except Exception as error:
                response = self._failed(request, prepared, error)
            if session is not None:
                response = session.record_answer(request.name, request.sent, response)
            return self._noted(request, prepared, response)

    def prepare(self, request: CallRequest) -> Prepared:
        """Return the call, decided as far as possible without waiting: its contract,
        its arguments, its runner.

        Raises:
            SkillRuntimeError: the call is refused, and nothing has been run.
        """
        options, session = request.options, request.session
        # Before anything runs: a result that cannot be returned would be lost after its
        # side effects.
        if session is not None:
            session.require_result_budget()
        workspace = self._workspace if session is None else session.workspace
        target = self._callables.target(request.name, request.function)
        accepted = target.contract.accept(
            target.unescaped(request.sent),
            version=options.get("version"),
            policy=self._policy,
            finish_reason=options.get("finish_reason"),
        )
        watched, arguments = self._files_of(target, workspace, accepted.arguments)
        if target.has_paths:
            from skillruntime.runtime.files.path_arguments import with_resolved_paths

            arguments = with_resolved_paths(arguments, target.contract.input, watched)
        if target.needs_approval and self._approve is None:
            raise not_trusted(target.name, str(target.contract.run["script"]))
        timeout = options.get("timeout")
        if timeout is None:
            timeout = target.contract.run.get("timeout_seconds", self._timeout)
        granted = options.get("grants")
        if granted is None:
            return Prepared(request, target, accepted, arguments, timeout, watched, {})
        return Prepared(
            request, target, accepted, arguments, timeout, watched, {}, grants=granted
        )

    def _files_of(
        self, target: Target, workspace: Workspace, arguments: dict[str, Any]
    ) -> tuple[WatchedWorkspace | CallFiles, dict[str, Any]]:
        """Return where one call of *target* works, and the arguments as its script
        finds the files that they name.
        """
        if not target.needs_approval or self._shares_workspace or target.skill is None:
            return WatchedWorkspace(
                workspace, is_untrusted=target.needs_approval
            ), arguments
        from skillruntime.runtime.files.own_directory import CallFiles, own_directory

        files = CallFiles(
            own_directory(workspace, target.skill.name, self._script_limits.workspace)
        )
        return files, files.with_named_files(arguments)

    def finish(self, prepared: Prepared, output: Any) -> SkillResponse:
        """Check *output* as it was returned, and put it into the envelope.

        Raises:
            SkillOutputError: it does not fit the contract.
        """
        returned = output.data if isinstance(output, SkillResponse) else output
        runner = prepared.target.runner
        plain = (
            runner.to_plain(returned)
            if isinstance(runner, FunctionRunner)
            else returned
        )
        prepared.target.contract.check(plain)
        metadata = call_metadata(prepared.request, prepared.target, prepared)
        if isinstance(output, SkillResponse):
            return dataclasses.replace(
                output, data=returned, metadata={**metadata, **(output.metadata or {})}
            )
        status, errors = read_reported(plain)
        # A caller in Python gets the function's own model back.
        data = data_of(plain, status) if status == "failed" else returned
        return SkillResponse(
            status, data=data, errors=prepared.explained(errors), metadata=metadata
        )

    def _failed(
        self, request: CallRequest, prepared: Prepared | None, error: Exception
    ) -> SkillResponse:
        """Return the envelope of a call that was refused or failed: every exception
        becomes an answer here.
        """
        error = unwrapped(error)
        let_through = request.options.get("let_through")
        # LangGraph's interrupt is an exception; enveloped, it would never reach the
        # graph.
        if let_through is not None and let_through(error):
            raise error
        target = (
            self._callables.known_target(request.name)
            if prepared is None
            else prepared.target
        )
        metadata = call_metadata(request, target, prepared)
        if isinstance(error, ReportedFailureError):
            status, errors = read_reported({"status": "failed", **error.document})
            errors = errors if prepared is None else prepared.explained(errors)
            return SkillResponse(
                status,
                data=data_of(error.document, status),
                errors=errors,
                metadata=metadata,
            )
        errors = to_errors(error, request.name)
        if prepared is not None:
            errors = prepared.explained(errors)
        elif request.session is not None:
            times = request.session.count_refusal(
                request.name, request.sent, request.options.get("version")
            )
            errors[0] = repeated(errors[0], times)
        return SkillResponse.failed(*errors, metadata=metadata)

    def _noted(
        self, request: CallRequest, prepared: Prepared | None, response: SkillResponse
    ) -> SkillResponse:
        """Return the answer, after the observers and the log, if there are any,
        received its record.
        """
        if self.observers or is_logging():
            notify(self.observers, CallRecord.of(request, prepared, response))
        return response


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
