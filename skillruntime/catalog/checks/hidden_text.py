"""Find text that people do not see: characters without a shape, and comments that a
page does not show. Pure. A model reads both, in the instructions, in the skill's files
and in its contracts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from skillruntime.catalog.resources import Resource, decode_text
from skillruntime.catalog.visibility import hidden_characters, is_visible, listed_kinds
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import ResourceNotFoundError
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["hidden_text", "hidden_text_of_files"]

# CommonMark, 4.6: a renderer passes a comment on as HTML, and no browser shows it.
# Directives for linters (`<!-- prettier-ignore -->`) are one or two words; text for a
# model is a sentence.
_COMMENT = lazy_pattern(r"<!--((?:(?!-->).)*)(?:-->|\Z)", re.DOTALL)
_WORDS = 5
_FENCED = lazy_pattern(r"(?ms)^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)|`[^`\n]+`")
_SHOWN_AS_A_PAGE = ("text/markdown", "text/html")
_MAX_BYTES = 32 * 1024 * 1024  # of all files together
_MAX_FINDINGS = 20  # per file, so that binary data does not fill a report


def hidden_text(
    text: str, path: str, *, first_line: int = 1, is_page: bool = True
) -> Iterator[Diagnostic]:
    """Yield a warning for each line of *text* with hidden characters, and advice for
    comments if it *is_page*.

    *first_line* is the number of its first line in the file at *path*.
    """
    if not is_visible(text):
        for number, line in enumerate(text.split("\n"), first_line):
            hidden = hidden_characters(line)
            if hidden:
                message = f"this line has {listed_kinds(hidden)}"
                yield Diagnostic(
                    "hidden-characters",
                    Severity.WARNING,
                    path,
                    message,
                    number,
                    1,
                    "remove them",
                )
    if not is_page or "<!--" not in text:
        return
    # In a fence a comment is an example, and shown.
    shown = _FENCED.sub(lambda fence: re.sub(r"[^\n]", " ", fence.group()), text)
    message = "this HTML comment is not shown on a page, but a model reads it"
    for comment in _COMMENT.finditer(shown):
        if len(comment[1].split()) >= _WORDS:
            at = first_line + shown.count("\n", 0, comment.start())
            yield Diagnostic(
                "hidden-comment",
                Severity.ADVICE,
                path,
                message,
                at,
                1,
                "write it as text, or remove it",
            )


def hidden_text_of_files(
    files: Iterable[tuple[Resource, str, bytes]],
) -> Iterator[Diagnostic]:
    """Yield the findings of *files*, each with its path for a reader and its bytes; a
    file that is not text has none.
    """
    left = _MAX_BYTES
    for resource, path, data in files:
        left -= len(data)
        if left < 0:
            return
        try:
            text = decode_text(data, path)
        except ResourceNotFoundError:
            continue
        is_page = resource.media_type in _SHOWN_AS_A_PAGE
        findings = list(hidden_text(text, path, is_page=is_page))
        yield from findings[:_MAX_FINDINGS]
