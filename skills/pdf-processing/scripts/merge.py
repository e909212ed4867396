# /// script
# requires-python = ">=3.11"
# dependencies = ["pypdf>=6,<8", "cryptography>=42"]
# ///
"""Join PDFs, or chosen pages of them, into one file.

Reads one JSON object on standard input (the contract's ``input``), prints one JSON
object (its ``output``)::

    echo '{"paths": ["a.pdf", "b.pdf"], "output_path": "both.pdf"}' | python
    scripts/merge.py
"""

from __future__ import annotations

import io
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from documents import form_fields, open_pdf, parse_pages
from pypdf import PdfWriter
from script_call import (
    Failure,
    answer,
    check_output,
    inside_workspace,
    shown_path,
    write_output,
)

SKILL = Path(__file__).resolve().parents[1]


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Write the joined file and return where it is. Nothing is written unless every
    input can be read.
    """
    names: list[str] = arguments["paths"]
    ranges: list[str] = arguments.get("page_ranges") or ["all"] * len(names)
    if len(ranges) != len(names):
        message = f"page_ranges has {len(ranges)} entries for {len(names)} paths"
        raise Failure(
            "INVALID_INPUT",
            message,
            "Send one range per path, 'all' for whole files.",
            path="/page_ranges",
        )
    target = inside_workspace(arguments["output_path"], "/output_path")
    inputs, warnings, field_names = [], [], Counter[str]()
    for index, (name, text) in enumerate(zip(names, ranges, strict=True)):
        file, reader = open_pdf(name, f"/paths/{index}", arguments.get("password"))
        inputs.append(
            (
                file,
                reader,
                parse_pages(text, len(reader.pages), f"/page_ranges/{index}"),
            )
        )
        field_names.update({field.name for field in form_fields(reader)})
        if reader.is_encrypted:
            warnings.append(f"{shown_path(file)} is encrypted; the result is not.")
    if shared := sorted(name for name, times in field_names.items() if times > 1):
        names_shown = ", ".join(shared[:10])
        warnings.append(
            "Fields named alike in several files may lose their values; flatten "
            f"first: {names_shown}."
        )
    check_output(
        target,
        "/output_path",
        overwrite=arguments["overwrite"],
        sources=tuple(file for file, _, _ in inputs),
    )
    writer = PdfWriter()
    for file, reader, numbers in inputs:
        title = file.stem if arguments["bookmarks"] else None
        try:
            writer.append(
                reader,
                title,
                [number - 1 for number in numbers],
                import_outline=arguments["bookmarks"],
            )
        except Exception as error:
            message = (
                f"{shown_path(file)!r} is damaged: its pages could not be copied "
                f"({type(error).__name__})"
            )
            raise Failure(
                "INVALID_INPUT",
                message,
                "Leave it out, or send a repaired copy.",
                path="/paths",
            ) from error
    writer.compress_identical_objects(remove_duplicates=True)
    data = io.BytesIO()
    writer.write(data)
    write_output(
        target, data.getvalue(), "/output_path", overwrite=arguments["overwrite"]
    )
    result = {
        "output_path": shown_path(target),
        "page_count": len(writer.pages),
        "bytes": len(data.getvalue()),
        "sources": [
            {"path": shown_path(file), "pages": len(numbers)}
            for file, _, numbers in inputs
        ],
    }
    return result | ({"warnings": warnings} if warnings else {})


if __name__ == "__main__":
    sys.exit(answer(run, SKILL / "contracts" / "merge.json"))
