"""Inputs of the walk through a collection of skills, as texts that a model can write.

A PDF may be pure text. Office files are made of flat OpenDocument texts and CSV, which
LibreOffice converts: a script of each Office skill starts it.
"""

from __future__ import annotations

import json

_OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
LETTER = f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="{_OFFICE}:office:1.0" xmlns:text="{_OFFICE}:text:1.0"
 xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.3"
 office:mimetype="application/vnd.oasis.opendocument.text">
<office:body><office:text>
<text:tracked-changes>
<text:changed-region xml:id="c1" text:id="c1"><text:insertion><office:change-info>
<dc:creator>Ann</dc:creator><dc:date>2026-01-02T03:04:05</dc:date>
</office:change-info></text:insertion></text:changed-region>
</text:tracked-changes>
<text:p>The fee is 100 EUR per month.</text:p>
<text:p>Signed by <text:change-start text:change-id="c1"/>all three<text:change-end
 text:change-id="c1"/> parties.</text:p>
</office:text></office:body>
</office:document>
"""
"""A letter with a tracked insertion, as flat OpenDocument."""


def _slide(title: str) -> str:
    frame = 'svg:x="2cm" svg:y="2cm" svg:width="20cm" svg:height="3cm"'
    box = f"<draw:text-box><text:p>{title}</text:p></draw:text-box>"
    return (
        f'<draw:page draw:name="{title}">'
        f"<draw:frame {frame}>{box}</draw:frame></draw:page>\n"
    )


DECK = f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="{_OFFICE}:office:1.0" xmlns:text="{_OFFICE}:text:1.0"
 xmlns:draw="{_OFFICE}:drawing:1.0" xmlns:svg="{_OFFICE}:svg-compatible:1.0"
 office:version="1.3"
 office:mimetype="application/vnd.oasis.opendocument.presentation">
<office:body><office:presentation>
{_slide("Plan")}{_slide("Risks")}</office:presentation></office:body>
</office:document>
"""
"""A deck of two slides."""

SALES = "region,units\nnorth,3\nsouth,4\ntotal,=SUM(B2:B3)\n"
"""A table with a formula that is not calculated yet."""


def _pdf(*objects: str) -> str:
    """Return a PDF of *objects*, the first of which is its catalog."""
    text = "%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(text))
        text += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    count = len(objects) + 1
    return (
        f"{text}xref\n0 {count}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {count} /Root 1 0 R >>\n"
        f"startxref\n{len(text)}\n%%EOF\n"
    )


def _stream(content: str, head: str = "") -> str:
    return f"<< {head} /Length {len(content)} >>\nstream\n{content}\nendstream"


_FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
_PAGES = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
_PAGE = (
    "/Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
    "/Resources << /Font << /Helv 5 0 R >> >>"
)
_BOX = "/Type /XObject /Subtype /Form /BBox [0 0 20 20]"

FORM = _pdf(
    "<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R 7 0 R] "
    "/DA (/Helv 12 Tf 0 g) /DR << /Font << /Helv 5 0 R >> >> >> >>",
    _PAGES,
    f"<< {_PAGE} /Annots [6 0 R 7 0 R] >>",
    _stream("BT /Helv 12 Tf 50 715 Td (Full name) Tj 0 -40 Td (Agree) Tj ET"),
    _FONT,
    "<< /Type /Annot /Subtype /Widget /FT /Tx /T (full_name) /P 3 0 R "
    "/Rect [150 710 350 730] /DA (/Helv 12 Tf 0 g) /F 4 >>",
    "<< /Type /Annot /Subtype /Widget /FT /Btn /T (agree) /P 3 0 R "
    "/Rect [150 670 170 690] /V /Off /AS /Off /F 4 "
    "/AP << /N << /Yes 8 0 R /Off 9 0 R >> >> >>",
    _stream("2 2 16 16 re f", _BOX),
    _stream("2 2 16 16 re s", _BOX),
)
"""A page with a text field and a checkbox."""

VALUES = json.dumps(
    [
        {"field_id": "full_name", "description": "n", "page": 1, "value": "Zoe Muller"},
        {"field_id": "agree", "description": "a", "page": 1, "value": "/Yes"},
    ]
)

SCAN = _pdf(
    "<< /Type /Catalog /Pages 2 0 R >>",
    _PAGES,
    f"<< {_PAGE} >>",
    _stream(
        "BT /Helv 12 Tf 50 715 Td (Last name) Tj ET "
        "120 710 m 400 710 l s 50 670 10 10 re s"
    ),
    _FONT,
)
"""A page with a label, a line and a square, and no field."""

FIELDS = json.dumps(
    {
        "pages": [{"page_number": 1, "pdf_width": 612, "pdf_height": 792}],
        "form_fields": [
            {
                "page_number": 1,
                "description": "Last name",
                "field_label": "Last name",
                "label_bounding_box": [50, 66, 106, 80],
                "entry_bounding_box": [120, 64, 400, 82],
                "entry_text": {"text": "Smith", "font_size": 10},
            }
        ],
    }
)

SKILL = "---\nname: greeting\ndescription: Says hello. Use to greet.\n---\nSay hello.\n"

HISTORY = json.dumps(
    {
        "original_description": "Says hello.",
        "best_description": "Greets a person.",
        "best_score": "1/1",
        "iterations_run": 1,
        "history": [
            {
                "iteration": 1,
                "description": "Greets a person.",
                "passed": 1,
                "total": 1,
                "results": [
                    {
                        "query": "greet Ann",
                        "should_trigger": True,
                        "pass": True,
                        "triggers": 3,
                        "runs": 3,
                    }
                ],
            }
        ],
    }
)

BALL = """
from PIL import Image, ImageDraw

from core.easing import interpolate
from core.frame_composer import create_blank_frame
from core.gif_builder import GIFBuilder
from core.validators import validate_gif

builder = GIFBuilder(width=128, height=128, fps=10)
for number in range(12):
    frame = create_blank_frame(128, 128, (240, 248, 255))
    y = int(interpolate(20, 90, number / 11, "linear"))
    ImageDraw.Draw(frame).ellipse([50, y, 78, y + 28], fill=(200, 0, 0))
    builder.add_frame(frame)
builder.save("ball.gif", num_colors=48, optimize_for_emoji=True)
print(validate_gif("ball.gif", is_emoji=True))
"""
"""The model's own code beside the modules of a skill."""

PAGE = "<html><head><title>Shop</title></head><body>Open</body></html>"
CHECK = """
import urllib.request
page = urllib.request.urlopen("http://localhost:8799/").read().decode()
print("TITLE", page.split("<title>")[1].split("<")[0])
"""
"""What a model runs beside a server: it needs no browser."""
