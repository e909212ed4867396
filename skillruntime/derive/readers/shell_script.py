"""Read shell scripts by their forms: ``getopts``, a loop with a ``case`` over the
words, and positions.

The law: if a script does anything else with its words, its contract is incomplete, and
its words are one list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from skillruntime.derive.command import TEXT, Argument, Command, Reading, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.any_script import Words, to_reading
from skillruntime.derive.readers.shell_checks import ShellChecks
from skillruntime.derive.readers.shell_syntax import (
    NotShellError,
    Statement,
    below,
    parse_shell,
    without_literals,
)
from skillruntime.derive.readers.shell_words import shell_words
from skillruntime.derive.readers.usage import ScriptText, Usage, place_names
from skillruntime.derive.readers.value_types import PATH
from skillruntime.derive.text_fields import plain_name
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["read_shell"]

LENGTH_LIMIT = 100_000
"""Characters of a script that is read; a longer one is a program, or generated."""

WORDS_LIMIT = 200
"""The most options and places of a script that are read."""

_PLACE = lazy_pattern(
    r"\$(?:\{([1-9])(?:(:?[-?+=])([^}]{0,400})|[^}]{0,400})\}|([1-9]))"
)
_ALL = lazy_pattern(r"\$(?:\{[@*][^}]{0,400}\}|[@*])")
_VARIABLE = lazy_pattern(r"\"?\$(?:\{(\w+)(?::?-[^}$]{0,80})?\}|(\w+))\"?")
_LITERAL = lazy_pattern(r"(['\"]?)([^$`\\'\"()]++)\1")
_SET = lazy_pattern(r"(?:^|[\s;])(\w+)\+?=")
_TAKES_NEXT = lazy_pattern(r"\$\{?2\b|\bshift\b[\s;]++\w+\+?=\(?\"?\$\{?1\b")
_GLOB = lazy_pattern(r"[*?\[$\s]")
_FLAG = lazy_pattern(r"-{1,2}[A-Za-z0-9][\w-]*")
_DECLARES = (
    "local",
    "readonly",
    "declare",
    "export",
    "typeset",
    "-r",
    "-a",
    "-x",
    "-i",
)
_PREPARES = frozenset(
    [
        *_DECLARES,
        "set",
        "shopt",
        "source",
        ".",
        "return",
        "exit",
        "unset",
        "alias",
        "true",
        ":",
    ]
)
"""Commands with which a library prepares its functions, or refuses to run as a
script.
"""

_USES_WORDS = lazy_pattern(r"\$\{?[1-9@*#]")
_ASSIGNED = lazy_pattern(r"\A\w++(?:\[[^\]]*+\])?+\+?=")
_PRINTS = ("echo", "printf", "log", "info", "warn", "logger", ":")
_EACH = (("in", '"$@"'), ("in", "$@"), ())
_HELP = ("-h", "--help", "help", "-V", "--version", "version", "-?", "\\?")
_ENDS = lazy_pattern(r"\b(?:exit|return|break|die|fail|abort|error)\b|usage|help")


class _NotPlainError(ValueError):
    """The script does something with its words that no form describes."""

    def __init__(
        self, reason: str = "the script takes its words apart by hand"
    ) -> None:
        super().__init__(reason)


@dataclass(slots=True)
class _Place:
    """The facts about the word with one number; with ``is_list`` the place takes all
    remaining words.
    """

    name: str = ""
    default: str | None = None
    is_optional: bool = False
    is_list: bool = False


@dataclass(slots=True)
class _Words:
    """The known facts about the words: options, and places by their number."""

    command: Command = field(default_factory=lambda: Command("words"))
    places: dict[int, _Place] = field(default_factory=dict)
    shifted: int = 0
    held: dict[str, str] = field(default_factory=dict)
    """The argument that a variable holds; a place is ``#`` and its number."""
    defaults: dict[str, str] = field(default_factory=dict)
    """The literal that a variable has before it is set from a word."""
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The literals that an argument must be one of; a place is ``#`` and its number.
    """
    paths: set[str] = field(default_factory=set)
    """The arguments that must be absolute paths."""
    refuses_unset: bool = False
    """Whether the shell ends the script at a missing word: ``set -u``."""
    may_have_ended: bool = False
    """Whether some calls end well before the next statement."""
    least: int = 0
    """The number of words that every call needs because of ``set -u``."""

    def hold(self, variable: str, number: int, *, is_list: bool) -> None:
        """Record that *variable* holds the word with this number, or all words from it
        on.
        """
        if any(each.is_list for each in self.places.values()):
            raise _NotPlainError
        self.places[number] = _Place(
            variable.lower().strip("_"), is_optional=not is_list, is_list=is_list
        )
        self.held[variable] = f"#{number}"


def read_shell(script: ScriptText) -> Reading | None:
    """Read the command line of the shell script; None if it only defines functions for
    other scripts.
    """
    usage = script.usage
    if len(script.source) > LENGTH_LIMIT:
        reason = "the script is too long to be followed"
        return to_reading(Words(), usage, "shell", reason)
    try:
        statements = parse_shell(script.source)
    except NotShellError as error:
        reason = f"the script cannot be parsed: {error}"
        return to_reading(Words(), usage, "shell", reason)
    if _only_defines(statements):
        return None
    functions = {
        each.words[0]: each.parts[0]
        for each in below(statements)
        if each.kind == "function"
    }
    body = _main_body(statements, dict(functions))
    try:
        return _read_body(body, functions, usage)
    except _NotPlainError as error:
        words = shell_words(body, functions)
        return to_reading(words, usage, "shell", str(error))


def _only_defines(statements: list[Statement]) -> bool:
    """Return whether the script is a library: it defines functions, and only runs
    commands that prepare them, without using a word.
    """
    has_function = False
    for statement in statements:
        if statement.kind == "function":
            has_function = True
        elif not _prepares(statement) or _USES_WORDS.search(repr(statement)):
            return False
    return has_function


def _prepares(statement: Statement) -> bool:
    """Return whether *statement* only sets a value for the functions behind it."""
    if statement.kind == "simple":
        if statement.name in _PREPARES:
            return True
        return all(_ASSIGNED.match(word) for word in statement.words)
    # ``if [ "${BASH_SOURCE[0]}" = "$0" ]; then echo "source it"; exit 1; fi``.
    if statement.kind == "if" and "BASH_SOURCE" in repr(statement.parts[0]):
        body = statement.parts[1]
        return bool(body) and body[-1].name == "exit"
    if statement.kind in ("if", "and", "or", "not", "group"):
        return all(
            _prepares(inner) or _is_test(inner)
            for part in statement.parts
            for inner in part
        )
    return False


def _is_test(statement: Statement) -> bool:
    return statement.name[:2] in ("[", "[[", "((") or statement.name == "test"


def _read_body(
    body: list[Statement], functions: dict[str, list[Statement]], usage: Usage
) -> Reading:
    """Read the words that the statements of the script take.

    Raises:
        _NotPlainError: they take the words by no known form.
    """
    words, checks = _Words(), ShellChecks(functions)
    for statement in body:
        _read_statement(statement, words, checks)
    _forget_open_choices(body, words, checks)
    # The last assignment before the loop is what the script uses without the flag.
    defaults = {
        name: words.defaults[variable]
        for variable, name in words.held.items()
        if variable in words.defaults
    }
    options = words.command.arguments
    for number, each in enumerate(options):
        if each.takes == "value" and not each.repeat:
            options[number] = _with_value(each, words, defaults.get(each.name))
    return Reading(_checked(words, checks, _places(words, usage)), "shell", "low")


def _forget_open_choices(
    body: list[Statement], words: _Words, checks: ShellChecks
) -> None:
    """Forget the choices of a word that is compared with other literals elsewhere, and
    of a variable that the script sets itself.
    """
    first = words.choices.get("#1")
    if first is not None and not {*shell_words(body, {}).commands} <= {*first}:
        del words.choices["#1"]
    for variable, held in words.held.items():
        if variable in checks.filled:
            words.choices.pop(held, None)


def _with_value(option: Argument, words: _Words, default: str | None) -> Argument:
    """Return *option* with the requirements on its value, and its default."""
    value = option.value
    if option.name in words.choices:
        choices = list(words.choices[option.name])
        value = ValueType({**TEXT.schema, "enum": choices})
        if default not in choices:
            default = None
    elif option.name in words.paths:
        value = PATH
        # A default does not come from the caller, so its path may be anywhere.
        default = None
    if default is None:
        return replace(option, value=value)
    return replace(option, value=value, default=default)


def _checked(words: _Words, checks: ShellChecks, places: list[Argument]) -> Command:
    """Return the command with its *places* and the requirements of the checks."""
    options = words.command.arguments
    required = _first_required(places, words.least)
    command = Command(words.command.parser, arguments=[*options, *required])
    checks.apply(command, _held(words, places), len(places))
    own = command.arguments[len(options) :]
    command.arguments[len(options) :] = _first_required(own)
    return command


def _main_body(
    statements: list[Statement], functions: dict[str, list[Statement]]
) -> list[Statement]:
    """Return the statements that the script runs. ``main "$@"`` is replaced by the body
    of ``main``, which is removed from *functions*.
    """
    body: list[Statement] = []
    for statement in statements:
        # A function is replaced once, because a chain of functions that each call the
        # next one twice would grow exponentially.
        if statement.name in functions and statement.words[1:] == ('"$@"',):
            body += _main_body(functions.pop(statement.name), functions)
        # ``if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then main "$@"; fi``.
        elif statement.kind == "if" and "BASH_SOURCE" in repr(statement.parts[0]):
            body += _main_body(statement.parts[1], functions)
        elif statement.kind != "function":
            body.append(statement)
    return body


def _read_statement(statement: Statement, words: _Words, checks: ShellChecks) -> None:
    # ``shift || true``.
    if statement.kind == "or" and statement.parts[1][0].name in ("true", ":"):
        statement = statement.parts[0][0]
    loop = _case_over_words(statement)
    condition = statement.parts[0] if statement.kind == "while" else []
    if (
        len(condition) == 1
        and condition[0].name == "getopts"
        and len(condition[0].words) == 3
    ):
        _read_getopts(condition[0].words[1].strip("\"'"), statement.parts[1], words)
        checks.counts_all = False
    elif loop is not None:
        if words.command.arguments:
            raise _NotPlainError
        # Positions before the loop come first on the command line too.
        words.command.parser = "places" if words.shifted else "words"
        _read_arms(loop, words)
        checks.counts_all = False
    elif _is_over_words(statement):
        words.hold(statement.words[0], words.shifted + 1, is_list=True)
    elif statement.name == "shift":
        number = "".join(statement.words[1:2]) or "1"
        if not number.isdigit() and "OPTIND" not in number:
            raise _NotPlainError
        words.shifted += int(number) if number.isdigit() else 0
    else:
        _note_unset(statement, words)
        for each in below([statement]):
            _look_at_words(each, words, is_top=each is statement)
        if statement.kind == "case":
            _read_choice(statement, words, checks)
        checks.look(statement, words.shifted)


def _note_unset(statement: Statement, words: _Words) -> None:
    """Record the words that the shell itself requires: with ``set -u`` it ends the
    script at a missing word (POSIX, 2.14 set).
    """
    if statement.name == "set":
        options = [each for each in statement.words[1:] if each[:1] == "-"]
        is_long = "nounset" in statement.words
        words.refuses_unset |= is_long or any("u" in each for each in options)
    elif statement.kind == "simple":
        if not words.refuses_unset or words.may_have_ended:
            return
        for word in statement.words:
            for match in _PLACE.finditer(without_literals(word)):
                # ``${1:-.}`` has another value if the word is missing.
                if not match[2]:
                    number = words.shifted + int(match[1] or match[4])
                    words.least = max(words.least, number)
    elif any(_ends_well(each) for each in below([statement])):
        words.may_have_ended = True


def _ends_well(statement: Statement) -> bool:
    if statement.name == "exec":
        return True
    return statement.name == "exit" and statement.words[1:2] in ((), ("0",))


def _case_over_words(loop: Statement) -> Statement | None:
    """Return the ``case`` by which *loop* distinguishes the words, if it takes them one
    by one.
    """
    is_while = loop.kind == "while" and re.search(
        r"\$#|\$\{?#|\$1|\$\{1|'true'|':'", repr(loop.parts[0])
    )
    if not is_while and not _is_over_words(loop):
        return None
    variables = {"1" if is_while else loop.words[0]}
    for each in loop.parts[1]:
        # ``key="$1"; case $key in``.
        if same := re.fullmatch(
            r"(\w+)=\"?\$\{?1\}?\"?", each.words[-1] if each.words else ""
        ):
            variables.add(same[1])
        if each.kind == "case" and _variable(each.words[0]) in variables:
            return each
    return None


def _is_over_words(loop: Statement) -> bool:
    """Return whether *loop* is ``for x in "$@"``; ``for ((i = 0; ...))`` is not."""
    if loop.kind != "for" or loop.words[0].startswith("(("):
        return False
    return loop.words[1:] in _EACH


def _variable(word: str) -> str:
    """Return the variable that *word* expands: ``"${1:-}"`` is 1; empty if *word*
    contains more.
    """
    match = _VARIABLE.fullmatch(word)
    return (match[1] or match[2]) if match else ""


def _bare(patterns: tuple[str, ...]) -> list[str]:
    return [each.strip("\"'") for each in patterns]


def _read_getopts(letters: str, body: list[Statement], words: _Words) -> None:
    if "-" in letters or "$" in letters:
        raise _NotPlainError
    arms = {
        name: source
        for each in body
        for names, source in zip(each.patterns, each.sources, strict=True)
        for name in _bare(names)
    }
    words.command.parser = "getopts"
    # A colon behind a letter: the option has an argument (POSIX, getopts).
    for letter, colon in re.findall(r"([A-Za-z0-9])(:?)", letters):
        source = arms.get(letter, "")
        if colon or letter not in "hHV" or (source and not _ENDS.search(source)):
            assigned = _SET.search(source)
            name = assigned[1].lower().strip("_") if assigned else letter
            _add_option(words, name, [f"-{letter}"], source, takes_value=bool(colon))


def _add_option(
    words: _Words, name: str, flags: list[str], source: str, *, takes_value: bool
) -> None:
    # ``--size) width=$2; height=$3; shift 3 ;;``; an ``eval`` may do anything.
    if re.search(r"\$\{?[3-9]\b|\bshift\s[3-9]|\beval\b", source):
        raise _NotPlainError
    if len(words.command.arguments) >= WORDS_LIMIT:
        raise _NotPlainError("the script has too many options")
    taken = {each.name for each in words.command.arguments}
    name = plain_name(name if name not in taken else flags[0])
    many = takes_value and re.search(r"\w\+=\(", source) is not None
    words.command.arguments.append(
        Argument(name, tuple(flags), "value" if takes_value else "nothing", repeat=many)
    )
    words.held |= dict.fromkeys(_SET.findall(source), name)


def _read_arms(case: Statement, words: _Words) -> None:
    """Read the arms of a loop over the words: its flags, and the arm for the other
    words.
    """
    every = {name for names in case.patterns for name in _bare(names)}
    for names, body, source in zip(
        case.patterns, case.parts, case.sources, strict=True
    ):
        patterns = _bare(names)
        if all(map(_FLAG.fullmatch, patterns)):
            _read_flag(patterns, body, source, words)
        # ``--env=*) ENVIRONMENT="${1#*=}"`` beside ``--env) ENVIRONMENT="$2"``: another
        # way to write the same option.
        elif {each.removesuffix("=*") for each in patterns} <= every and re.search(
            r"\$\{\w+#", source
        ):
            continue
        elif patterns not in (["--"], [""]) and not _ENDS.search(source):
            if "*" not in patterns:
                raise _NotPlainError
            _take_word(source, words)


def _read_flag(
    patterns: list[str], body: list[Statement], source: str, words: _Words
) -> None:
    takes_value = _TAKES_NEXT.search(source) is not None
    # ``-n) case $2 in ...``, ``-*) OPTIONS="$OPTIONS $1"``.
    inside = any(each.kind in ("case", "for", "while") for each in below(body))
    if (takes_value and inside) or (
        not takes_value and re.search(r"\$\{?[1@*]", source)
    ):
        raise _NotPlainError
    flags = sorted(patterns, key=lambda flag: not flag.startswith("--"))
    if not set(flags) & set(_HELP):
        _add_option(words, flags[0], flags, source, takes_value=takes_value)


def _take_word(source: str, words: _Words) -> None:
    """Read the arm that takes the words that are not flags."""
    # ``*) FILE="$1"; shift ;;``, ``*) FILES+=("$1") ;;``.
    if taken := re.fullmatch(
        r"\s*+(\w++)(\+=\(\s*+|=)\"?\$\{?\w++\}?\"?\s*+\)?[\s;]*+(?:shift[\s;]*+)?",
        source,
    ):
        words.hold(taken[1], len(words.places) + 1, is_list=taken[2] != "=")
    elif re.sub(r"\bshift\b|[\s;]", "", source):
        raise _NotPlainError


def _look_at_words(statement: Statement, words: _Words, *, is_top: bool) -> None:
    """Record which places *statement* uses."""
    own = statement.words if statement.kind != "function" else ()
    # In single quotes nothing is expanded: ``awk '{ print $1 }'``.
    given = [without_literals(each) for each in (*own, *statement.targets)]
    called = [each for each in given if each not in _DECLARES]
    first = called[0] if called else ""
    if first in ("shift", "getopts", "getopt"):
        raise _NotPlainError
    if first in ("set", "eval") and any(map(_uses_words, given)):
        raise _NotPlainError
    for each in given:
        _look_at_word(each, first, words, is_top=is_top)


def _uses_words(word: str) -> bool:
    return _PLACE.search(word) is not None or _ALL.search(word) is not None


def _look_at_word(word: str, command: str, words: _Words, *, is_top: bool) -> None:
    """Record which places *word* uses, which belongs to *command*."""
    variable, is_assigned, value = word.partition("=")
    if not is_assigned or not variable.rstrip("+").isidentifier():
        variable = ""
    is_literal = bool(variable) and is_top and _assign(words, variable, value)
    if not is_literal and _ALL.search(word) and command not in _PRINTS:
        # ``exec python3 tool.py "$@"``: the words are another program's.
        raise _NotPlainError("the script passes its words on")
    for match in _PLACE.finditer(word):
        is_whole = value.strip("\"'") == match[0]
        _see(words, match, variable if is_whole else "")


def _assign(words: _Words, variable: str, value: str) -> bool:
    """Record *value* as the default of *variable*, if it is a literal; return whether
    it is.
    """
    literal = _LITERAL.fullmatch(value)
    if literal:
        words.defaults.setdefault(variable, literal[2])
    return literal is not None


def _see(words: _Words, match: re.Match[str], variable: str) -> None:
    number = words.shifted + int(match[1] or match[4])
    if number > WORDS_LIMIT:
        raise _NotPlainError("the script has too many places")
    place = words.places.setdefault(number, _Place())
    operator, text = match[2] or "", (match[3] or "").strip("\"'")
    if variable:
        place.name = place.name or variable.lower().strip("_")
        words.held.setdefault(variable, f"#{number}")
    place.is_optional |= operator[-1:] in ("-", "+", "=") and bool(operator)
    if (
        text
        and place.default is None
        and operator[-1:] in ("-", "=")
        and not re.search(r"[$`\\]", text)
    ):
        place.default = text


def _read_choice(case: Statement, words: _Words, checks: ShellChecks) -> None:
    """Record the literals that a word or an option must be one of, if the script
    refuses all others.
    """
    name = _variable(case.words[0])
    held = words.held.get(name, "")
    if name.isdigit():
        held = f"#{int(name) + words.shifted}"
    place = None
    if held.startswith("#"):
        place = words.places.get(int(held[1:]))
        if place is not None:
            _refuse_decisions(case)
    if not held or (held.startswith("#") and place is None):
        return
    literals: list[str] = []
    for names, body in zip(case.patterns, case.parts, strict=True):
        patterns = _bare(names)
        if patterns == ["*"]:
            if literals and "" not in literals and checks.refuses(body):
                words.choices[held] = tuple(literals)
            return
        # ``case "$TARGET" in /*) ;; *) die``: it must be an absolute path.
        if patterns == ["/*"] and not body and not literals:
            words.paths.add(held)
        if any(_GLOB.search(each) for each in patterns):
            return
        literals += [each for each in patterns if each[:1] != "-"]


def _refuse_decisions(case: Statement) -> None:
    """Refuse a choice with an arm that reads further words, and so is a command, or
    with an option.
    """
    subject = case.words[0].strip('"')
    for names, source in zip(case.patterns, case.sources, strict=True):
        used = {match[0] for match in _PLACE.finditer(source)} - {subject}
        is_option = any(each[:1] == "-" for each in {*_bare(names)} - {*_HELP})
        takes_words = _ALL.search(source) or re.search(r"\bshift\b", source)
        if used or is_option or takes_words:
            raise _NotPlainError("a word decides what follows")


def _places(words: _Words, usage: Usage) -> list[Argument]:
    """Return the places with the names of the script's usage line, distinct from its
    flags.
    """
    places, command = words.places, words.command
    in_loop = command.parser == "words" and bool(command.arguments)
    _refuse_gaps(places, in_loop=in_loop)
    names = _names_of_places(places, usage)
    taken = {each.name for each in command.arguments}
    found: list[Argument] = []
    for index, (number, place) in enumerate(sorted(places.items())):
        name = names[index] if names[index] not in taken else ""
        taken.add(name)
        schema = _place_schema(words, number, in_loop=in_loop)
        argument = _place_argument(place, schema)
        if not name:
            name = f"argument_{index + 1}"
            argument = replace(argument, description=f"Word {index + 1}")
        found.append(replace(argument, name=name))
    return found


def _place_argument(place: _Place, schema: dict[str, Any]) -> Argument:
    choices = schema.get("enum")
    default: Any = ABSENT
    if place.default is not None and (not choices or place.default in choices):
        default = place.default
    return Argument(
        place.name,
        takes="values" if place.is_list else "value",
        value=ValueType(schema),
        required=choices is not None and not place.is_optional,
        default=default,
        has_hidden_default=bool(place.default),
    )


def _refuse_gaps(places: dict[int, _Place], *, in_loop: bool) -> None:
    """Refuse places with gaps, or behind a list."""
    if sorted(places) != list(range(1, len(places) + 1)):
        raise _NotPlainError
    if in_loop and len(places) > 1:
        raise _NotPlainError
    in_order = [place for _, place in sorted(places.items())]
    if any(place.is_list for place in in_order[:-1]):
        raise _NotPlainError


def _place_schema(words: _Words, number: int, *, in_loop: bool) -> dict[str, Any]:
    held = f"#{number}"
    if held in words.choices:
        return {**TEXT.schema, "enum": list(words.choices[held])}
    # A word that starts with a dash would be read as a flag.
    if in_loop:
        return {**TEXT.schema, "pattern": "^([^-]|$)"}
    if held in words.paths:
        return dict(PATH.schema)
    return dict(TEXT.schema)


def _names_of_places(places: dict[int, _Place], usage: Usage) -> list[str]:
    stated = place_names(usage)
    if len(stated) == len(places):
        return stated
    return [places[number].name for number in sorted(places)]


def _first_required(places: list[Argument], least: int = 0) -> list[Argument]:
    """Return *places* with the first *least* required, and each before a required
    one.
    """
    last = least
    for number, place in enumerate(places, 1):
        if place.required:
            last = max(last, number)
    required = [
        replace(place, required=True, default=ABSENT) for place in places[:last]
    ]
    return required + places[last:]


def _held(words: _Words, places: list[Argument]) -> dict[str, str]:
    """Return the argument that each variable holds."""
    names = {f"#{number}": each.name for number, each in enumerate(places, 1)}
    held = {variable: names.get(place, place) for variable, place in words.held.items()}
    return held | {number[1:]: name for number, name in names.items()}
