"""What an expression of a script comes to, while the script is rehearsed on one command line."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from skillruntime.contract.derive.command import Unread
from skillruntime.contract.derive.rehearsed_source import RehearsedSource
from skillruntime.contract.derive.rehearsed_words import Converted, Head, Outcome, Role, Word, Words
from skillruntime.contract.derive.values import UNKNOWN

__all__ = ["Count", "Expressions", "Frame", "Function", "Raised", "TooLongError", "plain_text", "truth"]


class TooLongError(Exception):
    """A script that takes more steps than a rehearsal has."""


class Raised(Exception):  # noqa: N818  # it stands for an exception of the script, and is none of ours
    """The script raises an exception of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Count(int):
    """A number that depends on how many words there are."""


@dataclass(eq=False, slots=True)
class Function:
    """A function of the script, and the names around it."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    frame: Frame


@dataclass(eq=False, slots=True)
class Frame:
    """The variables of a function that is running; those of the module have no parent."""

    scope: str
    names: dict[str, Any] = field(default_factory=dict)
    parent: Frame | None = None


def truth(value: Any) -> bool | None:
    """Return whether *value* is true; None where nobody can tell."""
    if value is UNKNOWN or isinstance(value, Word | Converted | Head):
        return None
    return bool(value) if isinstance(value, bool | int | float | str | list | tuple | dict | type(None)) else True


def plain_text(value: Any) -> str | None:
    """Return the text that *value* is known to be."""
    return value.text if isinstance(value, Word) else value if isinstance(value, str) else None


class Expressions:
    """The expressions of one rehearsal, over the words that it is given."""

    def __init__(self, source: RehearsedSource, words: Words, steps: int) -> None:
        self.source = source
        self.words = words
        self.number = len(words) - 1
        self.outcome = Outcome()
        self.steps = steps
        self.doubt = 0
        """How many conditions that nobody can tell stand around."""
        self.module = Frame("", {"__name__": "__main__"})
        self.frame = self.module
        self.known: set[str] = {"argv"}
        """Names that hold something that is known: a statement that speaks of none of them needs no following."""
        self.shared: set[str] = set()
        """Names of the module that hold words."""

    def call(self, node: ast.Call) -> Any:
        """Return what a call comes to."""
        raise NotImplementedError

    def lose(self, reason: str, node: ast.AST) -> None:
        """Note that what happens to the words at *node* cannot be told."""
        self.outcome.lost.append(Unread("arguments", reason, getattr(node, "lineno", None)))

    def touch(self, value: Any, node: ast.AST) -> Role | None:
        """Note that a word is used at *node*, or each word of a list."""
        if isinstance(value, Converted | Head):
            value = value.word
        if isinstance(value, Word):
            if value.place == 0:
                return None
            role = self.outcome.role(value.place)
            role.uses.add(id(node))
            return role
        if isinstance(value, list | tuple):
            for each in value:
                self.touch(each, node)
        elif isinstance(value, dict):
            self.touch(list(value.values()), node)
        return None

    def read(self, value: Any, node: ast.AST) -> None:
        """Note that a word is taken out of others at *node*."""
        if isinstance(value, Word) and value.place != 0:
            self.outcome.role(value.place).reads.add(id(node))

    def speak_of(self, number: int, known: int) -> None:
        """Note that the script speaks of *number* where it has *known*, so what would come of so many words matters."""
        if number > known:  # or else it was spoken of before, with fewer words
            self.outcome.asked = max(self.outcome.asked, self.number + number - known)

    def decide(self, value: Any) -> bool | None:
        """Return whether *value* is true; None where nobody can tell."""
        if isinstance(value, Words):
            self.speak_of(1, len(value))
        return truth(value)

    def bind(self, name: str, value: Any) -> None:
        """Put *value* in the variable *name*."""
        self.frame.names[name] = value
        key = (self.frame.scope, name)
        self.outcome.bound[key] = value
        if name in self.source.counters or not (
            value is UNKNOWN or isinstance(value, str | bool | float | type(None)) or type(value) is int
        ):
            self.known.add(name)
        if self.frame is self.module and isinstance(value, Words | Word | Converted | Count):
            self.shared.add(name)
        word = value.word if isinstance(value, Converted) else value
        if isinstance(word, Word) and word.place != 0:
            self.outcome.role(word.place).names[key] = None
        elif isinstance(value, Words):
            for each in value:
                if isinstance(each, Word) and each.place != 0 and name not in ("args", "argv", "arguments", "words"):
                    self.outcome.role(each.place).names[key] = None

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
            found = self._compared(op, left, right, node)
            if found is False:
                return False
            known = None if found is None else known
            left = right
        return UNKNOWN if known is None else known

    def _compared(self, op: ast.cmpop, left: Any, right: Any, node: ast.Compare) -> bool | None:
        match op:
            case ast.In() | ast.NotIn():
                found = self._is_in(left, right, node)
                return found if found is None or isinstance(op, ast.In) else not found
            case ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot():
                found = self._is_equal(left, right, node)
                return found if found is None or isinstance(op, ast.Eq | ast.Is) else not found
        if isinstance(left, int) and isinstance(right, int):
            if isinstance(left, Count):
                self.speak_of(right + 1, left)
            elif isinstance(right, Count):
                self.speak_of(left + 1, right)
            return _ORDER[type(op)](left, right)
        self.touch(left, node)
        self.touch(right, node)
        return None

    def _is_equal(self, left: Any, right: Any, node: ast.AST) -> bool | None:
        if isinstance(right, Word | Head | Count) and not isinstance(left, Word | Head | Count):
            left, right = right, left
        if isinstance(left, Head):
            if isinstance(right, str) and right and not right.strip("-"):
                return self._starts_with_dash(left.word, right)
            self.touch(left, node)
            return None
        if isinstance(left, Word):
            if isinstance(right, str):
                return self.is_literal(left, right)
            if right is None:
                return False
            self.touch((left, right), node)
            return None
        if isinstance(left, Count) and isinstance(right, int):
            self.speak_of(right + 1, left)
        if left is UNKNOWN or right is UNKNOWN or isinstance(left, Converted) or isinstance(right, Converted):
            return None
        if isinstance(left, Words) or isinstance(right, Words):
            if not isinstance(left, list) or not isinstance(right, list):
                return False
            self.speak_of(len(right), len(left))
            return False if len(left) != len(right) else None if left else True
        try:
            return bool(left == right)
        except TypeError:
            return None

    def is_literal(self, word: Word, literal: str) -> bool:
        """Return whether *word* is *literal*, and note that it is compared with it."""
        if word.place != 0:
            self.outcome.compared.setdefault(word.place, {})[literal] = None
        return word.text == literal

    def _starts_with_dash(self, word: Word, prefix: str) -> bool:
        if word.place != 0:
            self.outcome.dashes[word.place] = min(prefix, self.outcome.dashes.get(word.place, prefix), key=len)
        return word.dashed if word.text is None else word.text.startswith("-")

    def starts_with(self, word: Word, prefix: Any, node: ast.AST) -> Any:
        """Return whether *word* starts with *prefix*, as far as that is known."""
        if isinstance(prefix, str) and prefix and not prefix.strip("-"):
            starts = self._starts_with_dash(word, prefix)
            return starts if word.text is None else word.text.startswith(prefix)
        if isinstance(prefix, str) and prefix.startswith("-"):
            self.lose("options are taken apart by hand", node)
        self.touch(word, node)
        return UNKNOWN

    def _is_in(self, left: Any, right: Any, node: ast.AST) -> bool | None:
        if isinstance(left, str) and isinstance(right, list) and self._holds_words(right):
            self.outcome.flags.setdefault(left, False)
            return any(plain_text(each) == left for each in right)
        if isinstance(left, Word) and isinstance(right, list | tuple | dict):
            if all(isinstance(each, str) for each in right):
                found = [self.is_literal(left, each) for each in right]  # each is noted
                return True in found
            self.touch(left, node)
            return None
        if isinstance(left, Count) and isinstance(right, list | tuple):
            for each in right:
                self._is_equal(left, each, node)
            return left in right
        if isinstance(left, str | int) and isinstance(right, list | tuple | dict) and UNKNOWN not in right:
            return left in right
        self.touch(left, node)
        if not isinstance(right, Words):
            self.touch(right, node)
        elif isinstance(left, str):
            return None
        return None

    def _holds_words(self, value: list[Any]) -> bool:
        return isinstance(value, Words) or any(isinstance(each, Word) for each in value)

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
_ORDER: dict[type, Callable[[int, int], bool]] = {
    ast.Lt: lambda left, right: left < right,
    ast.LtE: lambda left, right: left <= right,
    ast.Gt: lambda left, right: left > right,
    ast.GtE: lambda left, right: left >= right,
}
