"""The conditions under which a shell script ends: ``[ -z "$1" ] && usage``, ``if [ $# -lt 2 ]; then exit 1; fi``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from skillruntime.derive.command import Command
from skillruntime.derive.readers.checks import ANYTHING, MACHINE, Test, refuse
from skillruntime.derive.readers.shell_syntax import Statement, below

__all__ = ["ShellChecks"]

CHECKS_LIMIT = 100
CONDITIONS_LIMIT = 20

_REFERENCE = re.compile(r"[\"']?x?\$(?:\{(\w+|#)(?::?[-=+][^}$]{0,80})?\}|(\w+|#))[\"']?")
_USED = re.compile(r"\$\{?[#!]?(\w+)")
_DEMANDED = re.compile(r"\$\{(\w+):?\?")
_NUMBER = re.compile(r"\(\(\s*\$?\{?#\}?\s*(==|!=|<=|>=|<|>)\s*(\d)\s*\)\)")
_WORDS = re.compile(r"\"(?:\\.|\$\([^()]*+\)|[^\"\\])*+\"?|'[^']*+'?|[^\s\"']++")
_USAGE = re.compile(r"die|fail|abort|error_exit|fatal|\w{0,40}(?:usage|help)\w{0,40}", re.IGNORECASE)
_OPERATORS = {
    "-lt": "<",
    "-le": "<=",
    "-gt": ">",
    "-ge": ">=",
    "-eq": "==",
    "-ne": "!=",
    "=": "==",
    "==": "==",
    "!=": "!=",
}
_TRUE: Test = ("compare", "==", ("value", 0), ("value", 0))


@dataclass(slots=True)
class ShellChecks:
    """Collects the tests under which a script ends, with what is shown of them."""

    functions: Mapping[str, list[Statement]]
    found: list[tuple[list[Test], str]] = field(default_factory=list)
    tested: set[str] = field(default_factory=set)
    """Variables that are tested for being empty, with any consequence."""
    filled: set[str] = field(default_factory=set)
    """Variables that have a value from elsewhere, under some condition."""
    counts_all: bool = True
    """Whether ``$#`` counts options too: behind their loop it does not."""
    shifted: int = 0
    inside: list[str] = field(default_factory=list)
    walked: set[str] = field(default_factory=set)
    """Functions whose checks were collected, where each is called first."""
    exits: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """The status of the last ``exit`` of each function."""

    def look(self, statement: Statement, shifted: int) -> None:
        """Collect the checks of *statement*, before which *shifted* words are gone."""
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
                    # ``a && exit`` refuses where a holds, ``a || exit`` where it does not.
                    test = self._test(each.parts[0][0])
                    self._walk(each.parts[0], before)
                    self._body(each.parts[1], [*before, test if each.kind == "and" else ("not", test)], each.parts[0])
                case "case":
                    for patterns, body in zip(each.patterns, each.parts, strict=True):
                        self._body(body, [*before, self._pattern(each.words[0], patterns)], [each])
                case "for" | "while":
                    self._walk(each.parts[1], [*before, ANYTHING])
                case "group":
                    self._walk(each.parts[0], before)
                case "simple":
                    self._simple(each, before)

    def _if(self, statement: Statement, before: list[Test]) -> None:
        left: list[Test] = []
        for condition, body in zip(statement.parts[::2], statement.parts[1::2], strict=False):
            test = self._test(condition[-1]) if condition else _TRUE
            self._body(body, [*before, *left, test], condition)
            if self._refuses(body):
                before.append(("checked", ("not", test)))
            elif body and body[-1].name in ("exit", "return", "exec"):
                before.append(("not", test))
            left.append(("not", test))
            if len(before) + len(left) > CONDITIONS_LIMIT:
                before[:], left = [ANYTHING], []
        if len(statement.parts) % 2:
            self._body(statement.parts[-1], [*before, *left], statement.parts[0])

    def _body(self, body: list[Statement], tests: list[Test], shown: list[Statement]) -> None:
        inner = body[0].parts[0] if len(body) == 1 and body[0].kind == "group" else body
        if self._refuses(inner):
            self.found.append((tests, next((" ".join(each.words) for each in below(shown) if each.words), "")))
        else:
            self._walk(inner, tests)

    def _simple(self, statement: Statement, before: list[Test]) -> None:
        for word in statement.words:
            # ``: "${NAME:?}"`` ends the script where the value is empty (POSIX, 2.6.2 parameter expansion).
            for name in _DEMANDED.findall(word):
                self.found.append(([*before, ("not", ("given", self._absolute(name)))], word))
            name, is_assigned, value = word.partition("=")
            is_computed = bool(before or self.inside) or ("$" in value and not _REFERENCE.fullmatch(value))
            if is_assigned and name.isidentifier() and is_computed and value not in ("", '""'):
                self.filled.add(name)
        if statement.name == "read":
            self.filled.update(statement.words[1:])
        if statement.name in self.functions and statement.name not in self.walked and len(self.inside) < 8:
            self.walked.add(statement.name)
            self.inside.append(statement.name)
            self._walk(self.functions[statement.name], before)
            self.inside.pop()

    def _refuses(self, body: list[Statement]) -> bool:
        """Whether *body* ends the script as one that was called wrongly."""
        shows_usage = False
        for each in body:
            name = each.name
            shows_usage |= _USAGE.fullmatch(name) is not None
            if name in ("exit", "return"):
                return each.words[1:2] not in (("0",), ()) or shows_usage
            status = self._status(name) if name not in self.inside else None
            if status is not None and (shows_usage or status not in ((), ("0",))):
                return True
            if shows_usage and name not in self.functions:
                return True
        return False

    def _status(self, function: str) -> tuple[str, ...] | None:
        """Return the words of the last ``exit`` of *function*; None where it has none."""
        if function in self.functions and function not in self.exits:
            found = [each.words[1:] for each in self.functions[function] if each.name == "exit"]
            self.exits[function] = found[-1] if found else None
        return self.exits.get(function)

    def _absolute(self, name: str) -> str:
        # In a function the numbers are those of its own words.
        return name if not name.isdigit() else "" if self.inside else str(int(name) + self.shifted)

    def _reference(self, word: str) -> str:
        match = _REFERENCE.fullmatch(word)
        return self._absolute(match[1] or match[2]) if match else ""

    def _used(self, text: str) -> Test:
        return ("unknown", frozenset(self._absolute(each) for each in _USED.findall(text)) - {""})

    def _count(self, operator: str, number: str) -> Test:
        return ("count", operator, int(number) + self.shifted, self.counts_all)

    def _pattern(self, word: str, patterns: tuple[str, ...]) -> Test:
        name = self._reference(word)
        plain = [each.strip("\"'") for each in patterns]
        if name == "#":
            return self._count("==", plain[0]) if plain[0].isdigit() else MACHINE
        if name and not any(re.search(r"[*?\[]", each) for each in plain):
            return ("or", [self._equal(name, each) for each in plain])
        return ("unknown", frozenset({name} if name else set()))

    def _equal(self, name: str, text: str) -> Test:
        return ("compare", "==", ("name", name), ("value", text)) if text not in ("", "x") else ("not", ("given", name))

    def _test(self, statement: Statement) -> Test:
        words = list(statement.words)
        match statement.kind:
            case "not":
                return ("not", self._test(statement.parts[0][0]))
            case "and" | "or":
                return (statement.kind, [self._test(part[-1]) for part in statement.parts])
            case "group" if statement.parts[0]:
                return self._test(statement.parts[0][-1])
            case "pipe" if "'grep'" in repr(statement):
                return self._used(repr(statement))
            case "simple" if words and words[0].startswith("[["):
                return self._bracketed(_WORDS.findall(words[0][2:-2]))
            case "simple" if words and words[0].startswith("(("):
                match = _NUMBER.fullmatch(words[0])
                # Variables need no sign in arithmetic.
                shown = re.sub(r"(?<![\w$])(?=[A-Za-z_])", "$", words[0])
                return self._count(match[1], match[2]) if match else self._used(shown)
            case "simple" if words[:1] in (["["], ["test"]):
                return self._bracketed(words[1:-1] if words[0] == "[" else words[1:])
            case "simple" if statement.name in ("echo", "printf", "cat", "log", "error", "err", "warn"):
                return _TRUE
        # Whether a program succeeds is not a demand on the command line.
        return MACHINE

    def _bracketed(self, words: list[str]) -> Test:
        for joint, kind in (("||", "or"), ("-o", "or"), ("&&", "and"), ("-a", "and")):
            if joint in words:
                place = words.index(joint)
                return (kind, [self._bracketed(words[:place]), self._bracketed(words[place + 1 :])])
        if words[:1] == ["!"]:
            return ("not", self._bracketed(words[1:]))
        names = [self._reference(each) for each in words]
        match words:
            case [_] if names[0]:
                return ("given", names[0])
            case ["-z" | "-n" as flag, _] if names[1]:
                self.tested.add(names[1])
                return ("given", names[1]) if flag == "-n" else ("not", ("given", names[1]))
            case [flag, _] if names[1] and re.fullmatch(r"-[edfrsxwLhpS]", flag):
                return ("file", names[1])
            case [_, operator, number] if names[0] == "#" and operator in _OPERATORS and number.strip("\"'").isdigit():
                return self._count(_OPERATORS[operator], number.strip("\"'"))
            case [_, "=" | "==" | "!=" as operator, literal] if names[0] and _is_literal(literal):
                test = self._equal(names[0], literal.strip("\"'"))
                return ("not", test) if operator == "!=" else test
        return self._used(" ".join(words))

    @property
    def least(self) -> int:
        """How many words the script asks for by ``$#`` alone."""
        return max((_least(tests[0], True) for tests, _ in self.found if len(tests) == 1), default=0)

    def demanded(self) -> Iterator[str]:
        """Yield the variables without which the script ends, whatever else is given."""
        for tests, _ in self.found:
            if len(tests) == 1:
                yield from _demanded(tests[0], True)

    def apply(self, command: Command, held: Mapping[str, str]) -> None:
        """Require in *command* what the checks demand; *held* names the argument that each variable holds."""
        filled = {held.get(each, each) for each in self.filled}
        names = [each.name for each in command.arguments]
        for tests, shown in self.found:
            least = [(each, max(each.least, int(each.required))) for each in command.arguments]
            counts = {
                "$#": sum(count * (2 if each.flags else 1) for each, count in least),
                "$# left": sum(count for each, count in least if not each.flags),
            }
            plain = [_resolved(each, held, names, True) for each in tests]
            refuse(command, plain, shown, filled=filled, outer=counts)


def _is_literal(word: str) -> bool:
    # In quotes a star is a star.
    return "$" not in word and (word[-1:] in ("'", '"') or re.search(r"[*?\[]", word) is None)


def _resolved(test: Test, held: Mapping[str, str], names: list[str], holds: bool) -> Test:
    """Return *test* in terms of the arguments *names*."""
    match test:
        case ("given" | "name" as kind, name):
            return (kind, held.get(name, "/"))
        # A file that is not named is not there; whether another one is, the machine knows.
        case ("file", name):
            return MACHINE if holds or name not in held else ("given", held[name])
        case ("unknown", used):
            return ("unknown", frozenset(held[each] for each in used if each in held) | (used & {"/"}))
        case ("not", inner):
            return ("not", _resolved(inner, held, names, not holds))
        case ("checked", inner):
            return ("checked", _resolved(inner, held, names, holds))
        case ("and" | "or" as kind, tests):
            return (kind, [_resolved(each, held, names, holds) for each in tests])
        case ("compare", how, one, other):
            return ("compare", how, _resolved(one, held, names, holds), other)
        case ("count", operator, number, counts_all):
            # ``[ $# -eq 0 ] && usage`` of a script with options: any of them will do.
            if counts_all and names and (operator, number) in (("==", 0), ("<", 1), ("<=", 0)):
                return ("not", ("or", [("given", each) for each in names]))
            return ("compare", operator, ("name", "$#" if counts_all else "$# left"), ("value", number))
    return test


def _least(test: Test, is_refused: bool) -> int:
    """Return how many words there must be, where *test* is refused, or demanded."""
    match test:
        case ("not", inner):
            return _least(inner, not is_refused)
        case ("or" | "and" as kind, tests) if (kind == "or") is is_refused:
            return max(_least(each, is_refused) for each in tests)
        case ("count", "<" | "!=", number, _) if is_refused:
            return int(number)
        case ("count", "==" | ">=", number, _) if not is_refused:
            return int(number)
        case ("count", "<=", number, _) if is_refused:
            return int(number) + 1
        case ("count", ">", number, _) if not is_refused:
            return int(number) + 1
        case ("count", "==" | "!=" as operator, 0, _) if (operator == "==") is is_refused:
            return 1
    return 0


def _demanded(test: Test, is_refused: bool) -> Iterator[str]:
    match test:
        case ("given" | "file", name) if not is_refused:
            yield name
        case ("not", inner):
            yield from _demanded(inner, not is_refused)
        case ("or" | "and" as kind, tests) if (kind == "or") is is_refused:
            for each in tests:
                yield from _demanded(each, is_refused)
