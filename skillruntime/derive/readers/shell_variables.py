"""Find the environment variables of a shell script.

The law is that of `python_variables`: a variable is needed only if each run without an
error expands ``${NAME:?}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from skillruntime.derive.readers.shell_syntax import (
    NotShellError,
    Statement,
    below,
    parse_shell,
)
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["shell_variables"]

LENGTH_LIMIT = 100_000
"""Characters of a script that is read; a longer one is a program, or generated."""

# Names of variables of the environment have capital letters (POSIX, 8.1).
_USED = lazy_pattern(r"\$\{?([A-Z_][A-Z0-9_]*+)")
_SET = lazy_pattern(r"(?<![\w$\{-])([A-Z_][A-Z0-9_]*+)\+?=")
_SET_BY_COMMAND = lazy_pattern(
    r"\b(?:for|read(?:[ \t]+-\w+)*+)[ \t]+([A-Z_][A-Z0-9_]*+)"
)
# This expansion ends the script if the value is empty (POSIX, 2.6.2 parameter
# expansion).
_DEMANDED = lazy_pattern(r"\$\{([A-Za-z_]\w*+):?\?")
_LITERAL = lazy_pattern(r"'[^']*+'")
_ENDS = ("exit", "exec")
_LEAVES = ("exit", "exec", "return")
_IS_HELP = lazy_pattern(r"usage|help", re.IGNORECASE)


def shell_variables(text: str) -> tuple[list[str], list[str]]:
    """Return the variables that the script *text* needs, and all that it reads."""
    set_here = {*_SET.findall(text), *_SET_BY_COMMAND.findall(text)}
    used = [*_USED.findall(text), *_DEMANDED.findall(text)]
    read = [name for name in dict.fromkeys(used) if name not in set_here]
    if "?" not in text or len(text) > LENGTH_LIMIT:
        return [], read
    try:
        statements = parse_shell(text)
    except NotShellError:
        return [], read
    functions = {
        each.words[0]: each.parts[0]
        for each in below(statements)
        if each.kind == "function"
    }
    walk = _Walk(functions)
    walk.body(statements)
    return [name for name in walk.found if name not in set_here], read


@dataclass(slots=True)
class _Walk:
    """Walks the statements that every run reaches, in their order."""

    functions: Mapping[str, list[Statement]]
    found: dict[str, None] = field(default_factory=dict)
    walked: set[str] = field(default_factory=set)
    looked: set[str] = field(default_factory=set)
    """Functions that were already searched for statements that may end the script."""

    def body(self, statements: list[Statement]) -> bool:
        """Record the needed variables; return whether the following statements are
        reached.
        """
        return all(map(self.statement, statements))

    def statement(self, statement: Statement) -> bool:
        match statement.kind:
            case "simple":
                return self.simple(statement)
            case "group" | "not":
                return self.body(statement.parts[0])
            case "and" | "or" | "if" | "while":
                first, *others = statement.parts
                return self.body(first) and not self.any_may_end(others)
            case "case" | "for":
                self.words(statement)
                return not self.any_may_end(statement.parts)
        # A part of a pipe has a shell of its own, and a function is only defined.
        return True

    def simple(self, statement: Statement) -> bool:
        self.words(statement)
        if statement.name in _LEAVES:
            return False
        if statement.name in self.functions and statement.name not in self.walked:
            self.walked.add(statement.name)
            inside = self.functions[statement.name]
            self.body(inside)
            return not self.may_end(inside, _ENDS)
        return True

    def words(self, statement: Statement) -> None:
        for word in statement.words:
            for name in _DEMANDED.findall(_LITERAL.sub("", word)):
                self.found[name] = None

    def any_may_end(self, parts: Iterable[list[Statement]]) -> bool:
        return any(self.may_end(part, _LEAVES) for part in parts)

    def may_end(self, statements: list[Statement], ends: tuple[str, ...]) -> bool:
        """Return whether *statements*, which may be unreachable, may end by one of
        *ends* without an error, except by showing the script's help.
        """
        if any(_IS_HELP.search(" ".join(each.words)) for each in statements):
            return False
        for each in statements:
            if each.name in ends:
                return each.words[1:2] in ((), ("0",))
            if any(self.may_end(part, ends) for part in each.parts):
                return True
            if each.name in self.functions and each.name not in self.looked:
                self.looked.add(each.name)
                if self.may_end(self.functions[each.name], _ENDS):
                    return True
        return False
