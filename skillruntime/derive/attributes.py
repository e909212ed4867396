"""What an attribute of a script's value stands for: of a module, an object, a class, an enumeration or a constant."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

from skillruntime.derive.values import (
    UNKNOWN,
    BoundMethod,
    ClassValue,
    EnumMember,
    FunctionValue,
    InstanceValue,
    Made,
    PathText,
    Symbol,
)

__all__ = ["Attributes"]

LOWEST_PYTHON = (3, 11)


class Attributes:
    """Finds attributes; what calls a function is left to who follows calls too."""

    def call(self, function: Any, arguments: list[Any], named: dict[str, Any], node: ast.AST) -> Any:
        """Return what calling *function* comes to."""
        raise NotImplementedError

    def attribute(self, value: Any, name: str) -> Any:
        """Return the attribute *name* of *value*, or UNKNOWN."""
        match value:
            case Symbol():
                if value.name == "sys" and name == "version_info":
                    return LOWEST_PYTHON
                return Symbol(f"{value.name}.{name}")
            case InstanceValue():
                if name in value.names:
                    return value.names[name]
                return self.bound(value, value.kind, name)
            case ClassValue():
                return self._class_attribute(value, name)
            case EnumMember():
                return {"value": value.value, "name": value.name}.get(name, UNKNOWN)
            case PathText():
                return self._path_attribute(value, name)
            case str() | list() | tuple() | dict():
                return BoundMethod(value, name)
            case Made(symbol="typing.Literal") if name == "__args__":
                return tuple(value.arguments)
            case FunctionValue() if name == "__doc__":
                return None if isinstance(value.node, ast.Lambda) else ast.get_docstring(value.node, clean=False)
            case FunctionValue() if name == "__name__":
                return value.name
            case _:
                return UNKNOWN

    def bound(self, receiver: Any, kind: ClassValue, name: str) -> Any:
        """Return the method or attribute *name* of *kind*, bound to *receiver*."""
        try:
            found = kind.find(name)
        except KeyError:
            return UNKNOWN
        if isinstance(found, FunctionValue):
            decorators = [] if isinstance(found.node, ast.Lambda) else found.node.decorator_list
            names = {each.id for each in decorators if isinstance(each, ast.Name)}
            if "staticmethod" in names:
                return found
            bound = replace(found, receiver=kind if "classmethod" in names else receiver, declared=[], stands_for=None)
            return self.call(bound, [], {}, found.node) if names & {"property", "cached_property"} else bound
        return found

    def _class_attribute(self, kind: ClassValue, name: str) -> Any:
        if name in kind.members:
            return kind.members[name]
        if name in ("__members__", "_member_map_") and kind.members:
            return dict(kind.members)
        if name == "_member_names_" and kind.members:
            return list(kind.members)
        if name == "__doc__":
            return ast.get_docstring(kind.node, clean=False) if kind.node else UNKNOWN
        if name == "__name__":
            return kind.name
        found = self.bound(kind, kind, name)
        if isinstance(found, FunctionValue) and found.receiver is kind and not self._is_class_method(found):
            return replace(found, receiver=None)
        return found

    def _is_class_method(self, function: FunctionValue) -> bool:
        decorators = [] if isinstance(function.node, ast.Lambda) else function.node.decorator_list
        return any(isinstance(each, ast.Name) and each.id == "classmethod" for each in decorators)

    def _path_attribute(self, path: PathText, name: str) -> Any:
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
            case _:
                return BoundMethod(path, name)
