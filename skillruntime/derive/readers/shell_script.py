"""Shell scripts, by their ``getopts``, their ``case`` arms and their numbered places: a best effort, and said so."""

from __future__ import annotations

import re
from dataclasses import replace

from skillruntime.derive.command import TEXT, Argument, Command, Unread, ValueType
from skillruntime.derive.command_line import ABSENT, Takes
from skillruntime.derive.readers.reading import Reading
from skillruntime.derive.readers.shell_conditions import Demands, read_demands
from skillruntime.derive.readers.shell_places import Places, read_places
from skillruntime.derive.readers.shell_source import loops_of, main_code, refuses, unquoted
from skillruntime.derive.readers.shell_trial import correct_by_trial
from skillruntime.derive.text_fields import flattened
from skillruntime.derive.usage_line import find_usages, read_usage

__all__ = ["read_shell"]

LENGTH_LIMIT = 100_000
"""Characters of a script that is read; a longer one is a program, or generated."""

HERE_DOCUMENTS_LIMIT = 200
"""``<<`` of a script that is read: the end of each is looked for in all that follows."""

_GETOPTS = re.compile(r"""\bgetopts\s+['"]?:?([A-Za-z0-9:]+)['"]?\s+(\w+)""")
_LETTER_ARM = re.compile(r"^\s*\(?['\"]?([A-Za-z0-9])['\"]?[ \t]*\)(.{0,2000}?);;", re.MULTILINE | re.DOTALL)
_ARM = re.compile(r"^\s*(?:case\s[^\n]*?\bin\s+)?\(?((?!case\b)[^()\n;]+?)\)(.{0,2000}?);;", re.MULTILINE | re.DOTALL)
_DEFAULT = re.compile(r"^(?:local\s+|readonly\s+|declare\s+)?(\w+)=[\"']?([^\"'\s;]*)[\"']?\s*(?:#.*)?$", re.MULTILINE)
_HAS_VALUE = re.compile(
    r"^(?:readonly\s+|declare\s+|export\s+)?(\w+)=(?!\s|$|\"\"|''|\"?\$\{?[1-9*@])|\$\{(\w+):?=", re.MULTILINE
)
"""A value that the script computes, or takes from the environment."""

_KEY = re.compile(
    r"(^[ \t]*(?:while|until)\b[^\n]*\n)[ \t]*(?:local[ \t]+)?(\w+)=\"?\$(?:1|\{1\})\"?[ \t]*\n"
    r"((?:(?!^[ \t]*done\b).*\n){0,200})",
    re.MULTILINE,
)
_BRANCHES = re.compile(r"^[ \t]*(?:case|for|while|until|select)\b", re.MULTILINE)
_WORD_USED = re.compile(r"\$\{?(?:[#1-9@*]|OPTARG)")
_NAME_USED = re.compile(r"\$\{?(\w+)")
_SET = re.compile(r"\b(\w+)(?:\[[^\]]{0,200}\])?\+?=")
_WORDS_USED = re.compile(r"\$(?:\{[!#]?)?(\w+|[@*#])|(?<=^)(?=[A-Za-z_]\w*\s*[<>=!])(\w+)")
_FLAG = re.compile(r"-{1,2}[A-Za-z0-9][\w-]*")
_PAST_OPTIONS = re.compile(r"^\s*shift\s+\"?\$\(\(.*\)\)\"?\s*$", re.MULTILINE)
_QUOTE_BEHIND = re.compile(r"[\"'](?:[ \t]*(?:1?>&2|;|\)|\}|\|).*)?$", re.MULTILINE)
_CHOSEN = re.compile(r"\s*(\w+)=\"?\$(?:1\b|\{1[#}])")
_LOOKS_AT_TEXT = re.compile(
    r"^(?:!\s*)?(?:\[(?!.*\s-[efrsxwLhp]\s|.*=\s*[\"']?-)|test\b|\(\(|\"?\$(?!\()"
    r"|(?:echo|printf)\b.*\|\s*grep|grep\b.*<<<|(?:\w+=\"?\$\()?date\b)",
    re.MULTILINE,
)
"""Tests of what a word says; whether a file is there, or a program succeeds, is not a demand on the command line."""

_ONE_OF = "one of them is required"
_UNDASHED = ValueType({**TEXT.schema, "pattern": "^([^-]|$)"})


def read_shell(text: str, neighbours: object = None) -> Reading | None:
    """Return what the shell script *text* takes; None where it takes nothing that can be read."""
    command = Command("words", _description(text))
    variables: dict[str, str] = {}
    if len(text) > LENGTH_LIMIT or text.count("<<") > HERE_DOCUMENTS_LIMIT:
        if re.search(r"\$\{?[1-9#@*]", text):
            command.unread.append(Unread("arguments", "the script is too long to be followed"))
        return Reading(command, "shell", "low")
    code = main_code(text)
    code = _KEY.sub(_with_place, code)
    loops = [code[start:end] for start, end in loops_of(code)]
    read_by = next((each for each in loops if "getopts" in each), "")
    if (getopts := _GETOPTS.search(code)) is not None:
        command.parser = "getopts"
        command.arguments = _letters(getopts[1], code, text, variables)
        places = read_places(_behind(code, loops, "getopts"))
    elif (loop := next(filter(_reads_options, loops), None)) is not None:
        read_by = loop
        places = _read_loop(loop, command, text, variables)
        if re.search(r"\bbreak\b", loop) and not places.arguments:
            places = read_places(_behind(code, [loop], ""))
        if re.search(r"\$(?:\{[1-9]|[1-9])|\bshift\b", code[: code.index(loop)]):
            command.unread.append(Unread("arguments", "the script takes its words apart by hand"))
    else:
        places = read_places(code)
    command.unread += places.unread
    _demand(code, command, places, variables)
    _add_places(command, places, text)
    if command.unread:
        command.least_words = read_demands(_BRANCHES.split(code, maxsplit=1)[0]).least
    undecided = correct_by_trial(command, text)
    if undecided == []:
        command.unread = [each for each in command.unread if each.reason != _ONE_OF]
    elif not command.unread:
        # In the loop that reads the options, tests are about one of them that is given.
        outside = code.replace(read_by, "\n") if read_by else code
        demands = read_demands(outside)
        if undecided is not None:
            demands.undecided = [each for each in undecided if _LOOKS_AT_TEXT.search(each)]
        command.unread += _unproven(demands, code, command, variables)
    if command.unread and not command.arguments and not command.commands:
        command.unread = command.unread[:1]
    elif not command.arguments and not command.commands and _WORDS_USED.search(code):
        command.unread.append(Unread("arguments", "the script uses its words where they cannot be followed"))
    return Reading(command, "shell", "low")


def _with_place(match: re.Match[str]) -> str:
    """``while [[ $# -gt 0 ]]; do key="$1"; case $key in ...``: the variable is the place."""
    return re.sub(rf"case\s+\"?\$(?:\{{{match[2]}\}}|{match[2]}\b)\"?", 'case "$1"', match[1] + match[3])


def _demand(code: str, command: Command, places: Places, variables: dict[str, str]) -> None:
    """Mark the arguments without which the script ends, and those that have a default in it."""
    demands = read_demands(code)
    defaults = {name: text for name, text in _DEFAULT.findall(code) if text and not re.search(r"[$`\\]", text)}
    given = {variables[name]: text for name, text in defaults.items() if name in variables}
    # A variable with a value of its own is not missing where the argument is.
    has_value = set(defaults) | {one or other for one, other in _HAS_VALUE.findall(code)}
    needed = {variables.get(name, name.lower().strip("_")) for name in demands.names - has_value}

    def with_demand(argument: Argument) -> Argument:
        if argument.takes == "values":
            least = 1 if argument.name in needed else argument.least
            return replace(argument, least=least, required=argument.required or least > 0)
        if argument.takes != "value" or argument.repeat:
            return argument
        required = argument.required or argument.name in needed
        # The last assignment before the loop is what the script uses without the flag.
        default = given.get(argument.name, ABSENT) if argument.flags and not required else argument.default
        return replace(argument, required=required, default=default)

    command.arguments = [with_demand(each) for each in command.arguments]
    places.arguments = [with_demand(each) for each in places.arguments]
    for names in demands.one_of:
        shown = [variables[name] for name in sorted(names) if name in variables]
        # Only where all of them are arguments; an environment variable may be the other.
        if len(shown) == len(names) > 1:
            command.unread.append(Unread(" or ".join(shown), _ONE_OF))


def _unproven(demands: Demands, code: str, command: Command, variables: dict[str, str]) -> list[Unread]:
    """Return why the script may refuse the least call: a number of words, or a test that was not understood."""
    words = sum(max(each.least, int(each.required)) for each in command.arguments if not each.flags)
    if demands.least > words + sum(2 for each in command.arguments if each.flags and each.required):
        return [Unread("words", f"the script asks for {demands.least}, and fewer are known to be required")]
    names = {each.name for each in command.arguments}
    # A test of what has a default, or is one of a list, refuses no call that leaves it as it is.
    settled = {
        each.name for each in command.arguments if each.default is not ABSENT or each.value not in (TEXT, _UNDASHED)
    }
    from_words = _set_from_words(code) if demands.undecided else set()
    for test in [each.splitlines()[-1] for each in demands.undecided if each]:
        for match in _WORDS_USED.finditer(test):
            used = match[1] or match[2]
            name = variables.get(used, used.lower().strip("_"))
            if name not in settled and (name in names or used in "123456789@*#" or used in from_words):
                return [Unread(name, f"the test `{test[:60]}` was not understood")]
    return []


def _set_from_words(code: str) -> set[str]:
    """Return the variables that are set from the words of the command line, in any way."""
    found: set[str] = set()
    for statement in re.split(r"[\n;]", code):
        # Whatever is set before the last word that a statement uses may be set from it: ``A="$1" B=2``.
        used = [match.start() for match in _WORD_USED.finditer(statement)]
        used += [match.start() for match in _NAME_USED.finditer(statement) if match[1] in found]
        found.update(match[1] for match in _SET.finditer(statement, 0, max(used, default=0)))
    return found


def _reads_options(loop: str) -> bool:
    """Whether it takes the words one by one and distinguishes them by a ``case``."""
    each = re.match(r"\s*for\s+(\w+)(?:\s+in\s+\"?\$\{?@\}?\"?)?\s*(?:;|\n|do\b)", loop)
    name = each[1] if each else "1"
    return re.search(rf"\bcase\s+\"?\$(?:\{{{name}[^}}\n]*\}}|{name}\b)\"?\s+in\b", loop) is not None


def _behind(code: str, loops: list[str], mark: str) -> str:
    """What follows the loop that reads the options, where the words that it took are gone."""
    loop = next((each for each in loops if mark in each), "")
    behind = code[code.index(loop) + len(loop) :] if loop else code
    return _PAST_OPTIONS.sub("", behind, count=1)


def _read_loop(loop: str, command: Command, text: str, variables: dict[str, str]) -> Places:
    """Read the arms of a loop over the words: its flags go to *command*; what takes the others is returned."""
    places = Places()
    arms = [([unquoted(word) for word in arm[1].split("|")], arm[2]) for arm in _ARM.finditer(loop + "\n;;\n")]
    flags = {word for names, _ in arms for word in names}
    for names, body in arms:
        plain = [name for name in names if _FLAG.fullmatch(name)]
        # ``--env=*) ENVIRONMENT="${1#*=}"``: the flag and its value are one word.
        attached = [name.removesuffix("*") for name in names if re.fullmatch(r"--[\w-]+=\*", name)]
        if attached and len(attached) == len(names) and not flags & {each[:-1] for each in attached}:
            if (one := re.search(r"(\w+)=\"?\$\{\w+#(?:\*=|-)", body)) is None:
                command.unread.append(Unread(attached[0], "its value is taken apart by hand"))
                continue
            name = attached[0].strip("-=").replace("-", "_")
            variables[one[1]] = name
            command.arguments.append(Argument(name, tuple(attached), description=_help_text_of(text, attached[0][:-1])))
        elif plain and re.search(r"\beval\b", body):
            command.unread.append(Unread("arguments", "options are taken apart by hand"))
        elif (
            len(plain) == len(names) > 1 and (chosen := _CHOSEN.match(body)) and all(each[:2] == "--" for each in plain)
        ):
            # ``--fast|--slow) mode=${1#--} ;;``: the flag itself is the value.
            variables[chosen[1]] = name = chosen[1].lower().strip("_")
            choices = tuple((each.lstrip("-"), each) for each in plain)
            value = ValueType({**TEXT.schema, "enum": [word for word, _ in choices]})
            command.arguments.append(Argument(name, (), "one_of", value=value, choices=choices))
        elif plain and len(plain) == len(names):
            # ``--size) width=$2; height=$3; shift 3 ;;``.
            if re.search(r"\$\{?3\b|\bshift\s+[3-9]", body):
                command.unread.append(Unread(plain[0], "it takes more than one word"))
            elif (argument := _from_arm(plain, body, text, variables)) is not None:
                command.arguments.append(argument)
        elif any(name.endswith(("=*", "*=*")) for name in names):
            others = [name.partition("=")[0] for name in names]
            command.unread += [
                Unread(name, "its value is taken apart by hand")
                for name in others
                if name not in flags and "*" not in name
            ]
        elif not (refuses(body) or re.search(r"\bbreak\b", body) or names in (["--"], [""])):
            _take_word(names, body, places)
    return places


def _take_word(names: list[str], body: str, places: Places) -> None:
    """Read the arm that takes the words that are not flags."""
    variable = r"\"?\$\{?\w+\}?\"?"
    if names == ["*"] and (one := re.search(rf"(\w+)={variable}\s*(?:;|$)", body, re.MULTILINE)):
        places.arguments.append(Argument(one[1].lower().strip("_")))
    elif names == ["*"] and (many := re.search(rf"(\w+)\+=\(\s*{variable}\s*\)", body)):
        places.arguments.append(Argument(many[1].lower().strip("_"), (), "values"))
    elif re.sub(r"\bshift\b|[\s;]", "", body):
        places.unread.append(Unread("arguments", "the script takes its words apart by hand"))


def _add_places(command: Command, places: Places, text: str) -> None:
    """Add *places*, named as the script's usage line names them, and distinguished from its flags."""
    usages = [read for line in find_usages(_QUOTE_BEHIND.sub("", text)) if (read := read_usage(line)) is not None]
    named_places = [each for each in usages[0] if not each.flags] if len(usages) == 1 else []
    flags = {each.name for each in command.arguments}
    beside_flags = bool(command.arguments) and command.parser == "words"
    named = len(named_places) == len(places.arguments)
    for index, each in enumerate(places.arguments):
        value = _UNDASHED if beside_flags and each.value == TEXT else each.value
        name = named_places[index].name if named else each.name
        name = name if name not in flags else f"argument_{index + 1}"
        command.arguments.append(replace(each, name=name, value=value))


def _description(text: str) -> str:
    """The comment at the top, without the first line that names the interpreter."""
    lines: list[str] = []
    for line in text.splitlines()[0 if not text.startswith("#!") else 1 :]:
        if not line.startswith("#") or (lines and not line.strip("# \t")):
            break
        # What follows explains the words, and is read as their descriptions.
        if lines and re.match(r"(?i)#\s*(?:(?:examples?|arguments|args|options|parameters)\s*:|\$\{?\d)", line):
            break
        if line.strip("#-=* \t") and not re.match(r"(?i)#\s*(?:usage|examples?\s*:)", line):
            lines.append(line.lstrip("# \t"))
    return flattened(" ".join(lines))


def _letters(letters: str, code: str, text: str, variables: dict[str, str]) -> list[Argument]:
    bodies = {match[1]: match[2] for match in _LETTER_ARM.finditer(code[code.index("getopts") :])}
    found: list[Argument] = []
    for match in re.finditer(r"([A-Za-z0-9])(:?)", letters):
        # A colon behind a letter: the option has an argument (POSIX, getopts).
        letter, takes_value = match[1], bool(match[2])
        assigned = re.search(r"(\w+)=", bodies.get(letter, ""))
        # ``h|?) usage`` and ``*) usage`` are arms for help too.
        is_help = letter not in bodies or re.search(r"\b(usage|help|show_help|print_usage)\b", bodies[letter])
        if not takes_value and letter in "hH" and is_help:
            continue
        name = assigned[1].lower() if assigned else letter
        name = name if name not in {each.name for each in found} else letter
        if assigned:
            variables[assigned[1]] = name
        takes = "value" if takes_value else "nothing"
        found.append(Argument(name, (f"-{letter}",), takes, description=_help_text_of(text, f"-{letter}")))  # type: ignore[arg-type]  # one of two
    return found


def _from_arm(flags: list[str], body: str, text: str, variables: dict[str, str]) -> Argument | None:
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    # They print and exit, or end the flags.
    if long in ("-h", "--help", "-V", "--version", "--"):
        return None
    # In an arm of the loop ``$1`` is the flag and ``$2`` its value.
    # ``--root) shift; ROOT=$1 ;;`` is another way to write it.
    takes_value = re.search(r"\$(?:\{2\b|2\b)|\bshift\b[\s;]+\w+=\"?\$(?:\{1\b|1\b)", body) is not None
    # ``items+=("$2")``: the flag may be given again.
    many = takes_value and re.search(r"\w\+=\(\s*\"?\$(?:\{2|2)", body) is not None
    name = long.lstrip("-").replace("-", "_")
    # The variable that the arm sets is the one that the script tests later.
    if assigned := re.search(r"\b(\w+)=", body):
        variables[assigned[1]] = name
    ordered = (long, *(flag for flag in flags if flag != long))
    takes: Takes = "value" if takes_value else "nothing"
    return Argument(name, ordered, takes, description=_help_text_of(text, long), repeat=many)


def _help_text_of(text: str, flag: str) -> str:
    """Return the help text of *flag* in the script's own help, after at least two spaces."""
    pattern = re.compile(rf"[#\s\"']*(?:-\w,\s*)?{re.escape(flag)}\b[^\n)]*?[ \t]{{2,}}(\S[^\n]*)$")
    start = text.find(flag)
    while start >= 0:
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if match := pattern.match(text[text.rfind("\n", 0, start) + 1 : end]):
            return flattened(match[1].strip("\"' "))
        start = text.find(flag, end)
    return ""
