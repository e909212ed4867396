"""What an expression of a script comes to, while the script is rehearsed on one command line."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from skillruntime.derive.rehearsed_comparisons import Comparisons
from skillruntime.derive.rehearsed_stage import Count, Frame, Function, Raised, TooLongError
from skillruntime.derive.rehearsed_words import Converted, Head, Word, Words
from skillruntime.derive.values import UNKNOWN

__all__ = ["Expressions"]


class Expressions(Comparisons):
    """The expressions of one rehearsal, over the words that it is given."""

    def call(self, node: ast.Call) -> Any:
        """Return what a call comes to."""
        raise NotImplementedError

    def look_up(self, name: str) -> Any:
        """Return what *name* holds."""
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.names:
                return frame.names[name]
            frame = frame.parent
        if name in self.source.functions:
            return Function(self.source.functions[name], self.module)
        if name in self.source.constants and (value := self.source.constants[name]) is not None:
            self.module.names[name] = UNKNOWN  # for a constant that speaks of itself
            self.module.names[name] = found = self.evaluate(value)
            return found
        return UNKNOWN

    def evaluate(self, node: ast.expr | None) -> Any:
        """Return what *node* comes to; UNKNOWN where nobody can tell."""
        self.steps -= 1
        if self.steps < 0:
            raise TooLongError
        if id(node) in self.source.argv:
            self.source.visited.add(id(node))
            return self.words
        evaluate = _EVALUATE.get(type(node))
        if evaluate is not None:
            return evaluate(self, node)
        for each in ast.iter_child_nodes(node) if node is not None else ():
            if isinstance(each, ast.expr):
                self.touch(self.evaluate(each), each)
        return UNKNOWN

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        return self.look_up(node.id)

    def _attribute(self, node: ast.Attribute) -> Any:
        self.touch(self.evaluate(node.value), node)
        return UNKNOWN

    def _sequence(self, node: ast.List | ast.Tuple | ast.Set) -> Any:
        found: list[Any] = []
        of_words = False
        for each in node.elts:
            if isinstance(each, ast.Starred):
                value = self.evaluate(each.value)
                of_words |= isinstance(value, Words)
                found += value if isinstance(value, list | tuple) else [UNKNOWN]
            else:
                found.append(self.evaluate(each))
        if of_words:
            return Words(found)
        return tuple(found) if isinstance(node, ast.Tuple) else found

    def _dict(self, node: ast.Dict) -> Any:
        keys = [None if key is None else self.evaluate(key) for key in node.keys]
        values = [self.evaluate(value) for value in node.values]
        if not all(isinstance(key, str | int | float | bool) for key in keys):
            self.touch(values, node)
            return UNKNOWN
        return dict(zip(keys, values, strict=True))

    def _text(self, node: ast.JoinedStr) -> Any:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.touch(self.evaluate(part.value), part)
        return UNKNOWN

    def _if(self, node: ast.IfExp) -> Any:
        is_true = self.decide(self.evaluate(node.test))
        if is_true is not None:
            return self.evaluate(node.body if is_true else node.orelse)
        self.doubt += 1
        try:
            found = [self._attempt(node.body), self._attempt(node.orelse)]
        finally:
            self.doubt -= 1
        words = [each for each in found if isinstance(each, Word | Converted)]
        return words[0] if len(words) == 1 else UNKNOWN

    def _attempt(self, node: ast.expr) -> Any:
        try:
            return self.evaluate(node)
        except Raised:
            return UNKNOWN

    def _bool(self, node: ast.BoolOp) -> Any:
        stops_at = isinstance(node.op, ast.Or)
        doubted = 0
        value: Any = UNKNOWN
        first: Any = None
        try:
            for each in node.values:
                value = self.evaluate(each) if not doubted else self._attempt(each)
                is_true = self.decide(value)
                if is_true is stops_at:
                    return value if not doubted or isinstance(value, bool) else UNKNOWN
                if is_true is None:
                    first = value if first is None else first
                    doubted += 1
                    self.doubt += 1
        finally:
            self.doubt -= doubted
        if not doubted:
            return value
        return first if stops_at and isinstance(first, Word | Converted) else UNKNOWN

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            is_true = self.decide(value)
            return UNKNOWN if is_true is None else not is_true
        if isinstance(node.op, ast.USub) and isinstance(value, int | float):
            return -value
        return UNKNOWN

    def _binary(self, node: ast.BinOp) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        match node.op, left, right:
            case ast.Add(), list(), list() | tuple():
                kind = Words if isinstance(left, Words) or isinstance(right, Words) else list
                return kind([*left, *right])
            case ast.Add() | ast.Sub(), int(), int():
                number = left + right if isinstance(node.op, ast.Add) else left - right
                return Count(number) if isinstance(left, Count) or isinstance(right, Count) else number
            case ast.Add(), str(), str():
                return left + right
        self.touch(left, node)
        self.touch(right, node)
        return UNKNOWN

    def _compare(self, node: ast.Compare) -> Any:
        left = self.evaluate(node.left)
        known: bool | None = True
        for op, each in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(each)
            found = self.compared(op, left, right, node)
            if found is False:
                return False
            known = None if found is None else known
            left = right
        return UNKNOWN if known is None else known

    def _subscript(self, node: ast.Subscript) -> Any:
        value = self.evaluate(node.value)
        if isinstance(node.slice, ast.Slice):
            return self._slice(value, node.slice, node)
        index = self.evaluate(node.slice)
        if isinstance(value, list | tuple) and isinstance(index, int):
            if isinstance(value, Words):
                self.speak_of(index + 1 if index >= 0 else 0, len(value))
            if not -len(value) <= index < len(value):
                raise Raised("IndexError")
            self.touch(value[index], node)
            self.read(value[index], node)
            return value[index]
        if isinstance(value, Words):
            self.lose("the script takes sys.argv apart by hand", node)
        elif isinstance(value, dict):
            return self.entry(value, index, node)
        elif isinstance(value, Word) and isinstance(index, int) and index == 0:
            return Head(value)
        self.touch(value, node)
        self.touch(index, node)
        return UNKNOWN

    def entry(self, table: dict[Any, Any], key: Any, node: ast.AST) -> Any:
        """Return what *table* holds for *key*, or raise the script's KeyError."""
        if isinstance(key, Word) and all(isinstance(each, str) for each in table):
            for each in table:
                self.is_literal(key, each)
            key = key.text
        elif not isinstance(key, str | int):
            self.touch(key, node)
            return UNKNOWN
        if key not in table:
            raise Raised("KeyError")
        return table[key]

    def _slice(self, value: Any, part: ast.Slice, node: ast.AST) -> Any:
        bounds = [None if each is None else self.evaluate(each) for each in (part.lower, part.upper, part.step)]
        if isinstance(value, list | tuple) and all(each is None or isinstance(each, int) for each in bounds):
            if isinstance(value, Words):
                for each in bounds[:2]:
                    if isinstance(each, int) and each >= 0:
                        self.speak_of(each, len(value))
            found = value[slice(*bounds)]
            return Words(found) if isinstance(value, Words) else found
        if isinstance(value, Words):
            self.lose("the script takes sys.argv apart by hand", node)
        if isinstance(value, Word) and bounds[0] in (None, 0) and bounds[1] in (1, 2):
            return Head(value)
        self.touch(value, node)
        return UNKNOWN

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
        generator = node.generators[0]
        source = self.evaluate(generator.iter)
        if len(node.generators) > 1 or not isinstance(source, list | tuple):
            self.touch(source, node)
            return UNKNOWN
        target = generator.target
        keeps = isinstance(node.elt, ast.Name) and isinstance(target, ast.Name) and target.id == node.elt.id
        outer, self.frame = self.frame, Frame(self.frame.scope, {}, self.frame)
        found: list[Any] = []
        try:
            for each in source:
                self.assign(generator.target, each)
                tests = [self.decide(self.evaluate(test)) for test in generator.ifs]
                if False not in tests:
                    if not keeps:
                        self.read(each, node)
                    found.append(each if keeps else self.used(node.elt))
        finally:
            self.frame = outer
        return Words(found) if keeps and isinstance(source, Words) else found

    def used(self, node: ast.expr) -> Any:
        """Return what *node* comes to, as something that is made use of."""
        value = self.evaluate(node)
        if not isinstance(value, Words):
            self.touch(value, node)
        return value

    def assign(self, target: ast.expr, value: Any) -> None:
        """Put *value* where *target* says, apart where it is a tuple."""
        match target:
            case ast.Name(id=name):
                self.bind(name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for each, item in zip(targets, self._unpacked(targets, value, target), strict=True):
                    self.assign(each, item)
            case ast.Starred(value=inner):
                self.assign(inner, value)
            case ast.Subscript(value=owner):
                if isinstance(self.evaluate(owner), Words):
                    self.lose("the script changes sys.argv", target)
                self.touch(value, target)
            case _:
                if isinstance(value, Words):
                    self.lose("the words are kept where they cannot be followed", target)
                if id(target) in self.source.argv:
                    self.lose("the script changes sys.argv", target)
                role = self.touch(value, target)
                if role is not None and isinstance(target, ast.Attribute):
                    role.names[(".", target.attr)] = None

    def _unpacked(self, targets: list[ast.expr], value: Any, node: ast.AST) -> Iterator[Any]:
        if not isinstance(value, list | tuple):
            self.touch(value, node)
            yield from [UNKNOWN] * len(targets)
            return
        star = next((index for index, each in enumerate(targets) if isinstance(each, ast.Starred)), None)
        if isinstance(value, Words):
            self.speak_of(len(targets) - (star is not None), len(value))
        if len(value) != len(targets) if star is None else len(value) < len(targets) - 1:
            raise Raised("ValueError")
        behind = len(targets) - 1 - star if star is not None else 0
        for index, target in enumerate(targets):
            if star is not None and index == star:
                part = value[index : len(value) - behind]
                yield Words(part) if isinstance(value, Words) else list(part)
            else:
                item = value[index if star is None or index < star else len(value) - len(targets) + index]
                self.touch(item, target)
                self.read(item, target)
                yield item

    def _named(self, node: ast.NamedExpr) -> Any:
        value = self.evaluate(node.value)
        self.assign(node.target, value)
        return value

    def _called(self, node: ast.Call) -> Any:
        return self.call(node)

    def _awaited(self, node: ast.Await) -> Any:
        return self.evaluate(node.value)

    def _function(self, node: ast.Lambda) -> Any:
        return UNKNOWN


_EVALUATE: dict[type, Callable[[Expressions, Any], Any]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.List: Expressions._sequence,
    ast.Tuple: Expressions._sequence,
    ast.Set: Expressions._sequence,
    ast.Dict: Expressions._dict,
    ast.JoinedStr: Expressions._text,
    ast.IfExp: Expressions._if,
    ast.BoolOp: Expressions._bool,
    ast.UnaryOp: Expressions._unary,
    ast.BinOp: Expressions._binary,
    ast.Compare: Expressions._compare,
    ast.Subscript: Expressions._subscript,
    ast.ListComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.NamedExpr: Expressions._named,
    ast.Call: Expressions._called,
    ast.Await: Expressions._awaited,
    ast.Lambda: Expressions._function,
}
