"""Find a script's own description: its usage text, and its opening comment.

The law: only texts of the script are shown, never its code, and a text decides nothing.
It describes a tool, and names the places that the code uses.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from skillruntime.derive.readers.script_text import (
    Token,
    script_texts,
    script_tokens,
    token_lines,
)
from skillruntime.derive.text_fields import first_paragraph
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["ScriptText", "Usage", "called_with", "is_code", "place_names"]

LINES_LIMIT = 14
"""The most lines of a usage text that are shown; a longer one would cost tokens."""

LINE_LIMIT = 1_000
TEXT_LIMIT = 600

_USAGE = lazy_pattern(r"\busage\b[ \t]*:", re.IGNORECASE)
# The same in a source in lower case, where a line may begin with an escape: ``\nusage:``.
_STATED = lazy_pattern(r"usage(?:[ \t]|\\t)*+:")
_SCRIPT = lazy_pattern(
    r"`basename[^`]{0,40}`|\$\(basename[^)]{0,40}\)|\$\{?0[^}\s\"']{0,20}\}?"
    r"|\$\{?(?:PROG|SCRIPT|ME)\w*\}?|%\(prog\)s|%s"
    r"|\$?\{(?:os\.path\.basename\()?(?:Path\()?(?:sys\.|process\.)?argv\[[01]\]\)?"
    r"(?:\.name)?\}|\{__file__\}|#\{\$0\}"
)
_PUT_IN = lazy_pattern(
    r"[$#]?\{(?![\w.-]*+[|,])[^{}\n]{0,80}\}|\$\w++|\x1b\[[\d;]*+m"
    r"|\\(?:033|e|x1b)\[[\d;]*+m"
)
_FIRST_IS_PUT_IN = lazy_pattern(
    rf"((?:usage[ \t]*:)?[ \t]*+)(?:{_PUT_IN.pattern})(?= |$)", re.IGNORECASE
)
_CODE = lazy_pattern(
    r"\A(?:(?:from|import|const|let|var|def|function)\s|[\w.]++\s*+=(?!=))"
)
_CALL = lazy_pattern(r"\w[^<\[]*+\([^<>]*+\)?[;{:]?\s*+$")
_BEFORE_NAME = lazy_pattern(
    r"(?:[$>%] )?+(?:[A-Z_]++=\S*+ )*+"
    r"(?:(?:uv run|npx|tsx|bun|sudo|env|time|python[\d.]*+|bash|sh|zsh|node|ruby|perl"
    r"|deno run|source)(?: -\S++)*+ )*+"
)
_PLACE = lazy_pattern(
    r"<([A-Za-z][\w .:/-]*+)>|\[<?([A-Za-z][\w .:/-]*+)>?\]|([A-Za-z][\w.:/-]*+)"
)
_BEHIND = lazy_pattern(
    r"[ \t]#|[ \t]{3,}+(?=[^\s<\[-])|[ \t]—|[ \t](?:--?|:)[ \t]+(?=[A-Z][a-z])"
)
"""The separator between a call and its description."""

_FORM = lazy_pattern(r"[<\[{(-]|[A-Z][A-Z_]++\b")
_EXPLAINS = lazy_pattern(r"\s*+(?:\$\{?\d|@\w)")
_RULE = lazy_pattern(r"[-=~*]{3,}|\s*+-\*-")
_WORD = lazy_pattern(r"\[[^\[\]]*+\](?:\.\.\.)?|<[^<>]*+>(?:\.\.\.)?|\S++")


@dataclass(frozen=True, slots=True)
class Usage:
    """A usage text: its lines, and the words behind the script's name in each line that
    calls it.
    """

    lines: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text on one line."""
        shown: list[str] = []
        for line in self.lines:
            line = " ".join(_PUT_IN.sub("…", line).split())
            # An interpolated value alone is not a usage text.
            if line.strip("… "):
                shown.append(line.rstrip(";"))
        text = "; ".join(shown).replace(":; ", ": ")
        # ``Usage:`` alone, or before a computed value, is not a usage text.
        if len(text) <= len("Usage: ") + 3:
            return ""
        if len(text) <= TEXT_LIMIT:
            return text
        return text[: TEXT_LIMIT - 1].rsplit(" ", 1)[0] + "…"


@dataclass(frozen=True)
class ScriptText:
    """The texts of the script called ``name``, of a ``kind`` that `script_kind`
    returns; they are read at the first request.

    >>> source = 'echo "Usage: $0 <name> [days]" >&2\\necho "  name  who it is for"\\n'
    >>> usage = ScriptText(source, "shell", "greet.sh").usage
    >>> usage.text, usage.calls
    ('Usage: greet.sh <name> [days]; name who it is for', ['<name> [days]'])
    """

    source: str
    kind: str
    name: str

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens of the source."""
        return list(script_tokens(self.source, self.kind))

    @cached_property
    def usage(self) -> Usage:
        """The usage text: the first text that calls the script, else the first that is
        not code; empty if there is none.
        """
        if _STATED.search(self.source.lower()) is None:
            return Usage()
        return _read_usage(script_texts(self.source, self.kind), self.name)

    @cached_property
    def opening(self) -> str:
        """The comment at the top, without the line that names the interpreter."""
        return _opening_text(script_tokens(self.source, self.kind))


def _read_usage(tokens: Iterable[Token], name: str) -> Usage:
    first = Usage()
    for lines in _blocks(tokens):
        usage = _usage(lines, name)
        if usage.calls:
            return usage
        if not first.lines:
            first = usage
    return first


def _usage(lines: list[str], name: str) -> Usage:
    lines = [_with_name(line, name) for line in _joined(lines)]
    stated = [lines[0].partition(":")[2], *lines[1:]]
    stated = [line.strip() for line in stated]
    # ``# Extract a token:`` is a comment on the call in the next line.
    stated = [line for line in stated if line and not line.startswith("#")]
    if stated and is_code(stated[0]):
        return Usage()
    calls = [called_with(line, name) for line in stated]
    # The script may have been renamed: ``Usage: old-name <file>``.
    if calls and calls[0] is None and lines[0].partition(":")[2].strip():
        words = called_with(stated[0], _first_name(stated[0]))
        if words and _FORM.match(words):
            calls[0] = words
    known = [call for call in calls if call is not None]
    return Usage(lines, list(dict.fromkeys(known)))


def _joined(lines: list[str]) -> list[str]:
    """Return *lines*, with lines that end in a backslash joined to the next."""
    joined: list[str] = []
    is_continued = False
    for line in lines:
        if is_continued:
            joined[-1] = f"{joined[-1][:-1].rstrip()} {line}"
        else:
            joined.append(line)
        is_continued = joined[-1].endswith("\\")
    return joined


def is_code(line: str) -> bool:
    """Return whether *line* is a statement of a program, and not a command."""
    return _CODE.match(line) is not None or _CALL.match(line) is not None


def called_with(line: str, name: str) -> str | None:
    """Return the words behind the script's *name* in *line*, without a comment; None if
    the line does not call the script.

    >>> called_with("python3 scripts/merge.py <a> <b>  # merge", "merge.py")
    '<a> <b>'
    """
    if not name or _first_name(line) not in (name, posixpath.splitext(name)[0]):
        return None
    before = _BEFORE_NAME.match(line)
    rest = line[before.end() :] if before else line
    words = rest.partition(" ")[2]
    words = _BEHIND.split(words, maxsplit=1)[0].strip().rstrip("\\`").strip()
    # `print("Usage: merge.py <a> <b>")`: the last quote ends the text that the script
    # prints.
    if words.count('"') % 2 and words.endswith('"'):
        words = words[:-1]
    return words


def _first_name(line: str) -> str:
    """Return the name of the program that *line* calls."""
    before = _BEFORE_NAME.match(line)
    rest = line[before.end() :] if before else line
    return posixpath.basename(rest.partition(" ")[0].strip("\"'"))


def _with_name(line: str, name: str) -> str:
    """Return *line* with the script's name filled in where code would insert it:
    ``Usage: $0``, ``Usage: ${PROGRAM##*/}``.
    """
    line = _SCRIPT.sub(name.replace("\\", ""), line)
    put_in = _FIRST_IS_PUT_IN.match(line)
    if put_in is None:
        return line
    return put_in[1] + name + line[put_in.end() :]


def _blocks(tokens: Iterable[Token]) -> Iterator[list[str]]:
    """Yield the lines of each usage text, up to an empty one; an empty one may follow
    the heading.
    """
    for lines in _texts(tokens):
        for index, line in enumerate(lines):
            match = _USAGE.search(line)
            if match is None:
                continue
            block = [line[match.start() :].strip()]
            for following in lines[index + 1 : index + LINES_LIMIT]:
                if following.strip():
                    block.append(following.strip())
                elif len(block) > 1 or block[0][-1] != ":":
                    break
            yield block
            break


def _texts(tokens: Iterable[Token]) -> Iterator[list[str]]:
    """Yield the lines of *tokens*, which are comments and texts; those on successive
    lines are joined.
    """
    lines: list[str] = []
    kind, last, number = "", -1, -1
    for token in tokens:
        own = [line[:LINE_LIMIT] for line in token_lines(token)] or [""]
        follows = token.kind == kind and token.line - last in (0, 1)
        if token.line == number and follows and len(own) == 1:
            # ``"Usage: " + name + " <file>"``.
            lines[-1] = f"{lines[-1]}…{own[0]}"[:LINE_LIMIT]
            continue
        if not follows:
            yield lines
            lines = []
        lines += own
        kind, number = token.kind, token.line
        last = token.line + token.text.count("\n")
    yield lines


def _opening_text(tokens: Iterable[Token]) -> str:
    found: list[str] = []
    for token in tokens:
        if token.kind == "end":
            continue
        # The first line of code ends the opening.
        if token.kind != "comment":
            break
        if token.line == 1 and token.text.startswith("!"):
            continue
        for line in token_lines(token):
            # So do the usage, which is shown separately, and lines that explain the
            # words.
            if len(found) > 40 or _USAGE.search(line) or _EXPLAINS.match(line):
                return first_paragraph("\n".join(found))
            if not _RULE.match(line):
                found.append(line)
    return first_paragraph("\n".join(found))


def place_names(usage: Usage) -> list[str]:
    """Return the names of the first places of a single usage line, up to a flag or a
    list; empty if the line has alternatives or a required flag, because the word behind
    such a flag may be its value or a place. Beside placeholders, a plain word in lower
    case stands for itself, and has no name.

    >>> place_names(Usage(calls=["<input> [output] [--limit N]"]))
    ['input', 'output']
    >>> place_names(Usage(calls=["add <name>"]))
    []
    """
    if len(usage.calls) != 1 or "|" in usage.calls[0]:
        return []
    words = _WORD.findall(usage.calls[0])
    if any(word.startswith("-") for word in words):
        return []
    has_placeholders = any(word.startswith("<") or word.isupper() for word in words)
    names: list[str] = []
    for word in words:
        place = _PLACE.fullmatch(word)
        if place is None or (has_placeholders and place[3] and word.islower()):
            break
        stated = place[1] or place[2] or place[3]
        name = re.sub(r"[^A-Za-z0-9]+", "_", stated).strip("_").lower()
        if name in ("options", "option", "flags", "args", "") or name in names:
            break
        names.append(name)
    return names
