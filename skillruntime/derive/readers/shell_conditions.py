"""What a shell script refuses to run without: the tests that end in its usage, an error or ``exit``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from skillruntime.derive.readers.shell_source import refuses

__all__ = ["Demands", "read_demands"]

# Blanks alone, because a line break begins a match of its own: with `\s*` empty lines take the square of their number.
_KEYWORD = re.compile(
    r"(?:^|(?<=[;\n{])|(?<=\bthen)|(?<=\belse)|(?<=\bdo)|(?<=&&)|(?<=\|\|))[ \t]*\b(if|elif|then|else|fi)\b"
)
_SHORT = re.compile(
    r"^[ \t]*((?:!\s*)?(?:\[\[?|test\b|\(\()[^\n]*?(?:&&|\|\|)[^\n{]*)(\{(?:[^{}]|\{[^{}]*\})*\}|$)", re.MULTILINE
)
_NAME = r"\"?'?x?\$(?:\{(\w+)(?::?(?:[-=]|\+\w*)?)\}|(\w+))\"?"
_EMPTY = re.compile(rf"^-z\s+{_NAME}$|^{_NAME}\s*={{1,2}}\s*(?:\"\"|''|\"?x\"?)$")
_FILLED = re.compile(rf"^(?:-n\s+)?{_NAME}$|^{_NAME}\s*!=\s*(?:\"\"|''|\"?x\"?)$")
_FILE = re.compile(rf"^-[edfrsxwLhpS]\s+{_NAME}$")
_EQUAL = re.compile(r"^(?:[^\s=]+|\"[^\"]*\")\s*={1,2}\s*\S")
_NUMBER = re.compile(
    r"\$(?:\{?#\}?|\{#\w+\[[@*]\]\})[\"']?\s*(-lt|-ne|-eq|-le|-ge|-gt|<=|<|>=|>|={1,2}|!=)\s*[\"']?(\d)"
)
_DEMANDED = re.compile(r"\$\{(\w+):?\?")
_NO_WORDS = re.compile(r"\bcase\s+\"?\$\{?#\}?\"?\s+in\s*\(?0\)(.*?);;", re.DOTALL)


@dataclass(slots=True)
class Demands:
    """What must be given: so many words at least, these variables and positions, and one of each group of them."""

    least: int = 0
    names: set[str] = field(default_factory=set)
    tested: set[str] = field(default_factory=set)
    """Names that are tested for being empty, with any consequence."""
    one_of: list[set[str]] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    """Tests of a condition that ends the script, of which it is not known what they demand."""


def read_demands(code: str) -> Demands:
    """Return what *code* refuses to run without.

    >>> demands = read_demands('[ $# -lt 2 ] && usage\\nif [ -z "$NAME" ]; then\\n  exit 1\\nfi\\n')
    >>> demands.least, demands.names
    (2, {'NAME'})
    """
    demands = Demands()
    for tests, connective, is_refused_by in _conditions(code):
        _take(demands, tests, connective, is_refused_by)
    # ``${1:?}`` and ``: "${NAME:?}"`` end the script where the value is empty (POSIX, 2.6.2 parameter expansion).
    # Names of environment variables among these match no argument, and are ignored.
    demands.names |= set(_DEMANDED.findall(code))
    if (match := _NO_WORDS.search(code)) and refuses(match[1]):
        demands.least = max(demands.least, 1)
    return demands


def _conditions(code: str) -> Iterator[tuple[list[str], str, bool | None]]:
    """Yield the tests of each condition, what joins them, and the result that refuses; None where none does."""
    for condition, body, otherwise in _ifs(code):
        tests, connective = _split(condition)
        yield tests, connective, True if refuses(body) else False if refuses(otherwise) else None
    for match in _SHORT.finditer(code):
        parts = re.split(r"\s*(&&|\|\|)\s*", match[1].strip())
        # The action is a group over several lines: ``{ usage; exit 1; }``.
        if match[2]:
            parts[-1] += match[2]
        # ``[ -z "$FILE" ] && echo "--file is required" && exit 1``: what is printed belongs to the action.
        while len(parts) > 3 and parts[-2] == "&&" and re.match(r"(?:>&2\s+)?(?:echo|printf|log\w*)\b", parts[-3]):
            parts[-3:] = [parts[-1]]
        tests, joins, action = parts[0:-1:2], parts[1::2], parts[-1]
        # A chain that ends in a test refuses nothing by itself.
        if re.match(r"(?:!\s*)?(?:\[|test\b|\(\()", action.strip()):
            continue
        # ``a || b && exit``: both sides of ``||`` lead to the action; ``a && b || exit``: each failure does.
        inner = set(joins[:-1]) or {"||" if joins[-1] == "&&" else "&&"}
        if len(inner) == 1:
            # ``test && action`` acts where the test holds, ``test || action`` where it fails.
            result = joins[-1] == "&&"
            yield [_bare(each) for each in tests], inner.pop(), result if refuses(action) else None


def _ifs(code: str) -> Iterator[tuple[str, str, str]]:
    """Yield the condition, the body and the ``else`` part of each ``if`` and ``elif``, without the ifs inside them."""
    opened: list[dict[str, str]] = []
    parts: list[str] = []
    start = 0
    for match in _KEYWORD.finditer(code):
        # The text since the last keyword belongs to the part that is open.
        if opened:
            opened[-1][parts[-1]] = opened[-1].get(parts[-1], "") + code[start : match.start()]
        start = match.end()
        word = match[1]
        if word == "if":
            opened.append({})
            parts.append("if")
        # Each ``elif`` is a condition of its own; its predecessor has no ``else``.
        elif opened and word == "elif":
            yield opened[-1].get("if", ""), opened[-1].get("then", ""), ""
            opened[-1], parts[-1] = {}, "if"
        elif opened and word == "fi":
            known = opened.pop()
            parts.pop()
            yield known.get("if", ""), known.get("then", ""), known.get("else", "")
        elif opened:
            parts[-1] = word


def _split(condition: str) -> tuple[list[str], str]:
    joins = set(re.findall(r"&&|\|\||\s-[ao]\s", condition))
    tests = [_bare(each) for each in re.split(r"\s*(?:&&|\|\||\s-[ao]\s)\s*", condition.strip(" \t\n;"))]
    plain = {"&&" if each.strip() in ("&&", "-a") else "||" for each in joins}
    return tests, plain.pop() if len(plain) == 1 else ("||" if not plain else "mixed")


def _bare(test: str) -> str:
    """Return *test* without its brackets, a negation in front."""
    text = test.strip()
    negated = text.startswith("!")
    text = re.sub(r"^(?:!\s*)?(?:\[\[?|test\b|\(\()\s*|\s*(?:\]\]?|\)\))$", "", text).strip()
    # Inside the brackets: ``[ ! -f "$1" ]``.
    if text.startswith("!"):
        negated, text = not negated, text[1:].strip()
    return f"! {text}" if negated else text


def _take(demands: Demands, tests: list[str], connective: str, refusing: bool | None) -> None:
    names = [_subject(test) for test in tests]
    demands.tested |= {name for name, _ in filter(None, names)}
    if refusing is None:
        return
    if connective == "mixed":
        demands.undecided += tests
        return
    # The script refuses where the condition is *refusing*. One test alone decides that where they are joined by ``||``
    # and true refuses, or by ``&&`` and false refuses.
    alone = len(tests) == 1 or connective == ("||" if refusing else "&&")
    numbers = [_NUMBER.search(test) for test in tests]
    if not alone and not refusing and all(numbers):  # ``if [ $# -eq 2 ] || [ $# -eq 3 ]; then ...; else usage``
        demands.least = max(demands.least, min(_least(each[1], int(each[2]), refusing) for each in numbers if each))
    missing = set()
    for test, subject in zip(tests, names, strict=True):
        # ``-z`` holds without a value; it must be the result that refuses.
        if subject is not None and subject[1] is not refusing:
            missing.add(subject[0])
        # ``[ "$1" = --help ] && usage`` refuses one word, and no call needs that one.
        if subject is None and not _NUMBER.search(test) and not (refusing and _EQUAL.match(test)):
            demands.undecided.append(test)
        if alone and (match := _NUMBER.search(test)) and "!" not in test[:2]:
            demands.least = max(demands.least, _least(match[1], int(match[2]), refusing))
    if alone:
        demands.names |= missing
    # ``[ -z "$A" ] && [ -z "$B" ] && usage``: one of them is enough.
    elif len(missing) == len(tests):
        demands.one_of.append(missing)


def _subject(test: str) -> tuple[str, bool] | None:
    """Return the name that *test* is about, and whether the test holds where it has a value."""
    negated = test.startswith("! ")
    text = test.removeprefix("! ").strip()
    for pattern, holds in ((_EMPTY, False), (_FILLED, True), (_FILE, True)):
        if match := pattern.match(text):
            name = next(each for each in match.groups() if each)
            return name, holds is not negated
    return None


def _least(operator: str, number: int, refusing: bool) -> int:
    """Return how many words there must be, where ``$# operator number`` is refused, or demanded."""
    match operator, refusing:
        case (("-lt" | "<" | "-ne" | "!="), True):
            return number
        case (("-eq" | "=" | "==" | "-ge" | ">="), False):
            return number
        case (("-le" | "<="), True):
            return number + 1
        case (("-gt" | ">"), False):
            return number + 1
        case (("-eq" | "=" | "=="), True) if number == 0:
            return 1
        case (("-ne" | "!="), False) if number == 0:
            return 1
    return 0
