"""The command lines in a skill's text that call its scripts, checked against what the scripts accept."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from skillruntime.derive.command_line import CommandLine, Parameter
from skillruntime.derive.derivation import Derivation

__all__ = ["CallFault", "DocumentedCall", "check_documented_calls", "find_documented_calls"]

_FENCE = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})[ ]*(\S*)")
_SHELLS = ("", "bash", "sh", "shell", "console", "zsh", "shell-session", "text", "terminal")
_PLACEHOLDER = re.compile(r"^[<{$\[].*|^[A-Z][A-Z0-9_]+$|\.\.\.$|…|^(?:your|path/to)[-_/]")
_CERTAIN_PLACEHOLDER = re.compile(r"[<>{}$\[\]…*|]|\.\.\.")
_ENDS = ("|", "||", "&&", ";", "&", ">", ">>", "<", "2>&1", "2>/dev/null", "#")


@dataclass(frozen=True, slots=True)
class DocumentedCall:
    """A command line in a code block: the script that it calls, and the words after it. Lines count from 1."""

    script: str
    words: tuple[str, ...]
    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class CallFault:
    """A documented call that the script would refuse: ``unknown-flag``, ``missing-argument`` or ``wrong-choice``."""

    call: DocumentedCall
    kind: Literal["unknown-flag", "missing-argument", "wrong-choice"]
    message: str
    line: int
    column: int


@dataclass(slots=True)
class _Parsed:
    """What the words of a call give: values by parameter, the number of positional words, and what is wrong."""

    values: dict[str, list[str]] = field(default_factory=dict)
    positional: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def find_documented_calls(markdown: str, scripts: Mapping[str, Any]) -> list[DocumentedCall]:
    """Return the command lines in the fenced code blocks of *markdown* that call one of *scripts*, by their path.

    >>> text = "```bash\\npython scripts/top.py a.txt --limit 3\\n```\\n"
    >>> find_documented_calls(text, {"scripts/top.py": None})[0].words
    ('a.txt', '--limit', '3')
    """
    by_name: dict[str, str] = {}
    for each in scripts:
        by_name.setdefault(posixpath.basename(each), each)
    found: list[DocumentedCall] = []
    for number, line in _code_lines(markdown):
        for match in re.finditer(r"[\w./${}~-]*?([\w.-]+\.\w+)(?=\s|$|[\"'])", line):
            name = match[1]
            shown = match[0].rstrip("\"'")
            path = next((each for each in scripts if shown.endswith(each)), by_name.get(name))
            before = line[: match.start()].strip()
            if path is None or not _is_called(before):
                continue
            words = _words(line[match.end() :].lstrip("\"'"))
            if words is not None:
                found.append(DocumentedCall(path, tuple(words), number, match.start() + 1, line.strip()))
            break
    return found


def check_documented_calls(markdown: str, derivations: Mapping[str, Derivation]) -> list[CallFault]:
    """Return what the scripts would refuse of the calls that *markdown* shows; *derivations* are by the script's path.

    Only what was read whole is checked, and a word that is a placeholder (``<file>``, ``$NAME``) fits everywhere.
    """
    faults: list[CallFault] = []
    for call in find_documented_calls(markdown, derivations):
        derivation = derivations[call.script]
        # Of a contract with gaps, or of one list of words, nothing can be said to be wrong.
        if derivation.complete and "command_line" in derivation.document["run"]:
            line = CommandLine.from_dict(derivation.document["run"]["command_line"])
            faults += _check(call, line, derivation)
    return faults


def _code_lines(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of shell code blocks, with their numbers; a line that ends in a backslash takes the next."""
    closing, is_shell = "", False
    pending, first = "", 0
    for number, line in enumerate(markdown.splitlines(), 1):
        fence = _FENCE.match(line)
        if closing:
            if fence and fence[1].startswith(closing) and not fence[2]:
                closing = ""
            elif is_shell:
                first = first or number
                # The shell joins the lines (POSIX, 2.2.1).
                if line.rstrip().endswith("\\"):
                    pending += line.rstrip()[:-1] + " "
                    continue
                yield first, pending + line
            pending, first = "", 0
        elif fence:
            # A block without a language is a shell block as often as not; prose in it calls nothing.
            closing, is_shell = fence[1], fence[2].lower() in _SHELLS


def _is_called(before: str) -> bool:
    """Whether *before*, the start of a line, runs the script that follows: an interpreter, or nothing."""
    return (
        re.fullmatch(
            r"(?:\$|>)?\s*(?:\w+=\S+\s+)*(?:cd\s+\S+\s*&&\s*)?"
            r"(?:(?:uv\s+run|python3?(?:\.\d+)?|bash|sh|zsh|node|sudo|time|exec)\s+(?:-\S+\s+)*)*[\"']?",
            before + " " if before and not before.endswith(("'", '"')) else before,
        )
        is not None
    )


def _words(text: str) -> list[str] | None:
    """Return the words up to the end of the command; None where it is a grammar of usage, or cannot be split."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        return None
    # What follows a pipe or a redirection is another command.
    end = next((n for n, word in enumerate(words) if word in _ENDS or re.match(r"\d?>", word)), len(words))
    words = [word.rstrip(";") for word in words[:end]]
    # ``[--limit N]`` and ``a|b`` describe many calls; there is no one call to check.
    return None if any(word.startswith("[") or word == "..." or re.search(r"\w\|\w", word) for word in words) else words


def _check(call: DocumentedCall, line: CommandLine, derivation: Derivation) -> Iterator[CallFault]:
    words = list(call.words)
    # These need nothing else.
    if any(word in ("-h", "--help", "--version") for word in words):
        return
    parameters: list[Parameter] = []
    schema: Mapping[str, Any] = derivation.document["input"]
    chosen: dict[str, str] = {}
    parsed = _Parsed()
    while True:
        parameters += line.parameters
        words = _parse(words, line, parameters, derivation.flags, parsed)
        if not line.chooser or not words:
            break
        word = words.pop(0)
        if word not in line.commands:
            if not _CERTAIN_PLACEHOLDER.search(word):
                yield _fault(call, "wrong-choice", word, f"{word!r} is not one of {', '.join(line.commands)}")
            return
        chosen[line.chooser] = word
        line = line.commands[word]
    for branch in schema.get("oneOf", ()):
        if all(branch["properties"].get(name, {}).get("const") == word for name, word in chosen.items()):
            schema = branch
            break
    for flag in parsed.unknown:
        yield _fault(call, "unknown-flag", flag, f"{call.script} has no {flag}")
    yield from _check_values(call, parsed, parameters, schema, chosen)


def _check_values(
    call: DocumentedCall,
    parsed: _Parsed,
    parameters: list[Parameter],
    schema: Mapping[str, Any],
    chosen: Mapping[str, str],
) -> Iterator[CallFault]:
    places = [each for each in parameters if each.flag is None and each.takes != "one_of"]
    given = list(parsed.positional)
    for place in places:
        if place.takes in ("values", "rest"):
            parsed.values[place.name], given = given, []
        elif given:
            parsed.values[place.name] = [given.pop(0)]
    properties = schema.get("properties", {})
    # An unknown flag may have taken the word that is missed.
    if not parsed.unknown:
        for name in schema.get("required", ()):
            if not parsed.values.get(name) and name not in chosen:
                yield _fault(call, "missing-argument", "", f"{name} is required, and the call does not give it")
    for name, words in parsed.values.items():
        # A list has its choices in its items.
        choices = properties.get(name, {}).get("enum") or properties.get(name, {}).get("items", {}).get("enum")
        for word in words if choices else ():
            if word not in map(str, choices) and not _PLACEHOLDER.search(word):
                yield _fault(
                    call, "wrong-choice", word, f"{name}: {word!r} is not one of {', '.join(map(str, choices))}"
                )


def _parse(
    words: list[str], line: CommandLine, parameters: list[Parameter], flags: Mapping[str, str], parsed: _Parsed
) -> list[str]:
    """Sort *words* into *parsed*; the words from a command on are returned."""
    by_name = {each.name: each for each in parameters}
    places = sum(each.flag is None and each.takes != "one_of" for each in parameters)
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if len(word) < 2 or word[0] not in line.prefixes or re.match(r"-\.?\d", word):
            # The first word after the positionals is the command.
            if line.chooser and len(parsed.positional) >= places:
                return words[index - 1 :]
            parsed.positional.append(word)
            continue
        flag, _, attached = word.partition("=")
        parameter = by_name.get(_name_of(flag, flags, line))
        if parameter is None:
            is_long = flag.startswith("--") and not _CERTAIN_PLACEHOLDER.search(flag)
            if is_long or re.fullmatch(r"-[A-Za-z]", flag):
                parsed.unknown.append(flag)
            if index < len(words) and not attached and words[index][:1] not in line.prefixes:
                index += 1  # its value, most likely: a word of an unknown flag is not a positional
            continue
        values = parsed.values.setdefault(parameter.name, [])
        if parameter.takes in ("nothing", "count", "one_of"):
            values.append(str(next((value for value, known in parameter.choices if known == flag), True)))
            continue
        # ``--limit=3``.
        if attached or "=" in word:
            values.append(attached)
            continue
        most = {"value": 1, "optional": 1, "values": parameter.length or len(words), "rest": len(words)}
        for _ in range(most[parameter.takes]):
            if index < len(words) and (len(words[index]) < 2 or words[index][0] not in line.prefixes):
                values.append(words[index])
                index += 1
    return []


def _name_of(flag: str, flags: Mapping[str, str], line: CommandLine) -> str:
    if flag in flags:
        return flags[flag]
    # argparse takes an unambiguous beginning of a long flag (`_get_option_tuples`, argparse.py 3.11, line 2287).
    longer = {name for known, name in flags.items() if flag.startswith("--") and known.startswith(flag)}
    if len(longer) == 1 and line.parser == "argparse":
        return longer.pop()
    # ``-vvx`` is three flags, ``-n5`` a flag with its value (POSIX, guideline 5).
    return flags.get(flag[:2], "") if len(flag) > 2 and flag[1] != flag[0] else ""


def _fault(call: DocumentedCall, kind: Any, word: str, message: str) -> CallFault:
    # A word on a continued line is shown at the start of the call.
    place = call.text.find(word) if word else -1
    return CallFault(call, kind, message, call.line, call.column if place < 0 else place + 1)
