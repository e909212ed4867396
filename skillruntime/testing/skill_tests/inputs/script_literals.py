"""Read the texts and numbers with which a Python script compares its input. They are
the values at which it takes another branch.

The source is only parsed, never run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillruntime.compatibility.sampling import samples

__all__ = ["Literals", "read_literals", "read_modules"]

_MOST_MODULES = 40
_LONGEST_MODULE = 300_000
_LONGEST_TEXT = 80
_MOST_LINES = 400
_LONGEST_LINE = 2_000
_OF_A_PATTERN = 3
_TABLES = (ast.List, ast.Tuple, ast.Set, ast.Dict)
_MEANT_AS_TEXTS = frozenset(
    {"startswith", "endswith", "removeprefix", "removesuffix", "count", "find", "glob"}
    | {"index", "partition", "rpartition", "replace", "rglob", "split"}
)
"""Methods whose first argument is a text to look for."""


@dataclass(slots=True)
class Literals:
    """The literals of a script and of its own modules, each in the order of the source.

    ``beside`` are those that are compared with something of a name, by that name:
    ``args.mode == "fast"`` is under ``args`` and ``mode``, and ``{"mode": "fast"}`` in a
    table is under ``mode``. ``keys`` are the names of
    members that it reads, ``texts`` what it looks for, and ``patterns`` texts that its
    regular expressions match.
    """

    beside: dict[str, list[Any]] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)

    def as_text(self) -> str:
        """Return a text with each text that the script looks for on its own line, and
        lines as long as the lengths that it compares with, and one character longer.
        """
        lines = [*dict.fromkeys([*self.patterns, *self.texts])][:_MOST_LINES]
        for length in self.lengths:
            lines += [_line_of(length), _line_of(length + 1)]
        return "".join(f"{line}\n" for line in lines)

    @property
    def lengths(self) -> list[int]:
        """The lengths at which the script compares or cuts."""
        found = [value for value in self.beside.get("len", []) if type(value) is int]
        return [length for length in found if 3 < length <= _LONGEST_LINE]


def _line_of(length: int) -> str:
    """Return a line of words with *length* characters, without a space at its end.

    >>> _line_of(12)
    'word word wo'
    """
    line = ("word " * length)[:length]
    if line.endswith(" "):
        return f"{line[:-1]}s"
    return line


def read_literals(modules: Iterable[ast.Module]) -> Literals:
    """Return the literals of a script in *modules*: its own and those that it imports
    from its directory.
    """
    found = Literals()
    for tree in modules:
        for node in ast.walk(tree):
            _read_node(node, found)
    return Literals(
        {name: _distinct(values) for name, values in found.beside.items()},
        _distinct(found.keys),
        _distinct(found.texts),
        _distinct(found.patterns),
        _distinct(found.numbers),
    )


def read_modules(script: Path) -> Iterator[ast.Module]:
    """Yield the syntax trees of *script* and of the modules that it imports from its
    directory; none if it is not a Python file.
    """
    if script.suffix != ".py":
        return
    pending = [script.stem]
    read: set[str] = set()
    while pending and len(read) < _MOST_MODULES:
        name = pending.pop(0)
        path = script.with_name(f"{name}.py")
        if name in read or path.is_symlink() or not path.is_file():
            continue
        read.add(name)
        try:
            tree = ast.parse(path.read_bytes()[:_LONGEST_MODULE])
        except (SyntaxError, ValueError, RecursionError):
            continue
        yield tree
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                pending.append(node.module.rpartition(".")[2])
            elif isinstance(node, ast.Import):
                pending += [alias.name for alias in node.names]


def _read_node(node: ast.AST, found: Literals) -> None:
    match node:
        case ast.Assign(value=table) if isinstance(table, _TABLES):
            _read_table(table, found)
        case ast.Compare(left=ast.Name(id="__name__")):
            pass  # whether the script is started or imported
        case ast.Compare():
            _read_comparison([node.left, *node.comparators], found)
        case ast.Subscript(slice=ast.Slice(upper=ast.Constant(value=int(length)))):
            found.beside.setdefault("len", []).append(length)
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            found.keys.append(key)
        case ast.BinOp(op=ast.Div(), right=ast.Constant(value=name)):
            _add(name, found)  # a part of a path
        case ast.MatchValue(value=ast.Constant(value=value)):
            _add(value, found)
        case ast.Call(func=ast.Attribute() as method, args=[first, *others]):
            _read_call(method, first, others, found)


def _read_call(
    method: ast.Attribute, first: ast.expr, others: list[ast.expr], found: Literals
) -> None:
    match method:
        case ast.Attribute(value=ast.Name(id="re")):
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                _add_pattern(first.value, found)
        case ast.Attribute(attr="get"):
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.keys.append(first.value)
        case ast.Attribute(attr="join"):
            for part in others:  # of a path
                for value in _constants(part):
                    _add(value, found)
        case ast.Attribute(attr=name) if name in _MEANT_AS_TEXTS:
            for value in _constants(first):
                _add(value, found)


def _read_comparison(sides: list[ast.expr], found: Literals) -> None:
    values: list[Any] = []
    names: list[str] = []
    for side in sides:
        constants = [*_constants(side)]
        values += constants
        if not constants:
            names += _names_in(side)
    for value in values:
        _add(value, found)
        for name in names:
            found.beside.setdefault(name, []).append(value)


def _read_table(node: ast.expr, found: Literals) -> None:
    """Add the texts of a table, such as a list of words or patterns; those of a member
    are compared with a parameter of its name.
    """
    for part in ast.walk(node):
        if isinstance(part, ast.Dict):
            _read_members(part, found)
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            if "\\" in part.value:
                _add_pattern(part.value, found)
            else:
                _add(part.value, found)


def _read_members(node: ast.Dict, found: Literals) -> None:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Constant):
            if isinstance(key.value, str) and isinstance(value.value, str):
                found.beside.setdefault(key.value, []).append(value.value)


def _constants(node: ast.expr) -> Iterator[Any]:
    """Yield the constants that *node* is, or lists."""
    if isinstance(node, ast.Constant):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for item in node.elts:
            yield from _constants(item)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        for value in _constants(node.operand):
            if isinstance(value, int | float):
                yield -value


def _names_in(node: ast.expr) -> Iterator[str]:
    """Yield the names, attributes and keys in *node*."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _add(value: Any, found: Literals) -> None:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        found.numbers.append(value)
    elif isinstance(value, str) and _is_usable(value):
        found.texts.append(value)


def _is_usable(text: str) -> bool:
    """Return whether *text* can stand on a line: an answer with the escape sequence of
    a terminal, for example, would fail a check.
    """
    return 0 < len(text) <= _LONGEST_TEXT and text.isprintable()


def _add_pattern(pattern: str, found: Literals) -> None:
    matching = samples({"type": "string", "pattern": pattern}, _OF_A_PATTERN)
    found.patterns += filter(_is_usable, matching)


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return *values* without repetitions; 1 and True are different."""
    pairs = dict.fromkeys((type(value), value) for value in values)
    return [value for _, value in pairs]
