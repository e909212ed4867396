"""Find how many words a Python script requires: ``if len(sys.argv) < 3: usage();
exit``.

Only statements that every run reaches are read, from the top: those of the module, and
of the functions that they call, up to a statement that may end the script.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from skillruntime.derive.readers.python_endings import leaves, refusal
from skillruntime.derive.readers.python_nodes import Function, Nodes
from skillruntime.derive.readers.python_values import Source, dotted

__all__ = ["least_words"]

FUNCTIONS_LIMIT = 20
"""How deep the calls of functions are followed."""

_ENDS = ("exit", "quit", "_exit", "SystemExit")
_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}


def least_words(source: Source) -> int:
    """Return the number of words that the script requires; 0 if that is not certain."""
    functions = {
        statement.name: statement
        for statement in source.tree.body
        if isinstance(statement, Function)
    }
    walk = _Walk(functions, source.nodes)
    walk.body(source.tree.body, {})
    return walk.least


@dataclass(slots=True)
class _Walk:
    functions: Mapping[str, Function]
    nodes: Nodes
    least: int = 0
    walked: set[str] = field(default_factory=set)

    def body(self, body: list[ast.stmt], lists: dict[str, int]) -> bool:
        """Read *body*, in which *lists* hold the words from some index on; return
        whether every run reaches its end.
        """
        for statement in body:
            match statement:
                case ast.If(test=ast.Compare(left=ast.Name(id="__name__")), body=inner):
                    if not self.body(inner, lists):
                        return False
                case ast.If():
                    if not self.condition(statement, lists):
                        return False
                case ast.With(body=inner) | ast.Try(body=inner):
                    if not self.body(inner, lists):
                        return False
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    continue
                case _:
                    if _may_end(statement, self.nodes) and not _calls_last(
                        statement, self.nodes
                    ):
                        return False
                    if not self.calls(statement, lists):
                        return False
                    _note_lists(statement, lists, self.nodes)
        return True

    def condition(self, statement: ast.If, lists: dict[str, int]) -> bool:
        """Read one ``if``; return whether every run with enough words continues behind
        it.
        """
        if _refuses(statement.body, self.functions) and not statement.orelse:
            least = _least(statement.test, lists, is_refused=True)
            if least is not None:
                self.least = max(self.least, least)
                return True
        elif statement.orelse and _refuses(statement.orelse, self.functions):
            least = _least(statement.test, lists, is_refused=False)
            if least is not None:
                self.least = max(self.least, least)
        may_end = _may_end(statement, self.nodes)
        return not may_end and not self.may_end_in_calls(statement)

    def may_end_in_calls(self, statement: ast.stmt) -> bool:
        for node in self.nodes.own_of(statement, ast.Call):
            function = self.functions.get(dotted(node.func))
            if function is not None and _may_end(function, self.nodes):
                return True
        return False

    def calls(self, statement: ast.stmt, lists: dict[str, int]) -> bool:
        """Read the functions of the script that *statement* calls."""
        for node in self.nodes.own_of(statement, ast.Call):
            name = dotted(node.func)
            if name not in self.functions or name in self.walked:
                continue
            if len(self.walked) >= FUNCTIONS_LIMIT:
                return False
            self.walked.add(name)
            function = self.functions[name]
            parameters = [parameter.arg for parameter in function.args.args]
            passed: dict[str, int] = {}
            for parameter, value in zip(parameters, node.args, strict=False):
                first = _first_word(value, lists)
                if first is not None:
                    passed[parameter] = first
            if not self.body(function.body, passed):
                return False
        return True


def _calls_last(statement: ast.stmt, nodes: Nodes) -> bool:
    """Return whether *statement* ends the script with the result of a function:
    ``sys.exit(main())``, ``return run()``.
    """
    if isinstance(statement, ast.Return):
        return True
    return len(nodes.own_of(statement, ast.Call)) > 1


def _note_lists(statement: ast.stmt, lists: dict[str, int], nodes: Nodes) -> None:
    for node in nodes.own_of(statement, ast.Name):
        if isinstance(node.ctx, ast.Store):
            lists.pop(node.id, None)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            first = _first_word(value, lists)
            if first is not None:
                lists[name] = first


def _first_word(value: ast.expr, lists: Mapping[str, int]) -> int | None:
    """Return the index in ``sys.argv`` at which the list *value* starts; None if
    *value* is not such a list.
    """
    match value:
        case ast.Attribute(attr="argv") if dotted(value) == "sys.argv":
            return 0
        case ast.Name(id=name):
            return lists.get(name)
        case ast.Subscript(
            value=owner,
            slice=ast.Slice(lower=ast.Constant(value=int(lower)), upper=None),
        ):
            first = _first_word(owner, lists)
            return None if first is None else first + lower
    return None


def _refuses(body: list[ast.stmt], functions: Mapping[str, Function]) -> bool:
    """Return whether *body* ends the script because of wrong usage: with an error, or
    with any status after its usage text.
    """
    if refusal(body, functions):
        return True
    if not leaves(body):
        return False
    return any("usage" in ast.unparse(part).lower() for part in body)


def _may_end(statement: ast.AST, nodes: Nodes) -> bool:
    """Return whether *statement* may end the script, or the function that it is in."""
    if isinstance(statement, ast.Return | ast.Raise):
        return True
    if nodes.own_of(statement, ast.Return, ast.Raise):
        return True
    calls = nodes.own_of(statement, ast.Call)
    return any(dotted(call.func).rpartition(".")[2] in _ENDS for call in calls)


def _least(test: ast.expr, lists: Mapping[str, int], *, is_refused: bool) -> int | None:
    """Return the least number of words of a call that passes *test*; the script refuses
    calls for which it holds, or those for which it does not. None if the test has
    another meaning.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _least(inner, lists, is_refused=not is_refused)
        # Each part alone is refused.
        case ast.BoolOp(op=ast.Or(), values=parts) if is_refused:
            found = [_least(part, lists, is_refused=True) for part in parts]
            return max((least for least in found if least is not None), default=None)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            how = type(op)
            if isinstance(left, ast.Constant):
                left, right = right, left
                how = _FLIPPED.get(how, how)
            if not is_refused:
                how = _OPPOSITE.get(how, how)
            return _least_of_count(left, how, right, lists)
    first = _first_word(test, lists)
    # ``if not sys.argv[1:]``: an empty list is false.
    if first is not None and first > 0 and not is_refused:
        return first
    return None


def _least_of_count(
    left: ast.expr, how: type[ast.cmpop], right: ast.expr, lists: Mapping[str, int]
) -> int | None:
    match left, right:
        case (
            ast.Call(func=ast.Name(id="len"), args=[counted]),
            ast.Constant(value=int(number)),
        ):
            first = _first_word(counted, lists)
        case _:
            return None
    if first is None:
        return None
    words = number + first - 1
    if how in (ast.Lt, ast.NotEq):
        return max(words, 0)
    if how is ast.LtE:
        return words + 1
    # ``len(sys.argv) == 1``: without a word.
    if how is ast.Eq and words == max(first - 1, 0):
        return words + 1
    return None
