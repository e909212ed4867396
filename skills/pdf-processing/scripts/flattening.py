"""Turning the widgets of a form into page content: what they show stays, the fields go.

Not a tool: fill_form.py imports it.
"""

from __future__ import annotations

from typing import Any

from pypdf import PageObject, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, StreamObject

HIDDEN, NO_VIEW = 1 << 1, 1 << 5


def flatten_widgets(writer: PdfWriter, page: PageObject) -> None:
    """Draw the current appearance of every visible widget of *page* at its place in the
    page's own content.

    The widgets stay: the caller removes them. One without an appearance, or hidden,
    leaves nothing.
    """
    resources = DictionaryObject(
        page.get("/Resources", DictionaryObject()).get_object()
    )  # it may be shared
    shapes = DictionaryObject(
        resources.get("/XObject", DictionaryObject()).get_object()
    )
    drawn = []
    for annotation in page.get("/Annots") or []:
        widget = annotation.get_object()
        if widget.get("/Subtype") != "/Widget" or int(widget.get("/F", 0)) & (
            HIDDEN | NO_VIEW
        ):
            continue
        appearance = _appearance(widget)
        place = _placement(widget, appearance) if appearance is not None else None
        if appearance is None or place is None:
            continue
        name = f"/Flat{len(drawn)}"
        while name in shapes:
            name += "x"
        appearance[NameObject("/Type")] = NameObject("/XObject")
        appearance[NameObject("/Subtype")] = NameObject("/Form")
        reference = appearance.indirect_reference or writer._add_object(appearance)
        shapes[NameObject(name)] = reference
        drawn.append(f"q {' '.join(f'{part:.4f}' for part in place)} cm {name} Do Q")
    if not drawn:
        return
    resources[NameObject("/XObject")] = shapes
    page[NameObject("/Resources")] = resources
    contents = page.get("/Contents")
    contents = contents.get_object() if contents is not None else None
    if contents is None:
        own = []
    elif isinstance(contents, ArrayObject):
        own = list(contents)
    else:
        own = [page.raw_get("/Contents")]
    before = _stream(writer, "q\n")
    after = _stream(writer, "\nQ\n" + "\n".join(drawn) + "\n")
    page[NameObject("/Contents")] = ArrayObject([before, *own, after])


def _appearance(widget: Any) -> Any:
    """Return the stream that shows the widget as it stands, chosen by its state where
    there are several.
    """
    shown = widget.get("/AP", DictionaryObject()).get_object().get("/N")
    shown = shown.get_object() if shown is not None else None
    if shown is not None and not isinstance(shown, StreamObject):
        shown = shown.get(widget.get("/AS", "/Off"))
        shown = shown.get_object() if shown is not None else None
    return shown if isinstance(shown, StreamObject) else None


def _placement(
    widget: Any, appearance: Any
) -> tuple[float, float, float, float, float, float] | None:
    """Return the matrix that puts the appearance's box on the widget's rectangle (ISO
    32000-1 12.5.5).
    """
    left, bottom, right, top = _box(widget.get("/Rect"))
    x0, y0, x1, y1 = _box(appearance.get("/BBox"))
    a, b, c, d, e, f = (
        float(part) for part in appearance.get("/Matrix", (1, 0, 0, 1, 0, 0))
    )
    corners = [
        (a * x + c * y + e, b * x + d * y + f) for x in (x0, x1) for y in (y0, y1)
    ]
    low_x, high_x = min(x for x, _ in corners), max(x for x, _ in corners)
    low_y, high_y = min(y for _, y in corners), max(y for _, y in corners)
    if high_x <= low_x or high_y <= low_y:
        return None
    wide, tall = (right - left) / (high_x - low_x), (top - bottom) / (high_y - low_y)
    return wide, 0.0, 0.0, tall, left - low_x * wide, bottom - low_y * tall


def _box(rectangle: Any) -> tuple[float, float, float, float]:
    x0, y0, x1, y1 = (
        (float(part) for part in rectangle)
        if rectangle is not None
        else (0.0, 0.0, 0.0, 0.0)
    )
    return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _stream(writer: PdfWriter, text: str) -> Any:
    stream = StreamObject()
    stream.set_data(text.encode("ascii"))
    return writer._add_object(stream)
