"""The fonts in which a form's values are drawn.

Not a tool: fill_form.py imports it. ASCII is drawn in the form's own font, the letters
of Western European languages in one of Adobe's, which every reader has. Other letters
are drawn in DejaVu Sans, which comes with matplotlib: a subset of it is put into the
file.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pypdf import PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    StreamObject,
    TextStringObject,
)

FONT = re.compile(r"(/\S+)\s+(\S+)\s+Tf\b")
RIGHT_TO_LEFT = ("R", "AL")
WIDE = "/DejaVuSans"
COMB = 1 << 24  # ISO 32000-1 table 228
MARGIN = 4  # points that pypdf leaves free beside a text


def missing_letters(text: str) -> str:
    """Return the letters of *text* that cannot be drawn, each once, at most twenty.

    Raises: ModuleNotFoundError, where *text* needs DejaVu Sans and matplotlib is not
    installed.
    """
    missing = [letter for letter in dict.fromkeys(text) if not _can_be_drawn(letter)]
    return "".join(missing)[:20]


def needs_wide_font(texts: Iterable[str]) -> bool:
    """Return whether one of *texts* is to be drawn in DejaVu Sans."""
    return not all(_is_western(text) for text in texts)


def draw_values(
    writer: PdfWriter,
    values: dict[str, Any],
    texts: dict[str, str],
    *,
    regenerate: bool,
) -> None:
    """Set the fields to *values*, as they are shown, and draw them. *texts* is all that
    then stands in each. With *regenerate* readers draw them again, in the form's own
    fonts.
    """
    form = writer.root_object["/AcroForm"].get_object()
    _set_western_fonts(writer, form, texts)
    own_appearances = _set_wide_font(writer, form, texts)
    writer.update_page_form_field_values(None, values, auto_regenerate=regenerate)
    # Who edits the field later types in the form's own font: the subset has no others.
    for widget, appearance in own_appearances:
        del widget["/DA"]
        if appearance is not None:
            widget[NameObject("/DA")] = appearance


def widgets(writer: PdfWriter) -> Iterator[tuple[str, Any]]:
    """Yield each field's name with each of its widgets."""
    for name, field in (writer.get_fields() or {}).items():
        if field.indirect_reference:
            node = field.indirect_reference.get_object()
            for widget in node.get("/Kids", [node]):
                yield name, widget.get_object()


def _set_wide_font(
    writer: PdfWriter, form: Any, texts: dict[str, str]
) -> list[tuple[Any, Any]]:
    """Let the fields whose texts need it have DejaVu Sans, and return their widgets,
    each with the default appearance that was its own, or None.
    """
    texts = {name: text for name, text in texts.items() if not _is_western(text)}
    if not texts:
        return []
    _add_font(form, WIDE, _embedded(writer, "".join(texts.values())))
    own_appearances = []
    for name, widget in widgets(writer):
        if name in texts:
            own_appearances.append((widget, widget.get("/DA")))
            stated = str(widget.get_inherited("/DA", form.get("/DA", "")))
            appearance = _in_wide_font(widget, stated, texts[name])
            widget[NameObject("/DA")] = TextStringObject(appearance)
    return own_appearances


def _can_be_drawn(letter: str) -> bool:
    if _is_western(letter):
        return True
    # Hebrew and Arabic would stand in reversed order, unjoined.
    if unicodedata.bidirectional(letter) in RIGHT_TO_LEFT:
        return False
    return ord(letter) in _letters()


def _is_western(text: str) -> bool:
    """Return whether WinAnsiEncoding has every letter of *text*."""
    return all(letter.encode("cp1252", "ignore") for letter in text)


@cache
def _font_file() -> Path:
    import matplotlib

    return Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")


@cache
def _letters() -> dict[int, str]:
    """Return the code points that DejaVu Sans has."""
    from fontTools.ttLib import TTFont

    with TTFont(_font_file()) as font:
        return dict(font.getBestCmap())


def _add_font(form: Any, name: str, font: Any) -> None:
    resources = form.setdefault(NameObject("/DR"), DictionaryObject()).get_object()
    fonts = resources.setdefault(NameObject("/Font"), DictionaryObject()).get_object()
    fonts[NameObject(name)] = font


def _in_wide_font(widget: Any, stated: str, text: str) -> str:
    """Return the default appearance *stated* with DejaVu Sans as its font. It is wider
    than most: where the text does not fit, pypdf chooses the size.
    """
    used = FONT.search(stated)
    if used is None:
        return f"{WIDE} 0 Tf 0 g"
    size = used[2]
    flags = int(widget.get_inherited("/Ff", 0) or 0)
    left, _, right, _ = (float(part) for part in widget["/Rect"])
    width = abs(right - left) - MARGIN
    if not flags & COMB and _width(text) * float(size) > width:
        size = "0"
    return f"{stated[: used.start()]}{WIDE} {size} Tf{stated[used.end() :]}"


@cache
def _width(text: str) -> float:
    """Return the width of the longest line at a size of one point."""
    from fontTools.ttLib import TTFont

    with TTFont(_font_file()) as font:
        names, metrics = font.getBestCmap(), font["hmtx"].metrics
        units = font["head"].unitsPerEm
        lines = [
            sum(metrics[names[ord(letter)]][0] for letter in line)
            for line in text.splitlines()
        ]
    return max(lines, default=0) / units


def _embedded(writer: PdfWriter, text: str) -> Any:
    """Add a subset of DejaVu Sans with the letters of *text* to the file, as a
    composite font whose codes are its glyphs (ISO 32000-1 9.7.4, Identity-H).
    """
    data = _subset(text)
    from fontTools.ttLib import TTFont

    with TTFont(io.BytesIO(data)) as font:
        scale = 1000 / font["head"].unitsPerEm
        names = font.getBestCmap()
        glyphs = {code: font.getGlyphID(name) for code, name in names.items()}
        widths = [round(font["hmtx"][name][0] * scale) for name in font.getGlyphOrder()]
        head, lines = font["head"], font["hhea"]
        box = [head.xMin, head.yMin, head.xMax, head.yMax]
        box = [round(edge * scale) for edge in box]
        ascent, descent = round(lines.ascent * scale), round(lines.descent * scale)
    base = NameObject("/AAAAAA+DejaVuSans")  # six letters mark a subset (9.6.4)
    descriptor = _dictionary(
        Type="/FontDescriptor",
        FontName=base,
        Flags=32,
        FontBBox=box,
        ItalicAngle=0,
        Ascent=ascent,
        Descent=descent,
        CapHeight=ascent,
        StemV=80,
        FontFile2=_stream(writer, data, Length1=len(data)),
    )
    descendant = _dictionary(
        Type="/Font",
        Subtype="/CIDFontType2",
        BaseFont=base,
        CIDSystemInfo=DictionaryObject(
            {
                NameObject("/Registry"): TextStringObject("Adobe"),
                NameObject("/Ordering"): TextStringObject("Identity"),
                NameObject("/Supplement"): NumberObject(0),
            }
        ),
        FontDescriptor=writer._add_object(descriptor),
        CIDToGIDMap="/Identity",
        DW=widths[0],
        W=ArrayObject([NumberObject(0), _numbers(widths)]),
    )
    font = _dictionary(
        Type="/Font",
        Subtype="/Type0",
        BaseFont=base,
        Encoding="/Identity-H",
        DescendantFonts=ArrayObject([writer._add_object(descendant)]),
        ToUnicode=_stream(writer, _to_unicode(glyphs)),
    )
    return writer._add_object(font)


def _subset(text: str) -> bytes:
    """Return DejaVu Sans with the letters of *text* alone, the same for the same."""
    from fontTools.subset import Options, Subsetter
    from fontTools.ttLib import TTFont

    options = Options(hinting=False, layout_features=[], notdef_outline=True)
    options.drop_tables += ["FFTM"]  # FontForge's own table
    with TTFont(_font_file(), recalcTimestamp=False) as font:
        subsetter = Subsetter(options)
        subsetter.populate(text=text + " ")
        subsetter.subset(font)
        data = io.BytesIO()
        font.save(data)
    return data.getvalue()


def _to_unicode(glyphs: dict[int, int]) -> bytes:
    """Return the CMap by which a reader finds the letters of the glyphs (9.10.3)."""
    entries = []
    for code, glyph in glyphs.items():
        letter = chr(code).encode("utf-16-be").hex()
        entries.append(f"<{glyph:04x}> <{letter}>")
    blocks = []
    for start in range(0, len(entries), 100):  # a block has at most 100 entries
        block = entries[start : start + 100]
        blocks += [f"{len(block)} beginbfchar", *block, "endbfchar"]
    head = [
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap",
        "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def",
        "/CMapName /Adobe-Identity-UCS def /CMapType 2 def",
        "1 begincodespacerange <0000> <ffff> endcodespacerange",
    ]
    tail = ["endcmap CMapName currentdict /CMap defineresource pop end end"]
    return "\n".join([*head, *blocks, *tail]).encode("ascii")


def _dictionary(**entries: Any) -> DictionaryObject:
    made = DictionaryObject()
    for name, value in entries.items():
        if isinstance(value, str):
            value = NameObject(value)
        elif isinstance(value, int):
            value = NumberObject(value)
        elif type(value) is list:
            value = _numbers(value)
        made[NameObject(f"/{name}")] = value
    return made


def _numbers(values: list[int]) -> ArrayObject:
    return ArrayObject([NumberObject(value) for value in values])


def _stream(writer: PdfWriter, data: bytes, **entries: int) -> Any:
    stream = StreamObject()
    stream.set_data(data)
    for name, value in entries.items():
        stream[NameObject(f"/{name}")] = NumberObject(value)
    return writer._add_object(stream.flate_encode())


def _set_western_fonts(writer: PdfWriter, form: Any, texts: dict[str, str]) -> None:
    """Set a font that is known to have the letters of each text beyond ASCII: one of
    Adobe's, in WinAnsiEncoding.

    A font without an encoding has its own, which is not known: of Helvetica, the byte
    of é is Ø.
    """
    for name, widget in widgets(writer):
        if texts.get(name, "").isascii():
            continue
        used = FONT.search(str(widget.get_inherited("/DA", form.get("/DA", ""))))
        key = NameObject(used[1] if used else "/Helv")
        resources = widget.get_inherited(
            "/DR", form.setdefault(NameObject("/DR"), DictionaryObject())
        ).get_object()
        fonts = resources.setdefault(
            NameObject("/Font"), DictionaryObject()
        ).get_object()
        known = fonts.get(key, DictionaryObject()).get_object()
        if known.get("/Encoding") == "/WinAnsiEncoding":
            continue
        base = str(known.get("/BaseFont", ""))
        if not base.startswith(("/Courier", "/Helvetica", "/Times-")):
            base = "/Helvetica"
        font = _dictionary(
            Type="/Font", Subtype="/Type1", BaseFont=base, Encoding="/WinAnsiEncoding"
        )
        fonts[key] = writer._add_object(font)
