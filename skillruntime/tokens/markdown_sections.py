"""Split a Markdown body into sections, from one heading to the next; lines of code are
not headings.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

from markdown_it import MarkdownIt

__all__ = ["Section", "sections"]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading's *title* and *level* (1 to 6; 0 is the text before the first), its
    first *line* from 1, its text.
    """

    title: str
    level: int
    line: int
    text: str


def sections(body: str) -> list[Section]:
    """Return the sections of *body* in order; joined, their texts are the body. A
    subsection is a section of its own.

    >>> body = "Hello.\\n# Use\\n```\\n# not one\\n```\\n## More\\n"
    >>> [(section.title, section.line) for section in sections(body)]
    [('', 1), ('Use', 2), ('More', 6)]
    """
    lines = body.splitlines(keepends=True)
    # splitlines() ends lines at more characters than Markdown does: the parser must see
    # the same lines.
    line_ends = "\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
    stripped = [line.rstrip(line_ends) for line in lines]
    tokens = _markdown().parse("".join(f"{line}\n" for line in stripped))
    starts = [(0, 0, "")]
    for token, inline in itertools.pairwise(tokens):
        # Level 0: a heading inside a quotation or a list item does not divide the page.
        is_heading = token.type == "heading_open" and token.level == 0
        if is_heading and token.map:
            starts.append((token.map[0], int(token.tag[1:]), inline.content))
    ends = [start for start, _, _ in starts[1:]] + [len(lines)]
    parts: list[Section] = []
    for (start, level, title), end in zip(starts, ends, strict=True):
        text = "".join(lines[start:end])
        # The text before the first heading may be empty.
        if level or text.strip():
            parts.append(Section(title, level, start + 1, text))
    return parts


@functools.cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark")
    # Parse only blocks: we need the positions of headings, not their inline markup, and
    # this is ten times as fast.
    markdown.core.ruler.enableOnly(["normalize", "block"])
    return markdown
