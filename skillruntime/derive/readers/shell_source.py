"""The text of a shell script as far as its words are concerned: without comments, other programs' code, functions."""

from __future__ import annotations

import re

__all__ = ["loops_of", "main_code", "refuses", "unquoted"]

_TOKEN = re.compile(
    r"""(?P<single>'[^']*')|(?P<double>"(?:\\.|[^"\\])*")|(?P<escaped>\\.)|(?P<comment>(?:^|(?<=[\s;]))\#[^\n]*)"""
    r"""|(?<!<)<<-?[ ]*(?P<quote>['"\\]?)(?P<end>\w+)['"]?(?P<rest>[^\n]*)\n(?P<body>(?:.*\n)*?)\t*(?P=end)[ \t]*$""",
    re.MULTILINE,
)
_ONE_LINE = re.compile(r"^[ \t]*(?:while|for)\b[^\n]*\bcase\b[^\n]*\besac\b[^\n]*$", re.MULTILINE)
_FUNCTION = re.compile(r"^([ \t]*)(?:function[ \t]+([\w-]+)[ \t]*(?:\(\))?|([\w-]+)[ \t]*\(\))[ \t]*\{(.*)$")
_CALL = re.compile(r"^[ \t]*([\w-]+) \"\$@\"[ \t]*$", re.MULTILINE)
_REFERENCE = re.compile(r"\$(?:\{[1-9@*][^}\n]{0,400}\}|[1-9@*])")
_ENDS = re.compile(r"(?:^|[;\n])[ \t]*exit\s+\"?(?:[1-9]|\$\{?[1-9])[^\n]*\s*$")
_REFUSES = re.compile(
    r"\b(?:exit\s+\"?[1-9$]|exit\b(?!\s+0)|return\s+[1-9]|\w*usage|die|fail|error|abort|print_help|show_help)"
)


def main_code(text: str) -> str:
    """Return what *text* does with its own words: functions are left out but one that is handed all words, which is
    put where it is called.

    >>> main_code("main() {\\n  echo $1\\n}\\nmain \\"$@\\"\\n").split()
    ['echo', '$1']
    """
    code, functions = _without_functions(_ONE_LINE.sub(_spread, _TOKEN.sub(_plain, text)))
    # ``main "$@"`` may call another function with all words.
    for _ in range(3):
        call = next((each for each in _CALL.finditer(code) if each[1] in functions), None)
        if call is None:
            break
        code = code[: call.start()] + functions.pop(call[1]) + code[call.end() :]
    # ``err() { echo "$*" >&2; exit 1; }``: a call of it ends the script.
    ends = [name for name, body in functions.items() if _ENDS.search(body) and not refuses(name)]
    for name in ends:
        code = re.sub(
            rf"(^[ \t]*|[;{{&|]\s*|\b(?:then|else)\s+){re.escape(name)}(?=[\s;}}]|$)",
            r"\1die",
            code,
            flags=re.MULTILINE,
        )
    return code


def loops_of(code: str) -> list[tuple[int, int]]:
    """Return where the loops of *code* are, the inner ones with their outer one."""
    found: list[tuple[int, int]] = []
    depth = place = 0
    start: int | None = None
    for line in code.splitlines(keepends=True):
        opens = re.match(r"\s*(?:while|for|until|select)\b", line) is not None
        closes = re.search(r"(?:^|;)\s*done\b", line) is not None
        if opens and depth == 0:
            start = place
        depth += opens - closes
        place += len(line)
        if closes and depth <= 0:
            depth = 0
            # A ``done`` without its loop closes nothing: a thousand would be as many loops, each longer than the last.
            if start is not None:
                found.append((start, place))
            start = None
    return found


def refuses(code: str) -> bool:
    """Whether *code* ends the script as one that was called wrongly."""
    return _REFUSES.search(code) is not None


def _spread(match: re.Match[str]) -> str:
    """Return a loop that is written on one line, ``while ...; do case $1 in -f) ...;; esac; done``, on several."""
    # The readers work by lines.
    text = re.sub(r";;\s*", ";;\n", match[0])
    return re.sub(r"\b(do|in)\s+(?=case\b|\S+\))", r"\1\n", re.sub(r";\s*(done|esac)\b", r"\n\1", text))


def _plain(match: re.Match[str]) -> str:
    # Text in single quotes is not expanded (POSIX, 2.2.2); one with ``$`` is another program's code, such as awk's.
    if match["single"] is not None:
        return match[0] if "$" not in match[0] else "''"
    if match["comment"] is not None:
        return ""
    # A here-document: its words are text, but they may use the script's own (POSIX, 2.7.4).
    if match["end"] is not None:
        used = "" if match["quote"] else " ".join(_REFERENCE.findall(match["body"]))
        return f"{match['rest']}\n: {used}" if used else match["rest"]
    return match[0]


def _without_functions(code: str) -> tuple[str, dict[str, str]]:
    kept: list[str] = []
    functions: dict[str, str] = {}
    unclosed: set[str] = set()
    lines = code.splitlines(keepends=True)
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        match = _FUNCTION.match(line)
        if match is None or match[1] in unclosed:
            kept.append(line)
            continue
        body: list[str] = []
        if not match[4].rstrip().endswith("}"):
            # ``} >&2`` and ``} # usage`` close a function too.
            closing = re.compile(re.escape(match[1]) + r"\}(?![\w}])")
            end = next((index for index in range(place, len(lines)) if closing.match(lines[index])), None)
            # What is never closed is not a function that the rest of the script is in.
            if end is None:
                unclosed.add(match[1])
                kept.append(line)
                continue
            body, place = lines[place:end], end + 1
        functions[match[2] or match[3]] = "".join(body) or match[4].rstrip().removesuffix("}")
    return "".join(kept), functions


def unquoted(word: str) -> str:
    """Return *word* without the quotes and blanks around it."""
    return word.strip().strip("\"'")
