"""Read the JSON values that the code blocks of a skill's instructions show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skillruntime.contract.reading.json_text import LenientParser, UnreadableError

__all__ = ["shown_values"]

_JSON_LANGUAGES = ("", "json", "json5", "jsonc")
_LONGEST_BLOCK = 20_000


def shown_values(instructions: str) -> Iterator[Any]:
    r"""Yield the objects and lists of the code blocks in *instructions*. They may have
    comments, as examples do.

    >>> list(shown_values("```json\n{\"top\": 3, /* words */}\n```\n```sh\nls\n```"))
    [{'top': 3}]
    """
    for language, block in _code_blocks(instructions):
        if language not in _JSON_LANGUAGES or block.lstrip()[:1] not in ("{", "["):
            continue
        try:
            yield LenientParser(block[:_LONGEST_BLOCK]).value(0)
        except (UnreadableError, RecursionError):
            continue


def _code_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of each fenced code block in *text*."""
    language = ""
    block: list[str] | None = None
    for line in text.splitlines():
        mark = line.strip()
        if not mark.startswith("```"):
            if block is not None:
                block.append(line)
        elif block is None:
            language = mark.strip("`").strip().lower()
            block = []
        else:
            yield language, "\n".join(block)
            block = None
