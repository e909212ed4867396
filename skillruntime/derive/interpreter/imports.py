"""What a script imports: a name of a foreign module as a symbol, of a module next to it as its value there.

A module next to the script is read when a name of it is first used, not where it is imported: most are never needed.
"""

from __future__ import annotations

import ast
import sys
import warnings
from typing import Any

from skillruntime.derive.interpreter.state import EarlyEnds, Exhausted, State, follow
from skillruntime.derive.interpreter.values import UNKNOWN, Imported, Model, Scope, Symbol, is_constant

__all__ = ["follow_import", "follow_import_from", "imported", "parse_module"]

MAX_MODULES = 12
"""Modules next to a script that are read for it."""

MAX_TEXT_BESIDE = 60_000
"""Characters of all of them together."""

MAX_LOOKUPS = 100
"""Names under which a module is looked for next to the script."""

MAX_MODULE_STEPS = 5_000
"""Steps that one of them may cost; one that costs more is treated as foreign."""

MAX_HOPS = 16
"""Modules through which one name may be re-exported."""


def parse_module(text: str) -> ast.Module | None:
    """Return the syntax tree of *text*; None where it is not Python."""
    # CPython warns of invalid escapes and of ``x is 1`` while it parses: on the host's stderr, of another's script.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, MemoryError):
            return None


def imported(state: State, value: Imported) -> object:
    """Return the value of an imported name: a module next to the script, something in it, or a foreign symbol."""
    for _ in range(MAX_HOPS):
        module = _beside(state, value.module)
        if not value.name:
            return Symbol(value.module) if module is None else _Module(value.module, state)
        found: Any = UNKNOWN if module is None else module.names.get(value.name, value)
        if module is not None and found != value:  # a package that imports a module of its own holds itself
            if not isinstance(found, Imported):
                return found
            value = found
            continue
        inner = f"{value.module}.{value.name}"
        is_module = not inner.startswith(".") and _beside(state, inner) is not None
        return _Module(inner, state) if is_module else Symbol(inner)
    return UNKNOWN


def follow_import(state: State, node: ast.Import, scope: Scope) -> None:
    """Follow ``import a.b as c``."""
    for alias in node.names:
        name = alias.name if alias.asname else alias.name.partition(".")[0]
        scope.names[alias.asname or name] = _bound(state, name, "")


def follow_import_from(state: State, node: ast.ImportFrom, scope: Scope) -> None:
    """Follow ``from a import b as c``."""
    module = _absolute(node, scope)
    for alias in node.names:
        # ``from x import *`` takes the public names, or those in ``__all__`` (language reference, 7.11).
        if alias.name != "*":
            scope.names[alias.asname or alias.name] = _bound(state, module, alias.name)
            continue
        names = [name for name in state.library if name.startswith(f"{module}.")]
        scope.names |= {name.rpartition(".")[2]: Symbol(name) for name in names}
        beside = _beside(state, module)
        if beside is not None:
            listed = beside.names.get("__all__")
            public = listed if isinstance(listed, list | tuple) and is_constant(listed) else None
            scope.names |= {
                name: value
                for name, value in beside.names.items()
                if (name in public if public is not None else not name.startswith("_"))
            }


def _bound(state: State, module: str, name: str) -> Imported | Symbol:
    if _may_be_beside(state, module):
        return Imported(module, name)
    return Symbol(f"{module}.{name}" if name else module)


def _may_be_beside(state: State, module: str) -> bool:
    """Whether *module* can be one next to the script: the standard library's are never looked for there."""
    # A neighbour never replaces a module of the standard library: Python finds a script's directory first, but no
    # script that works shadows it.
    top = module.partition(".")[0]
    return (
        state.neighbours is not None
        and top not in sys.stdlib_module_names
        and f"{top}." not in state.recorded
        and all(part.isidentifier() for part in module.split("."))
    )


def _beside(state: State, module: str) -> Scope | None:
    """Return the names of *module* next to the script; None where it is missing or cannot be read."""
    if module in state.modules:
        return state.modules[module]
    state.modules[module] = None  # a module that imports itself through others finds nothing
    read = sum(scope is not None for scope in state.modules.values())
    if state.neighbours is None or not _may_be_beside(state, module):
        return None
    # A skill may bundle a whole package; its scripts' arguments need a few modules of it.
    if read >= MAX_MODULES or len(state.modules) > MAX_LOOKUPS:
        return None
    package = ""
    source = state.neighbours(module)
    # A package is its ``__init__``.
    if source is None and (source := state.neighbours(f"{module}.__init__")) is not None:
        package = module
    state.text_read += len(source or "")
    # Parsing is most of the cost of a module.
    tree = parse_module(source) if source is not None and state.text_read <= MAX_TEXT_BESIDE else None
    if tree is not None:
        docstring = ast.get_docstring(tree, clean=False)
        names = {"__name__": module, "__file__": UNKNOWN, "__doc__": docstring}
        names["__package__"] = package or module.rpartition(".")[0]
        state.modules[module] = _read_module(state, tree, Scope(names))
    return state.modules[module]


def _read_module(state: State, tree: ast.Module, scope: Scope) -> Scope | None:
    """Follow a module on its own terms, wherever in the script it is needed."""
    steps, before, early = state.steps, (state.uncertain, state.branches, state.depth), state.early
    state.steps, state.uncertain, state.branches, state.depth = min(steps, MAX_MODULE_STEPS), 0, (), 0
    state.early = EarlyEnds()
    # What the module leaves over is given back to the script.
    allowed = state.steps
    try:
        follow(state, tree.body, scope)
    except Exhausted:
        return None
    finally:
        state.steps = steps - (allowed - state.steps)
        state.uncertain, state.branches, state.depth = before
        state.early = early
    return scope


class _Module(Model):
    """A module next to the script."""

    def __init__(self, name: str, state: State) -> None:
        self.name, self.state = name, state

    def attribute(self, name: str) -> object:
        """Return the value of its name *name*."""
        found = imported(self.state, Imported(self.name, name))
        return UNKNOWN if isinstance(found, Symbol) and found.name == f"{self.name}.{name}" else found


def _absolute(node: ast.ImportFrom, scope: Scope) -> str:
    """The full name of the module that is imported from; next to the script, where the import is relative."""
    if not node.level:
        return node.module or ""
    package = scope.module().names.get("__package__", "")
    parts = package.split(".") if package else []
    kept = parts[: len(parts) - (node.level - 1)]
    if len(parts) < node.level - 1:
        return "." * node.level + (node.module or "")
    return ".".join([*kept, *([node.module] if node.module else [])])
