"""What a script's assignments do to names, attributes and items, and what nobody can tell then."""

from __future__ import annotations

import ast
from typing import Any

from skillruntime.derive.attributes import Attributes
from skillruntime.derive.foreign_calls import MAX_TEXT, items_of
from skillruntime.derive.operators import are_hashable
from skillruntime.derive.values import (
    UNKNOWN,
    ClassValue,
    InstanceValue,
    Made,
    Model,
    Scope,
    is_constant,
    is_open,
    make_open,
)

__all__ = ["Bindings"]


class Bindings(Attributes):
    """Follows assignments; ``uncertain`` is the number of conditions that they stand under and that nobody can tell."""

    def __init__(self) -> None:
        self.uncertain = 0
        self.fresh: dict[int, tuple[Any, int]] = {}

    def evaluate(self, node: ast.expr | None, scope: Scope) -> Any:
        """Return what *node* comes to in *scope*."""
        raise NotImplementedError

    def bind(self, target: ast.expr, value: Any, scope: Scope) -> None:
        """Let *target* stand for *value* in *scope*."""
        match target:
            case ast.Name():
                if target.id in scope.outside and (outer := scope.module()) is not scope:
                    outer.names[target.id] = self._kept(value, outer.names.get(target.id, value), self.uncertain > 0)
                else:
                    scope.names[target.id] = value
            case ast.Tuple() | ast.List():
                items = items_of(value) if isinstance(value, list | tuple | str | InstanceValue) else UNKNOWN
                items = _gathered(target.elts, items)
                for each, item in zip(target.elts, items, strict=True):
                    self.bind(each, item, scope)
            case ast.Starred():
                self.bind(target.value, value, scope)
            case ast.Attribute():
                self._bind_attribute(self.evaluate(target.value, scope), target.attr, value)
            case ast.Subscript():
                self._bind_item(target, value, scope)

    def _bind_attribute(self, owner: Any, name: str, value: Any) -> None:
        if isinstance(owner, InstanceValue | ClassValue):
            owner.names[name] = self._kept(value, owner.names.get(name, UNKNOWN), self.is_doubtful(owner))
        elif isinstance(owner, Made):  # an action of a parser, whose attributes are what it was asked with
            owner.named[name] = UNKNOWN if self.uncertain else value
        elif isinstance(owner, Model):
            owner.bind(name, value)

    def _kept(self, value: Any, before: Any, is_doubtful: bool) -> Any:
        """What a name stands for after an assignment: nobody knows, if it may not have been made."""
        if not is_doubtful or value is before:
            return value
        return value if is_constant(value) and is_constant(before) and value == before else UNKNOWN

    def made_here(self, value: Any) -> Any:
        """Take note under how many conditions *value* is made: under no more than these, changing it is certain."""
        if self.uncertain and isinstance(value, list | dict | InstanceValue):
            self.fresh[id(value)] = (value, self.uncertain)
        return value

    def is_doubtful(self, value: Any) -> bool:
        """Whether a change of *value* may not be made, though *value* itself is there."""
        return self.uncertain > self.fresh.get(id(value), (None, 0))[1]

    def _bind_item(self, target: ast.Subscript, value: Any, scope: Scope) -> None:
        owner = self.evaluate(target.value, scope)
        if not isinstance(owner, list | dict):
            return
        key = UNKNOWN if isinstance(target.slice, ast.Slice) else self.evaluate(target.slice, scope)
        fits = isinstance(owner, dict) and is_constant(key) and are_hashable([key]) and len(owner) < MAX_TEXT
        fits = fits or (isinstance(owner, list) and isinstance(key, int) and -len(owner) <= key < len(owner))
        if fits and not self.is_doubtful(owner) and not is_open(owner):
            owner[key] = value
        else:
            make_open(owner)

    def remove(self, target: ast.expr, scope: Scope) -> None:
        """Follow ``del target``."""
        if not isinstance(target, ast.Subscript):
            self.bind(target, UNKNOWN, scope)
            return
        owner = self.evaluate(target.value, scope)
        if not isinstance(owner, list | dict):
            return
        key = UNKNOWN if isinstance(target.slice, ast.Slice) else self.evaluate(target.slice, scope)
        if not is_constant(key) or self.is_doubtful(owner) or is_open(owner):
            make_open(owner)
            return
        try:
            del owner[key]
        except (KeyError, IndexError, TypeError):
            make_open(owner)


def _gathered(targets: list[ast.expr], items: Any) -> list[Any]:
    """One value for each of *targets*; the one with a star has a list of those that are left."""
    star = next((index for index, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
    if items is not UNKNOWN and star is not None and len(items) >= len(targets) - 1:
        end = len(items) - (len(targets) - star - 1)
        items = [*items[:star], list(items[star:end]), *items[end:]]
    return items if items is not UNKNOWN and len(items) == len(targets) else [UNKNOWN] * len(targets)
