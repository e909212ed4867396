# /// script
# requires-python = ">=3.11"
# dependencies = ["pypdf>=6,<8", "pdfplumber>=0.11.5,<0.12", "cryptography>=42"]
# ///
"""Extract text, tables and form fields from a PDF, page by page.

Reads one JSON object on standard input (the contract's ``input``), prints one JSON
object (its ``output``)::

    echo '{"path": "report.pdf", "pages": "1-3", "content": "both"}' | python
    scripts/extract.py
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from documents import form_fields, open_pdf, parse_pages
from pypdf import PdfReader
from script_call import answer, shown_path

SKILL = Path(__file__).resolve().parents[1]


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the pages asked for, up to ``max_characters``, and where to go on."""
    password = arguments.get("password")
    file, reader = open_pdf(arguments["path"], "/path", password)
    numbers = parse_pages(arguments["pages"], len(reader.pages), "/pages")
    content: str = arguments["content"]
    left: int = arguments["max_characters"]
    pages: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    silent: list[int] = []
    next_page = None
    is_cut = False
    with _plumber(file, password) if content != "text" else nullcontext() as plumber:
        for number in numbers:
            if left <= 0:
                next_page = number
                break
            try:
                page: dict[str, Any] = {"page": number}
                if content != "tables":
                    page["text"] = text = (
                        reader.pages[number - 1].extract_text() or ""
                    ).strip()
                    if not text:
                        silent.append(number)
                if content != "text":
                    page["tables"] = _tables(
                        plumber, number, arguments["table_strategy"]
                    )
            except Exception as error:  # one broken page must not cost the others
                errors.append(_page_error(number, error))
                continue
            size = _size(page)
            if size > left:
                if pages:
                    next_page = number
                    break
                is_cut = True
                _cut(page, left)
            left -= size
            pages.append(page)
    status = "success"
    if errors:
        status = "partial_success" if pages else "failed"
    result: dict[str, Any] = {
        "status": status,
        "path": shown_path(file),
        "page_count": len(reader.pages),
        "pages": pages,
        "truncated": is_cut or next_page is not None,
        "next_page": next_page,
    }
    if metadata := _metadata(reader):
        result["metadata"] = metadata
    if fields := form_fields(reader):
        result["form_fields"] = [field.shown() for field in fields[:200]]
    if warnings := _warnings(silent, is_cut, len(fields)):
        result["warnings"] = warnings
    return result | ({"errors": errors} if errors else {})


def _plumber(file: Path, password: str | None) -> Any:
    """Open the file for its tables. pdfplumber is slow to import, and text alone does
    not need it.
    """
    import pdfplumber

    return pdfplumber.open(file, password=password or "")


def _tables(plumber: Any, number: int, strategy: str) -> list[list[list[str]]]:
    """Return each table as rows of cells; an empty cell is an empty string."""
    page = plumber.pages[number - 1]
    found = page.extract_tables(
        {"vertical_strategy": strategy, "horizontal_strategy": strategy}
    )
    page.close()
    tables = []
    for table in found:
        rows = [[(cell or "").strip() for cell in row] for row in table]
        # Words far apart leave empty rows between them.
        rows = [row for row in rows if any(row)]
        if rows:
            tables.append(rows)
    return tables


def _size(page: dict[str, Any]) -> int:
    size = len(page.get("text", ""))
    for table in page.get("tables", []):
        for row in table:
            size += sum(map(len, row))
    return size


def _cut(page: dict[str, Any], left: int) -> None:
    """Shorten a first page that alone is too long: its text to what fits, its tables to
    whole rows.
    """
    page["text"] = page.get("text", "")[:left]
    left -= len(page["text"])
    for table in page.get("tables", []):
        for index, row in enumerate(table):
            left -= sum(map(len, row))
            if left < 0:
                del table[index:]
                break
    if "tables" in page:
        page["tables"] = [table for table in page["tables"] if table]


def _page_error(number: int, error: Exception) -> dict[str, Any]:
    return {
        "code": "TOOL_EXECUTION_FAILED",
        "message": f"page {number} could not be read: {type(error).__name__}",
        "recoverable": False,
        "suggested_action": "Go on without this page, or send a repaired copy.",
    }


def _metadata(reader: PdfReader) -> dict[str, str]:
    """Return title, author, subject and creation date, where the file says them and
    they can be read.
    """
    found = {}
    for name in ("title", "author", "subject", "creation_date"):
        try:
            value = getattr(reader.metadata, name, None)
        except Exception:  # a date no calendar has, an object that is not there
            continue
        if value:
            found[name] = (
                value.isoformat() if hasattr(value, "isoformat") else str(value)[:500]
            )
    return found


def _warnings(silent: list[int], is_cut: bool, fields: int) -> list[str]:
    warnings = []
    if silent:
        shown = ", ".join(map(str, silent[:20])) + (", ..." if len(silent) > 20 else "")
        warnings.append(
            f"No text on page(s) {shown}: probably scanned images, which need OCR."
        )
    if is_cut:
        warnings.append(
            "The first page alone is longer than max_characters and was cut."
        )
    if fields > 200:
        warnings.append(f"The form has {fields} fields; the first 200 are listed.")
    return warnings


if __name__ == "__main__":
    sys.exit(answer(run, SKILL / "contracts" / "extract.json"))
