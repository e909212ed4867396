"""The runtime: the skills and functions that a host makes callable, and how it lets
them run.

`skillruntime/runtime/call_path.py` has the path of one call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, Unpack, overload

from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.skill import Skill
from skillruntime.contract.repairs.policy import policy_named
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import InvalidSkillError, SkillNotFoundError
from skillruntime.runtime.approval import Approval, Approve
from skillruntime.runtime.call import require_seconds
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.call_path import CallPath
from skillruntime.runtime.call_record import Observer
from skillruntime.runtime.callables import Callables
from skillruntime.runtime.files.workspace import Workspace, require_directory
from skillruntime.runtime.function_skill import (
    ContractLike,
    FunctionSkill,
    contract_of,
    runner_for,
    skill,
)
from skillruntime.runtime.grants import Grants, checked_grants, granted_to
from skillruntime.runtime.presentation.activation import ActiveSkill
from skillruntime.runtime.runners import Runner, RunnerFactory
from skillruntime.runtime.sandbox.protocol import DEFAULT_LIMITS, Limits, require_level

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract
    from skillruntime.runtime.sandbox.protocol import Sandbox

    # Imports packaging, which only scripts need.
    from skillruntime.runtime.scripts.readiness import Missing
    from skillruntime.runtime.session import SkillSession
    from skillruntime.tokens.budget import TokenLimits
    from skillruntime.tokens.counter import Model

__all__ = ["Approval", "SkillRuntime"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Result = TypeVar("_Result")

# For the overloads below: a call of a coroutine function that `skill` decorated returns
# the result of the coroutine.
_Async = FunctionSkill[..., Coroutine[Any, Any, _Result]]
_Plain = FunctionSkill[..., _Result]
_Session: TypeAlias = "SkillSession | None"

DEFAULT_TIMEOUT = 60.0
"""Seconds that a call may run if neither the caller nor the contract sets a timeout."""


class SkillRuntime:
    """Calls the skills of a catalog, and the functions that a host registers.

    Args:
        catalog: The skills, as `discover` finds them.
        policy: How far malformed arguments are repaired: ``"strict"``, ``"safe"`` or
            ``"lenient"``. By default each contract's own policy, which is ``"safe"``
            unless it states another.
        approve: Is called before an untrusted skill's script runs; without it such a
            script is refused.
        grants: What the host lets the scripts of each skill use beyond their workspace,
            by the name of the skill or the callable. An untrusted script that needs
            more is refused.
        runners: Factories of runners for other kinds of skills (remote ones, say).
        workspace: The directory in which scripts find and leave files, in every
            session; without one, each session has a temporary directory. An untrusted
            script works in a directory of its own, and its new files arrive in
            ``skill-files/NAME`` of the workspace.
        timeout: Seconds, for calls where neither the caller nor the contract sets any;
            None disables it.
        environment: Names of variables that every script may see.
        sandbox: Where untrusted scripts run: ``"auto"`` (the best level of this
            machine), ``"bubblewrap"``, ``"landlock"``, or a `Sandbox`. *approve* never
            replaces it.
        sandbox_trusted: Whether trusted scripts run there too.
        shared_workspace: Whether untrusted scripts work in the workspace itself;
            trusted scripts are confined there from then on.
        script_limits: What one confined script may use.
        on_call: Receives a `CallRecord` of every call, skill loaded and resource read,
            after it ended.
        functions: Typed functions to add as skills.
        definition_tokens: The most that the definitions of all tools take in a request
            to a model; the others are called by name. Untrusted skills have two fifths
            of it together.
        image_bytes: The most that the images of one answer have together. What is
            larger stays a path in the text, and with 0 every image does.
        tell_directories: Whether a model is shown where trusted skills and the
            workspace lie, for a shell or an editor that it has beside the skills. By
            default where the host names the workspace. Never over HTTP.
        list_files: Whether the files that a call makes or changes in the workspace are
            listed in the envelope. For this the workspace is walked before and after
            the call: about 3 ms for each thousand files.

    Raises:
        InvalidSkillError: *workspace* is not a directory.
        TypeError: *grants* has something other than grants by name.
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
        definition_tokens: int | None = 20_000,
        image_bytes: int = 1_000_000,
        tell_directories: bool | None = None,
        list_files: bool = True,
    ) -> None:
        passed = tuple(environment)
        grants_by_name = checked_grants(grants)
        self._granted = frozenset(grants_by_name)

        def script_runner(owner: Skill, contract: Contract) -> Runner:
            # Sandboxes and processes: imported only for skills with scripts.
            from skillruntime.runtime.scripts.script_runner import ScriptRunner

            return ScriptRunner(
                owner,
                contract,
                environment=passed,
                sandbox=sandbox,
                sandbox_trusted=sandbox_trusted,
                grants=granted_to(contract.name or owner.name, grants_by_name),
                limits=script_limits,
            )

        if catalog is None:
            catalog = SkillCatalog()
        self._callables = Callables(catalog, runners, script_runner, definition_tokens)
        self._given_workspace = workspace
        self._tell_directories = tell_directories
        if workspace is not None:
            require_directory(workspace)
        own_workspace = Workspace(workspace)
        require_level(sandbox)
        require_seconds(timeout)
        if callable(on_call):
            observers: tuple[Observer, ...] = (on_call,)
        else:
            observers = tuple(on_call or ())
        if approve is not None:
            _require_callable("approve", approve)
        for observer in observers:
            _require_callable("on_call", observer)
        if policy is not None:
            policy_named(policy)  # refuses an unknown name here, not at the first call
        self._calls = CallPath(
            callables=self._callables,
            observers=observers,
            policy=policy,
            approve=approve,
            workspace=own_workspace,
            timeout=timeout,
            shares_workspace=shared_workspace,
            lists_files=list_files,
            script_limits=script_limits,
            image_bytes=image_bytes,
        )
        self._add_all(functions)

    def __repr__(self) -> str:
        shown = f"{len(self.catalog):,} skills"
        if functions := self._callables.without_catalog():
            shown += f" and {', '.join(functions)}"
        return f"<SkillRuntime of {shown}>"

    def __copy__(self) -> SkillRuntime:
        # A copy of a tool or of an agent's configuration calls the same skills.
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> SkillRuntime:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a SkillRuntime cannot be pickled, and neither can a tool, a toolkit or a "
            "middleware that has one: it holds functions, open files and locks of "
            "this process; make it in the other process"
        )

    def _add_all(self, functions: Iterable[Callable[..., Any]]) -> None:
        if callable(functions):
            name = getattr(functions, "__name__", "function")
            raise TypeError(f"functions takes a list: functions=[{name}]")
        names = [self.add(function).name for function in functions]
        # `add` replaces a function of the same name, as notebooks need it. Two
        # functions of one name in a list are a mistake.
        for name in names:
            if names.count(name) > 1:
                raise ValueError(
                    f"two functions have the name {name!r}: rename one, or use "
                    "@skill(name=...)"
                )

    def add(self, function: Callable[..., Any]) -> FunctionSkill[..., Any]:
        """Add a typed function, or what `skill` made of one, as a callable skill;
        return that skill.

        Raises:
            InvalidSkillError: its signature gives no contract.
            TypeError: it is not a function.
        """
        if not isinstance(function, FunctionSkill):
            function = skill(function)
        self._callables.register(function.name, function.runner, function.contract)
        return function

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
            runner, own = runner_for(function, declared, name)
            if own is None and name.partition("/")[0] not in self.catalog:
                raise InvalidSkillError(
                    f"{name!r} has no contract: the catalog has no such callable, and "
                    "the function's parameters are not annotated; annotate them, or "
                    "give contract=",
                    suggested_action="Annotate the parameters, or give contract=",
                )
            # Do not register the contract of the catalog, which is looked up again when
            # the catalog changes.
            registered = own if declared is None else given
            self._callables.register(name, runner, registered)
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
    def granted(self) -> frozenset[str]:
        """The names of the skills and callables to which the host has given grants."""
        return self._granted

    @property
    def has_workspace(self) -> bool:
        """Whether the host named a workspace."""
        return self._given_workspace is not None

    @property
    def definition_tokens(self) -> int | None:
        """The most that the definitions of all tools take in a request to a model."""
        return self._callables.definition_tokens

    @definition_tokens.setter
    def definition_tokens(self, tokens: int | None) -> None:
        self._callables.definition_tokens = tokens

    @property
    def untrusted_definition_tokens(self) -> int | None:
        """The part of `definition_tokens` that all untrusted skills have together."""
        return self._callables.untrusted_definition_tokens

    @property
    def image_bytes(self) -> int:
        """The most that the images of one answer have together."""
        return self._calls.image_bytes

    @image_bytes.setter
    def image_bytes(self, most: int) -> None:
        self._calls.image_bytes = most

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

        The result is empty if the script is ready, or if *name* is not a script.
        *grants* are the grants of the call, in addition to the skill's own.

        Raises:
            SkillRuntimeError: nothing of this name can be called here.
        """
        return self._callables.missing(name, grants or Grants())

    def withheld(self, name: str, *, grants: Grants | None = None) -> tuple[str, ...]:
        """Return the variables of this process that the script of *name* reads but does
        not get, without the variables that `missing` reports.

        The script may work without them, so they do not stop a call. *grants* are the
        grants of the call, in addition to the skill's own.

        Raises:
            SkillRuntimeError: nothing of this name can be called here.
        """
        return self._callables.withheld(name, grants or Grants())

    def lacks_network(self, name: str, *, grants: Grants | None = None) -> bool:
        """Return whether the script of *name* contains code that opens connections, but
        runs in a sandbox without network.

        The script may work without the network, so this does not stop a call. *grants*
        are the grants of the call, in addition to the skill's own.

        Raises:
            SkillRuntimeError: nothing of this name can be called here.
        """
        return self._callables.lacks_network(name, grants or Grants())

    def open_skill(self, name: str) -> ActiveSkill:
        """Return the skill *name*: its instructions, and the contracts of its scripts
        and functions.

        Raises:
            SkillNotFoundError: neither the catalog nor the host has such a skill.
            InvalidSkillError: its SKILL.md cannot be read.
        """
        return self._callables.open_skill(name)

    def function_skills(self, query: str | None = None) -> list[str]:
        """Return the skills that are functions of the host alone, without a SKILL.md;
        with *query* those that match.
        """
        if query is None:
            return self._callables.without_catalog()
        return self._callables.search_functions(query)

    def has_functions(self) -> bool:
        """Return whether a function of the host can be called, that of a skill in the
        catalog too.
        """
        return self._callables.has_functions()

    def unknown_callable(self, name: str) -> SkillNotFoundError:
        """Return the error of a call of *name*, whose skill does not exist, or must not
        be known: its suggested action has the nearest names that can be called.
        """
        return self._callables.unknown(name)

    def callable_names(self) -> list[str]:
        """Return the names of all callables, reading every skill's contracts. A skill
        with a faulty contract is left out.
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
        tell_directories: bool | None = None,
    ) -> SkillSession:
        """Return a session, the state of one conversation, which the host calls *key*.

        *workspace* is its directory, by default that of the runtime. *limits* are in
        tokens of *model*, see `SkillSession`. *tell_directories* is by default that of
        the runtime.

        Raises:
            InvalidSkillError: *workspace* is not a directory.
        """
        from skillruntime.runtime.conversation_state import ConversationState
        from skillruntime.runtime.session import SkillSession

        if workspace is None:
            workspace = self._given_workspace
        elif not isinstance(workspace, Workspace):
            require_directory(workspace)
        if tell_directories is None:
            tell_directories = self._tell_directories
        if tell_directories is None:
            tell_directories = workspace is not None
        state = ConversationState(
            workspace=workspace,
            limits=limits,
            model=model,
            report_tokens=report_tokens,
            counts_tokens=counts_tokens,
            key=key,
            tell_directories=tell_directories,
        )
        return SkillSession(self._calls, state)

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
        state = None if session is None else session.state
        return await self._calls.call(name, arguments, state, options)

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
        state = None if session is None else session.state
        return self._calls.call_sync(name, arguments, state, options)


def _require_callable(name: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(f"{name} takes a function; got {function!r:.80}")
