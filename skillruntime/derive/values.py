"""What a script's names can stand for while it is read: constants as themselves, everything else as a record of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "MORE",
    "UNKNOWN",
    "BoundMethod",
    "ClassValue",
    "EnumMember",
    "FunctionValue",
    "Imported",
    "InstanceValue",
    "Later",
    "Made",
    "Model",
    "PathText",
    "Scope",
    "Symbol",
    "if_known",
    "is_constant",
    "is_open",
    "make_open",
]


MAX_NODES = 5_000
"""Values inside one constant; a larger one is not looked into."""


class _Unknown:
    """A value that reading cannot tell."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __bool__(self) -> bool:
        raise TypeError("nobody can tell whether an unknown value is true")


UNKNOWN: Any = _Unknown()


def if_known(value: Any) -> Any:
    """Return *value*, or ``None`` where reading cannot tell it."""
    return None if value is UNKNOWN else value


MORE: Any = type("More", (), {"__slots__": (), "__repr__": lambda self: "MORE"})()
"""Stands in a list, or as a key, for whatever else may be in it: it was changed in a way that reading cannot tell."""


def make_open(container: list[Any] | dict[Any, Any]) -> None:
    """Forget what *container* holds: what was done to it cannot be told."""
    container.clear()
    if isinstance(container, list):
        container.append(MORE)
    else:
        container[MORE] = UNKNOWN


def is_open(value: Any) -> bool:
    """Whether nobody can tell what *value* holds."""
    return isinstance(value, list | tuple | dict) and any(each is MORE for each in value)


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something of another module, by its full name: ``argparse.ArgumentParser``, ``builtins.int``."""

    name: str


@dataclass(frozen=True, slots=True)
class Imported:
    """Something of a module beside the script, or that module itself where *name* is empty; read when it is used."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Later:
    """The default of a parameter that is made of imported names: it is evaluated where it is needed."""

    node: ast.expr


class PathText(str):
    """A path object, by its text."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Scope:
    """The names of a module, a class body or one call of a function."""

    names: dict[str, Any] = field(default_factory=dict)
    parent: Scope | None = None
    outside: set[str] = field(default_factory=set)

    def find(self, name: str) -> Any:
        """Return what *name* stands for here or further out; raises KeyError."""
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
    stands_for: FunctionValue | None = None

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
    """A member of an enumeration of the script."""

    enum: str
    name: str
    value: Any
    is_text: bool = False
    text: Any = UNKNOWN
    """What ``str()`` makes of it."""


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
class Made:
    """What a call of a foreign name gave: the name, and what it was called with."""

    symbol: str
    arguments: list[Any]
    named: dict[str, Any]
    node: ast.AST
    receiver: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class BoundMethod:
    """A method of a value that is no object of the script: a constant's, or a parser's."""

    receiver: Any
    name: str


class Model:
    """What stands for an object of a library that is known: its methods record, or answer."""

    def call_method(self, reader: Any, name: str, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Return what calling its method *name* comes to."""
        return UNKNOWN

    def call(self, reader: Any, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Return what calling the object itself comes to."""
        return UNKNOWN

    def attribute(self, name: str) -> Any:
        """Return its attribute *name*."""
        return BoundMethod(self, name)

    def bind(self, name: str, value: Any) -> None:
        """Take an assignment to its attribute *name*."""

    def leave(self, name: str, node: ast.AST) -> None:
        """Take note that it was handed to the function *name*, which cannot be read."""


def is_constant(value: Any) -> bool:
    """Whether *value* is known through and through, and of a size worth looking at."""
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
