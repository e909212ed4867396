"""What the words of a shell script become: parameters and arrays are expanded, what programs print is unknown."""

from __future__ import annotations

import ast
import fnmatch
import operator
import re
from collections.abc import Callable
from dataclasses import replace

from tree_sitter import Node

from skillruntime.derive.readers.shell_state import Ended, Given, NotFollowedError, State, Value, joined
from skillruntime.derive.readers.syntax_tree import text_of

__all__ = ["arithmetic", "expand", "holds", "matches", "value_of"]

_EXPANSION = re.compile(r"\$\{([!#]?)(\w+|[@*#?-])(?:\[([^\]]*)\])?(.*)\}$", re.DOTALL)
_ALTERNATIVE = re.compile(r"(:?)([-=?+])")
_SLICE = re.compile(r":\s*(-?\d+)$")
_SCALAR = re.compile(r"\$\{?(#\w+\[[@*]\]|\w+|#|\?)\}?|\$\{(#\w+\[[@*]\])\}|([A-Za-z_]\w*)")
_GLOB = re.compile(r"[*?\[]")
_ARITHMETIC_LIMIT = 200
_OPERATORS: dict[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_NUMERIC = {"-eq": "==", "-ne": "!=", "-lt": "<", "-le": "<=", "-gt": ">", "-ge": ">="}


def expand(state: State, node: Node) -> list[Value]:
    """Return the words that *node* becomes: none for an unquoted empty text, many for ``"$@"`` and arrays."""
    inner = node.named_children[0] if node.type == "string" and len(node.named_children) == 1 else node
    if inner.type in ("simple_expansion", "expansion") and text_of(node).strip('"') == text_of(inner):
        found = _parameter(state, inner)
        if isinstance(found, list):
            # ``"$*"`` is one word (POSIX, 2.5.2).
            return [_all_in_one(found)] if "*" in text_of(inner)[:4] and node.type == "string" else found
        return [] if found == "" and node.type != "string" else [found]
    value = value_of(state, node)
    return [] if value == "" and node.type == "command_substitution" else [value]


def value_of(state: State, node: Node) -> Value:
    """Return the one text that *node* becomes."""
    state.step()
    text = text_of(node)
    match node.type:
        case "raw_string":
            return text[1:-1]
        case "string":
            return _string(state, node)
        case "concatenation":
            return joined([value_of(state, each) for each in node.named_children])
        case "simple_expansion" | "expansion":
            found = _parameter(state, node)
            return _all_in_one(found) if isinstance(found, list) else found
        case "arithmetic_expansion":
            # ``$((${1:?usage} * 60))``.
            for each in _expansions(node) if ":?" in text else ():
                value_of(state, each)
            number = arithmetic(state, re.sub(r"^\$(?:\(\(|\[)|(?:\)\)|\])$", "", text))
            return Given(filled=True) if number is None else str(number)
        case "command_substitution" | "ansi_c_string" | "process_substitution" | "brace_expression":
            return Given(filled=node.type != "command_substitution")
        case "regex":
            return text
        case "word" | "number" | "variable_name" | "extglob_pattern" | "test_operator" | "string_content":
            return re.sub(r"\\(.)", r"\1", text)
        case "command_name" if node.named_children:
            return value_of(state, node.named_children[0])
        case _:
            return Given()


def _expansions(node: Node) -> list[Node]:
    inner = [each for child in node.named_children for each in _expansions(child)]
    return [node] if node.type == "expansion" else inner


def _string(state: State, node: Node) -> Value:
    parts: list[Value] = []
    end = node.start_byte + 1
    for child in node.named_children:
        # Blanks between two expansions are not nodes.
        if child.start_byte > end or text_of(child).startswith(" $"):
            parts.append(" ")
        parts.append(text_of(child) if child.type == "string_content" else value_of(state, child))
        end = child.end_byte
    return joined(parts)


def _all_in_one(values: list[Value]) -> Value:
    return values[0] if len(values) == 1 else Given(filled=True) if values else ""


def _parameter(state: State, node: Node) -> Value | list[Value]:
    # Between two expansions the grammar counts the blank as a part of the second.
    text = text_of(node).strip()
    if node.type == "simple_expansion":
        return _plain(state, text[1:], state.value_of(text[1:]))
    match = _EXPANSION.match(text)
    if match is None:
        return Given()
    mark, name, index, rest = match.groups()
    held = state.value_of(name)
    if mark == "#":
        if isinstance(held, list) and index:
            return str(len(held))
        scalar = held[0] if isinstance(held, list) and held else held
        return str(len(scalar)) if isinstance(scalar, str) else "0" if not scalar else Given(filled=True)
    if mark == "!":
        # ``${!name}``: the variable that *name* names.
        held = state.value_of(held) if isinstance(held, str) and held.isidentifier() else Given()
    if index is not None and index not in ("@", "*"):
        held = _item(held, index) if name not in state.tables else _entry(state, state.tables[name], index)
    elif index is None and isinstance(held, list) and name not in ("@", "*"):
        held = held[0] if held else None
    if alternative := _ALTERNATIVE.match(rest):
        return _alternative(state, name, held, alternative, node)
    if isinstance(held, list):
        if not rest:
            return held
        if (cut := _SLICE.match(rest)) is None:
            if rest[0] not in "/#%^,@":
                raise NotFollowedError
            return held
        # ``${@:2}`` counts from the script's own name, an array from its first item.
        start = int(cut[1])
        return held[start - (start > 0 and name in ("@", "*")) :]
    if rest and held != "":
        plain = _plain(state, name, held)
        if isinstance(plain, Given) and plain.prefix and rest[0] == "#":
            return Given(filled=True, word=plain.word, differs=plain.differs)
        return _cut(plain, rest) if isinstance(plain, str) else Given(filled=isinstance(plain, Given) and plain.filled)
    return _plain(state, name, held)


def _cut(text: str, rest: str) -> Value:
    """Return what ``${name#pattern}`` and the like make of a known text; only literal patterns are followed."""
    if match := re.fullmatch(r"(##?|%%?)([\w=-]+)", rest):
        return text.removeprefix(match[2]) if match[1][0] == "#" else text.removesuffix(match[2])
    return {",,": text.lower(), "^^": text.upper()}.get(rest, Given(filled=False) if text else "")


def _plain(state: State, name: str, held: Value | list[Value] | None) -> Value | list[Value]:
    if held is None:
        if name.isdigit():
            state.missing.add(int(name))
            # ``set -u``: an unset parameter ends the shell (POSIX, 2.5.3).
            if state.nounset:
                raise Ended(refused=True)
        return ""
    return held


def _item(held: Value | list[Value] | None, index: str) -> Value | None:
    if isinstance(held, list) and re.fullmatch(r"-?\d{1,4}", index):
        place = int(index)
        return held[place] if -len(held) <= place < len(held) else None
    return None if held is None or held == [] else Given()


def _entry(state: State, table: dict[str, Value], index: str) -> Value | None:
    """Return what an associative array holds for a key: the literals among which ``${COMMANDS[$1]}`` chooses."""
    variable = re.fullmatch(r"\"?\$\{?(\w+)\}?\"?", index)
    key = state.value_of(variable[1]) if variable else index.strip("\"'")
    if isinstance(key, str):
        return table.get(key)
    if not isinstance(key, Given) or not key.word:
        return Given()
    found = [state.is_literal(key, each) for each in table]  # each comparison is recorded
    return None if found.count(False) == len(found) else Given()


def _alternative(
    state: State, name: str, held: Value | list[Value] | None, match: re.Match[str], node: Node
) -> Value | list[Value]:
    """``${1:-x}``, ``${1:?}``, ``${1+x}``, ``${name:=x}`` (POSIX, 2.6.2); a colon counts an empty text as unset."""
    place = next(each.end_byte for each in node.children if text_of(each).startswith((match[1] + match[2],)))
    others = [each for each in node.named_children if each.start_byte >= place]
    is_unset: bool | None = held is None or held == []
    if match[1] and not is_unset:
        is_unset = held == "" or (None if isinstance(held, Given) and not held.filled else False)
    # ``${TOKEN:?}``: the environment may have it.
    use_other = state.decide(is_unset) if match[2] != "?" or is_unset is not None else not state.decide(None)
    if match[2] == "+":
        use_other = not use_other
    if not use_other:
        if match[1] and isinstance(held, Given):
            held = replace(held, filled=True)
        return _plain(state, name, held) if match[2] != "+" else ""
    if match[2] == "?":
        raise Ended(refused=True)
    value = joined([value_of(state, each) for each in others])
    if match[2] == "=" and not name.isdigit():
        state.variables[name] = value
    return value


def arithmetic(state: State, text: str) -> int | None:
    """Return the number that *text*, an arithmetic expression of the shell, is; None where it is not known.

    Comparisons are 1 or 0, as in C.
    """
    unknown = False

    def number(match: re.Match[str]) -> str:
        nonlocal unknown
        name = match[1] or match[2] or match[3]
        held = state.value_of(name) if name[0] != "#" or name == "#" else state.value_of(name[1:].partition("[")[0])
        if name[0] == "#" and name != "#":
            held = str(len(held)) if isinstance(held, list) else held
        if held is None or held == "":
            return "0"
        if isinstance(held, str) and re.fullmatch(r"-?\d{1,9}", held):
            return f"({int(held)})"
        unknown = True
        return "0"

    plain = _SCALAR.sub(number, text.replace('"', ""))
    plain = plain.replace("&&", " and ").replace("||", " or ")
    plain = re.sub(r"!(?!=)", " not ", plain)
    if unknown or len(plain) > _ARITHMETIC_LIMIT or not re.fullmatch(r"[\d\s()<>=!+\-a-z]+", plain):
        return None
    try:
        return _calculated(ast.parse(plain.strip(), mode="eval").body)
    except (SyntaxError, ValueError):
        return None


def _calculated(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return int(number)
        case ast.BoolOp(op=ast.And(), values=values):
            return int(all(_calculated(each) for each in values))
        case ast.BoolOp(values=values):
            return int(any(_calculated(each) for each in values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return int(not _calculated(operand))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_calculated(operand)
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]) if (
            type(op) in _OPERATORS
        ):
            return int(_OPERATORS[type(op)](_calculated(left), _calculated(right)))
    raise ValueError(node)


def matches(state: State, value: Value, pattern: Node | None, text: str) -> bool | None:
    """Return whether *value* matches a pattern of ``case`` or ``[[ a == b ]]``; None where that is not known.

    *pattern* is the node that *text*, its expanded text, comes from: what is quoted in it is not a pattern.
    """
    if text == "*":
        return True
    is_quoted = pattern is not None and pattern.type in ("string", "raw_string")
    if is_quoted or not _GLOB.search(text):
        return state.is_literal(value, text)
    if isinstance(value, str):
        return fnmatch.fnmatchcase(value, text)
    head = _GLOB.split(text, maxsplit=1)[0]
    if value.prefix.startswith(head) and head and text == head + "*":
        return True
    if value.word and head and not head.startswith(value.prefix) and not value.prefix.startswith(head):
        return False
    # The words that are tried do not begin with a dash: ``-*)`` does not take them.
    return False if value.word and not value.prefix and text.startswith("-") else None


def holds(state: State, tokens: list[tuple[Value, Node | None]], *, patterns: bool) -> bool | None:
    """Return whether a test holds, ``[ ... ]`` or ``[[ ... ]]`` by its words; None where that is not known."""
    found, rest = _either(state, tokens, patterns)
    return found if not rest else None


_Tokens = list[tuple[Value, Node | None]]


def _either(state: State, tokens: _Tokens, patterns: bool) -> tuple[bool | None, _Tokens]:
    found, rest = _both(state, tokens, patterns)
    while rest and rest[0][0] in ("-o", "||"):
        other, rest = _both(state, rest[1:], patterns)
        found = True if found or other else False if found is False and other is False else None
    return found, rest


def _both(state: State, tokens: _Tokens, patterns: bool) -> tuple[bool | None, _Tokens]:
    found, rest = _one(state, tokens, patterns)
    while rest and rest[0][0] in ("-a", "&&"):
        other, rest = _one(state, rest[1:], patterns)
        found = False if found is False or other is False else True if found and other else None
    return found, rest


def _one(state: State, tokens: _Tokens, patterns: bool) -> tuple[bool | None, _Tokens]:
    if not tokens:
        return False, []
    first = tokens[0][0]
    if first == "!" and len(tokens) > 1:
        found, rest = _one(state, tokens[1:], patterns)
        return (None if found is None else not found), rest
    if first == "(":
        found, rest = _either(state, tokens[1:], patterns)
        return found, rest[1:]
    if len(tokens) > 2 and isinstance(tokens[1][0], str) and tokens[1][1] is None and _BINARY.fullmatch(tokens[1][0]):
        return _compared(state, first, tokens[1][0], tokens[2], patterns), tokens[3:]
    if isinstance(first, str) and re.fullmatch(r"-[a-zA-Z]", first) and len(tokens) > 1 and tokens[0][1] is None:
        return _unary(state, first, tokens[1][0]), tokens[2:]
    # One word alone holds where it is not empty.
    return _is_filled(first), tokens[1:]


_BINARY = re.compile(r"-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)|[=!]?=|=~|[<>]")


def _is_filled(value: Value) -> bool | None:
    return bool(value) if isinstance(value, str) else True if value.filled else None


def _unary(state: State, mark: str, value: Value) -> bool | None:
    if mark in "-n-z":
        filled = _is_filled(value)
        return filled if filled is None or mark == "-n" else not filled
    if mark == "-v" and isinstance(value, str):
        held = state.value_of(value)
        return None if isinstance(held, Given) and not held.filled else held is not None
    # ``[ -t 0 ]``: a tool has no terminal.
    if mark == "-t":
        return False
    # A file without a name does not exist; others are the machine's.
    return False if value == "" and mark in ("-e", "-f", "-d", "-r", "-s", "-w", "-x", "-L", "-h") else None


def _compared(state: State, left: Value, mark: str, right: tuple[Value, Node | None], patterns: bool) -> bool | None:
    value, node = right
    if mark in _NUMERIC:
        if not isinstance(left, str) or not isinstance(value, str):
            return None
        number = arithmetic(state, f"({left or 0}) {_NUMERIC[mark]} ({value or 0})")
        return None if number is None else bool(number)
    if mark in ("=", "==", "!="):
        if isinstance(left, str) and isinstance(value, Given):
            left, value, node = value, left, None
        found = None
        if isinstance(value, str):
            found = matches(state, left, node, value) if patterns else state.is_literal(left, value)
        return found if mark != "!=" or found is None else not found
    if mark != "=~" or not isinstance(value, str) or not value.startswith("^"):
        return None
    if isinstance(left, Given):
        if left.word and not left.prefix:
            state.patterns[left.word].setdefault(value)
        return False if left.differs else None
    # Few characters and few repetitions: a pattern with groups can take time without end.
    if len(left) > 40 or re.search(r"[()]", value) or len(re.findall(r"[*+?{]", value)) > 3:
        return False if left == "" and "*" not in value and "?" not in value else None
    try:
        return re.search(value, left) is not None
    except re.error:
        return None
