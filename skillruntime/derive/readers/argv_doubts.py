"""Tests of what a word says that end the script and are not understood: the contract is not whole then."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Set

from skillruntime.derive.command import Unread
from skillruntime.derive.interpreter.relevance import Relevance, dotted, nodes_of
from skillruntime.derive.interpreter.words import Outcome, Words

__all__ = ["not_understood"]

_ROUNDS = 4
"""Assignments in a chain from a word to the variable that is tested."""

# Functions and methods that only look at a text. What a file, a server or a program says is not a demand on a word.
_LOOKS = frozenset(
    """
    match fullmatch search test exec compile split rsplit partition rpartition startswith endswith endsWith lower
    upper strip isdigit isnumeric isalpha isalnum charAt len int float str list map filter some every all any item
    isNaN isFinite isInteger Number parseInt Date parse getTime URL URLSearchParams urlparse urlsplit Decimal
    Fraction UUID strptime fromisoformat ip_address BigInt RegExp _regex _regex_pattern _regex_flags
    _unary_expression isidentifier isdir is_dir isDirectory Path statSync get globals locals dir getattr hasattr
    loads count find index suffix splitext extname basename replace
    """.split()  # noqa: SIM905 - a list would take fifty lines
)
_CONVERTS = frozenset(
    ("int", "float", "len", "open", "read_text", "load", "loads", "print", "exit", "getopt", "gnu_getopt")
)
"""What is in a ``try`` and either typed the word already, or is about a file."""


def not_understood(source: Relevance, outcomes: list[Outcome]) -> list[Unread]:
    """Return the first test in *outcomes* that ends the script for what a word says."""
    tests = [(*pair, _given(each)) for each in outcomes if not each.refused for pair in _tests(each.doubts)]
    if not tests:
        return []
    given = set().union(*map(_given, outcomes))
    lists = {name for each in outcomes for (_, name), value in each.bound.items() if isinstance(value, Words)}
    names = given | lists | {"argv"}
    assignments = [each for each in nodes_of(source.tree) if isinstance(each, ast.Assign)]
    looks = _LOOKS | {name for name, each in source.functions.items() if _calls(each) <= _LOOKS}
    for _ in range(_ROUNDS):
        before = len(names)
        for each in assignments:
            if _looks_at(each.value, names, looks):
                targets = (inner for target in each.targets for inner in nodes_of(target))
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
        if len(names) == before:
            break
    for test, operand, here in tests:
        # Without the word it is what the environment holds: ``key = os.environ.get("KEY") or sys.argv[1]``.
        if not _is_known(operand, here, lists) and _looks_at(operand, names, looks):
            # A regular expression of JavaScript is a call in the translated tree.
            shown = re.sub(r"_regex\((?:_\w+\(\)(?:, )?)*\)", "/.../", ast.unparse(test).replace("node.", ""))[:60]
            name = next((each.id for each in nodes_of(test) if isinstance(each, ast.Name) and each.id in names), "word")
            name = "word" if name in ("argv", "args", "sys") else name
            return [Unread(name, f"the test `{shown}` was not understood", test.lineno)]
    return []


def _given(outcome: Outcome) -> set[str]:
    return {name for role in outcome.roles.values() for _, name in role.names}


def _is_known(test: ast.expr, given: set[str], lists: set[str]) -> bool:
    """Whether *test* asks for the dash of a flag, whether a word is there or how many there are, as traces know."""
    compared = [each.value for each in getattr(test, "comparators", ()) if isinstance(each, ast.Constant)]
    subject = test.left if isinstance(test, ast.Compare) else test
    if any(isinstance(each, str) and each.startswith("-") for each in compared):
        return True
    if isinstance(subject, ast.Name):
        return subject.id in given | lists and (subject is test or compared in ([""], [None]))
    calls = {dotted(each.func) for each in nodes_of(test) if isinstance(each, ast.Call)}
    used = {each.id for each in nodes_of(subject) if isinstance(each, ast.Name)}
    return calls == {"len"} and used <= {"len", "sys", "argv", *lists}


def _tests(doubts: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the tests in *doubts*, and of each what is looked at."""
    for node in doubts:
        match node:
            case ast.If(test=test) | ast.IfExp(test=test):
                yield from ((each, each) for each in _parts(test))
            case ast.Match(subject=subject):
                yield subject, subject
            # ``try: day = datetime.strptime(sys.argv[1], "%Y")``: a file that is missing is another error.
            case ast.Try(body=body, handlers=handlers) if not any(_is_wide(each) for each in handlers):
                for each in nodes_of(ast.Module(body, [])):
                    if isinstance(each, ast.Call) and dotted(each.func).rpartition(".")[2] not in _CONVERTS:
                        yield each, ast.Tuple(each.args, ast.Load())
            case ast.Try(body=[ast.Assign(value=value)]):
                yield value, value
            case ast.expr():
                yield from ((each, each) for each in _parts(node))


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    match test:
        case ast.BoolOp(values=values):
            for each in values:
                yield from _parts(each)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from _parts(operand)
        case ast.Call(func=ast.Attribute(value=owner, attr="strip"), args=[]):
            yield from _parts(owner)
        case ast.Compare() | ast.Call() | ast.Name():
            yield test


def _is_wide(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or dotted(handler.type).rpartition(".")[2] in ("Exception", "OSError", "IOError")


def _looks_at(node: ast.expr, names: set[str], looks: Set[str]) -> bool:
    """Whether *node* mentions one of *names*, and calls nothing that looks further than at a text."""
    mentions = any(
        (isinstance(each, ast.Name) and each.id in names) or (isinstance(each, ast.Attribute) and each.attr == "argv")
        for each in nodes_of(node)
    )
    return mentions and _calls(node) <= looks


def _calls(node: ast.AST) -> set[str]:
    functions = [each.func for each in nodes_of(node) if isinstance(each, ast.Call)]
    return {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in functions}
