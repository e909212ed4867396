"""Shell scripts, by their forms: ``getopts``, a loop with a ``case`` over the words,
and positions.

The law: a script that does anything else with its words has no whole contract.
`NotPlainError` says so, and the script is read as any other text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from skillruntime.derive.command import TEXT, Argument, Command, Reading, ValueType
from skillruntime.derive.command_line import ABSENT
from skillruntime.derive.readers.shell_checks import ShellChecks
from skillruntime.derive.readers.shell_syntax import (
    NotShellError,
    Statement,
    below,
    parse_shell,
)
from skillruntime.derive.readers.usage import find_usages, read_usage
from skillruntime.derive.text_fields import plain_name

__all__ = ["NotPlainError", "read_shell"]

LENGTH_LIMIT = 100_000
"""Characters of a script that is read; a longer one is a program, or generated."""

WORDS_LIMIT = 200
"""Options, and places, of a script that is read."""

_PLACE = re.compile(r"\$(?:\{([1-9])(?:(:?[-?+=])([^}]{0,400})|[^}]{0,400})\}|([1-9]))")
_ALL = re.compile(r"\$(?:\{[@*][^}]{0,400}\}|[@*])")
_VARIABLE = re.compile(r"\"?\$(?:\{(\w+)(?::?-[^}$]{0,80})?\}|(\w+))\"?")
_LITERAL = re.compile(r"(['\"]?)([^$`\\'\"()]++)\1")
_SET = re.compile(r"(?:^|[\s;])(\w+)\+?=")
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*+\"?|'[^']*+'?", re.DOTALL)
_TAKES_NEXT = re.compile(r"\$\{?2\b|\bshift\b[\s;]++\w+\+?=\(?\"?\$\{?1\b")
_FLAG = re.compile(r"-{1,2}[A-Za-z0-9][\w-]*")
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
_PRINTS = ("echo", "printf", "log", "info", "warn", "logger", ":")
_EACH = (("in", '"$@"'), ("in", "$@"), ())
_HELP = ("-h", "--help", "help", "-V", "--version", "version", "-?", "\\?")
_ENDS = re.compile(r"\b(?:exit|return|break|die|fail|abort|error)\b|usage|help")


class NotPlainError(ValueError):
    """The script does something with its words that no form describes."""

    def __init__(
        self, reason: str = "the script takes its words apart by hand"
    ) -> None:
        super().__init__(reason)


@dataclass(slots=True)
class _Place:
    """What the script says of one word by its number; ``is_list`` takes the words that
    are left.
    """

    name: str = ""
    default: str | None = None
    is_optional: bool = False
    is_list: bool = False
    choices: tuple[str, ...] = ()


@dataclass(slots=True)
class _Words:
    """What is known of the words: options, and places by their number."""

    command: Command = field(default_factory=lambda: Command("words"))
    places: dict[int, _Place] = field(default_factory=dict)
    shifted: int = 0
    held: dict[str, str] = field(default_factory=dict)
    """The argument that a variable holds; a place is ``#`` and its number."""
    defaults: dict[str, str] = field(default_factory=dict)
    """The literal that a variable has before it is set from a word."""

    def hold(self, variable: str, number: int, *, is_list: bool) -> None:
        """Let *variable* take the word of this number, or all words that are left from
        it on.
        """
        if any(each.is_list for each in self.places.values()):
            raise NotPlainError
        self.places[number] = _Place(
            variable.lower().strip("_"), is_optional=not is_list, is_list=is_list
        )
        self.held[variable] = f"#{number}"


def read_shell(text: str) -> Reading:
    """Return what the shell script *text* takes.

    Raises:
        NotPlainError: it takes its words by no known form.
    """
    if len(text) > LENGTH_LIMIT:
        raise NotPlainError("the script is too long to be followed")
    try:
        statements = parse_shell(text)
    except NotShellError as error:
        raise NotPlainError(f"the script cannot be parsed: {error}") from error
    functions = {
        each.words[0]: each.parts[0]
        for each in below(statements)
        if each.kind == "function"
    }
    words, checks = _Words(), ShellChecks(functions)
    for statement in _main_body(statements, dict(functions)):
        _read_statement(statement, words, checks)
    options = words.command.arguments
    # The last assignment before the loop is what the script uses without the flag.
    defaults = {
        name: words.defaults[variable]
        for variable, name in words.held.items()
        if variable in words.defaults
    }
    for number, each in enumerate(options):
        if each.name in defaults and each.takes == "value" and not each.repeat:
            options[number] = replace(each, default=defaults[each.name])
    return Reading(_checked(words, checks, _places(words, text)), "shell", "low")


def _checked(words: _Words, checks: ShellChecks, places: list[Argument]) -> Command:
    """Return the command with its *places*, and with what the checks require."""
    options = words.command.arguments
    tested = {words.held.get(name, f"#{name}") for name in checks.tested}
    used = [
        number
        for number, each in words.places.items()
        if not each.is_optional | each.is_list
    ]
    needed = max((number for number in used if f"#{number}" not in tested), default=0)
    # The checks of a script show which words it needs; without checks, it needs all the
    # words that it uses.
    for least in (0, needed):
        command = Command(
            words.command.parser, arguments=[*options, *_first_required(places, least)]
        )
        checks.apply(command, _held(words, places), len(places))
        command.arguments[len(options) :] = _first_required(
            command.arguments[len(options) :]
        )
        if any(each.required for each in command.arguments[len(options) :]):
            break
    return command


def _main_body(
    statements: list[Statement], functions: dict[str, list[Statement]]
) -> list[Statement]:
    """Return the statements that the script runs. ``main "$@"`` is replaced by the body
    of ``main``, which is removed from *functions*.
    """
    body: list[Statement] = []
    for statement in statements:
        # A function is replaced once: a chain of functions that each call the next one
        # twice would grow exponentially.
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
            raise NotPlainError
        # Positions before the loop come first on the command line too.
        words.command.parser = "places" if words.shifted else "words"
        _read_arms(loop, words)
        checks.counts_all = False
    elif statement.kind == "for" and statement.words[1:] in _EACH:
        words.hold(statement.words[0], words.shifted + 1, is_list=True)
    elif statement.name == "shift":
        number = "".join(statement.words[1:2]) or "1"
        if not number.isdigit() and "OPTIND" not in number:
            raise NotPlainError
        words.shifted += int(number) if number.isdigit() else 0
    else:
        for each in below([statement]):
            _look_at_words(each, words, is_top=each is statement)
        if statement.kind == "case":
            _read_choice(statement, words)
        checks.look(statement, words.shifted)


def _case_over_words(loop: Statement) -> Statement | None:
    """Return the ``case`` by which *loop* distinguishes the words, where it takes them
    one by one.
    """
    is_while = loop.kind == "while" and re.search(
        r"\$#|\$\{?#|\$1|\$\{1|'true'|':'", repr(loop.parts[0])
    )
    if not is_while and not (loop.kind == "for" and loop.words[1:] in _EACH):
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


def _variable(word: str) -> str:
    """Return the variable that *word* is: ``"${1:-}"`` is 1; nothing where it is
    more.
    """
    match = _VARIABLE.fullmatch(word)
    return (match[1] or match[2]) if match else ""


def _bare(patterns: tuple[str, ...]) -> list[str]:
    return [each.strip("\"'") for each in patterns]


def _read_getopts(letters: str, body: list[Statement], words: _Words) -> None:
    if "-" in letters or "$" in letters:
        raise NotPlainError
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
        raise NotPlainError
    if len(words.command.arguments) >= WORDS_LIMIT:
        raise NotPlainError("the script has too many options")
    taken = {each.name for each in words.command.arguments}
    name = plain_name(name if name not in taken else flags[0])
    many = takes_value and re.search(r"\w\+=\(", source) is not None
    words.command.arguments.append(
        Argument(name, tuple(flags), "value" if takes_value else "nothing", repeat=many)
    )
    words.held |= dict.fromkeys(_SET.findall(source), name)


def _read_arms(case: Statement, words: _Words) -> None:
    """Read the arms of a loop over the words: its flags, and what takes the other
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
                raise NotPlainError
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
        raise NotPlainError
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
        raise NotPlainError


def _look_at_words(statement: Statement, words: _Words, *, is_top: bool) -> None:
    """Record which places *statement* uses."""
    own = statement.words if statement.kind != "function" else ()
    # In single quotes nothing is expanded: ``awk '{ print $1 }'``.
    given = [
        _QUOTED.sub(lambda match: match[0] if match[0][0] == '"' else "''", each)
        for each in (*own, *statement.targets)
    ]
    first = next((each for each in given if each not in _DECLARES), "")
    is_used = (
        re.search(rf"{_PLACE.pattern}|{_ALL.pattern}", " ".join(given)) is not None
    )
    if first in ("shift", "getopts", "getopt") or (
        first in ("set", "eval") and is_used
    ):
        raise NotPlainError
    for each in given:
        variable, _, value = each.partition("=")
        variable = (
            variable if "=" in each and variable.rstrip("+").isidentifier() else ""
        )
        if (
            not (variable and is_top and _assign(words, variable, value))
            and _ALL.search(each)
            and first not in _PRINTS
        ):
            # ``exec python3 tool.py "$@"``: the words are another program's.
            raise NotPlainError("the script passes its words on")
        for match in _PLACE.finditer(each):
            _see(words, match, variable if value.strip("\"'") == match[0] else "")


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
        raise NotPlainError("the script has too many places")
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


def _read_choice(case: Statement, words: _Words) -> None:
    """Take the literals that a word must be one of, where the script refuses all
    others.
    """
    name = _variable(case.words[0])
    held = (
        f"#{int(name) + words.shifted}"
        if name.isdigit()
        else words.held.get(name, "#0")
    )
    place = words.places.get(int(held[1:])) if held.startswith("#") else None
    literals: list[str] = []
    if place is None:
        return
    for names, source in zip(case.patterns, case.sources, strict=True):
        patterns = _bare(names)
        used = {match[0] for match in _PLACE.finditer(source)} - {
            case.words[0].strip('"')
        }
        # An arm that reads words of its own is a command, and one for a flag is an
        # option.
        if (
            used
            or _ALL.search(source)
            or re.search(r"\bshift\b", source)
            or any(each[:1] == "-" for each in {*patterns} - {*_HELP})
        ):
            raise NotPlainError("a word decides what follows")
        if patterns == ["*"] and _ENDS.search(source) and "" not in literals:
            place.choices = tuple(each for each in literals if each not in _HELP)
        if any(re.search(r"[*?\[$\s]", each) for each in patterns):
            return
        literals += patterns


def _places(words: _Words, text: str) -> list[Argument]:
    """Return the places, named as the script's usage line names them, and distinguished
    from its flags.
    """
    places, command = words.places, words.command
    is_last = [each.is_list for _, each in sorted(places.items())]
    in_loop = command.parser == "words" and bool(command.arguments)
    if (
        sorted(places) != list(range(1, len(places) + 1))
        or (in_loop and len(places) > 1)
        or any(is_last[:-1])
    ):
        raise NotPlainError
    names = _names_of_places(places, text)
    taken = {each.name for each in command.arguments}
    found: list[Argument] = []
    for number, (_, place) in enumerate(sorted(places.items())):
        name = names[number] if names[number] not in taken else ""
        taken.add(name)
        # A word that starts with a dash would be read as a flag.
        schema = {**TEXT.schema, "pattern": "^([^-]|$)"} if in_loop else TEXT.schema
        schema = (
            {**TEXT.schema, "enum": list(place.choices)} if place.choices else schema
        )
        is_said = place.default is not None and (
            not place.choices or place.default in place.choices
        )
        found.append(
            Argument(
                name or f"argument_{number + 1}",
                takes="values" if place.is_list else "value",
                value=ValueType(schema),
                required=bool(place.choices) and not place.is_optional,
                default=place.default if is_said else ABSENT,
                description="" if name else f"Word {number + 1}",
                has_hidden_default=bool(place.default),
            )
        )
    return found


def _names_of_places(places: dict[int, _Place], text: str) -> list[str]:
    usages = [
        read for line in find_usages(text) if (read := read_usage(line)) is not None
    ]
    named = (
        [each.name for each in usages[0] if not each.flags] if len(usages) == 1 else []
    )
    return (
        named
        if len(named) == len(places)
        else [places[number].name for number in sorted(places)]
    )


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
