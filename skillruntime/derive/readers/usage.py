"""The usage text of a script in any language, and its usage lines read as arguments:
``tool.py <input> [--limit N]``.

The law: what is shown is a text of the script, never its code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillruntime.derive.command import Argument
from skillruntime.derive.text_fields import first_paragraph

__all__ = ["find_usages", "least_in_usage", "opening_text", "read_usage", "usage_text"]

LINES_LIMIT = 14
"""Lines of a usage text that are shown; a longer one costs tokens."""

BLOCKS_LIMIT = 20
"""Usage texts of a script that are read: some have one for each command."""

LINE_LIMIT = 2_000

_WORD = re.compile(r"\[[^\[\]]*+\]|<[^<>]*+>(?:\.\.\.)?|\S++")
_CALLED = re.compile(
    r"(?:\$ )?(?:(?:uv run|npx|python3?(?: -m)?|bash|sh|node|ruby|perl|deno run) )*+(?:\./)?"
    r"([\w./~-]*+)(?<=\w)(?= |$)(.*)"
)
_USAGE = re.compile(r"\busage\b[ \t]*:", re.IGNORECASE)
_COMMENT_MARK = re.compile(r"[ \t]*+(?:#++|//++|/?\*++|--|;++|%)[ \t]*+")
_PRINTS = re.compile(
    r"[ \t]*(?:>&2[ ]++)?(?:echo|printf|print|puts|console\.\w+"
    r"|sys\.stderr\.write|die|warn|say|[\"'`+])"
)
_QUOTED = re.compile(r"\"\"\"|'''|[\"'`]")
_SCRIPT = re.compile(
    r"`basename[^`]{0,40}`|\$\(basename[^)]{0,40}\)|\$\{?0[^}\s\"']{0,20}\}?"
    r"|\$\{?(?:PROG|SCRIPT|ME)\w*\}?|%\(prog\)s|%s"
    r"|\$?\{(?:os\.path\.basename\()?(?:Path\()?(?:sys\.|process\.)?argv\[[01]\]\)?"
    r"(?:\.name)?\}|\{__file__\}|#\{\$0\}"
)
_PUT_IN = re.compile(
    r"[$#]?\{(?![\w.-]*+[|,])[^{}\n]{0,80}\}|\$\w++|\x1b\[[\d;]*+m|\\(?:033|e|x1b)\[[\d;]*+m"
)
_FIRST = re.compile(
    rf"^((?:usage[ \t]*:)?[ \t]*)(?:{_PUT_IN.pattern})(?= |$)", re.IGNORECASE
)
_CODE = re.compile(
    r"[=;{}]\s*$|^\s*(?:def|if|for|return|import|const|let|function)\b|^[\w.]++\s*=|\w\(.*\)\s*$"
)
_NAME = re.compile(r"[A-Za-z][\w -]*+")


def usage_text(source: str, name: str = "", limit: int = 600) -> str:
    """Return the usage text of *source*, the script called *name*, on one line; nothing
    where it has none.

    >>> source = 'echo "Usage: $0 <name> [days]" >&2\\necho "  name  who it is for"\\n'
    >>> usage_text(source, "greet.sh")
    'Usage: greet.sh <name> [days]; name who it is for'
    """
    for block in _blocks(source):
        lines = [
            " ".join(_PUT_IN.sub("…", _with_name(line, name or "script")).split())
            for line in block
        ]
        # What is put in alone says nothing.
        text = "; ".join(line.rstrip(";") for line in lines if line.strip("… "))
        text = text.replace(":; ", ": ")
        # ``Usage:`` alone, or in front of something that is computed, says nothing.
        if len(text) > len("Usage: ") + 3:
            return (
                text
                if len(text) <= limit
                else text[: limit - 1].rsplit(" ", 1)[0] + "…"
            )
    return ""


def opening_text(source: str) -> str:
    """Return the comment or docstring at the top, without the line that names the
    interpreter.
    """
    found: list[str] = []
    for line in source[:20_000].splitlines()[:40]:
        if line.startswith("#!"):
            continue
        if re.match(r"\s*(?:#|//|/?\*|\"{3}|'{3})", line):
            plain = (
                re.sub(r"^\s*+(?:#++|//++|/?\*++/?|\"{3}|'{3})\s?", "", line[:400])
                .rstrip()
                .removesuffix("*/")
            )
            found += [] if re.match(r"[-=~*]{3,}|\s*-\*-", plain) else [plain]
        # The first line of code ends the opening, as do the lines that explain the
        # words.
        elif line.strip():
            break
    return first_paragraph(re.split(r"\n\$\{?\d|\n@\w", "\n".join(found))[0])


def find_usages(text: str) -> list[str]:
    """Return what follows the script's name in each usage line of *text*.

    >>> find_usages("Merge.\\n\\nUsage: python merge.py <a> <b>\\n")
    ['<a> <b>']
    """
    found: list[str] = []
    for block in _blocks(text):
        first = block[0].partition(":")[2].strip()
        for line in [first] if first else block[1:]:
            called = _CALLED.match(_with_name(line.strip(), "script"))
            if called:
                found.append(
                    re.split(r"[ \t]#|[ \t]{3}|[ \t]--? ", called[2])[0]
                    .strip()
                    .rstrip("\\'\"")
                )
    return list(dict.fromkeys(found))


def _with_name(line: str, name: str) -> str:
    """Return *line* with the script's name where code puts it in: ``Usage: $0``,
    ``Usage: ${PROGRAM##*/}``.
    """
    line = _SCRIPT.sub(name, line)
    return _FIRST.sub(lambda match: match[1] + name, line, count=1)


def _blocks(source: str) -> Iterator[list[str]]:
    """Yield the lines of each usage text, out of the comment, text or command that they
    are written in.
    """
    if "usage" not in source.lower():
        return
    lines = source.splitlines()
    found = 0
    for index, line in enumerate(lines):
        match = _USAGE.search(line[:LINE_LIMIT])
        if match is None or found >= BLOCKS_LIMIT:
            continue
        block = _block(lines[index : index + LINES_LIMIT], match.start())
        if block:
            found += 1
            yield block


def _block(lines: list[str], start: int) -> list[str]:
    first, before = lines[0][start:LINE_LIMIT], lines[0][:start]
    quotes = list(_QUOTED.finditer(before))
    if _COMMENT_MARK.fullmatch(before):
        following: list[str] = []
        for line in lines[1:]:
            # The comment ends at the first line that is not one.
            if (mark := _COMMENT_MARK.match(line)) is None:
                break
            following.append(line[mark.end() :])
        return [first, *_until_blank(following)]
    if quotes:
        quote = quotes[-1][0]
        text, closed, _ = first.partition(quote)
        if closed:
            return [*_parts(text), *_printed(lines[1:])]
        return [first, *_until_quote(lines[1:], quote)]
    # In a docstring, a here-document or a text of several lines.
    # ``Command line usage:`` is a heading.
    is_heading = (
        re.fullmatch(r"[A-Za-z ]{0,30}", before.strip())
        and not first.partition(":")[2].strip()
    )
    if (before.strip() and not is_heading) or _CODE.search(first):
        return []
    plain = [first, *_until_blank(lines[1:])]
    return (
        [line for line in plain if not _CODE.search(line)]
        if not _QUOTED.match(first.strip())
        else []
    )


def _parts(text: str) -> list[str]:
    return [part for part in text.replace("\\t", " ").split("\\n") if part.strip()]


def _printed(lines: list[str]) -> list[str]:
    """Return the texts of the lines that print further lines of the usage."""
    found: list[str] = []
    for line in lines:
        opened = _QUOTED.search(line[:LINE_LIMIT])
        if not _PRINTS.match(line) or opened is None:
            break
        text, closed, _ = line[opened.end() : LINE_LIMIT].partition(opened[0])
        if not closed:
            break
        found += _parts(text)
    return found


def _until_quote(lines: list[str], quote: str) -> list[str]:
    found: list[str] = []
    for line in lines:
        text, closed, _ = line[:LINE_LIMIT].partition(quote)
        if not text.strip() and (found or closed):
            break
        found.append(text)
        if closed:
            break
    return found


def _until_blank(lines: list[str]) -> list[str]:
    """Return the lines up to an empty one, or the end of the text; an empty one may
    follow the heading.
    """
    found: list[str] = []
    for line in lines:
        stripped = line[:LINE_LIMIT].strip()
        if re.fullmatch(r"[A-Z_]++|.{0,2}(?:\"\"\"|'''|\*/|`)\W*+", stripped) or (
            found and not stripped
        ):
            break
        if stripped:
            found.append(
                re.sub(r"(?:\"\"\"|'''|\*/)$", "", stripped)
                if stripped[-1] in "\"'/"
                else line[:LINE_LIMIT]
            )
    return found


def least_in_usage(source: str) -> int:
    """Return how many words every usage line of *source* demands before its first
    bracket.

    >>> least_in_usage('echo "Usage: $0 add <name> [days]"')
    2
    >>> least_in_usage("# Usage: x.sh [name]")
    0
    """
    counts: list[int] = []
    for usage in find_usages(source):
        count = 0
        for word in _WORD.findall(usage):
            plain = re.fullmatch(
                r"<[^<>]++>(?:\.\.\.)?|[A-Za-z-][\w=.|-]*+|\{[^{}]*+\}", word
            )
            count += plain is not None
            # A bracket ends what every call needs; what follows ``up|logs`` may be for
            # one of them.
            if plain is None or "|" in word:
                break
        # ``Usage: x.sh name | --all``: fewer may do.
        counts.append(min(count, 1) if " | " in usage else count)
    return min(counts, default=0)


def read_usage(usage: str) -> list[Argument] | None:
    """Return the arguments of one usage line; None where it is not plain.

    >>> found = read_usage("<input> [--limit N]")
    >>> [(each.name, each.flags, each.required) for each in found]
    [('input', (), True), ('limit', ('--limit',), False)]
    """
    arguments: list[Argument] = []
    words = _WORD.findall(usage)
    for index, word in enumerate(words):
        inner = word[1:-1].strip() if word.startswith("[") else word
        before = words[index - 1] if index else ""
        # ``--limit N`` outside of brackets was read with its flag.
        if (
            before.startswith("-")
            and "=" not in before
            and re.match(r"<|[A-Z_]+$", word)
        ):
            continue
        if inner == "..." and arguments:
            continue
        # Alternatives and code are a grammar of their own; a misread bracket would be a
        # wrong contract.
        if inner.lower() in ("options", "option", "flags", "...") or re.search(
            r"[|{}()'\"$`;]", inner
        ):
            return None
        following = words[index + 1] if index + 1 < len(words) else ""
        read = (
            _read_flag(inner, word, following)
            if inner.startswith("-")
            else _read_place(inner, word)
        )
        if read is None:
            return None
        arguments.append(read)
    names = [each.name for each in arguments]
    return arguments if len(set(names)) == len(names) else None


def _read_flag(inner: str, word: str, following: str) -> Argument | None:
    flag, _, value = inner.replace("=", " ", 1).partition(" ")
    name = flag.lstrip("-").replace("-", "_")
    takes_value = bool(value) or (
        not word.startswith("[") and re.match(r"<|[A-Z_]+$", following) is not None
    )
    if not name.isidentifier():
        return None
    return Argument(
        name,
        (flag,),
        "value" if takes_value else "nothing",
        required=not word.startswith("["),
    )


def _read_place(inner: str, word: str) -> Argument | None:
    required = not word.startswith("[")
    plain = inner.removesuffix("...").strip().strip("<>[]").strip()
    name = re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_").lower()
    is_plain = _NAME.fullmatch(plain.replace(".", "_").replace("/", "_")) and (
        " " not in plain or word[0] in "<["
    )
    if not is_plain or not name:
        return None
    takes = "values" if inner.endswith("...") else "value"
    # mypy does not see that *takes* is one of two literals.
    least = int(required)
    return Argument(name, (), takes, required=required, least=least)  # type: ignore[arg-type]
