"""A shell script followed on one command line without being run: whether it refuses these words.

Only the shell's own work is followed: its variables, functions, tests and ``exit``. Whether a program succeeds, whether
a file is there and what the environment holds is not known: both ways are followed, one run after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from tree_sitter import Node

from skillruntime.derive.readers.shell_builtins import BUILTINS, is_function
from skillruntime.derive.readers.shell_state import (
    Ended,
    Given,
    LeftLoop,
    NotFollowedError,
    Returned,
    State,
    Value,
)
from skillruntime.derive.readers.shell_words import arithmetic, expand, holds, matches, value_of
from skillruntime.derive.readers.syntax_tree import text_of

__all__ = ["run"]

_LOOPS_LIMIT = 60
_CALLS_LIMIT = 12
# What these print or make seldom fails, and ``echo "..." && exit 1`` is written as if they never did.
_PRINT = frozenset({"echo", "printf"})
_ENTRY = re.compile(r"\[([^\]]+)\]=(.*)", re.DOTALL)
_USAGE = re.compile(r"(?i)\busage\b\s*:")
_SUCCEED = frozenset({"echo", "printf", "cat", "cd", "date", "mkdir", "true", ":", "trap", "umask", "export", "pwd"})


def run(state: State, root: Node) -> bool:
    """Follow the script *root*; return whether it refuses its words."""
    try:
        status = _all(state, root.named_children)
    except Ended as ended:
        return ended.refused
    except (Returned, LeftLoop):
        return False
    # ``main "$@"`` whose ``return 1`` is the script's own status.
    return status is False and _calls_function(state, root)


def _calls_function(state: State, root: Node) -> bool:
    last = next((each for each in reversed(root.named_children) if each.type != "comment"), None)
    return last is not None and last.type == "command" and text_of(last.child_by_field_name("name")) in state.functions


def _all(state: State, nodes: Iterable[Node]) -> bool | None:
    for each in nodes:
        if each.type not in ("comment", "heredoc_body", "heredoc_end"):
            state.status = _one(state, each)
    return state.status


def _one(state: State, node: Node) -> bool | None:
    state.step()
    follow = _STATEMENTS.get(node.type)
    # ``time``, ``coproc`` and what else the grammar knows.
    return None if follow is None else follow(state, node)


def _list(state: State, node: Node) -> bool | None:
    left, right = node.named_children[0], node.named_children[-1]
    joins = next(each.type for each in node.children if each.type in ("&&", "||"))
    status = _one(state, left)
    # With an unknown status both ways are followed, and the one that is taken decides.
    succeeded = state.decide(status, left)
    state.status = succeeded
    return _one(state, right) if succeeded is (joins == "&&") else succeeded


def _negated(state: State, node: Node) -> bool | None:
    status = _one(state, node.named_children[-1])
    return None if status is None else not status


def _apart(state: State, node: Node) -> bool | None:
    """Follow a subshell, or a part of a pipeline: ``exit`` in it does not end the script."""
    variables, words = dict(state.variables), list(state.words)
    try:
        return _all(state, node.named_children) if node.type == "subshell" else _one(state, node)
    except Ended as ended:
        return not ended.refused
    finally:
        state.variables, state.words = variables, words


def _pipeline(state: State, node: Node) -> bool | None:
    status: bool | None = True
    for each in node.named_children:
        status = _apart(state, each)
    return status


def _redirected(state: State, node: Node) -> bool | None:
    body = node.child_by_field_name("body")
    status = _one(state, body) if body is not None else None
    for redirect in node.children_by_field_name("redirect"):
        for each in redirect.named_children:
            if each.type == "heredoc_body":
                state.showed_usage |= _USAGE.search(text_of(each)) is not None
                for part in each.named_children:
                    value_of(state, part)
        # ``cat <<EOF && exit 1``: the grammar puts what follows into the redirection.
        right = redirect.child_by_field_name("right")
        joins = redirect.child_by_field_name("operator")
        if right is not None and joins is not None and state.decide(status) is (joins.type == "&&"):
            status = _one(state, right)
    return status


def _if(state: State, node: Node) -> bool | None:
    return _branch(state, node)[1]


def _branch(state: State, node: Node) -> tuple[bool, bool | None]:
    """Follow an ``if`` or ``elif``; return whether one of its branches was taken, and the status."""
    condition: list[Node] = []
    body: list[Node] = []
    taken: bool | None = None
    for child in node.children:
        if child.type == "then":
            taken = state.decide(_all(state, condition), condition[-1] if condition else None)
        elif child.type == "else_clause" and not taken:
            return True, _all(state, child.named_children)
        elif child.type == "elif_clause" and not taken:
            found = _branch(state, child)
            if found[0]:
                return found
        elif child.is_named:
            (condition if taken is None else body).append(child)
    return (True, _all(state, body)) if taken else (False, True)


def _test(state: State, node: Node) -> bool | None:
    opening = node.children[0].type
    if opening == "((":
        number = arithmetic(state, text_of(node)[2:-2])
        return None if number is None else bool(number)
    tokens: list[tuple[Value, Node | None]] = []
    missing = set(state.missing)
    pending = list(reversed(node.children[1:-1]))
    while pending:
        each = pending.pop()
        if each.type in ("unary_expression", "binary_expression", "parenthesized_expression"):
            pending += reversed(each.children)
        elif not each.is_named or each.type == "test_operator":
            tokens.append((text_of(each), None))
        # An unquoted empty text is not a word for ``[``: ``[ -z $1 ]`` has one word then.
        else:
            values = expand(state, each) if opening == "[" else [value_of(state, each)]
            tokens += [(value, each) for value in values]
    # A test of a word that was not given does not need it.
    state.missing = missing
    return holds(state, tokens, patterns=opening == "[[")


def _compound(state: State, node: Node) -> bool | None:
    return _test(state, node) if node.children[0].type == "((" else _all(state, node.named_children)


def _loop(state: State, condition: Callable[[], bool | None], body: Node | None) -> bool | None:
    for _ in range(_LOOPS_LIMIT):
        status = condition()
        if not state.decide(status):
            return True
        try:
            _all(state, body.named_children if body is not None else ())
        except LeftLoop as left:
            if not left.again:
                return True
        # A loop over what is not known is followed once.
        if status is None:
            return True
    # ``shift 2`` with one word left takes none: such a loop has no end.
    if body is not None and "shift" in text_of(body):
        raise Ended(refused=True)
    raise NotFollowedError


def _while(state: State, node: Node) -> bool | None:
    conditions = [each for each in node.children_by_field_name("condition") if each.is_named]
    until = node.children[0].type == "until"

    def condition() -> bool | None:
        status = _all(state, conditions)
        return status if status is None or not until else not status

    return _loop(state, condition, node.child_by_field_name("body"))


def _for(state: State, node: Node) -> bool | None:
    if node.children[0].type == "select":
        raise NotFollowedError
    name = text_of(node.child_by_field_name("variable"))
    given = node.children_by_field_name("value")
    values = [value for each in given for value in expand(state, each)] if given else list(state.words)
    # A name with ``*`` in it stands for files.
    left = iter([Given(filled=True) if isinstance(each, str) and "*" in each else each for each in values])

    def condition() -> bool:
        value = next(left, None)
        if value is not None:
            state.variables[name] = value
        return value is not None

    return _loop(state, condition, node.child_by_field_name("body"))


def _counted(state: State, node: Node) -> bool | None:
    return _loop(state, lambda: None, node.child_by_field_name("body"))


def _case(state: State, node: Node) -> bool | None:
    subject = node.child_by_field_name("value")
    value = value_of(state, subject) if subject is not None else Given()
    falls = False
    for item in node.named_children:
        if item.type != "case_item":
            continue
        patterns = item.children_by_field_name("value")
        if not falls and not any(_fits(state, value, each, subject) for each in patterns):
            continue
        status = _all(state, [each for each in item.named_children if each not in patterns])
        falls = any(each.type == ";&" for each in item.children)
        if not falls:
            return status
    return True


def _fits(state: State, value: Value, pattern: Node, subject: Node | None) -> bool:
    text = value_of(state, pattern)
    return state.decide(matches(state, value, pattern, text) if isinstance(text, str) else None, subject)


def _define(state: State, node: Node) -> bool | None:
    body = node.child_by_field_name("body")
    if body is not None:
        state.functions[text_of(node.child_by_field_name("name"))] = body
    return True


def _assign(state: State, node: Node) -> bool | None:
    target, source = node.child_by_field_name("name"), node.child_by_field_name("value")
    name = text_of(target)
    if target is not None and target.type == "subscript":
        name, index = text_of(target.child_by_field_name("name")), target.child_by_field_name("index")
        key = value_of(state, index) if index is not None else ""
        if name in state.tables and isinstance(key, str) and source is not None:
            state.tables[name][key] = value_of(state, source)
        else:
            state.tables.pop(name, None)
        state.variables[name] = [Given(filled=True)]
        return True
    adds = any(each.type == "+=" for each in node.children)
    before = state.variables.get(name, [] if source is not None and source.type == "array" else "")
    new: Value | list[Value]
    if source is not None and source.type == "array":
        new = [value for each in source.named_children for value in expand(state, each)]
        if any(each.type == "command_substitution" for each in source.named_children):
            new = Given()
    else:
        new = value_of(state, source) if source is not None else ""
    if adds:
        if isinstance(before, list) and isinstance(new, list):
            new = before + new
        else:
            new = before if new == "" and isinstance(before, str) else Given(filled=new != "" or before != "")
    state.variables[name] = new
    if name in state.tables:
        pairs = [_ENTRY.fullmatch(each) for each in new if isinstance(each, str)] if isinstance(new, list) else []
        state.tables[name] |= {each[1]: each[2] for each in pairs if each is not None}
        if not isinstance(new, list) or len(pairs) < len(new) or None in pairs:
            del state.tables[name]
    # ``X=$(program) || exit``: the status is the program's.
    return None if source is not None and "$(" in text_of(source) else True


def _declare(state: State, node: Node) -> bool | None:
    words = [text_of(each) for each in node.named_children if each.type == "word"]
    # ``declare -f name``: whether there is such a function.
    if any(re.fullmatch(r"-[a-zA-Z]*[fFp][a-zA-Z]*", each) for each in words):
        values = [value for each in node.named_children if each.type != "word" for value in expand(state, each)]
        names = [each for each in words if not each.startswith("-")]
        return is_function(state, [*values, *names][-1] if values or names else "")
    local = node.children[0].type in ("local", "declare", "typeset") and bool(state.saved)
    for each in node.named_children:
        if each.type not in ("variable_assignment", "variable_name"):
            continue
        name = text_of(each.child_by_field_name("name") or each)
        if any(re.fullmatch(r"-[a-zA-Z]*A[a-zA-Z]*", word) for word in words):
            state.tables[name] = {}
        if local:
            state.saved[-1].setdefault(name, state.variables.get(name))
        if each.type == "variable_assignment":
            _assign(state, each)
        elif local:
            state.variables[name] = ""
    return True


def _unset(state: State, node: Node) -> bool | None:
    for each in node.named_children:
        state.variables[text_of(each)] = ""
    return True


def _command(state: State, node: Node) -> bool | None:
    nodes = [*node.children_by_field_name("name"), *node.children_by_field_name("argument")]
    words = [value for each in nodes for value in expand(state, each)]
    if not words:
        return True
    name, arguments = words[0], words[1:]
    if isinstance(name, Given):
        # ``"cmd_$1" "$@"``: a function of that name is called, if there is one; ``"$@"`` may call a program.
        return False if name.word and name.prefix and is_function(state, name) is False else None
    for each in node.children_by_field_name("redirect"):
        if each.type == "herestring_redirect":
            state.stdin = value_of(state, each.named_children[0])
    if name in _PRINT and _USAGE.search(text_of(node)):
        state.showed_usage = True
    if name in state.functions:
        return _called(state, state.functions[name], arguments)
    if builtin := BUILTINS.get(name):
        return builtin(state, arguments)
    # ``date -d "$1"`` fails for a text that is not a date.
    if name == "date" and any(isinstance(each, Given) for each in arguments):
        return None
    return True if name in _SUCCEED else False if name == "false" else None


def _called(state: State, body: Node, arguments: list[Value]) -> bool | None:
    if len(state.saved) >= _CALLS_LIMIT:
        raise NotFollowedError
    outer, state.words = state.words, arguments
    missing = set(state.missing)
    state.saved.append({})
    try:
        return _one(state, body)
    except Returned as returned:
        return returned.status
    finally:
        state.words = outer
        # Words that the function was not given are not the script's.
        state.missing = missing
        for name, value in state.saved.pop().items():
            if value is None:
                state.variables.pop(name, None)
            else:
                state.variables[name] = value


_STATEMENTS: dict[str, Callable[[State, Node], bool | None]] = {
    "list": _list,
    "negated_command": _negated,
    "subshell": _apart,
    "pipeline": _pipeline,
    "redirected_statement": _redirected,
    "if_statement": _if,
    "test_command": _test,
    "compound_statement": _compound,
    "while_statement": _while,
    "for_statement": _for,
    "c_style_for_statement": _counted,
    "case_statement": _case,
    "function_definition": _define,
    "variable_assignment": _assign,
    "variable_assignments": lambda state, node: _all(state, node.named_children),
    "declaration_command": _declare,
    "unset_command": _unset,
    "command": _command,
}
