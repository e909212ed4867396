"""Make skills from Python functions: `skill` turns an ordinary typed function into one,
and `runner_for` runs any function.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar, overload

from skillruntime.errors import InvalidSkillError
from skillruntime.extras import missing_extra
from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.runtime.runners import (
    CallContext,
    FunctionRunner,
    is_context,
    is_coroutine_function,
)

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract
    from skillruntime.contract.document.function_contract import TypedFunction

__all__ = ["ContractLike", "FunctionSkill", "contract_of", "runner_for", "skill"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

ContractLike: TypeAlias = "Contract | Mapping[str, Any] | type[Any]"
"""A contract, its document, or a class whose fields are the arguments (a pydantic
model, dataclass or TypedDict).
"""


class FunctionSkill(Generic[_P, _R]):
    """A function as a skill, the result of `skill`. Called directly, it behaves like
    the function itself.
    """

    def __init__(
        self, function: Callable[_P, _R], contract: Contract, runner: FunctionRunner
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.contract = contract
        self.runner = runner

    @property
    def name(self) -> str:
        """The name under which it is called."""
        return self.contract.name

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call the function directly, without checks and repairs."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"FunctionSkill({self.name!r})"

    def __reduce__(self) -> str:
        # Python pickles a function by its name in its module.
        return self.function.__qualname__


@overload
def skill(function: Callable[_P, _R], /) -> FunctionSkill[_P, _R]: ...


@overload
def skill(
    *,
    name: str = "",
    description: str = "",
    version: str | None = None,
    contract: ContractLike | None = None,
    annotations: Mapping[str, bool] | None = None,
) -> Callable[[Callable[_P, _R]], FunctionSkill[_P, _R]]: ...


def skill(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    version: str | None = None,
    contract: ContractLike | None = None,
    annotations: Mapping[str, bool] | None = None,
) -> Any:
    """Make a skill from an ordinary typed function, for
    ``SkillRuntime(functions=[search])``.

    Its name, description and schema come from the function's name, docstring and
    annotations (``Annotated`` and pydantic's ``Field`` included); *name*,
    *description*, *version* and *contract* replace them. *annotations* are the
    contract's: ``{"read_only": True}``.

    >>> @skill
    ... def add(a: int, b: int = 1) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> add.name, add.contract.description, add(2)
    ('add', 'Add two numbers.', 3)

    Raises:
        InvalidSkillError: an annotation cannot be made from JSON, the function does not
            fit *contract*, or it has no description or no usable name.
        TypeError: it is not a function.
    """
    if function is None:
        return functools.partial(
            _made,
            name=name,
            description=description,
            version=version,
            contract=contract,
            annotations=annotations,
        )
    return _made(function)


def contract_of(given: Any, name: str = "") -> Contract:
    """Return *given* as a contract, under *name* or its own name.

    Raises:
        InvalidSkillError: it is faulty.
        TypeError: *given* is not a contract, a document or a class with fields.
    """
    from skillruntime.contract.contract import Contract

    if isinstance(given, Contract):
        return given
    if isinstance(given, Mapping):
        return Contract.from_dict(dict(given), name=name)
    models = _models()
    if models.is_model(given):
        return Contract.from_dict(models.document_of_model(given), name=name)
    raise TypeError(
        "contract= takes a Contract, its document, or a pydantic model, dataclass or "
        f"TypedDict; got {given!r:.80}"
    )


def runner_for(
    function: Callable[..., Any], contract: Contract | None, name: str
) -> tuple[FunctionRunner, Contract | None]:
    """Return the runner of *function*, and its contract: *contract*, or else one made
    from its signature.

    ``function(arguments)`` takes the arguments as one mapping and has no contract of
    its own; a function with any other signature is a typed function, whose parameters
    are the contract's properties.

    Raises:
        InvalidSkillError: an annotation cannot be made from JSON, or the function does
            not fit *contract*.
        TypeError: it is not a function.
    """
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"A skill is a function, not {function!r:.80}")
    if _takes_mapping(function, contract):
        return FunctionRunner.of_mapping(function), contract
    typed = _models().TypedFunction.of(function)
    if contract is None:
        from skillruntime.contract.contract import Contract

        contract = Contract.from_dict(typed.document(name=name))
    else:
        _require_parameters(typed, contract, name)
    return _typed_runner(typed), contract


def _made(
    function: Callable[..., Any],
    *,
    name: str = "",
    description: str = "",
    version: str | None = None,
    contract: ContractLike | None = None,
    annotations: Mapping[str, bool] | None = None,
) -> FunctionSkill[..., Any]:
    if isinstance(function, str):  # @skill("count-words")
        raise TypeError(
            "@skill takes a function; to give a name, write "
            f"@skill(name={function!r:.80})"
        )
    # A tool of LangChain, from the decorator below.
    if hasattr(function, "args_schema"):
        raise TypeError(
            "@skill takes a function, not a tool; leave out @tool, or protect the "
            "tool with enforce(tool)"
        )
    if not callable(function) or isinstance(
        function, type | staticmethod | classmethod
    ):
        raise TypeError(f"@skill takes a function, not {function!r:.80}")
    # A function in a class body is not bound yet; its `self` would become a parameter
    # for the model to fill.
    first = next(iter(inspect.signature(function).parameters), "")
    if first in ("self", "cls"):
        raise TypeError(
            "@skill takes a function, not a method; write "
            f"skill(instance.{_name(function)}) instead"
        )
    from skillruntime.contract.contract import Contract

    if contract is not None:
        own = contract_of(contract, name or _name(function))
        runner, _ = runner_for(function, own, own.name)
    else:
        typed = _models().TypedFunction.of(function)
        own = Contract.from_dict(typed.document(name=name, version=version))
        runner = _typed_runner(typed)
    given = {
        "name": name,
        "description": description,
        "version": version,
        "annotations": dict(annotations or {}),
    }
    changes = {key: value for key, value in given.items() if value}
    if changes:
        document = {**own.to_dict(), **changes}
        own = Contract.from_dict(document, name=name or own.name)
    if not _SKILL_NAME.fullmatch(own.name):
        raise InvalidSkillError(
            f"{own.name!r} is not a name that a model can call: use letters, digits, "
            "'_', '-' and '.', such as 'count_words', and at most one '/', as in "
            "'texts/count'",
            suggested_action="Give another name: @skill(name='count_words')",
        )
    if not own.description:
        raise InvalidSkillError(
            f"The function {_name(function)!r} has no description, which the model "
            "needs to choose it; give it a docstring, or @skill(description=...)",
            suggested_action="Give it a docstring, or @skill(description=...)",
        )
    return FunctionSkill(function, own, runner)


def _models() -> Any:
    """Return the module of typed functions and models, which needs pydantic; a host
    without typed functions does not.

    Raises:
        ModuleNotFoundError: pydantic is not installed; the error says how to install
            it.
    """
    try:
        from skillruntime.contract.document import function_contract
    except ModuleNotFoundError as error:
        raise missing_extra(error) from None
    return function_contract


def _typed_runner(typed: TypedFunction) -> FunctionRunner:
    def bind(
        arguments: dict[str, Any], context: CallContext | None
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        bound = typed.bind(arguments, context)
        return bound.args, bound.kwargs

    return FunctionRunner(
        typed.function,
        bind,
        is_coroutine_function(typed.function),
        typed.to_plain,
        takes_context=typed.context is not None,
    )


def _takes_mapping(function: Callable[..., Any], contract: Contract | None) -> bool:
    """Return whether *function* takes all arguments as one mapping: its first parameter
    is untyped, or typed as a mapping.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some callables written in C have no signature
        return True
    positional = [
        parameter for parameter in parameters if parameter.kind in _POSITIONAL
    ]
    if not positional:
        return any(
            parameter.kind is inspect.Parameter.VAR_POSITIONAL
            for parameter in parameters
        )
    first = positional[0]
    for other in parameters:
        if other is first or other.kind in _STARRED:
            continue
        if other.default is other.empty and not is_context(other):
            return False
    # `def shout(text)` under a contract with the property "text" means the property,
    # not the mapping.
    if contract is not None and first.name != "arguments":
        if first.name in _properties(contract):
            return False
    annotation = first.annotation
    if annotation is first.empty:
        return True
    if not isinstance(annotation, str):
        annotation = str(getattr(annotation, "__name__", annotation))
    return _MAPPING.match(annotation) is not None


# The format allows only lowercase letters and hyphens; more is allowed here, because a
# function's own name must pass. `@` starts a version range in a call, and the one `/`
# stands between skill and tool.
_SKILL_NAME = lazy_pattern(r"[\w.-]+(?:/[\w.-]+)?")
_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)
_STARRED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_MAPPING = lazy_pattern(r"(?:\w+\.)*(?:dict|Dict|Mapping|MutableMapping|Any)\b")


def _require_parameters(typed: TypedFunction, contract: Contract, name: str) -> None:
    """Refuse a function that cannot be called with the arguments of *contract*, when
    the function is registered.
    """
    document = contract.input.document
    if typed.whole is not None or not isinstance(document, Mapping):
        return
    # With these keywords the accepted properties may depend on the value.
    if not {"$ref", "oneOf", "anyOf", "allOf"}.isdisjoint(document):
        return
    properties = _properties(contract)
    parameters = typed.signature.parameters
    faults = []
    takes_any = any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD
        for parameter in parameters.values()
    )
    if not takes_any:
        for key in properties:
            if key not in typed.adapters:
                faults.append(f"it takes no {key!r}, which the contract accepts")
    always_given = set(document.get("required") or ())
    for key, schema in properties.items():
        if _has_default(schema):
            always_given.add(key)
    for key in typed.adapters:
        is_required = parameters[key].default is inspect.Parameter.empty
        if is_required and key not in always_given:
            faults.append(f"it requires {key!r}, which the contract does not require")
    if faults:
        raise InvalidSkillError(
            f"The function {_name(typed.function)!r} does not fit the contract of "
            f"{name!r}: {'; '.join(faults)}",
            suggested_action="Name its parameters as the properties, or take all in "
            "one: function(arguments)",
        )


def _has_default(schema: Any) -> bool:
    return isinstance(schema, Mapping) and "default" in schema


def _properties(contract: Contract) -> Mapping[str, Any]:
    document = contract.input.document
    if not isinstance(document, Mapping):
        return {}
    properties = document.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return properties


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
