"""Opening PDFs, choosing pages, and what their forms hold.

Not a tool: the scripts beside it import it.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pypdf import PdfReader
from pypdf.errors import DependencyError, EmptyFileError, PyPdfError
from script_call import Failure, input_file, shown_path

logging.getLogger("pypdf").setLevel(
    logging.ERROR
)  # its repairs of slightly broken files are not worth a line each
logging.getLogger("pdfminer").setLevel(logging.ERROR)

READ_ONLY, RADIO, PUSH, COMBO, EDITABLE, MULTIPLE = (
    1 << bit for bit in (0, 15, 16, 17, 18, 21)
)
PAGE = r"\d+|-1|last|end"
PAGE_RANGE = re.compile(rf"\s*({PAGE})\s*(?:(-)\s*({PAGE})?\s*)?", re.IGNORECASE)


def open_pdf(
    name: str, path: str, password: str | None = None
) -> tuple[Path, PdfReader]:
    """Return the file and a reader of it, decrypted. *path* is the JSON Pointer of the
    parameter that named it.

    Raises: Failure, where the file is missing, empty, not a PDF, damaged past reading,
    or locked.
    """
    file = input_file(name, path, (".pdf",))
    shown = shown_path(file)
    another = "Send another file, or a repaired copy of this one."
    with file.open("rb") as opened:
        head = opened.read(1024)
    if not head:
        raise Failure(
            "INVALID_INPUT", f"{shown!r} is empty (0 bytes)", another, path=path
        )
    if b"%PDF-" not in head:
        raise Failure(
            "INVALID_INPUT",
            f"{shown!r} is not a PDF: it has no %PDF header",
            another,
            path=path,
        )
    try:
        reader = PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(password or ""):
            wrong = "the password is wrong" if password else "it needs a password"
            action = "Ask the user for the password and send it as 'password'."
            raise Failure(
                "INVALID_INPUT",
                f"{shown!r} is encrypted and {wrong}",
                action,
                path="/password",
            )
        count = len(reader.pages)
    except DependencyError as error:
        raise ModuleNotFoundError(
            "No module named 'cryptography'", name="cryptography"
        ) from error
    except EmptyFileError as error:
        raise Failure(
            "INVALID_INPUT", f"{shown!r} is empty", another, path=path
        ) from error
    except Failure:
        raise
    except (
        Exception
    ) as error:  # a damaged file fails in many ways, not all of them pypdf's own
        what = (
            str(error)[:100] if isinstance(error, PyPdfError) else type(error).__name__
        )
        raise Failure(
            "INVALID_INPUT", f"{shown!r} is damaged: {what}", another, path=path
        ) from error
    if not count:
        raise Failure("INVALID_INPUT", f"{shown!r} has no pages", another, path=path)
    return file, reader


def parse_pages(text: str, count: int, path: str) -> list[int]:
    """Return the page numbers, from 1, that *text* asks for, in its order.

    >>> parse_pages("1-3, 7-", 8, "/pages"), parse_pages("all", 2, "/pages")
    ([1, 2, 3, 7, 8], [1, 2])
    >>> parse_pages("Last, 2-last", 3, "/pages"), parse_pages("-1", 3, "/pages")
    ([3, 2, 3], [3])
    """
    if text.strip().lower() == "all":
        return list(range(1, count + 1))
    pages: list[int] = []
    for part in text.split(","):
        pages += _parse_range(part, count, path)
    return pages


def _parse_range(part: str, count: int, path: str) -> range:
    """Return the pages of one number or range. The last page is also ``last``, as
    people write, ``end``, as for pdftk, and ``-1``, as in Python.
    """
    found = PAGE_RANGE.fullmatch(part)
    if found is None:
        raise _no_range(part.strip(), path)
    first = _page(found[1], count)
    if found[3]:
        last = _page(found[3], count)
    elif found[2]:
        last = count  # "5-": to the end
    else:
        last = first
    if not 1 <= first <= last <= count:
        action = f"The file has {count} page(s): send a range inside 1-{count}."
        raise Failure(
            "PARAM_OUT_OF_RANGE",
            f"pages {part.strip()!r} are not in the file",
            action,
            path=path,
        )
    return range(first, last + 1)


def _page(text: str, count: int) -> int:
    return int(text) if text.isdecimal() else count


def _no_range(part: str, path: str) -> Failure:
    action = "Send pages like '1-3,7', '5-', 'last' or 'all'."
    if re.fullmatch(r"-\s*\d+", part):
        number = part.removeprefix("-").strip()
        action = (
            f"Send '1-{number}' for the first {number} pages; count the last ones from "
            "1, with page_count of extract."
        )
    return Failure("INVALID_INPUT", f"{part!r} is not a page range", action, path=path)


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form. ``choices`` are the values it takes: pairs of what is stored
    and what is shown.
    """

    name: str
    kind: str
    value: Any
    label: str | None
    choices: tuple[tuple[str, str], ...]
    max_length: int | None
    is_read_only: bool
    is_multiple: bool
    is_editable: bool
    is_list: bool
    """Whether it shows all that can be chosen, and not what is chosen alone."""

    def shown(self) -> dict[str, Any]:
        """Return the field as the contracts describe it, without what it has not."""
        entry: dict[str, Any] = {
            "name": self.name,
            "type": self.kind,
            "value": self.value,
        }
        if self.label:
            entry["label"] = self.label
        if self.kind in ("radio", "choice"):
            entry["options"] = [stored for stored, _ in self.choices]
        if self.max_length is not None:
            entry["max_length"] = self.max_length
        return entry | ({"read_only": True} if self.is_read_only else {})


def form_fields(reader: PdfReader) -> list[FormField]:
    """Return the fields that hold a value, in the form's order: no groups, no push
    buttons.
    """
    fields = []
    for name, field in (reader.get_fields() or {}).items():
        flags = int(field.get("/Ff", 0) or 0)
        if field.get("/FT") is None or (field["/FT"] == "/Btn" and flags & PUSH):
            continue
        kind = {"/Tx": "text", "/Ch": "choice", "/Sig": "signature"}.get(
            field["/FT"], "checkbox"
        )
        if kind == "checkbox" and flags & RADIO:
            kind = "radio"
        states = [state for state in field.get("/_States_", []) if state != "/Off"]
        label = str(field["/TU"]) if field.get("/TU") else None
        limit = _max_length(field) if kind == "text" else None
        # In other kinds these bits have other meanings.
        choice_flags = flags if kind == "choice" else 0
        fields.append(
            FormField(
                name=name,
                kind=kind,
                value=_value(field.get("/V"), kind),
                label=label,
                choices=tuple(_choice(state) for state in states),
                max_length=limit,
                is_read_only=bool(flags & READ_ONLY),
                is_multiple=bool(choice_flags & MULTIPLE),
                is_editable=bool(choice_flags & EDITABLE),
                is_list=kind == "choice" and not choice_flags & COMBO,
            )
        )
    return fields


def _value(value: Any, kind: str) -> Any:
    """Return a field's value as JSON: true or false for a checkbox, None where nothing
    is set.
    """
    value = value.get_object() if hasattr(value, "get_object") else value
    if kind == "checkbox":
        return value not in (None, "/Off", "")
    if value is None or (kind == "radio" and value == "/Off"):
        return None
    if kind == "signature":
        return "signed"
    if isinstance(value, list):
        return [str(part) for part in value]
    return str(value).removeprefix("/") if kind == "radio" else str(value)


def _max_length(field: Any) -> int | None:
    """Return how many characters a text field takes: pypdf's own summary leaves that
    out.
    """
    node = field.indirect_reference.get_object() if field.indirect_reference else field
    for _ in range(16):  # inherited from a parent, which a broken file may make its own
        if "/MaxLen" in node:
            return int(node["/MaxLen"])
        if "/Parent" not in node:
            break
        node = node["/Parent"].get_object()
    return None


def _choice(state: Any) -> tuple[str, str]:
    if isinstance(state, list) and state:
        return str(state[0]), str(state[-1])
    return str(state).removeprefix("/"), str(state).removeprefix("/")
