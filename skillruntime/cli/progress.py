"""A progress bar on stderr, for work over many skills; a few show nothing, nor does a log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from skillruntime.cli.output import console

__all__ = ["with_progress"]

_Item = TypeVar("_Item")
_FEW = 200  # skills that are read in less than a second


def with_progress(items: Iterable[_Item], description: str) -> Iterable[_Item]:
    """Return *items*; while many of them are worked through, a bar on the terminal shows how many are done."""
    listed = list(items)
    if len(listed) <= _FEW:
        return listed
    out = console(stderr=True)
    # In a log a bar would be a thousand lines.
    if not out.is_terminal:
        return listed
    from rich.progress import track

    return track(listed, description, console=out, transient=True)
