"""A script followed over one command line, on paper: nothing is run, and what nobody can tell goes both ways.

The words are symbols: one stands for any text that equals none of the script's own literals. Their number is known, so
are lists of them, and what is asked of that number; of everything else nothing is known. A condition that is known is
followed one way; of another both ways are, and what differs between them is not known behind it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from skillruntime.derive.rehearsed_calls import Calls, Left
from skillruntime.derive.rehearsed_complaints import gives_up, only_complains
from skillruntime.derive.rehearsed_source import RehearsedSource, dotted
from skillruntime.derive.rehearsed_stage import Frame, Function, Raised, TooLongError
from skillruntime.derive.rehearsed_words import Outcome, Word, Words
from skillruntime.derive.values import UNKNOWN

__all__ = ["TooLongError", "rehearse"]

ROUNDS = 40
"""Rounds of a loop that are followed."""

_LOOKS_UP = ("IndexError", "KeyError")


class _Returned(Exception):  # noqa: N818  # a way out of a function of the script
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _Broken(Exception):  # noqa: N818  # a way out of a loop of the script
    pass


class _Continued(Exception):  # noqa: N818  # the way to the next round
    pass


_WAYS_OUT = (Left, Raised, _Returned, _Broken, _Continued)


def rehearse(source: RehearsedSource, words: Iterable[Word], steps: int) -> tuple[Outcome, int]:
    """Return what comes of calling the script with *words*, its own name being the first, and the steps that are left.

    Raises:
        TooLongError: the script takes more than *steps* steps.
    """
    rehearsal = _Rehearsal(source, Words(words), steps)
    outcome = rehearsal.outcome
    try:
        rehearsal.block(source.tree.body)
        outcome.refused = rehearsal.told_usage
    except Left as left:
        outcome.refused = left.refused
    except Raised:
        outcome.refused = True
    except (_Returned, _Broken, _Continued):
        outcome.refused = False
    if not outcome.refused:
        rehearsal.look_aside()
    return outcome, rehearsal.steps


class _Rehearsal(Calls):
    """The statements of one rehearsal."""

    def __init__(self, source: RehearsedSource, words: Words, steps: int) -> None:
        super().__init__(source, words, steps)
        self._may_return: list[Any] = []
        self._nested: list[ast.FunctionDef | ast.AsyncFunctionDef] = []

    def look_aside(self) -> None:
        """Note where words are spoken of in functions that were never called, and in classes."""
        names = {name for name, value in self.module.names.items() if isinstance(value, Words)}
        aside = [each for each in self.source.functions.values() if id(each) not in self.entered]
        found = [each for each in (*aside, *self.source.classes) if names and self.source.speaks_of(each, names)]
        for each in (*found, *(each for each in self._nested if id(each) not in self.entered)):
            self.lose("the words are used where the script cannot be followed", each)

    def run(self, function: Function, frame: Frame) -> Any:
        """Return what the body of *function* returns."""
        outer, self._may_return = self._may_return, []
        try:
            self.block(function.node.body)
            found: Any = None
        except _Returned as returned:
            found = returned.value
        finally:
            possible, self._may_return = self._may_return, outer
        return (
            found
            if all(each is found or each == found for each in possible if each is not UNKNOWN)
            and (UNKNOWN not in possible)
            else UNKNOWN
        )

    def block(self, statements: list[ast.stmt]) -> None:
        """Follow *statements*."""
        self.steps -= len(statements)
        for each in statements:
            if self.source.matters(each, self.known, self.shared):
                self._follow(each)

    def _follow(self, statement: ast.stmt) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise TooLongError
        match statement:
            case ast.Expr(value=value):
                self.used(value)
            case ast.Assign(targets=targets, value=value):
                found = self.evaluate(value)
                for target in targets:
                    self.assign(target, found)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.evaluate(value))
            case ast.AugAssign(target=target, op=op, value=value):
                load = ast.copy_location(ast.Name(target.id), target) if isinstance(target, ast.Name) else target
                found = self.evaluate(ast.copy_location(ast.BinOp(load, op, value), statement))
                if id(target) in self.source.argv:
                    self.lose("the script changes sys.argv", statement)
                elif isinstance(target, ast.Name):
                    self.bind(target.id, found)
            case ast.If(test=test, body=body, orelse=orelse):
                self._choose(self.decide(self.evaluate(test)), body, orelse)
            case ast.For() | ast.AsyncFor():
                self._repeat(statement)
            case ast.While(test=test, body=body, orelse=orelse):
                self._while(test, body, orelse)
            case ast.Try():
                self._try(statement)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for item in items:
                    value = self.used(item.context_expr)
                    if item.optional_vars is not None:
                        self.assign(item.optional_vars, UNKNOWN if isinstance(value, Words) else value)
                self.block(body)
            case ast.Match():
                self._match(statement)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if self.frame is not self.module:
                    self.bind(name, Function(statement, self.frame))
                    self._see_nested(statement)
            case ast.Return(value=value):
                raise _Returned(self.used(value) if value is not None else None)
            case ast.Raise():
                self._raise(statement)
            case ast.Break():
                raise _Broken
            case ast.Continue():
                raise _Continued
            case ast.ImportFrom(module="sys", names=names):
                for alias in names:
                    if alias.name == "argv":
                        self.bind(alias.asname or "argv", self.words)
            case ast.Delete(targets=targets):
                self._delete(targets)
            case ast.Assert(test=test):
                if self.decide(self.evaluate(test)) is False:
                    raise Raised("AssertionError")
            case ast.Global(names=names):
                self.frame.outer.update(names)

    def _see_nested(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        words = {name for name, value in self.frame.names.items() if isinstance(value, Words)}
        if words and self.source.speaks_of(node, words):
            self._nested.append(node)

    def _raise(self, node: ast.Raise) -> None:
        if node.exc is None:
            raise Raised("Exception")
        name = dotted(node.exc.func) if isinstance(node.exc, ast.Call) else dotted(node.exc)
        if isinstance(node.exc, ast.Call):
            self.evaluate(node.exc)
        if name == "SystemExit":
            raise Left(self.told_usage)
        raise Raised(name.rpartition(".")[2])

    def _delete(self, targets: list[ast.expr]) -> None:
        for target in targets:
            if not isinstance(target, ast.Subscript):
                continue
            items = self.evaluate(target.value)
            index = UNKNOWN if isinstance(target.slice, ast.Slice) else self.evaluate(target.slice)
            if items is self.words:
                self.lose("the script changes sys.argv", target)
            elif isinstance(items, Words):
                if self.doubt or not isinstance(index, int):
                    self.lose("the script takes sys.argv apart by hand", target)
                elif index >= len(items):
                    raise Raised("IndexError")
                else:
                    del items[index]

    def _choose(self, is_true: bool | None, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        if is_true is not None:
            chosen = body if is_true else orelse
            other = orelse if is_true else body
            self.told_usage = self.told_usage or only_complains(chosen, instead=other)
            self.block(chosen)
        else:
            self._either(lambda: self.block(body), lambda: self.block(orelse))

    def _either(self, *ways: Callable[[], None]) -> None:
        """Follow all *ways* from here; behind them, what differs is not known."""
        names, told = dict(self.frame.names), self.told_usage
        ends: list[Exception] = []
        met: list[tuple[dict[str, Any], bool]] = []
        self.doubt += 1
        try:
            for way in ways:
                self.frame.names, self.told_usage = dict(names), told
                try:
                    way()
                    met.append((self.frame.names, self.told_usage))
                except _WAYS_OUT as end:
                    ends.append(end)
        finally:
            self.doubt -= 1
        self._may_return += [end.value for end in ends if isinstance(end, _Returned)]
        if not met:
            self.told_usage = told
            raise min(ends, key=_weight)
        self.frame.names = {
            name: value
            if all(other.get(name, UNKNOWN) is value or _same(other.get(name), value) for other, _ in met)
            else UNKNOWN
            for name, value in met[0][0].items()
        }
        self.told_usage = all(usage for _, usage in met)

    def _repeat(self, node: ast.For | ast.AsyncFor) -> None:
        items = self.evaluate(node.iter)
        items = list(items) if isinstance(items, dict) else items
        if isinstance(items, Word):
            self.touch(items, node.iter)
        counts = isinstance(node.target, ast.Name) and node.target.id in self.source.counters
        numbers = isinstance(items, list) and not counts and all(type(each) is int for each in items)
        if not isinstance(items, list | tuple) or len(items) > ROUNDS or (items and numbers):
            self._either(lambda: self._round(node, UNKNOWN), lambda: None)
            return
        for each in list(items):
            try:
                self.read(each, node)
                self.assign(node.target, each)
                self.block(node.body)
            except _Broken:
                return
            except _Continued:
                continue
        self.block(node.orelse)

    def _round(self, node: ast.For | ast.AsyncFor, value: Any) -> None:
        try:
            self.assign(node.target, value)
            self.block(node.body)
        except (_Broken, _Continued):
            pass

    def _while(self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt]) -> None:
        for _ in range(ROUNDS):
            is_true = self.decide(self.evaluate(test))
            if is_true is False:
                self.block(orelse)
                return
            try:
                if is_true is None or (isinstance(test, ast.Constant)):
                    self._either(lambda: self.block(body), lambda: None)
                    return
                self.block(body)
            except _Broken:
                return
            except _Continued:
                continue

    def _try(self, node: ast.Try) -> None:
        softened = any(_catches(each, "ValueError") and not gives_up(each.body) for each in node.handlers)
        try:
            self.doubt += softened
            try:
                self.block(node.body)
            finally:
                self.doubt -= softened
        except Raised as raised:
            for handler in node.handlers:
                if _catches(handler, raised.name):
                    if handler.name:
                        self.bind(handler.name, UNKNOWN)
                    self.block(handler.body)
                    break
            else:
                self.block(node.finalbody)
                raise
        else:
            self.block(node.orelse)
            others = [each for each in node.handlers if not _only_looks_up(each)]
            if others:
                self._either(lambda: None, *(lambda each=each: self.block(each.body) for each in others))
        self.block(node.finalbody)

    def _match(self, node: ast.Match) -> None:
        subject = self.evaluate(node.subject)
        undecided: list[ast.match_case] = []
        for case in node.cases:
            found = self._fits(case.pattern, subject, node)
            if found is not False and case.guard is not None:
                guard = self.decide(self.evaluate(case.guard))
                found = guard if found is True else None if guard is not False else False
            if found is False:
                continue
            undecided.append(case)
            if found:
                break
        else:
            self._either(lambda: None, *(lambda each=each: self.block(each.body) for each in undecided))
            return
        if len(undecided) == 1:
            self.block(undecided[0].body)
        else:
            self._either(*(lambda each=each: self.block(each.body) for each in undecided))

    def _fits(self, pattern: ast.pattern, value: Any, node: ast.Match) -> bool | None:
        match pattern:
            case ast.MatchAs(pattern=inner, name=name):
                found = True if inner is None else self._fits(inner, value, node)
                if name is not None and found is not False:
                    self.touch(value, pattern) if not isinstance(value, Words) else None
                    self.bind(name, value)
                return found
            case ast.MatchOr(patterns=patterns):
                each_found = [self._fits(each, value, node) for each in patterns]
                return True if True in each_found else None if None in each_found else False
            case ast.MatchValue(value=ast.Constant(value=str(literal))) if isinstance(value, Word):
                return self.is_literal(value, literal)
            case ast.MatchValue(value=constant):
                return self.is_equal(value, self.evaluate(constant), node)
            case ast.MatchSequence(patterns=patterns) if isinstance(value, list | tuple):
                return self._fits_sequence(patterns, value, node)
        self.touch(value, node)
        return None

    def _fits_sequence(self, patterns: list[ast.pattern], value: Any, node: ast.Match) -> bool | None:
        star = next((index for index, each in enumerate(patterns) if isinstance(each, ast.MatchStar)), None)
        if isinstance(value, Words):
            self.speak_of(len(patterns) - (star is not None), len(value))
        if len(value) != len(patterns) if star is None else len(value) < len(patterns) - 1:
            return False
        found: bool | None = True
        for index, pattern in enumerate(patterns):
            if isinstance(pattern, ast.MatchStar):
                part = value[index : len(value) - (len(patterns) - 1 - index)]
                if pattern.name is not None:
                    self.bind(pattern.name, Words(part) if isinstance(value, Words) else part)
                continue
            item = value[index if star is None or index < star else len(value) - len(patterns) + index]
            self.read(item, pattern)
            fits = self._fits(pattern, item, node)
            if fits is False:
                return False
            found = None if fits is None else found
        return found


def _weight(end: Exception) -> int:
    """Which of several ends stands for them: one that takes the words before one that refuses them."""
    match end:
        case _Broken() | _Continued():
            return 0
        case _Returned():
            return 1
        case Left(refused=False):
            return 2
    return 3


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and isinstance(one, str | int | float | bool) and one == other


def _catches(handler: ast.ExceptHandler, name: str) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    known = {dotted(each).rpartition(".")[2] for each in kinds}
    wide = {"Exception", "BaseException"} | ({"LookupError"} if name in _LOOKS_UP else set())
    return bool(known & (wide | {name}))


def _only_looks_up(handler: ast.ExceptHandler) -> bool:
    """Whether it catches what is known to happen or not: a place that is not there."""
    return handler.type is not None and dotted(handler.type) == "IndexError"
