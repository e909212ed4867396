"""Find everything that can be called by name: the skills of a catalog, and the
functions that a host registered.

Every adapter takes its tools from here, so a function is offered wherever a script is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from skillruntime._version import __version__
from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.skill import Skill
from skillruntime.errors import (
    IncompatibleRuntimeError,
    InvalidSkillError,
    SkillNotFoundError,
    SkillRuntimeError,
    ToolNotAvailableError,
)
from skillruntime.forks import renew_locks_of
from skillruntime.runtime.call import Target
from skillruntime.runtime.grants import Grants
from skillruntime.runtime.presentation.activation import ActiveSkill
from skillruntime.runtime.runners import FunctionRunner, Runner, RunnerFactory

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract

    # Imports packaging, which only scripts need.
    from skillruntime.runtime.scripts.readiness import Missing
    from skillruntime.runtime.scripts.script_runner import ScriptRunner

__all__ = ["Callables"]

_NO_GRANTS = Grants()
_NEAR_SKILLS = 6  # the most skills whose callables are read for a suggestion
_MOST_LISTED = 20
# skills are few, but a model can write any number of version ranges after "@"
_MOST_KEPT = 10_000


class _Listed:
    """The names that an iterator has yielded so far: several threads, each at its own
    position, share one pass over it.
    """

    def __init__(self, source: Iterator[str]) -> None:
        self.names: list[str] = []
        self._source = source
        self._lock = Lock()
        renew_locks_of(self)

    def renew_locks(self) -> None:
        """Replace the lock, in a child whose parent's threads may hold it."""
        self._lock = Lock()

    def reach(self, position: int) -> bool:
        """Read until there is a name at *position*; return whether there is one."""
        with self._lock:
            while len(self.names) <= position:
                name = next(self._source, None)
                if name is None:
                    return False
                self.names.append(name)
            return True


class Callables:
    """Finds the contract and the runner of a name; both are kept until the catalog or a
    function changes.
    """

    def __init__(
        self,
        catalog: SkillCatalog,
        factories: Sequence[RunnerFactory],
        run_script: Callable[[Skill, Contract], Runner],
        definition_tokens: int | None,
    ) -> None:
        self.definition_tokens = definition_tokens
        """The maximum number of tokens for all tool definitions of a request."""
        self._factories = tuple(factories)
        self._run_script = run_script
        self._functions: dict[str, tuple[FunctionRunner, Contract | None]] = {}
        self._found: dict[str, tuple[Skill | None, Contract]] = {}
        # Each skill is opened once, so that its contracts belong to one state of its
        # files.
        self._opened: dict[str, Skill] = {}
        self._targets: dict[str, Target] = {}
        self.revision: int = 0
        """A number that changes with the catalog and with the functions."""
        self.catalog = catalog

    @property
    def untrusted_definition_tokens(self) -> int | None:
        """The part of `definition_tokens` that all untrusted skills have together: 8,000
        of the default.
        """
        if self.definition_tokens is None:
            return None
        return self.definition_tokens * 2 // 5

    @property
    def catalog(self) -> SkillCatalog:
        """The current catalog."""
        return self._catalog

    @catalog.setter
    def catalog(self, catalog: Any) -> None:
        if not isinstance(catalog, SkillCatalog):
            # A frequent mistake: the functions themselves, alone or in a list.
            given = catalog if isinstance(catalog, list | tuple) else [catalog]
            hint = ""
            if any(map(callable, given)):
                hint = "; give functions by name: SkillRuntime(functions=[...])"
            raise TypeError(
                "SkillRuntime takes a catalog, as discover(directory) returns it; got "
                f"{catalog!r:.80}{hint}"
            )
        self._catalog = catalog
        self._found.clear()
        self._opened.clear()
        self._changed()

    def register(
        self, name: str, runner: FunctionRunner, contract: Contract | None
    ) -> None:
        """Register *runner* for *name*; without *contract* the contract of the
        catalog's skill applies.
        """
        self._functions[name] = (runner, contract)
        self._found.pop(name, None)
        # Forget all targets: a name with a range ("digest@^1") may resolve to this
        # function.
        self._changed()

    def contract(self, name: str) -> Contract:
        """Return the contract of the callable *name*.

        Raises:
            SkillNotFoundError: the skill does not exist, or has nothing to call.
            InvalidSkillError: its contract is faulty.
        """
        return self._find(name)[1]

    def declared(self, name: str) -> Contract | None:
        """Return the contract that the catalog's skill *name* declares; None if it is
        missing or faulty.
        """
        try:
            return self.catalog.contract(name)[1]
        except SkillRuntimeError:
            return None

    def open_skill(self, name: str) -> ActiveSkill:
        """Return the skill *name* with all its callables: its scripts, and the
        functions registered under its name.

        Raises:
            SkillNotFoundError: neither the catalog nor the host has such a skill.
            InvalidSkillError: its SKILL.md cannot be read.
        """
        functions = self._functions_of(name)
        if functions and name not in self.catalog:
            return ActiveSkill.of_functions(name, functions)
        skill = self.catalog.activate(name)
        contracts = {**skill.contracts, **self._functions_of(skill.name)}
        return ActiveSkill(
            skill.name,
            skill.body,
            contracts,
            skill,
            not_ready=partial(self._not_ready, tuple(contracts)),
            definition_tokens=None
            if skill.trusted
            else self.untrusted_definition_tokens,
        )

    def without_catalog(self) -> list[str]:
        """Return the skills that exist only as functions: those without a SKILL.md in
        the catalog.
        """
        names = dict.fromkeys(name.partition("/")[0] for name in self._with_contract())
        return [name for name in names if name not in self.catalog]

    def has_functions(self) -> bool:
        """Return whether any function can be called, including functions of skills in
        the catalog.
        """
        return bool(self._with_contract())

    def search_functions(self, query: str) -> list[str]:
        """Return the skills that consist only of functions and share a word with
        *query*, the best match first.
        """
        words = set(query.lower().split())
        scores = {}
        for name in self.without_catalog():
            score = 0
            for key, contract in self._functions_of(name).items():
                text = f"{key} {contract.description}".lower()
                score += sum(word in text for word in words)
            if score:
                scores[name] = score
        return sorted(scores, key=lambda name: -scores[name])

    def names(self) -> Iterator[str]:
        """Yield the names that can be called, functions first; a skill whose contract
        is faulty is left out.

        A skill is read when its names are first requested; contracts are not derived
        for them.
        """
        listed = self._listed
        position = 0
        while listed.reach(position):
            yield listed.names[position]
            position += 1

    def _read_names(self) -> Iterator[str]:
        functions = self._with_contract()
        yield from functions
        for name in self.catalog.callables():
            if name not in functions:
                yield name

    def _with_contract(self) -> dict[str, Contract]:
        """Return the contracts of the functions that have their own."""
        contracts = {}
        for name, (_, contract) in self._functions.items():
            if contract is not None:
                contracts[name] = contract
        return contracts

    def unknown(self, name: str) -> SkillNotFoundError:
        """Return the error for *name*, whose skill does not exist. It suggests only
        callables, and none of a hidden skill.
        """
        from skillruntime.contract.closest_names import closest_names

        skill, _, _ = name.replace("__", "/").partition("/")
        near = self.catalog.suggest(skill, _NEAR_SKILLS)
        near += closest_names(skill, self.without_catalog(), _NEAR_SKILLS)
        callables: list[str] = []
        for each in near:
            with suppress(SkillRuntimeError):
                callables += self._names_in(each)
        action = "Load a skill and follow its instructions"
        if callables:
            found = _nearest_first(name, callables)[:3]
            action = f"Did you mean {' or '.join(map(repr, found))}?"
        return SkillNotFoundError(
            f"There is no skill named {skill[:80]!r}", suggested_action=action
        )

    def known_target(self, name: Any) -> Target | None:
        """Return the target of *name* if an earlier call has resolved it."""
        return self._targets.get(name) if isinstance(name, str) else None

    def target(self, name: str, function: Callable[..., Any] | None = None) -> Target:
        """Return the target of *name*: its contract and its runner.

        *function* is the callable that the host passed instead of a name; only the
        error about an unregistered function uses it.

        Raises:
            SkillRuntimeError: nothing of this name can be called here.
        """
        known = self.known_target(name)
        if known is not None:
            return known
        try:
            skill, contract = self._find(name)
        except SkillNotFoundError:
            if function is None:
                raise
            raise _not_registered(function) from None
        _require_this_runtime(contract, name)
        registered = name
        if skill is not None and "@" in name and name not in self._functions:
            # `digest@^1` resolves to a skill of the catalog; a function that is
            # registered for that skill runs it.
            registered = contract.name
        runner: Runner | None
        runner, _ = self._functions.get(registered, (None, None))
        if runner is None:
            runner = self._runner(skill, contract)
        target = Target.of(name, skill, contract, runner)
        self._targets[name] = target
        return target

    def _changed(self) -> None:
        self._targets.clear()
        self._listed = _Listed(self._read_names())
        self.revision += 1

    def missing(self, name: str, grants: Grants) -> tuple[Missing, ...]:
        """Return what the script of *name* lacks; empty if *name* is not a script.

        Raises:
            SkillRuntimeError: nothing of this name can be called here.
        """
        runner = self._script_runner(name)
        return () if runner is None else runner.missing(grants)

    def withheld(self, name: str, grants: Grants) -> tuple[str, ...]:
        """Return the variables that the script of *name* reads but does not get; empty
        if *name* is not a script.

        Raises:
            SkillRuntimeError: nothing of this name can be called here.
        """
        runner = self._script_runner(name)
        return () if runner is None else runner.withheld(grants)

    def lacks_network(self, name: str, grants: Grants) -> bool:
        """Return whether the script of *name* opens connections, in a sandbox without
        network; False for anything else.

        Raises:
            SkillRuntimeError: nothing of this name can be called here.
        """
        runner = self._script_runner(name)
        return False if runner is None else runner.lacks_network(grants)

    def _script_runner(self, name: str) -> ScriptRunner | None:
        runner = self.target(name).runner
        # Imported here, because it loads sandboxes and processes.
        from skillruntime.runtime.scripts.script_runner import ScriptRunner

        return runner if isinstance(runner, ScriptRunner) else None

    def _not_ready(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return what each callable in *names* lacks; ready ones are left out."""
        messages: dict[str, tuple[str, ...]] = {}
        for name in names:
            with suppress(SkillRuntimeError):  # a call of it reports the reason
                missing = self.missing(name, _NO_GRANTS)
                if missing:
                    messages[name] = tuple(lack.message for lack in missing)
        return messages

    def _functions_of(self, name: str) -> dict[str, Contract]:
        """Return the contracts of the functions that belong to the skill *name*."""
        contracts = {}
        for key, (_, contract) in self._functions.items():
            if contract is not None and key.partition("/")[0] == name:
                contracts[key] = contract
        return contracts

    def _find(self, name: Any) -> tuple[Skill | None, Contract]:
        if callable(name):
            function_name = getattr(name, "__name__", type(name).__name__)
            raise SkillNotFoundError(
                "A call takes a skill's name, or what @skill made, not the function "
                f"{function_name!r} itself",
                suggested_action="Call it by its name, "
                f"{function_name!r}, once it was given: "
                "SkillRuntime(functions=[...])",
            )
        if not isinstance(name, str):
            raise SkillNotFoundError(
                f"A skill's name must be a string, not {type(name).__name__}"
            )
        found = self._found.get(name)
        if found is not None:
            return found
        _, own_contract = self._functions.get(name, (None, None))
        if own_contract is None:
            found = self._in_catalog(name)
        else:
            # A function with its own contract replaces the catalog's skill of the same
            # name.
            found = (None, own_contract)
        if len(self._found) >= _MOST_KEPT:
            self._found.clear()
            self._opened.clear()
            self._targets.clear()
        self._found[name] = found
        return found

    def _in_catalog(self, name: str) -> tuple[Skill, Contract]:
        own, _, _ = name.partition("/")
        try:
            opened = self._opened.get(own)
            if opened is not None:
                return opened, opened.contract(name)
            skill, contract = self.catalog.contract(name)
            # A skill found by a version range has the contracts of another version than
            # the plain name.
            if skill.name == own:
                self._opened[own] = skill
            return skill, contract
        except SkillNotFoundError as error:
            # The catalog suggests versions, and skills that have nothing to call; it
            # does not know the functions.
            plain, at, _ = own.partition("@")
            callables: list[str] = []
            with suppress(SkillRuntimeError):
                callables = [*self.open_skill(plain).contracts]
            if callables and at:
                raise
            if callables:
                raise _not_in(plain, name, callables) from None
            if plain in self.catalog:
                # Raises the reason why the skill has nothing to call.
                self.catalog.contract(plain)
            raise self.unknown(name) from error

    def _names_in(self, skill: str) -> list[str]:
        """Return the names of the callables of *skill*, without deriving contracts."""
        names: list[str] = []
        if skill in self.catalog:
            names += self.catalog.activate(skill).callable_names()
        return list(dict.fromkeys([*names, *self._functions_of(skill)]))

    def _runner(self, skill: Skill | None, contract: Contract) -> Runner:
        if skill is not None:
            for factory in self._factories:
                runner = factory(skill, contract)
                if runner is not None:
                    return runner
            if contract.run.get("script"):
                return self._run_script(skill, contract)
        raise ToolNotAvailableError(
            f"{contract.name!r} cannot run here: its contract names no script and the "
            "host registered no function",
            suggested_action="Tell the user: the host can register one with "
            f"@runtime.implements({contract.name!r})",
        )


def _not_in(skill: str, name: str, callables: list[str]) -> SkillNotFoundError:
    """Return the error for *name*, which *skill* does not have; it lists the existing
    *callables*, so that a model does not invent another name.
    """
    listed = ", ".join(_nearest_first(name, callables)[:_MOST_LISTED])
    if len(callables) > _MOST_LISTED:
        listed += f" and {len(callables) - _MOST_LISTED:,} more"
    return SkillNotFoundError(
        f"The skill {skill!r} has no callable {name[:80]!r}",
        suggested_action=f"Call one of: {listed}",
    )


def _nearest_first(name: str, callables: list[str]) -> list[str]:
    from skillruntime.contract.closest_names import nearest_names

    near = nearest_names(name, callables, len(callables))
    return [*dict.fromkeys([*near, *sorted(callables)])]


def _not_registered(function: Any) -> SkillNotFoundError:
    name = getattr(function, "__name__", type(function).__name__)
    return SkillNotFoundError(
        f"The function {name!r} was not given to this runtime",
        suggested_action="Give it when the runtime is made: "
        f"SkillRuntime(functions=[{name}])",
    )


def _require_this_runtime(contract: Contract, name: str) -> None:
    required: Mapping[str, Any] | str | None = contract.requires.get("runtime")
    if required is None:
        return
    from skillruntime.contract.versions import check_skill_compatibility

    try:
        fits, _ = check_skill_compatibility(str(required), __version__)
    except ValueError as error:
        raise InvalidSkillError(
            f"The contract's requires.runtime {required!r} is not a version range"
        ) from error
    if not fits:
        raise IncompatibleRuntimeError(
            f"The skill {name!r} needs skillruntime {required}, and this is "
            f"{__version__}",
            details={"required": str(required), "current": __version__},
            suggested_action="Tell the user to install a matching version of "
            "skillruntime, or of the skill",
        )
