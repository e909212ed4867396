"""Attributes of a script's values: of a module, an object, a class, an enumeration or a constant."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from skillruntime.derive.interpreter.state import State, call
from skillruntime.derive.interpreter.values import (
    UNKNOWN,
    BoundMethod,
    ClassValue,
    EnumMember,
    ForeignCall,
    FunctionValue,
    InstanceValue,
    Model,
    PathText,
    Symbol,
)

__all__ = ["attribute", "bound"]

LOWEST_PYTHON = (3, 11)
"""The version that ``sys.version_info`` is assumed to have: the lowest that this package supports."""


def attribute(state: State, value: Any, name: str) -> Any:
    """Return the attribute *name* of *value*, or UNKNOWN."""
    match value:
        case Model():
            return value.attribute(name)
        # Scripts guard ``BooleanOptionalAction`` and ``exit_on_error`` by the version.
        case Symbol(name="sys") if name == "version_info":
            return LOWEST_PYTHON
        case Symbol():
            return Symbol(f"{value.name}.{name}")
        case InstanceValue():
            return _of_instance(state, value, name)
        case ClassValue():
            return _of_class(state, value, name)
        case EnumMember():
            return {"value": value.value, "name": value.name}.get(name, UNKNOWN)
        case PathText():
            return _of_path(value, name)
        # ``options.out`` of a Node script's object; a Python dictionary has no attributes but its methods.
        case dict() if state.trace is not None and not hasattr(dict, name):
            state.trace.outcome.found[name] = value.get(name)
            return value.get(name)
        case str() | list() | tuple() | dict():
            return BoundMethod(value, name)
        case ForeignCall() if name in value.named:
            return value.named[name]
        case ForeignCall(symbol="typing.Literal") if name == "__args__":
            return tuple(value.arguments)
        case FunctionValue() if name == "__doc__":
            return None if isinstance(value.node, ast.Lambda) else ast.get_docstring(value.node, clean=False)
        case FunctionValue() if name == "__name__":
            return value.name
    return UNKNOWN


def bound(state: State, receiver: Any, kind: ClassValue, name: str) -> Any:
    """Return the method or attribute *name* of *kind*, bound to *receiver*; a property is called."""
    try:
        found = kind.find(name)
    except KeyError:
        return UNKNOWN
    if not isinstance(found, FunctionValue):
        return found
    decorators = _decorators(found)
    # A static method gets no receiver, a class method the class.
    if "staticmethod" in decorators:
        return found
    owner = kind if "classmethod" in decorators else receiver
    method = replace(found, receiver=owner, declared=[], wrapped=None)
    return call(state, method, [], {}, found.node) if decorators & {"property", "cached_property"} else method


def _of_instance(state: State, instance: InstanceValue, name: str) -> Any:
    if name in instance.names:
        return instance.names[name]
    found = bound(state, instance, instance.kind, name)
    if found is UNKNOWN and "__parser__" in instance.names:  # an object of a class derived from a library's
        return instance.names["__parser__"].attribute(name)
    return found


def _of_class(state: State, kind: ClassValue, name: str) -> Any:
    if name in kind.members:
        return kind.members[name]
    # ``choices=Colour.__members__``.
    if name in ("__members__", "_member_map_") and kind.members:
        return dict(kind.members)
    # ``choices=Colour._member_names_``.
    if name == "_member_names_" and kind.members:
        return list(kind.members)
    if name == "__doc__":
        return ast.get_docstring(kind.node, clean=False) if kind.node else UNKNOWN
    if name == "__name__":
        return kind.name
    found = bound(state, kind, kind, name)
    if isinstance(found, FunctionValue) and found.receiver is kind and "classmethod" not in _decorators(found):
        return replace(found, receiver=None)
    return found


def _decorators(function: FunctionValue) -> set[str]:
    nodes = [] if isinstance(function.node, ast.Lambda) else function.node.decorator_list
    return {each.id for each in nodes if isinstance(each, ast.Name)}


def _of_path(path: PathText, name: str) -> Any:
    base = path.rpartition("/")[2]
    match name:
        case "name":
            return base
        case "stem":
            return base.rpartition(".")[0] or base
        case "suffix":
            return "." + base.rpartition(".")[2] if "." in base[1:] else ""
        case "parent":
            return PathText(path.rpartition("/")[0] or ".")
    return BoundMethod(path, name)
