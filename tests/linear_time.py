"""Hostile texts of any length, every regular expression of the package, and a measure
of growth.

Used by `test_linear_time.py`.
"""

from __future__ import annotations

import ast
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module

# How Python itself reads an expression.
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import FrameType, ModuleType
from typing import Any

from tests.proportion import modules

SHAPES: dict[str, Callable[[int], str]] = {
    "one letter": lambda n: "a" * n,
    "one digit": lambda n: "9" * n,
    "spaces": lambda n: " " * n + "x",
    "tabs": lambda n: "\t" * n + "x",
    "blank lines": lambda n: "\n" * n + "x",
    "lines of a space": lambda n: " \n" * (n // 2) + "x",
    "carriage returns": lambda n: "\r" * n,
    "words": lambda n: "ab " * (n // 3) + "\0",
    "opening brackets": lambda n: "[" * n,
    "opening braces": lambda n: '{"a":' * (n // 5),
    "closed brackets": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "parentheses": lambda n: "(a" * (n // 2),
    "unclosed quotes": lambda n: "\"a'" * (n // 3),
    "backslashes": lambda n: "\\" * n + '"',
    "escaped quotes": lambda n: '"' + '\\"' * (n // 2),
    "keys": lambda n: (
        "".join(f"k{number}: v\n" for number in range(n // 7)) + "x: &a y\n"
    ),
    "keys in one line": lambda n: "a: " * (n // 3),
    "list items": lambda n: "- " * (n // 2),
    "list lines": lambda n: "- a\n" * (n // 4),
    "anchors": lambda n: "".join(
        f"a{number}: &a [*a,*a]\n" for number in range(n // 16)
    ),
    "tags": lambda n: "<a " * (n // 3),
    "parameters of a template": lambda n: (
        "<function=f>"
        + "".join(
            f"\n<parameter=k{number}>\nx\n</parameter>" for number in range(n // 36)
        )
    ),
    "parameters inside parameters": lambda n: (
        "<function=f>"
        + "".join(
            f"\n<parameter=k{number}>\n<parameter=x></parameter>\n"
            for number in range(n // 46)
        )
        + "</function>"
    ),
    "ends of parameters": lambda n: (
        "<function=f><parameter=a>" + "</parameter> x " * (n // 15) + "</function>"
    ),
    "doubled braces": lambda n: "{{" * (n // 2),
    "opened tag": lambda n: "<" + " " * n + "x",
    "comments": lambda n: "<!--" * (n // 4),
    "dashes": lambda n: "-" * n,
    "lines of dashes": lambda n: "---\n" * (n // 4),
    "hashes": lambda n: "#" * n + "\n",
    "fences": lambda n: "```\n" * (n // 4),
    "backticks": lambda n: "`a" * (n // 2),
    "options": lambda n: "--a-b " * (n // 6),
    "commas": lambda n: "a," * (n // 2),
    "slashes": lambda n: "/a" * (n // 2),
    "dots": lambda n: "1." * (n // 2),
    "equal signs": lambda n: "a=" * (n // 2),
    "dollars": lambda n: "${a" * (n // 3),
    "combining characters": lambda n: "e" + "\u0301" * n,
    "zero-width characters": lambda n: "\u200b" * n,
    "joiners": lambda n: "\u2764\ufe0f\u200d" * (n // 3),
    "tag characters": lambda n: "\U000e0041" * n,
    "escape sequences": lambda n: "\x1b[" * (n // 2),
    "command strings": lambda n: "\x9d" * n,
    "role marks": lambda n: "<|a" * (n // 3),
    "getopts": lambda n: 'getopts "' + "a:" * (n // 2),
}
"""Texts of about *n* characters, in which a reader could look at the same place again
and again.
"""

COMMON_SHAPES = (
    *(
        "one letter",
        "one digit",
        "spaces",
        "tabs",
        "blank lines",
        "words",
        "opening brackets",
        "unclosed quotes",
    ),
    *(
        "backslashes",
        "escaped quotes",
        "keys",
        "dashes",
        "opened tag",
        "comments",
        "commas",
        "zero-width characters",
    ),
)
"""Those that every expression is tried with, beside the texts made from it."""


def texts_for(pattern: re.Pattern[Any]) -> list[Callable[[int], str]]:
    """Return hostile texts made from *pattern* itself.

    For each repetition in it: what must come before, many times what is repeated, and
    an end that fits nothing.
    """
    try:
        tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    except RecursionError:
        return []
    found = [
        lambda n, before=before, body=body: before + body * (n // len(body)) + "\0"
        for before, body in dict.fromkeys(_repetitions(list(tree), ""))
        if body
    ]
    return found[:_MOST_TEXTS]


_MOST_TEXTS = 24
_MOST_SAMPLES = 3


def _repetitions(items: list[Any], before: str) -> Iterator[tuple[str, str]]:
    """Yield what must come before each repetition in *items*, and samples of what is
    repeated.
    """
    for operation, value in items:
        if operation in _REPEATS and value[1] > 8:
            for body in _samples(list(value[2])):
                yield before, body
        for inside in _parts(operation, value):
            yield from _repetitions(inside, before)
        before += _samples([(operation, value)])[0]


_REPEATS = {sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT}


def _parts(operation: Any, value: Any) -> list[list[Any]]:
    """Return the expressions inside one operation."""
    if operation in _REPEATS:
        return [list(value[2])]
    if operation is sre.BRANCH:
        return [list(each) for each in value[1]]
    if operation is sre.SUBPATTERN:
        return [list(value[-1])]
    if operation is sre.ATOMIC_GROUP:
        return [list(value)]
    if operation in (sre.ASSERT, sre.ASSERT_NOT):
        return [list(value[1])]
    return []


def _samples(items: list[Any]) -> list[str]:
    """Return a few texts that *items* match, if lookaround and references are
    disregarded.
    """
    found = [""]
    for operation, value in items:
        if operation in _REPEATS:
            once = _samples(list(value[2]))
            choices = [each * max(value[0], 1) for each in once] if value[1] else [""]
        elif operation is sre.BRANCH:
            choices = [sample for each in value[1] for sample in _samples(list(each))]
        elif operation in (sre.SUBPATTERN, sre.ATOMIC_GROUP):
            choices = _samples(_parts(operation, value)[0])
        else:
            choices = [_character(operation, value)]
        found = [text + choice for text in found for choice in choices][:_MOST_SAMPLES]
    return found


def _character(operation: Any, value: Any) -> str:
    """Return a character that *operation* matches; nothing where it matches no
    character.
    """
    if operation is sre.LITERAL:
        return chr(value)
    if operation in (sre.ANY, sre.NOT_LITERAL):
        return "a" if value != ord("a") else "b"
    if operation is not sre.IN:
        return ""
    if value[0][0] is sre.NEGATE:
        refused = re.compile(_class_of(value[1:]))
        return next((each for each in "a 1-\n.:" if not refused.match(each)), "~")
    first, what = value[0]
    if first is sre.RANGE:
        return chr(what[0])
    if first is sre.CATEGORY:
        return _OF_CATEGORY.get(what, "a")
    return chr(what)


_OF_CATEGORY = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_WORD: "-",
    sre.CATEGORY_NOT_DIGIT: "a",
}
_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_WORD: r"\w",
}


def _class_of(members: list[Any]) -> str:
    """Return the members of a class as an expression."""
    written = ""
    for kind, what in members:
        if kind is sre.RANGE:
            written += f"{re.escape(chr(what[0]))}-{re.escape(chr(what[1]))}"
        elif kind is sre.CATEGORY:
            written += _CATEGORIES.get(
                what, str(what).rpartition("_")[2].lower() and r"\W"
            )
        else:
            written += re.escape(chr(what))
    return f"[{written}]"


@dataclass(frozen=True, slots=True)
class Expression:
    """One regular expression, where it stands, and the methods with which it is
    used.
    """

    place: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]

    def use(self, text: Any) -> None:
        """Use it on *text* as the package does."""
        if "match" in self.methods:
            self.pattern.match(text)
        if "fullmatch" in self.methods:
            self.pattern.fullmatch(text)
        if self.methods - {"match", "fullmatch"}:
            self.pattern.sub(
                text[:0], text
            )  # searches from every place, as all others do


def expressions() -> tuple[list[Expression], list[str]]:
    """Return every regular expression of the package, and the places of those that are
    only known when they are used.

    Those are: each compiled pattern in the globals of a module, and each expression
    that a function gives to `re`, if it is a constant or made of the module's globals.
    A module whose extra is not installed is left out.
    """
    sources = {
        name: path.read_text("utf-8")
        for name, path in modules().items()
        if path.name != "__main__.py"
    }
    uses: dict[str, set[str]] = {}
    for owner, method in _USE.findall("\n".join(sources.values())):
        uses.setdefault(owner, set()).add(method)
    found: list[Expression] = []
    unknown: list[str] = []
    for name, source in sources.items():
        if "\nimport re\n" not in source and "lazy_pattern" not in source:
            continue
        try:
            module = import_module(name)
        except ImportError:
            continue
        for own, value in vars(module).items():
            methods = frozenset(uses.get(own, {"match"}))
            found += [
                Expression(f"{name}.{own}", each, methods)
                for each in _patterns_in([value])
            ]
        for place, method, pattern in _used_in_functions(module, ast.parse(source)):
            if pattern is None:
                unknown.append(f"{name}.{place}")
            else:
                found.append(
                    Expression(f"{name}.{place}", pattern, frozenset({method}))
                )
    # A pattern is in the globals of each module that imports it.
    return list(
        {(each.pattern, each.methods): each for each in found}.values()
    ), unknown


_FUNCTIONS = {
    "compile",
    "search",
    "match",
    "fullmatch",
    "sub",
    "subn",
    "split",
    "findall",
    "finditer",
}
_USE = re.compile(
    rf"\b(\w+)\.({'|'.join(sorted(_FUNCTIONS))})\b"
)  # `_NAME.sub(...)`, and `map(_NAME.sub, ...)`


def _patterns_in(values: Iterable[Any]) -> list[re.Pattern[Any]]:
    found: list[re.Pattern[Any]] = []
    for value in values:
        if isinstance(value, re.Pattern):
            found.append(value)
        elif type(value).__name__ == "LazyPattern":
            found.append(value.compiled())
        elif isinstance(value, dict):
            found += _patterns_in(value.values())
        elif isinstance(value, list | tuple):
            found += _patterns_in(value)
        elif is_dataclass(value) and not isinstance(value, type):
            found += _patterns_in(getattr(value, each.name) for each in fields(value))
    return found


def _used_in_functions(
    module: ModuleType, tree: ast.Module
) -> Iterator[tuple[str, str, re.Pattern[Any] | None]]:
    """Yield each expression that a function of *module* gives to `re`; ``None`` if only
    a call shows it.
    """
    for definition in tree.body:
        if not isinstance(
            definition, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ):
            continue  # what a module compiles is in its globals
        for call in ast.walk(definition):
            if not (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.args
            ):
                continue
            owner, method = call.func.value, call.func.attr
            if (
                isinstance(owner, ast.Name)
                and owner.id == "re"
                and method in _FUNCTIONS
            ):
                flags = next(
                    (each.value for each in call.keywords if each.arg == "flags"), None
                )
                yield definition.name, method, _evaluated(call.args[0], flags, module)


def _evaluated(
    expression: ast.expr, flags: ast.expr | None, module: ModuleType
) -> re.Pattern[Any] | None:
    try:
        text = eval(ast.unparse(expression), vars(module))  # noqa: S307 - our own source
        if flags is None:
            return re.compile(text)
        return re.compile(text, eval(ast.unparse(flags), vars(module)))  # noqa: S307
    except (NameError, TypeError, AttributeError):
        return None


class TooSlowError(Exception):
    """A measurement was stopped, because it took too long for any linear reader."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TooSlowError` in the main thread after so many *seconds* of CPU; `re`
    looks for signals as it matches.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def growth(
    read: Callable[[Any], object],
    text: Callable[[int], Any],
    *,
    size: int,
    quick: float,
) -> str | None:
    """Return how the work of *read* grows too fast with its *text*, ``None`` if it does
    not.

    Work is CPU time. *size* characters within *quick* seconds are as good as linear;
    shorter texts are tried before, for what would never end. Else each of two doublings
    must cost less than three times as much, in one of several tries: some systems count
    CPU time in steps of milliseconds, and other programs disturb it.
    """
    shortest = 0.0
    for length in (size // 256, size // 16, size):
        written = text(length)
        try:
            with at_most(_NEVER):
                shortest = min(
                    _seconds(read, written),
                    _seconds(read, written) if length == size else _NEVER,
                )
        except TooSlowError:
            return f"more than {_NEVER} s for {length} characters"
    if shortest < quick:
        return None
    ratios: list[float] = []
    for _ in range(_TRIES):
        times = [
            _average(read, text(length)) for length in (size // 4, size // 2, size)
        ]
        ratios = [times[1] / times[0], times[2] / times[1]]
        if max(ratios) < 3:
            return None
    return (
        f"{times[-1] * 1000:.0f} ms for {size} characters; a doubling costs "
        f"{ratios[0]:.1f}, {ratios[1]:.1f} times"
    )


_NEVER = 4.0
_TRIES = 3
_ENOUGH = 0.04
"""Seconds that one measurement takes at least: ten steps of the coarsest clock."""


def _seconds(read: Callable[[Any], object], text: Any) -> float:
    started = time.process_time()
    read(text)
    return time.process_time() - started


def _average(read: Callable[[Any], object], text: Any) -> float:
    """Return the CPU time of one reading, as the average of as many as are needed to
    measure it.
    """
    started = time.process_time()
    number = 0
    while (taken := time.process_time() - started) < _ENOUGH:
        read(text)
        number += 1
    return taken / number
