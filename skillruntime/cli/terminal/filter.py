"""The hook of every console: it removes control characters from whatever a command
draws.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import (
    Console,
    ConsoleOptions,
    ConsoleRenderable,
    RenderHook,
    RenderResult,
)
from rich.segment import Segment

from skillruntime.cli.terminal.text import CONTROLS, without_controls

__all__ = ["WithoutControls"]


class WithoutControls(RenderHook):
    """A console's hook that removes control characters from every text, whichever
    command draws it.
    """

    def process_renderables(
        self, renderables: list[ConsoleRenderable]
    ) -> list[ConsoleRenderable]:
        """Return *renderables*, each drawn without control characters."""
        return [_Filtered(each) for each in renderables]


@dataclass(frozen=True, slots=True)
class _Filtered:
    inner: ConsoleRenderable

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        for segment in console.render(self.inner, options):
            # A segment with control codes is rich's own: it moves the cursor of the
            # progress bar.
            if segment.control or not CONTROLS.search(segment.text):
                yield segment
            else:
                yield Segment(without_controls(segment.text), segment.style)
