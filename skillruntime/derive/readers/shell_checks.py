"""Find the conditions under which a shell script ends: ``[ -z "$1" ] && usage``, ``if [
$# -lt 2 ]; then exit 1; fi``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate

from skillruntime.derive.command import Command
from skillruntime.derive.readers.checks import ANYTHING, MACHINE, Check, Test, refuse
from skillruntime.derive.readers.shell_syntax import Statement, below
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["ShellChecks"]

CHECKS_LIMIT = 100
CONDITIONS_LIMIT = 20

_REFERENCE = lazy_pattern(
    r"[\"']?x?\$(?:\{(\w+|#)(?::?[-=+?][^}$]{0,80})?\}|(\w+|#))[\"']?"
)
_USED = lazy_pattern(r"\$\{?[#!]?(\w+)")
_DEMANDED = lazy_pattern(r"\$\{(\w+):?\?")
_NUMBER = lazy_pattern(r"\(\(\s*\$?\{?#\}?\s*(==|!=|<=|>=|<|>)\s*(\d)\s*\)\)")
_WORDS = lazy_pattern(r"\"(?:\\.|\$\([^()]*+\)|[^\"\\])*+\"?|'[^']*+'?|[^\s\"']++")
_USAGE = lazy_pattern(
    r"die|fail|abort|error_exit|fatal|\w{0,40}(?:usage|help)\w{0,40}", re.IGNORECASE
)
_OPERATORS = {
    "-lt": "<",
    "-le": "<=",
    "-gt": ">",
    "-ge": ">=",
    "-eq": "==",
    "-ne": "!=",
}
_OPERATORS |= {"=": "==", "==": "==", "!=": "!="}
_TRUE: Test = ("and", [])


@dataclass(slots=True)
class ShellChecks:
    """Collects the tests under which a script ends, with their text."""

    functions: Mapping[str, list[Statement]]
    found: list[Check] = field(default_factory=list)
    tested: set[str] = field(default_factory=set)
    """Variables that are tested for being empty, whatever the consequence."""
    filled: set[str] = field(default_factory=set)
    """Variables that may get a value elsewhere, under some condition."""
    counts_all: bool = True
    """Whether ``$#`` also counts options: behind the options loop it does not."""
    shifted: int = 0
    inside: list[str] = field(default_factory=list)
    walked: set[str] = field(default_factory=set)
    """Functions whose checks were collected, each at its first call."""
    exits: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """The status of the last ``exit`` of each function."""

    def look(self, statement: Statement, shifted: int) -> None:
        """Collect the checks of *statement*; *shifted* words were removed before it."""
        self.shifted = shifted
        self._walk([statement], [])

    def _walk(self, statements: list[Statement], before: list[Test]) -> None:
        before = list(before)
        for each in statements:
            if len(before) > CONDITIONS_LIMIT or len(self.found) > CHECKS_LIMIT:
                before = [ANYTHING]
            match each.kind:
                case "if":
                    self._if(each, before)
                case "and" | "or":
                    # ``a && exit`` refuses if a holds, ``a || exit`` if it does not.
                    test = self._test(each.parts[0][0])
                    self._walk(each.parts[0], before)
                    self._body(
                        each.parts[1],
                        [*before, test if each.kind == "and" else ("not", test)],
                        each.parts[0],
                    )
                case "case":
                    for patterns, body in zip(each.patterns, each.parts, strict=True):
                        self._body(
                            body,
                            [*before, self._pattern(each.words[0], patterns)],
                            [each],
                        )
                case "for" | "while":
                    self._walk(each.parts[1], [*before, ANYTHING])
                case "group":
                    self._walk(each.parts[0], before)
                case "simple":
                    self._simple(each, before)

    def _if(self, statement: Statement, before: list[Test]) -> None:
        left: list[Test] = []
        for condition, body in zip(
            statement.parts[::2], statement.parts[1::2], strict=False
        ):
            test = self._test(condition[-1]) if condition else _TRUE
            self._body(body, [*before, *left, test], condition)
            if self._refusal(body):
                before.append(("checked", ("not", test)))
            elif body and body[-1].name in ("exit", "return", "exec"):
                before.append(("not", test))
            left.append(("not", test))
            if len(before) + len(left) > CONDITIONS_LIMIT:
                before[:], left = [ANYTHING], []
        if len(statement.parts) % 2:
            self._body(statement.parts[-1], [*before, *left], statement.parts[0])

    def _body(
        self, body: list[Statement], tests: list[Test], shown: list[Statement]
    ) -> None:
        inner = body[0].parts[0] if len(body) == 1 and body[0].kind == "group" else body
        if how := self._refusal(inner):
            text = next(
                (" ".join(each.words) for each in below(shown) if each.words), ""
            )
            self.found.append(Check(tests, text, how == "usage"))
        else:
            self._walk(inner, tests)

    def _simple(self, statement: Statement, before: list[Test]) -> None:
        for word in statement.words:
            # ``: "${NAME:?}"`` ends the script where the value is empty (POSIX, 2.6.2
            # parameter expansion).
            for name in _DEMANDED.findall(word):
                self.found.append(
                    Check([*before, ("not", ("given", self._absolute(name)))], word)
                )
            name, is_assigned, value = word.partition("=")
            is_computed = bool(before or self.inside) or (
                "$" in value and not _REFERENCE.fullmatch(value)
            )
            if (
                is_assigned
                and name.isidentifier()
                and is_computed
                and value not in ("", '""')
            ):
                self.filled.add(name)
        if (
            statement.name in self.functions
            and statement.name not in self.walked
            and len(self.inside) < 8
        ):
            self.walked.add(statement.name)
            self.inside.append(statement.name)
            self._walk(self.functions[statement.name], before)
            self.inside.pop()

    def refuses(self, body: list[Statement]) -> bool:
        """Return whether *body* ends the script with an error, or its usage."""
        return self._refusal(body) != ""

    def _refusal(self, body: list[Statement]) -> str:
        """Return how *body* ends the script with an error: ``"usage"``, ``"work"``, or
        empty if the script continues.
        """
        how = "work"
        for each in body:
            name = each.name
            shows_usage = _USAGE.fullmatch(name) is not None
            written = " ".join((*each.words, *each.targets))
            if shows_usage or "usage" in written.lower():
                how = "usage"
            if name in ("exit", "return"):
                is_error = each.words[1:2] not in (("0",), ())
                return how if is_error or how == "usage" else ""
            if self._ends(name, how):
                return how
            # A program of another file, by its name.
            if shows_usage and name not in self.functions:
                return how
        return ""

    def _ends(self, name: str, how: str) -> bool:
        """Return whether the function *name* ends the script with an error."""
        if name in self.inside:
            return False
        status = self._status(name)
        if status is None:
            return False
        return how == "usage" or status not in ((), ("0",))

    def _status(self, function: str) -> tuple[str, ...] | None:
        """Return the words of the last ``exit`` of *function*; None if it has none."""
        if function in self.functions and function not in self.exits:
            found = [
                each.words[1:]
                for each in self.functions[function]
                if each.name == "exit"
            ]
            self.exits[function] = found[-1] if found else None
        return self.exits.get(function)

    def _absolute(self, name: str) -> str:
        if not name.isdigit():
            return name
        # In a function the numbers refer to its own words.
        if self.inside:
            return ""
        return str(int(name) + self.shifted)

    def _reference(self, word: str) -> str:
        match = _REFERENCE.fullmatch(word)
        return self._absolute(match[1] or match[2]) if match else ""

    def _used(self, text: str) -> Test:
        return (
            "unknown",
            frozenset(self._absolute(each) for each in _USED.findall(text)) - {""},
        )

    def _count(self, operator: str, number: str) -> Test:
        # ``<= 1`` is ``< 2``, and ``== 1`` is ``>= 1`` and not ``>= 2``.
        least = int(number) + self.shifted + (operator in ("<=", ">"))
        test: Test = ("count", least, self.counts_all)
        if operator in ("==", "!="):
            more = ("not", ("count", least + 1, self.counts_all))
            test = ("and", [test, more]) if least else more
        return ("not", test) if operator in ("<", "<=", "!=") else test

    def _pattern(self, word: str, patterns: tuple[str, ...]) -> Test:
        name = self._reference(word)
        plain = [each.strip("\"'") for each in patterns]
        # ``case $# in 0) usage; exit 1 ;;``.
        if name == "#" and all(each.isdecimal() for each in plain):
            return ("or", [self._count("==", each) for each in plain])
        if name and not any(re.search(r"[*?\[]", each) for each in plain):
            return ("or", [self._equal(name, each) for each in plain])
        return ("unknown", frozenset({name} if name else set()))

    def _equal(self, name: str, text: str) -> Test:
        return (
            ("compare", "==", ("name", name), ("value", text))
            if text not in ("", "x")
            else ("not", ("given", name))
        )

    def _test(self, statement: Statement) -> Test:
        words = list(statement.words)
        match statement.kind:
            case "not":
                return ("not", self._test(statement.parts[0][0]))
            case "and" | "or":
                return (
                    statement.kind,
                    [self._test(part[-1]) for part in statement.parts],
                )
            case "group" if statement.parts[0]:
                return self._test(statement.parts[0][-1])
            case "simple" if words and words[0].startswith("[["):
                return self._bracketed(_WORDS.findall(words[0][2:-2]))
            case "simple" if words and words[0].startswith("(("):
                match = _NUMBER.fullmatch(words[0])
                return (
                    self._count(match[1], match[2]) if match else self._used(words[0])
                )
            case "simple" if words[:1] in (["["], ["test"]):
                return self._bracketed(words[1:-1] if words[0] == "[" else words[1:])
            case "simple" if statement.name in (
                "echo",
                "printf",
                "cat",
                "log",
                "error",
                "err",
                "warn",
            ):
                return _TRUE
        # Whether a program succeeds is not a requirement of the command line.
        return MACHINE

    def _bracketed(self, words: list[str]) -> Test:
        depths = [0, *accumulate((each == "(") - (each == ")") for each in words)]
        for joint, kind in (("||", "or"), ("-o", "or"), ("&&", "and"), ("-a", "and")):
            if place := next(
                (
                    place
                    for place, each in enumerate(words)
                    if each == joint and not depths[place]
                ),
                0,
            ):
                return (
                    kind,
                    [
                        self._bracketed(words[:place]),
                        self._bracketed(words[place + 1 :]),
                    ],
                )
        if words[:1] == ["("] and words[-1:] == [")"]:
            return self._bracketed(words[1:-1])
        if words[:1] == ["!"]:
            return ("not", self._bracketed(words[1:]))
        return self._single(words)

    def _single(self, words: list[str]) -> Test:
        names = [self._reference(each) for each in words]
        match words:
            case [_] if names[0]:
                return ("given", names[0])
            case ["-z" | "-n" as flag, _] if names[1]:
                self.tested.add(names[1])
                return (
                    ("given", names[1])
                    if flag == "-n"
                    else ("not", ("given", names[1]))
                )
            # Whether a file exists depends on the machine.
            case [flag, _] if re.fullmatch(r"-[edfrsxwLhpS]", flag):
                return MACHINE
            case [_, operator, number] if (
                names[0] == "#"
                and operator in _OPERATORS
                and number.strip("\"'").isdigit()
            ):
                return self._count(_OPERATORS[operator], number.strip("\"'"))
            case [_, "=" | "==" | "!=" as operator, literal] if names[
                0
            ] and _is_literal(literal):
                test = self._equal(names[0], literal.strip("\"'"))
                return ("not", test) if operator == "!=" else test
        return self._used(" ".join(words))

    def apply(self, command: Command, held: Mapping[str, str], places: int) -> None:
        """Require in *command* the arguments that the checks demand.

        *held* names the argument that each variable holds, with ``@`` for the list of
        all further words; the last *places* arguments are not options.
        """
        filled = {held.get(each, each) for each in self.filled}
        names = [each.name for each in command.arguments]
        for check in self.found:
            plain = [_resolved(each, held, names, places) for each in check.tests]
            refuse(command, replace(check, tests=plain), filled=filled, outer={})


def _is_literal(word: str) -> bool:
    # In quotes a star is a star.
    return "$" not in word and (
        word[-1:] in ("'", '"') or re.search(r"[*?\[]", word) is None
    )


def _resolved(
    test: Test, held: Mapping[str, str], names: list[str], places: int
) -> Test:
    """Return *test* in terms of the arguments *names*."""
    match test:
        case ("given" | "name" as kind, name):
            return (kind, held.get(name, "/"))
        case ("unknown", used):
            return (
                "unknown",
                frozenset(held[each] for each in used if each in held) | (used & {"/"}),
            )
        case ("not" | "checked" as kind, inner):
            return (kind, _resolved(inner, held, names, places))
        case ("and" | "or" as kind, tests):
            return (kind, [_resolved(each, held, names, places) for each in tests])
        case ("compare", how, one, other):
            return ("compare", how, _resolved(one, held, names, places), other)
        case ("count", least, counts_all):
            # ``[ $# -eq 0 ] && usage`` in a script with options: any option satisfies
            # it.
            if counts_all and len(names) > places and least > 0:
                return (
                    ("or", [("given", each) for each in names])
                    if least == 1
                    else ("unknown", frozenset(names))
                )
            if least < 1:
                return _TRUE
            if str(least) in held:
                return ("given", held[str(least)])
            return ("or", [])
    return test
