"""What a script imports: a name of a foreign module as a symbol, of a module beside it as what it stands for there.

A module beside the script is read when a name of it is first used, not where it is imported: most are never needed.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

from skillruntime.derive.calls import Calls, Library, Neighbours
from skillruntime.derive.expressions import Exhausted
from skillruntime.derive.values import UNKNOWN, Imported, Model, Scope, Symbol, is_constant

__all__ = ["Imports"]

MAX_MODULES = 12
"""Modules beside a script that are read for it."""

MAX_TEXT_BESIDE = 60_000
"""Characters of all of them together."""

MAX_LOOKUPS = 100
"""Names under which a module is looked for beside the script."""

MAX_MODULE_STEPS = 5_000
"""Steps that one of them may cost; one that costs more is as good as foreign."""

MAX_HOPS = 16
"""Modules through which one name may be handed on."""


class Imports(Calls):
    """Follows imports, and reads modules beside the script."""

    def __init__(self, library: Library, made: tuple[str, ...] = (), neighbours: Neighbours | None = None) -> None:
        super().__init__(library, made)
        self.neighbours = neighbours
        self.modules: dict[str, Scope | None] = {}
        self.text_left = MAX_TEXT_BESIDE

    def imported(self, value: Imported) -> object:
        """Return what *value* stands for: a module beside the script, something in it, or a foreign symbol."""
        for _ in range(MAX_HOPS):
            module = self._beside(value.module)
            if not value.name:
                return Symbol(value.module) if module is None else _Module(value.module, self)
            found: Any = UNKNOWN if module is None else module.names.get(value.name, value)
            if module is not None and found != value:  # a package that imports a module of its own holds itself
                if not isinstance(found, Imported):
                    return found
                value = found
                continue
            inner = f"{value.module}.{value.name}"
            is_module = not inner.startswith(".") and self._beside(inner) is not None
            return _Module(inner, self) if is_module else Symbol(inner)
        return UNKNOWN

    def _follow_import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            name = alias.name if alias.asname else alias.name.partition(".")[0]
            scope.names[alias.asname or name] = self._bound(name, "")

    def _follow_importfrom(self, node: ast.ImportFrom, scope: Scope) -> None:
        module = _absolute(node, scope)
        for alias in node.names:
            if alias.name != "*":
                scope.names[alias.asname or alias.name] = self._bound(module, alias.name)
                continue
            names = [name for name in self.library if name.startswith(f"{module}.")]
            scope.names |= {name.rpartition(".")[2]: Symbol(name) for name in names}
            beside = self._beside(module)
            if beside is not None:
                listed = beside.names.get("__all__")
                public = listed if isinstance(listed, list | tuple) and is_constant(listed) else None
                scope.names |= {
                    name: value
                    for name, value in beside.names.items()
                    if (name in public if public is not None else not name.startswith("_"))
                }

    def _bound(self, module: str, name: str) -> Imported | Symbol:
        if self._may_be_beside(module):
            return Imported(module, name)
        return Symbol(f"{module}.{name}" if name else module)

    def _may_be_beside(self, module: str) -> bool:
        """Whether a module beside the script can be meant: the standard library's are never looked for there."""
        parts = module.split(".")
        return (
            self.neighbours is not None
            and all(part.isidentifier() for part in parts)
            and parts[0] not in sys.stdlib_module_names
            and f"{parts[0]}." not in self.made
        )

    def _beside(self, module: str) -> Scope | None:
        """The names of *module* beside the script; None where there is none, or it cannot be read."""
        if module in self.modules:
            return self.modules[module]
        self.modules[module] = None  # a module that imports itself in a circle finds nothing
        read = sum(scope is not None for scope in self.modules.values())
        if self.neighbours is None or not self._may_be_beside(module):
            return None
        if read >= MAX_MODULES or len(self.modules) > MAX_LOOKUPS:
            return None
        package = ""
        source = self.neighbours(module)
        if source is None and (source := self.neighbours(f"{module}.__init__")) is not None:
            package = module
        self.text_left -= len(source or "")
        try:
            tree = ast.parse(source) if source is not None and self.text_left >= 0 else None
        except (SyntaxError, ValueError, MemoryError):
            tree = None
        if tree is not None:
            docstring = ast.get_docstring(tree, clean=False)
            names = {"__name__": module, "__file__": UNKNOWN, "__doc__": docstring}
            names["__package__"] = package or module.rpartition(".")[0]
            self.modules[module] = self._read_module(tree, Scope(names))
        return self.modules[module]

    def _read_module(self, tree: ast.Module, scope: Scope) -> Scope | None:
        """Follow a module by itself, wherever in the script it is needed."""
        steps, before = self.steps, (self.uncertain, self.branches, self.depth)
        self.steps, self.uncertain, self.branches, self.depth = min(steps, MAX_MODULE_STEPS), 0, (), 0
        allowed = self.steps
        try:
            self.follow(tree.body, scope)
        except Exhausted:
            return None
        finally:
            self.steps = steps - (allowed - self.steps)
            self.uncertain, self.branches, self.depth = before
        return scope


class _Module(Model):
    """Stands for a module beside the script."""

    def __init__(self, name: str, reader: Imports) -> None:
        self.name, self.reader = name, reader

    def attribute(self, name: str) -> object:
        """Return what it calls *name*."""
        found = self.reader.imported(Imported(self.name, name))
        return UNKNOWN if isinstance(found, Symbol) and found.name == f"{self.name}.{name}" else found


def _absolute(node: ast.ImportFrom, scope: Scope) -> str:
    """The full name of the module that is imported from; beside the script, where the script itself is relative."""
    if not node.level:
        return node.module or ""
    package = scope.module().names.get("__package__", "")
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - (node.level - 1)]
    if len(parts) < node.level - 1:
        return "." * node.level + (node.module or "")
    return ".".join([*kept, *([node.module] if node.module else [])])
