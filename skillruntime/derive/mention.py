"""Find the description of a script in the instructions of its skill, for a script that
does not describe itself.
"""

from __future__ import annotations

import posixpath

from skillruntime.derive.text_fields import flattened
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["mention_of"]

LINE_LIMIT = 1_000
TEXT_LIMIT = 200
LEAST_WORDS = 3
"""The least words of a text that says more than a name."""

_FENCE = lazy_pattern(r"[ \t>]*+(?:```|~~~)")
_HEADING = lazy_pattern(r"#{1,6}[ \t]++([^\n]*+)")
_LIST_MARK = lazy_pattern(r"\A[ \t]*+(?:[-*+>]|\d++[.)])[ \t]++")
_COMMENT = lazy_pattern(r"\A[ \t]*+#++[ \t]++([^\n]*+)")
_LINK = lazy_pattern(r"\[([^\[\]\n]{0,200})\]\([^()\n]{0,400}\)")
_CODE = lazy_pattern(r"`[^`\n]{0,400}`")
_AROUND = " \t:;,.-–—*_|()[]`#→=>"


def mention_of(instructions: str, path: str) -> str:
    """Return the description in *instructions*, the text of a SKILL.md, where they
    first name the script at *path*; empty if they only name it.

    The description is the sentence, the table row, the comment on the command, or else
    the heading above.

    >>> mention_of("- `scripts/a.sh`: Draws a map of the town.", "scripts/a.sh")
    'Draws a map of the town.'
    >>> mention_of("```\\n# Draw a whole map\\n./scripts/a.sh\\n```", "scripts/a.sh")
    'Draw a whole map'
    """
    name = posixpath.basename(path)
    if name not in instructions:
        return ""
    is_code = False
    heading = before = ""
    for line in instructions.splitlines():
        line = line[:LINE_LIMIT]
        if _FENCE.match(line):
            is_code, before = not is_code, ""
            continue
        titled = None if is_code else _HEADING.match(line)
        if titled is not None:
            heading = titled[1]
        if name in line:
            said = _of_command(line, before) if is_code else _of_sentence(line)
            for text in (said, _plain(heading)):
                if len(text.split()) >= LEAST_WORDS and name not in text:
                    return flattened(text, TEXT_LIMIT)
        before = line
    return ""


def _of_command(line: str, before: str) -> str:
    """Return the comment behind a command, or in the line above it."""
    _, mark, behind = line.partition(" # ")
    if mark:
        return behind.strip()
    above = _COMMENT.match(before)
    return above[1].strip() if above is not None else ""


def _of_sentence(line: str) -> str:
    line = _LIST_MARK.sub("", line, count=1)
    if line.lstrip().startswith("|"):
        cells = [_plain(cell) for cell in line.split("|")]
        return max(cells, key=lambda cell: len(cell.split()))
    return _plain(line)


def _plain(text: str) -> str:
    """Return *text* without links, code and the marks around it."""
    text = _CODE.sub("", _LINK.sub(r"\1", text))
    plain = text.replace("**", "").strip(_AROUND)
    is_sentence = text.rstrip().endswith(".") and bool(plain)
    return f"{plain}." if is_sentence else plain
