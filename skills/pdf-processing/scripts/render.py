# /// script
# requires-python = ">=3.11"
# dependencies = ["pypdf>=6,<8", "cryptography>=42", "pypdfium2>=4.30,<6", "pillow>=10"]
# ///
"""Draw pages of a PDF as PNG images.

Reads one JSON object on standard input (the contract's ``input``), prints one JSON
object (its ``output``)::

    echo '{"path": "report.pdf", "pages": "last"}' | python scripts/render.py
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2
from documents import open_pdf, parse_pages
from pypdf import PageObject
from pypdf.generic import DictionaryObject
from script_call import (
    Failure,
    answer,
    check_output,
    inside_workspace,
    shown_path,
    write_output,
)

SKILL = Path(__file__).resolve().parents[1]
MAX_PAGES = 20
MAX_PIXELS = 25_000_000  # of one page: 75 MB of memory
POINTS_PER_INCH = 72
STANDARD_FONTS = ("/Helvetica", "/Times", "/Courier", "/Arial")
EMBEDDED = ("/FontFile", "/FontFile2", "/FontFile3")


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Write one image a page and return where they are. Nothing is written unless every
    page can be drawn.
    """
    password = arguments.get("password")
    file, reader = open_pdf(arguments["path"], "/path", password)
    numbers = parse_pages(arguments["pages"], len(reader.pages), "/pages")
    numbers = list(dict.fromkeys(numbers))
    if len(numbers) > MAX_PAGES:
        raise Failure(
            "PARAM_OUT_OF_RANGE",
            f"{len(numbers)} pages are more than {MAX_PAGES}",
            f"Send at most {MAX_PAGES} pages a call.",
            path="/pages",
        )
    targets = _targets(file, numbers, arguments.get("output_path"))
    for target in targets:
        check_output(target, "/output_path", overwrite=arguments["overwrite"])
    images, warnings = [], []
    with pypdfium2.PdfDocument(file, password=password) as document:
        document.init_forms()  # without it the values of form fields are not drawn
        for number in numbers:
            image, dpi = _drawn(document, number, arguments["dpi"])
            images.append(image)
            if dpi < arguments["dpi"]:
                warnings.append(f"Page {number} is large: it is drawn with {dpi} dpi.")
            warnings += _font_warnings(reader.pages[number - 1], number)
    entries = []
    for number, target, image in zip(numbers, targets, images, strict=True):
        data = _png(image)
        write_output(target, data, "/output_path", overwrite=arguments["overwrite"])
        entry = {
            "page": number,
            "output_path": shown_path(target),
            "width": image.width,
            "height": image.height,
            "bytes": len(data),
        }
        entries.append(entry)
    result: dict[str, Any] = {"page_count": len(reader.pages), "images": entries}
    return result | ({"warnings": warnings} if warnings else {})


def _targets(file: Path, numbers: list[int], wanted: str | None) -> list[Path]:
    """Return the file for each page: *wanted*, or with several pages one beside it for
    each, which has the page's number.
    """
    if wanted and len(numbers) == 1:
        return [inside_workspace(wanted, "/output_path")]
    stem = Path(shown_path(file)).with_suffix("").as_posix() + "-page"
    if wanted:
        stem = Path(wanted).with_suffix("").as_posix()
    return [
        inside_workspace(f"{stem}-{number}.png", "/output_path") for number in numbers
    ]


def _drawn(document: pypdfium2.PdfDocument, number: int, dpi: int) -> tuple[Any, int]:
    """Return the image of a page and its dots an inch: fewer than *dpi* where the page
    is so large that the image would not fit in memory.
    """
    page = document[number - 1]
    width, height = page.get_size()
    most = int((MAX_PIXELS / max(width * height, 1)) ** 0.5 * POINTS_PER_INCH)
    dpi = max(1, min(dpi, most))
    try:
        image = page.render(scale=dpi / POINTS_PER_INCH).to_pil()
    except Exception as error:  # a damaged page fails in many ways
        message = f"page {number} could not be drawn: {type(error).__name__}"
        action = "Leave this page out, or send a repaired copy."
        raise Failure(
            "TOOL_EXECUTION_FAILED", message, action, path="/pages"
        ) from error
    finally:
        page.close()
    return image, dpi


def _png(image: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, format="PNG")
    return data.getvalue()


def _font_warnings(page: PageObject, number: int) -> list[str]:
    """Say so where letters may be missing from the image: those beyond Western Europe,
    on a page with a font that is not in the file.
    """
    try:
        absent = sorted(set(_absent_fonts(page)))
        text = page.extract_text() if absent else ""
    except Exception:  # what pypdf cannot read, pypdfium2 may have drawn all the same
        return []
    letters = dict.fromkeys(c for c in text if not c.encode("cp1252", "ignore"))
    if not letters:
        return []
    return [
        f"Page {number} uses fonts that are not in the file ({', '.join(absent[:5])}): "
        f"letters such as {''.join(letters)[:5]!r} may be missing from the image; "
        "extract has the text."
    ]


def _absent_fonts(page: PageObject) -> Iterator[str]:
    """Yield the names of the page's fonts that are not in the file, of which readers
    take another.
    """
    resources = page.get("/Resources", DictionaryObject()).get_object()
    fonts = resources.get("/Font", DictionaryObject()).get_object()
    for entry in fonts.values():
        font = entry.get_object()
        name = str(font.get("/BaseFont", ""))
        if font.get("/Subtype") == "/Type3" or name.startswith(STANDARD_FONTS):
            continue
        for part in font.get("/DescendantFonts", [font]):
            descendant = part.get_object()
            descriptor = descendant.get("/FontDescriptor", DictionaryObject())
            descriptor = descriptor.get_object()
            if not any(key in descriptor for key in EMBEDDED):
                yield name.removeprefix("/")


if __name__ == "__main__":
    sys.exit(answer(run, SKILL / "contracts" / "render.json"))
