"""The syntax tree of a source, by tree-sitter, within a limit of time."""

from __future__ import annotations

import time

from tree_sitter import Language, Node, Parser

__all__ = ["parse_within_limit", "text_of"]

SECONDS_LIMIT = 1.0
"""CPU seconds of parsing one script; ordinary ones of 400,000 characters take 0.2."""

_CHUNK = 4096


def parse_within_limit(language: Language, source: bytes) -> Node | None:
    """Return the root of the syntax tree of *source*; None where parsing takes too long.

    What does not parse is an ``ERROR`` node inside the tree. tree-sitter follows all readings of an ambiguous text at
    the same time: 68 KB of a JavaScript file, damaged by ``f x:`` three thousand times, took more than 25 CPU seconds.
    """
    deadline = time.thread_time() + SECONDS_LIMIT
    parser = Parser(language)
    try:
        # The callbacks run other threads too, and a parser keeps its state between them: each call has its own.
        # A parser that is given the bytes themselves does not call back.
        tree = parser.parse(
            lambda offset, _: source[offset : offset + _CHUNK],
            progress_callback=lambda _offset, _has_error: time.thread_time() > deadline,
        )
    # "Parsing failed" is what a callback that returns true ends in.
    except ValueError:
        return None
    # The text of a node comes from the callback, and tree-sitter crashes where that fails for too deep a recursion. A
    # whole tree is used again as it is, with the bytes; a damaged one would be parsed again, and is not followed.
    return tree.root_node if tree.root_node.has_error else parser.parse(source, tree).root_node


def text_of(node: Node | None) -> str:
    """Return the source of *node*."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""
