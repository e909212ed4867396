"""A progress bar on stderr, for work that takes longer than a second; shorter work shows nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from skillruntime.cli.output import console

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["with_progress"]

DELAY_SECONDS = 1.0
"""Seconds before the bar appears."""

_Item = TypeVar("_Item")


def with_progress(
    items: Iterable[_Item], description: str, *, out: Console | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[_Item]:
    """Yield *items*; after a second, a bar shows how many are done, and is erased at the end.

    It is drawn on *out*, by default stderr, if that is a terminal.
    """
    # A bar needs the total; what is listed here are names, not the skills themselves.
    listed = list(items)
    started = clock()
    done = 0
    for item in listed:
        if clock() - started > DELAY_SECONDS:
            break
        yield item
        done += 1
    if done == len(listed):
        return
    out = out or console(stderr=True)
    # In a log a bar would be a thousand lines.
    if not out.is_terminal:
        yield from listed[done:]
        return
    from rich.progress import Progress

    with Progress(console=out, transient=True) as progress:
        task = progress.add_task(description, total=len(listed), completed=done)
        for item in listed[done:]:
            yield item
            progress.advance(task)
