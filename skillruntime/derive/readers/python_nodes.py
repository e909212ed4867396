"""Number the nodes of a Python script in one walk, so that the nodes below any other
are a slice of one list.

The readers ask for the nodes of a statement, of its expressions and of the function
around it: walking each of them again took a quarter of the time of reading a script.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["Function", "Nodes", "all_nodes"]

Function = ast.FunctionDef | ast.AsyncFunctionDef

_Node = TypeVar("_Node", bound=ast.AST)


class Nodes:
    """The nodes of *tree*, in the source's order, operators left out.

    A node is *own* to a root if it is below the root, and not in the content of a
    function, lambda or class below the root.
    """

    def __init__(self, tree: ast.AST) -> None:
        self._whole, heights, self._positions = _walked(tree)
        self._ends = _ends(heights)
        self._index = dict(zip(self._whole, range(len(heights)), strict=True))
        closed: list[int] = []
        for kind in _OF_THEIR_OWN:
            closed += self._positions.get(kind, ())
        self._closed = sorted(closed)

    def all(self, root: ast.AST) -> list[ast.AST]:
        """Return *root* and the nodes below it."""
        start = self._index[root]
        return self._whole[start : self._ends[start]]

    def children(self, root: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes directly below *root*."""
        start = self._index[root]
        position = start + 1
        while position < self._ends[start]:
            yield self._whole[position]
            position = self._ends[position]

    def own(self, root: ast.AST) -> list[ast.AST]:
        """Return the own nodes of *root*."""
        nodes: list[ast.AST] = []
        for start, end in self._own_spans(root):
            nodes += self._whole[start:end]
        return nodes

    def of(self, *kinds: type[_Node]) -> list[_Node]:
        """Return the nodes of these *kinds*, in the source's order."""
        return self._between(0, len(self._whole), kinds)

    def own_of(self, root: ast.AST, *kinds: type[_Node]) -> list[_Node]:
        """Return the own nodes of *root* that are of these *kinds*."""
        found: list[_Node] = []
        for start, end in self._own_spans(root):
            found += self._between(start, end, kinds)
        return found

    def all_of(self, root: ast.AST, *kinds: type[_Node]) -> list[_Node]:
        """Return *root*, and the nodes below it, that are of these *kinds*."""
        start = self._index[root]
        return self._between(start, self._ends[start], kinds)

    def positions(self, nodes: Iterable[ast.AST]) -> list[int]:
        """Return the places of *nodes* in the source's order, for `has_own_at`."""
        return sorted(self._index[node] for node in nodes)

    def has_own_at(self, root: ast.AST, positions: list[int]) -> bool:
        """Return whether *root*, or one of its own nodes, is at one of *positions*."""
        at = self._index[root]
        for start, end in [(at, at + 1), *self._own_spans(root)]:
            number = bisect_left(positions, start)
            if number < len(positions) and positions[number] < end:
                return True
        return False

    def _own_spans(self, root: ast.AST) -> list[tuple[int, int]]:
        """Return the ranges of the positions of the own nodes of *root*."""
        start = self._index[root] + 1
        end = self._ends[start - 1]
        spans: list[tuple[int, int]] = []
        number = bisect_left(self._closed, start)
        while number < len(self._closed) and self._closed[number] < end:
            position = self._closed[number]
            # The function itself is an own node, its content is not.
            spans.append((start, position + 1))
            start = self._ends[position]
            number = bisect_left(self._closed, start, number + 1)
        spans.append((start, end))
        return spans

    def _between(
        self, start: int, end: int, kinds: tuple[type[_Node], ...]
    ) -> list[Any]:
        if start == end:
            return []
        found: list[int] = []
        for kind in kinds:
            positions = self._positions.get(kind)
            if positions:
                first = bisect_left(positions, start)
                found += positions[first : bisect_left(positions, end, first)]
        if len(kinds) > 1:
            found.sort()
        return [self._whole[position] for position in found]


def all_nodes(root: ast.AST) -> list[ast.AST]:
    """Return *root* and the nodes below it, as `Nodes.all` does."""
    return _walked(root)[0]


# Nodes whose content has names of its own.
_OF_THEIR_OWN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

_Positions = dict[type[ast.AST], list[int]]


def _walked(root: ast.AST) -> tuple[list[ast.AST], list[int], _Positions]:
    """Return *root* and the nodes below it; for each the number of nodes that were
    pending when its turn came; and the positions of each kind of node.
    """
    found: list[ast.AST] = []
    heights: list[int] = []
    positions: _Positions = defaultdict(list)
    pending: list[Any] = [root]
    while pending:
        node = pending.pop()
        # ``{**more}`` has no key, and a parameter behind ``*`` may have no default.
        if node is None:
            continue
        kind = type(node)
        positions[kind].append(len(found))
        found.append(node)
        heights.append(len(pending))
        names = _PARTS[kind]
        if not names:  # most nodes are names and constants
            continue
        parts = node.__dict__
        for name in names:
            part = parts.get(name)
            if type(part) is list:
                pending += part[::-1]
            elif part is not None:
                pending.append(part)
    return found, heights, positions


def _ends(heights: list[int]) -> list[int]:
    """Return, for each position, the position behind the nodes below it: the next with
    fewer pending nodes.
    """
    ends = [len(heights)] * len(heights)
    opened: list[int] = []
    for position, height in enumerate(heights):
        while opened and heights[opened[-1]] > height:
            ends[opened.pop()] = position
        opened.append(position)
    return ends


# The fields of each kind of node that hold nodes, the last first.
_NO_NODES = frozenset(
    [
        "ctx",
        "op",
        "ops",
        "id",
        "attr",
        "arg",
        "name",
        "kind",
        "level",
        "module",
        "asname",
        "type_comment",
        "tag",
        "conversion",
        "simple",
        "is_async",
        "type_ignores",
        "rest",
        "kwd_attrs",
    ]
)
_PARTS: dict[type[ast.AST], tuple[str, ...]] = {}
for _kind in vars(ast).values():
    if isinstance(_kind, type) and issubclass(_kind, ast.AST):
        _names = [name for name in _kind._fields if name not in _NO_NODES]
        _PARTS[_kind] = tuple(reversed(_names))
# The fields of these hold no nodes: ``case True`` has the value itself.
_PARTS |= dict.fromkeys(
    [ast.Constant, ast.MatchSingleton, ast.Global, ast.Nonlocal], ()
)
