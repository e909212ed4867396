"""The values that names have while a script is interpreted: constants as themselves, everything else as a record."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "MORE",
    "UNKNOWN",
    "BoundMethod",
    "ClassValue",
    "DeferredDefault",
    "EnumMember",
    "ForeignCall",
    "FunctionValue",
    "Imported",
    "InstanceValue",
    "Model",
    "PathText",
    "Scope",
    "Symbol",
    "if_known",
    "is_constant",
    "is_open",
    "make_open",
    "same_value",
]


MAX_NODES = 5_000
"""Values inside one constant; a larger one is not examined."""


class _Unknown:
    """A value that the source does not determine."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        raise TypeError("an unknown value is neither true nor false")


UNKNOWN: Any = _Unknown()


def if_known(value: Any) -> Any:
    """Return *value*, or ``None`` where it is UNKNOWN."""
    return None if value is UNKNOWN else value


MORE: Any = type("More", (), {"__slots__": (), "__repr__": lambda self: "MORE"})()
"""An item of a list, or a key, that stands for unknown further ones: the container was changed in an unknown way."""


def make_open(container: list[Any] | dict[Any, Any]) -> None:
    """Forget what *container* holds, because an unknown change was made to it."""
    container.clear()
    if isinstance(container, list):
        container.append(MORE)
    else:
        container[MORE] = UNKNOWN


def is_open(value: Any) -> bool:
    """Whether *value* is a container with unknown contents."""
    return isinstance(value, list | tuple | dict) and any(each is MORE for each in value)


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something of another module, by its full name: ``argparse.ArgumentParser``, ``builtins.int``."""

    name: str


@dataclass(frozen=True, slots=True)
class Imported:
    """Something of a module next to the script, or that module itself where *name* is empty; read when it is used."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class DeferredDefault:
    """The default of a parameter, evaluated only where a call leaves the parameter out."""

    node: ast.expr


class PathText(str):
    """A path object, by its text."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Scope:
    """The names of a module, a class body or one call of a function; *label* is the name of that function."""

    names: dict[str, Any] = field(default_factory=dict)
    parent: Scope | None = None
    outside: set[str] = field(default_factory=set)
    """Names that a ``global`` statement gives to the module."""
    label: str = ""

    def find(self, name: str) -> Any:
        """Return the value of *name* here or further out; raises KeyError."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        raise KeyError(name)

    def module(self) -> Scope:
        """Return the outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


@dataclass(slots=True, eq=False)
class FunctionValue:
    """A function of the script; ``declared`` are the parameters that decorators gave it, innermost first."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    receiver: Any = None
    declared: list[Any] = field(default_factory=list)
    defaults: dict[str, Any] = field(default_factory=dict)
    """The defaults of its parameters, as they were where it was defined."""
    wrapped: FunctionValue | None = None
    """The function that ``functools.wraps`` names: its signature is the one that typer reads."""

    @property
    def name(self) -> str:
        """The name it was defined under."""
        return getattr(self.node, "name", "<lambda>")


@dataclass(slots=True, eq=False)
class ClassValue:
    """A class of the script."""

    name: str
    bases: list[Any]
    names: dict[str, Any]
    members: dict[str, EnumMember] = field(default_factory=dict)
    node: ast.ClassDef | None = None

    def find(self, name: str) -> Any:
        """Return the attribute *name* of the class or its bases; raises KeyError."""
        if name in self.names:
            return self.names[name]
        for base in self.bases:
            if isinstance(base, ClassValue):
                try:
                    return base.find(name)
                except KeyError:
                    continue
        raise KeyError(name)

    def descends_from(self, *symbols: str) -> bool:
        """Whether one of *symbols* is among its bases, or theirs."""
        return any(
            base.name in symbols
            if isinstance(base, Symbol)
            else isinstance(base, ClassValue) and base.descends_from(*symbols)
            for base in self.bases
        )


@dataclass(frozen=True, slots=True)
class EnumMember:
    """A member of an enumeration of the script; ``text`` is what ``str()`` makes of it."""

    enum: str
    name: str
    value: Any
    is_text: bool = False
    text: Any = UNKNOWN


@dataclass(slots=True, eq=False)
class InstanceValue:
    """An object of a class of the script."""

    kind: ClassValue
    names: dict[str, Any] = field(default_factory=dict)

    @property
    def is_tuple(self) -> bool:
        """Whether its names are the items of a named tuple, in their order."""
        return self.kind.descends_from("typing.NamedTuple")


@dataclass(frozen=True, slots=True, eq=False)
class ForeignCall:
    """A recorded call of a library's function: its full name, and what it was called with."""

    symbol: str
    arguments: list[Any]
    named: dict[str, Any]
    node: ast.AST
    receiver: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class BoundMethod:
    """A method of a value that is not an object of the script: of a constant, a word or a parser."""

    receiver: Any
    name: str


class Model:
    """An object of a known library: its methods record what is declared, or answer. *state* is a `State`."""

    def call_method(self, state: Any, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Return the result of calling its method *name*."""
        return UNKNOWN

    def call(self, state: Any, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Return the result of calling the object itself."""
        return UNKNOWN

    def attribute(self, name: str) -> Any:
        """Return its attribute *name*."""
        return BoundMethod(self, name)

    def bind(self, name: str, value: Any) -> None:
        """Record an assignment to its attribute *name*."""

    def leave(self, name: str, node: ast.AST) -> None:
        """Record that it was passed to the function *name*, whose source is not available."""


def is_constant(value: Any) -> bool:
    """Whether *value* is known through and through, and small enough to compare."""
    pending, seen = [value], 0
    while pending:
        seen += 1
        if seen > MAX_NODES:
            return False
        match pending.pop():
            case list() | tuple() | set() | frozenset() as items:
                pending += items
            case dict() as items:
                pending += [*items.keys(), *items.values()]
            case None | bool() | int() | float() | complex() | str() | bytes() | range():
                pass
            case EnumMember(value=value):
                pending.append(value)
            case other if other is not Ellipsis:
                return False
    return True


def same_value(one: Any, other: Any) -> bool:
    """Whether both are the same object, or equal constants."""
    return one is other or (is_constant(one) and is_constant(other) and bool(one == other))
