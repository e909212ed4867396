"""Make small documents of Word, Excel and PowerPoint (ECMA-376): ZIP archives of XML
parts.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

__all__ = ["OFFICE_SUFFIXES", "presentation", "text_document", "unpacked", "workbook"]

OFFICE_SUFFIXES = (".docx", ".xlsx", ".pptx")

_RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_CONTENT_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SLIDES = "http://schemas.openxmlformats.org/presentationml/2006/main"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPE = "application/vnd.openxmlformats-officedocument"

Cell = str | int | float | bool | None
"""The value of a cell; a text that starts with ``=`` is a formula."""


def text_document() -> bytes:
    """Return a document of Word with a heading, paragraphs, a list and a table."""
    paragraphs = [
        _paragraph("Title", style="Heading1"),
        _paragraph("A paragraph of text."),
        _paragraph("Another one, by Zoë.", bold=True),
        _paragraph("one", style="ListBullet"),
        _paragraph("two", style="ListBullet"),
    ]
    rows = ""
    for cells in (("name", "value"), ("Ann", "3"), ("Bob", "10")):
        row = "".join(f"<w:tc>{_paragraph(text)}</w:tc>" for text in cells)
        rows += f"<w:tr>{row}</w:tr>"
    styles = '<w:style w:type="paragraph" w:default="1" w:styleId="Normal">'
    styles += '<w:name w:val="Normal"/></w:style>'
    for style, name in (("Heading1", "heading 1"), ("ListBullet", "List Bullet")):
        styles += f'<w:style w:type="paragraph" w:styleId="{style}">'
        styles += f'<w:name w:val="{name}"/></w:style>'
    columns = "<w:gridCol/><w:gridCol/>"
    return _document(
        "word/document.xml",
        "wordprocessingml.document.main",
        f'<w:document xmlns:w="{_WORD}"><w:body>{"".join(paragraphs)}'
        f"<w:tbl><w:tblPr/><w:tblGrid>{columns}</w:tblGrid>{rows}</w:tbl>"
        f"{_paragraph('The last paragraph.')}<w:sectPr/></w:body></w:document>",
        {
            "styles.xml": (
                "styles",
                "wordprocessingml.styles",
                f'<w:styles xmlns:w="{_WORD}">{styles}</w:styles>',
            )
        },
    )


def workbook(sheets: Mapping[str, Sequence[Sequence[Cell]]]) -> bytes:
    """Return a workbook of Excel with *sheets*: the rows of each, by its name."""
    listed = ""
    parts = {}
    for number, (name, rows) in enumerate(sheets.items(), 1):
        listed += f'<sheet name="{name}" sheetId="{number}" r:id="rId{number}"/>'
        cells = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
        text = f'<worksheet xmlns="{_SHEET}"><sheetData>{cells}</sheetData></worksheet>'
        kind = "spreadsheetml.worksheet"
        parts[f"worksheets/sheet{number}.xml"] = ("worksheet", kind, text)
    return _document(
        "xl/workbook.xml",
        "spreadsheetml.sheet.main",
        f'<workbook xmlns="{_SHEET}" xmlns:r="{_RELATED}"><sheets>{listed}</sheets>'
        "</workbook>",
        parts,
    )


def presentation() -> bytes:
    """Return a presentation of PowerPoint without slides, which would need a layout, a
    master and a theme.
    """
    return _document(
        "ppt/presentation.xml",
        "presentationml.presentation.main",
        f'<p:presentation xmlns:p="{_SLIDES}"><p:sldSz cx="9144000" cy="6858000"/>'
        '<p:notesSz cx="6858000" cy="9144000"/></p:presentation>',
        {},
    )


def unpacked(document: bytes) -> dict[str, bytes]:
    """Return the parts of *document* by their paths."""
    with zipfile.ZipFile(io.BytesIO(document)) as package:
        return {name: package.read(name) for name in package.namelist()}


def _paragraph(text: str, style: str = "", *, bold: bool = False) -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    weight = "<w:rPr><w:b/></w:rPr>" if bold else ""
    return f"<w:p>{properties}<w:r>{weight}<w:t>{escape(text)}</w:t></w:r></w:p>"


def _cell(value: Cell) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{value:d}</v></c>'
    if isinstance(value, int | float):
        return f"<c><v>{value}</v></c>"
    if value.startswith("="):
        return f"<c><f>{escape(value[1:])}</f></c>"
    return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'


def _document(
    main_part: str, main_type: str, text: str, parts: Mapping[str, tuple[str, str, str]]
) -> bytes:
    """Return the archive of a document: its main part, with a content type and a text;
    and further *parts* by their paths beside it, each with its relation to the main
    part, a content type and a text.
    """
    directory, _, name = main_part.rpartition("/")
    types = _override(main_part, main_type)
    related = ""
    texts = {main_part: text}
    for number, (path, (relation, kind, part)) in enumerate(parts.items(), 1):
        types += _override(f"{directory}/{path}", kind)
        related += _relationship(number, relation, path)
        texts[f"{directory}/{path}"] = part
    if related:
        texts[f"{directory}/_rels/{name}.rels"] = _relationships(related)
    package = {
        "[Content_Types].xml": (
            f'<Types xmlns="{_CONTENT_TYPES}"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Default Extension="xml" ContentType="application/xml"/>{types}</Types>'
        ),
        "_rels/.rels": _relationships(_relationship(1, "officeDocument", main_part)),
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path, part in (package | texts).items():
            declared = (
                f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n{part}'
            )
            file.writestr(zipfile.ZipInfo(path), declared)
    return archive.getvalue()


def _override(path: str, kind: str) -> str:
    return f'<Override PartName="/{path}" ContentType="{_TYPE}.{kind}+xml"/>'


def _relationship(number: int, relation: str, path: str) -> str:
    return (
        f'<Relationship Id="rId{number}" Type="{_RELATED}/{relation}" Target="{path}"/>'
    )


def _relationships(related: str) -> str:
    return f'<Relationships xmlns="{_PACKAGE}">{related}</Relationships>'
