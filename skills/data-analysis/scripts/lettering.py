"""The letters of a chart: which the installed fonts have, and what stands for those
that none has.

Not a tool: drawing.py imports it. No box is drawn in place of a letter:
``[1]`` stands there, and a note says what it means.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from itertools import groupby

import matplotlib
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

FAMILIES = (
    "DejaVu Sans",  # comes with matplotlib: Latin, Greek, Cyrillic and more
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "Arial Unicode MS",
)
WEIGHTS = ("normal", "bold")  # the title is bold
SHAPES_TEXT = (3, 11)  # the first matplotlib that draws Arabic and Hebrew as they read
RIGHT_TO_LEFT = ("R", "AL")
MOST_NAMED = 40


@dataclass(slots=True)
class Lettering:
    """Writes the texts of one chart, and knows what it could not write."""

    families: list[str] = field(default_factory=lambda: _installed())
    marks: dict[str, str] = field(default_factory=dict)
    """What stands in the chart for each piece of text that no font has."""
    _letters: set[int] = field(default_factory=set)

    def written(self, text: str) -> str:
        """Return *text* with a mark for each piece that no font has."""
        composed = unicodedata.normalize("NFC", " ".join(text.split()))
        if composed.isascii() and composed.isprintable():
            return composed
        if not self._letters:
            self._letters = _letters_of(self.families)
        parts = []
        for is_there, letters in groupby(composed, self._has):
            part = "".join(letters)
            if is_there:
                parts.append(part)
            else:
                parts.append(self.marks.setdefault(part, f"[{len(self.marks) + 1}]"))
        return "".join(parts)

    def notes(self) -> list[str]:
        """Return what the marks in the chart mean."""
        if not self.marks:
            return []
        named = [f"{mark} is {part!r}" for part, mark in self.marks.items()]
        shown = ", ".join(named[:MOST_NAMED])
        if len(named) > MOST_NAMED:
            shown += f", and {len(named) - MOST_NAMED} more"
        return [
            "No installed font has some letters, so the chart shows a number in their "
            f"place: {shown}. A font such as Noto Sans CJK, once installed, draws "
            "Chinese, Japanese and Korean."
        ]

    def _has(self, letter: str) -> bool:
        is_reversed = unicodedata.bidirectional(letter) in RIGHT_TO_LEFT
        if is_reversed and matplotlib.__version_info__[:2] < SHAPES_TEXT:
            return False
        return ord(letter) in self._letters


def _installed() -> list[str]:
    names = {font.name for font in fontManager.ttflist}
    return [family for family in FAMILIES if family in names]


def _letters_of(families: list[str]) -> set[int]:
    """Return the code points that the fonts have in each weight."""
    found: list[set[int]] = []
    for weight in WEIGHTS:
        letters: set[int] = set()
        for family in families:
            font = FontProperties(family=[family], weight=weight)
            letters.update(get_font(findfont(font)).get_charmap())
        found.append(letters)
    return set.intersection(*found)
