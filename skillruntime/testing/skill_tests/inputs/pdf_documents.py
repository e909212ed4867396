"""Make small PDF documents (ISO 32000-1): plain ones, forms, and pages that a reader
must treat in another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["CROWDED_PAGES", "PLAIN_PAGES", "UNREADABLE_PAGES", "Page", "pdf_document"]

_CHECKED = b"/V/Off/AS/Off/AP<</N<</Yes 4 0 R/Off 5 0 R>>>>"
_FONTS = b"/DR<</Font<</F1 3 0 R>>>>"
_FORM_FIELDS = (
    b"/FT/Tx/T(name)/V(Ann)",
    b"/FT/Btn/T(agreed)" + _CHECKED,
    b"/FT/Btn/Ff 49152/T(paid)" + _CHECKED,
    b"/FT/Ch/Ff 131072/T(size)/Opt[(small)(large)]/V(small)",
    b"/FT/Ch/Ff 2097152/T(days)/Opt[(Mo)(Tu)(We)]/V(Mo)",
    b"/FT/Tx/Ff 1/T(number)/V(7)",
    b"/FT/Tx/Ff 4096/T(notes)/MaxLen 40",
)
"""A text; a check box; a radio button; a list that drops down; a list of which several
can be chosen; a text that is read only; a text of several lines. The flags are those of
tables 221 to 230 of ISO 32000-1.
"""

_DRAWN = (
    b" 0.5 w 72.127 700.373 m 539.651 700.373 l S 72.127 640.258 m 539.651 640.258 l S"
    b" 90.346 660.127 10.251 10.251 re S"
)
"""Two lines across a page and a box between them."""

_LINES = 60
_SILENT = 22


class Page(NamedTuple):
    """The content of a page, and the entries of its stream."""

    content: bytes
    entries: bytes = b""


def _text_page(lines: Sequence[str]) -> Page:
    """Return a page with *lines* of text."""
    shown = b" T* ".join(b"(%b) Tj" % line.encode() for line in lines)
    return Page(b"BT /F1 12 Tf 12 TL 72 720 Td %b ET" % shown + _DRAWN)


PLAIN_PAGES = [
    _text_page([f"A line of text on page {number}."]) for number in range(1, 11)
]
"""Ten pages, each with another line of text, two lines and a box."""

CROWDED_PAGES = [
    _text_page(
        [
            f"Line {number} of a page with {_LINES} lines of text, which is long"
            f" in the field of a form, and longer than what is shown of a page."
            for number in range(1, _LINES + 1)
        ]
    ),
    *PLAIN_PAGES,
    *([Page(_DRAWN)] * _SILENT),
]
"""A long page, plain ones, and many without a text, as scanned pages are."""

UNREADABLE_PAGES = [*PLAIN_PAGES[:2], Page(b"x", b"/Filter/UnknownDecode")]
"""Pages of which the last one has an unknown encoding."""


def pdf_document(pages: Sequence[Page], *, has_form: bool = False) -> bytes:
    """Return a document with *pages*; with *has_form*, the first
    page has a field of each kind: texts, a check box, a radio button, and lists to
    choose from (PDF 1.4).
    """
    widgets = _FORM_FIELDS if has_form else ()
    first_field = 6
    fields = b" ".join(b"%d 0 R" % (first_field + n) for n in range(len(widgets)))
    first_page = first_field + len(widgets)
    catalog = b""
    first_page_has = b""
    if has_form:
        catalog = b"/AcroForm<</Fields[%b]/DA(/F1 12 Tf 0 g)%b>>" % (fields, _FONTS)
        first_page_has = b"/Annots[%b]" % fields
    numbers = range(first_page, first_page + 2 * len(pages), 2)
    listed = b" ".join(b"%d 0 R" % number for number in numbers)
    mark = b"<</Type/XObject/Subtype/Form/BBox[0 0 20 20]/Length 0>>stream\n\nendstream"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R%b>>" % catalog,
        b"<</Type/Pages/Kids[%b]/Count %d>>" % (listed, len(pages)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        mark,
        mark,
    ]
    for place, widget in enumerate(widgets):
        bottom = 640 - 40 * place
        objects.append(
            b"<</Type/Annot/Subtype/Widget%b/Rect[72 %d 272 %d]/DA(/F1 12 Tf 0 g)"
            b"/P %d 0 R>>" % (widget, bottom, bottom + 20, first_page)
        )
    for page, number in zip(pages, numbers, strict=True):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R>>>>%b>>" % (number + 1, first_page_has)
        )
        first_page_has = b""
        content = b"<</Length %d%b>>stream\n%b\nendstream"
        objects.append(content % (len(page.content), page.entries, page.content))
    return _file_of(objects)


def _file_of(objects: Sequence[bytes]) -> bytes:
    """Return a file with *objects* and their table; the first one is the catalog."""
    document = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(document))
        document += b"%d 0 obj%b\nendobj\n" % (number, body)
    table = len(document)
    document += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for place in places:
        document += b"%010d 00000 n \n" % place
    document += b"trailer<</Size %d/Root 1 0 R>>\n" % (len(objects) + 1)
    return document + b"startxref\n%d\n%%%%EOF\n" % table
