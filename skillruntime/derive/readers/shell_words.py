"""Collect the facts about the words of a shell script without a known form: the names
of places, the literals that the first word is compared with, the flags, and the
required number of words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from skillruntime.derive.readers.any_script import Words
from skillruntime.derive.readers.checks import Test
from skillruntime.derive.readers.shell_checks import ShellChecks
from skillruntime.derive.readers.shell_syntax import Statement, without_literals
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["shell_words"]

_BOUND = lazy_pattern(
    r"(\w+)=\"?\$(?:\{([1-9])(?:[:?#%/=+-][^}]{0,200})?\}|([1-9]))\"?"
)
_PLACE = lazy_pattern(r"\$(?:\{([1-9])(?:[:?#%/=+-][^}]{0,200})?\}|([1-9]))")
_VARIABLE = lazy_pattern(r"\"?\$(?:\{(\w+)(?:[:,^-][^}$]{0,80})?\}|(\w+))\"?")
_LITERAL = lazy_pattern(r"[\"']?([A-Za-z][\w:.-]{0,60})[\"']?")
_FLAG = lazy_pattern(r"--?[A-Za-z][\w-]{0,60}")


def shell_words(body: list[Statement], functions: dict[str, list[Statement]]) -> Words:
    """Return the facts about the words in the statements that the script runs."""
    reader = _Reader()
    checks = ShellChecks(functions)
    for statement in body:
        shift = _shift(statement)
        if shift is not None:
            reader.shifted += shift
            continue
        reader.look(statement)
        checks.look(statement, reader.shifted)
    words = reader.words
    words.least = max((_demanded(check.tests) for check in checks.found), default=0)
    words.commands = list(dict.fromkeys(words.commands))
    words.flags = list(dict.fromkeys(words.flags))
    return words


def _shift(statement: Statement) -> int | None:
    """Return by how many words *statement* shifts; None if it is not a shift."""
    # ``shift || true``, ``[ $# -gt 0 ] && shift``.
    if statement.kind in ("and", "or"):
        parts = [part[0] for part in statement.parts if part]
        shifts = [part for part in parts if part.name == "shift"]
        if not shifts:
            return None
        statement = shifts[0]
    if statement.name != "shift":
        return None
    number = "".join(statement.words[1:2]) or "1"
    return int(number) if number.isdecimal() and len(number) < 3 else 1


def _demanded(tests: list[Test]) -> int:
    """Return the least number of words of a call that passes the check; 0 if the check
    also depends on something else.
    """
    *before, last = tests
    if any(test[0] != "checked" for test in before):
        return 0
    match last:
        case ("not", ("count", int(least), _)):
            return least
        case ("or", parts):
            return max((_demanded([part]) for part in parts), default=0)
    return 0


@dataclass(slots=True)
class _Reader:
    words: Words = field(default_factory=Words)
    held: dict[str, int] = field(default_factory=dict)
    """The number of the word that a variable holds."""
    shifted: int = 0

    def look(self, statement: Statement) -> None:
        """Record the facts in *statement* and its nested statements; in a loop the
        numbers refer to different words each time.
        """
        for part in _outside_functions(statement):
            if part.kind == "case":
                self.case(part)
            if statement.kind in ("for", "while"):
                continue
            for word in (*part.words, *part.targets):
                self.word(word)
            if part.words[:1] in (("[",), ("test",)) or part.name.startswith("[["):
                self.test(part)

    def word(self, word: str) -> None:
        bound = _BOUND.fullmatch(word)
        if bound is not None:
            number = int(bound[2] or bound[3]) + self.shifted
            self.words.note(number, bound[1])
            self.held[bound[1]] = number
            return
        # In single quotes nothing is expanded: ``awk '{ print $1 }'``.
        for place in _PLACE.finditer(without_literals(word)):
            self.words.note(int(place[1] or place[2]) + self.shifted)

    def number(self, word: str) -> int:
        """Return the number of the script's word that *word* expands; 0 if it is
        none.
        """
        variable = _VARIABLE.fullmatch(word)
        if variable is None:
            return 0
        name = variable[1] or variable[2]
        if name.isdecimal():
            return int(name) + self.shifted if len(name) == 1 else 0
        return self.held.get(name, 0)

    def case(self, statement: Statement) -> None:
        is_first = self.number(statement.words[0]) == 1
        for patterns in statement.patterns:
            for pattern in patterns:
                plain = pattern.strip("\"'").removesuffix("=*")
                if _FLAG.fullmatch(plain):
                    self.words.flags.append(plain)
                elif is_first and _LITERAL.fullmatch(plain):
                    self.words.commands.append(plain)

    def test(self, statement: Statement) -> None:
        """Record the literal of ``[ "$1" = add ]`` and ``[[ $1 == add ]]``."""
        words = list(statement.words)
        if statement.name.startswith("[["):
            words = statement.name.split()
        for subject, how, literal in zip(words, words[1:], words[2:], strict=False):
            if how not in ("=", "==") or self.number(subject) != 1:
                continue
            compared = _LITERAL.fullmatch(literal)
            if compared is not None:
                self.words.commands.append(compared[1])


def _outside_functions(statement: Statement) -> list[Statement]:
    """Return *statement* and its nested statements, without functions, which have words
    of their own.
    """
    if statement.kind == "function":
        return []
    found = [statement]
    for part in statement.parts:
        for each in part:
            found += _outside_functions(each)
    return found
