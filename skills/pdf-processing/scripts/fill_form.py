# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "pypdf>=6,<8", "cryptography>=42", "matplotlib>=3.9,<4", "fonttools>=4.28",
# ]
# ///
"""Fill the fields of a PDF form and write the result to a new file.

Reads one JSON object on standard input (the contract's ``input``), prints one JSON
object (its ``output``)::

    echo '{"path": "form.pdf", "fields": {"name": "Ada", "agree": true}}' | python
    scripts/fill_form.py
"""

from __future__ import annotations

import io
import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

from documents import FormField, form_fields, open_pdf
from flattening import flatten_widgets
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, NameObject, TextStringObject
from script_call import (
    Failure,
    answer,
    check_output,
    inside_workspace,
    shown_path,
    write_output,
)
from value_fonts import draw_values, missing_letters, needs_wide_font, widgets

SKILL = Path(__file__).resolve().parents[1]

CONTROLS = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]")  # no font has a tab
SWITCH = {
    "true": True,
    "yes": True,
    "on": True,
    "x": True,
    "false": False,
    "no": False,
    "off": False,
    "": False,
}


def run(arguments: dict[str, Any]) -> dict[str, Any]:
    """Write the filled form and return which fields are filled and which are still
    empty.

    Every wrong field is reported, and then nothing is written.
    """
    file, reader = open_pdf(arguments["path"], "/path", arguments.get("password"))
    fields = {field.name: field for field in form_fields(reader)}
    if not fields:
        what = "no form fields"
        action = "Send a PDF that has a fillable form."
        if _is_xfa(reader):
            what = "an XFA form, which is not supported"
            action = "Print it to a plain PDF form first."
        message = f"{shown_path(file)!r} has {what}"
        raise Failure("INVALID_INPUT", message, action, recoverable=False, path="/path")
    if not arguments["fields"] and not arguments["flatten"]:
        raise Failure(
            "INVALID_INPUT",
            "there is nothing to fill",
            "Send fields, or flatten=true.",
            path="/fields",
        )
    target = inside_workspace(
        arguments.get("output_path") or f"{_stem(file)}-filled.pdf", "/output_path"
    )
    check_output(
        target, "/output_path", overwrite=arguments["overwrite"], sources=(file,)
    )
    stored: dict[str, str | list[str]] = {}
    errors = []
    for name, value in arguments["fields"].items():
        try:
            stored[name] = _stored(fields, name, value)
        except Failure as failure:
            errors.append(failure.error)
    if errors:
        return {"status": "failed", "errors": errors}

    flatten: bool = arguments["flatten"]
    data = _write(reader, fields, stored, flatten=flatten)
    write_output(target, data, "/output_path", overwrite=arguments["overwrite"])
    result: dict[str, Any] = {
        "output_path": shown_path(target),
        "bytes": len(data),
        "filled_fields": list(stored),
        "empty_fields": [
            field.name
            for field in fields.values()
            if field.name not in stored and _is_empty(field)
        ],
    }
    warnings = _warnings(reader, fields)
    if warnings:
        result["warnings"] = warnings
    return result


def _is_empty(field: FormField) -> bool:
    """Return whether a field that takes text or a choice had no value."""
    if field.kind in ("checkbox", "signature"):
        return False
    return field.value in (None, "")


def _stem(file: Path) -> str:
    return Path(shown_path(file)).with_suffix("").as_posix()


def _is_xfa(reader: PdfReader) -> bool:
    form = reader.root_object.get("/AcroForm")
    return form is not None and "/XFA" in form.get_object()


def _stored(fields: dict[str, FormField], name: str, value: Any) -> str | list[str]:
    """Return *value* as the field stores it.

    Raises:
        Failure: the field does not take it; the message says what it takes.
    """
    field = fields.get(name)
    if field is None:
        raise _unknown_field(fields, name)
    if field.is_read_only:
        raise _refusal(name, f"field {name!r} is read-only", "Leave it out.")
    if field.kind == "signature":
        raise _refusal(
            name,
            f"field {name!r} takes a signature, not a value",
            "Leave it out; a person signs it.",
        )
    if field.kind == "checkbox":
        return _stored_switch(field, value)
    is_surplus_list = isinstance(value, list) and not field.is_multiple
    if isinstance(value, bool) or is_surplus_list:
        raise _refusal(
            name,
            f"field {name!r} takes one text",
            f"Send a string; it is of type {field.kind}.",
        )
    stored: str | list[str]
    if field.kind == "text":
        stored = _stored_text(field, unicodedata.normalize("NFC", str(value)))
    else:
        stored = _stored_choice(field, value)
    if field.kind != "radio":  # which has pictures of its own
        _check_letters(field, _drawn(field, stored))
    return stored


def _stored_switch(field: FormField, value: Any) -> str:
    """Return the state of a checkbox."""
    states = [state for state, _ in field.choices] or ["Yes"]
    if not isinstance(value, bool):
        if value in states:
            return f"/{value}"
        text = str(value).lower()
        if text not in SWITCH:
            raise _refusal(
                field.name, f"field {field.name!r} is a checkbox", "Send true or false."
            )
        value = SWITCH[text]
    return f"/{states[0]}" if value else "/Off"


def _stored_text(field: FormField, text: str) -> str:
    longest = field.max_length
    if longest is not None and len(text) > longest:
        message = f"field {field.name!r} takes {longest} characters, got {len(text)}"
        raise _refusal(field.name, message, "Shorten the text.")
    return text


def _stored_choice(field: FormField, value: Any) -> str | list[str]:
    """Return the stored form of what is chosen by its label or by its stored form."""
    parts = value if isinstance(value, list) else [value]
    chosen = [_chosen(field, str(part)) for part in parts]
    if field.kind == "radio":
        return f"/{chosen[0]}"
    if field.is_multiple and isinstance(value, list):
        return chosen
    return chosen[0]


def _chosen(field: FormField, text: str) -> str:
    """Return the option that *text* names; in an editable field it may be none."""
    if text in [stored for stored, _ in field.choices]:
        return text
    for stored, label in reversed(field.choices):
        if text == label:
            return stored or text
    if field.is_editable:
        return unicodedata.normalize("NFC", text)
    known = ", ".join(label for _, label in field.choices[:20])
    raise _refusal(
        field.name,
        f"field {field.name!r} has no option {text!r}",
        f"Its options: {known}.",
    )


def _drawn(field: FormField, value: Any) -> str:
    """Return the text that stands in the field when it has *value*: a list shows all
    that can be chosen.
    """
    if field.is_list:
        return "\n".join(label for _, label in field.choices)
    label = _label(field, value)
    return "\n".join(label) if isinstance(label, list) else str(label)


def _check_letters(field: FormField, text: str) -> None:
    """Raise a failure unless a font has all letters of *text*: the others would be lost
    or be boxes on the page.
    """
    missing = missing_letters(text)
    if missing:
        raise _refusal(
            field.name,
            f"field {field.name!r} has no font for {missing!r}",
            "Send letters of European languages, or tell the user that a person must "
            "type this field.",
        )


def _unknown_field(fields: dict[str, FormField], name: str) -> Failure:
    import difflib

    close = difflib.get_close_matches(name, fields, 3, 0.4) or list(fields)[:10]
    return _refusal(
        name,
        f"the form has no field {name!r}",
        f"Its fields include: {', '.join(close)}.",
    )


def _refusal(name: str, message: str, action: str) -> Failure:
    """Return the error of one field."""
    pointer = "/fields/" + name.replace("~", "~0").replace("/", "~1")
    return Failure("INVALID_INPUT", message, action, path=pointer)


def _write(
    reader: PdfReader,
    fields: dict[str, FormField],
    stored: dict[str, Any],
    *,
    flatten: bool,
) -> bytes:
    writer = PdfWriter(clone_from=reader)
    form = writer.root_object["/AcroForm"].get_object()
    if "/XFA" in form:
        del form["/XFA"]  # readers that know XFA would show its old values instead
    if "/Fields" not in form:
        form[NameObject("/Fields")] = ArrayObject()
    undrawn = _undrawn(writer, fields)
    lacking = _lacking(fields, undrawn, stored)
    if flatten and lacking:
        name, missing = next(iter(lacking.items()))
        message = f"field {name!r} holds {missing!r}, for which there is no font"
        action = "Send flatten=false: readers draw it."
        raise Failure("INVALID_INPUT", message, action, path="/flatten")
    texts = [_drawn(fields[name], value) for name, value in stored.items()]
    # In the form's own fonts readers would lose the letters that these lack.
    is_final = flatten or (needs_wide_font(texts) and not lacking)
    if is_final:  # so what was never drawn must be drawn too
        stored = undrawn | stored
    if stored:
        _draw(writer, fields, stored, is_final=is_final)
    if flatten:
        for page in writer.pages:
            flatten_widgets(writer, page)
        writer.remove_annotations(subtypes="/Widget")
        del writer.root_object["/AcroForm"]
    data = io.BytesIO()
    writer.write(data)
    return data.getvalue()


def _draw(
    writer: PdfWriter,
    fields: dict[str, FormField],
    stored: dict[str, Any],
    *,
    is_final: bool,
) -> None:
    """Store the values and draw them; unless *is_final* readers draw them again."""
    labels = {name: _label(fields[name], value) for name, value in stored.items()}
    texts = {name: _drawn(fields[name], value) for name, value in stored.items()}
    options = _show_labels(writer, fields)
    draw_values(writer, labels, texts, regenerate=not is_final)
    for node, pairs in options:
        node[NameObject("/Opt")] = pairs
    _store(writer, stored)


def _show_labels(
    writer: PdfWriter, fields: dict[str, FormField]
) -> list[tuple[Any, Any]]:
    """Give each list its labels as options, because pypdf draws only options that are
    texts. Return the fields with the options that they had.
    """
    replaced = []
    for name, field in (writer.get_fields() or {}).items():
        known = fields.get(name)
        if known is None or not known.is_list or not field.indirect_reference:
            continue
        node = field.indirect_reference.get_object()
        if "/Opt" in node:
            replaced.append((node, node["/Opt"]))
            labels = [TextStringObject(label) for _, label in known.choices]
            node[NameObject("/Opt")] = ArrayObject(labels)
    return replaced


def _lacking(
    fields: dict[str, FormField], undrawn: dict[str, Any], stored: dict[str, Any]
) -> dict[str, str]:
    """Return the letters that no font has of each value in *undrawn* that stays."""
    lacking = {}
    for name, value in undrawn.items():
        missing = missing_letters(_drawn(fields[name], value))
        if missing and name not in stored:
            lacking[name] = missing
    return lacking


def _undrawn(writer: PdfWriter, fields: dict[str, FormField]) -> dict[str, Any]:
    """Return the values of the text and choice fields that have no appearance of their
    own.
    """
    found = {}
    for name, widget in widgets(writer):
        field = fields.get(name)
        if field is None or field.kind not in ("text", "choice"):
            continue
        if field.value and "/AP" not in widget:
            found[name] = field.value
    return found


def _label(field: FormField, value: Any) -> Any:
    """Return what a reader sees for *value*: pypdf draws the text it is given, and a
    choice stores another.
    """
    if field.kind == "choice" and isinstance(value, str):
        value = dict(field.choices).get(value, value)
    if field.kind in ("text", "choice") and isinstance(value, str):
        return CONTROLS.sub(" ", value)
    return value


def _store(writer: PdfWriter, stored: dict[str, Any]) -> None:
    """Store each value as ISO 32000-1 has it: a name for buttons (12.7.4.2.3), the
    export value for choices; and a text as it was sent.
    """
    for name, field in (writer.get_fields() or {}).items():
        if name not in stored or not field.indirect_reference:
            continue
        value = stored[name]
        node = field.indirect_reference.get_object()
        if field.get("/FT") == "/Btn":
            node[NameObject("/V")] = NameObject(value)
        elif field.get("/FT") in ("/Ch", "/Tx") and isinstance(value, str):
            node[NameObject("/V")] = TextStringObject(value)


def _warnings(reader: PdfReader, fields: dict[str, FormField]) -> list[str]:
    warnings = []
    if any(
        field.value == "signed"
        for field in fields.values()
        if field.kind == "signature"
    ):
        warnings.append("The form was signed; filling it makes the signature invalid.")
    if _is_xfa(reader):
        warnings.append("The form's XFA part was removed; the plain form is filled.")
    if reader.is_encrypted:
        warnings.append("The form is encrypted; the result is not.")
    return warnings


if __name__ == "__main__":
    sys.exit(answer(run, SKILL / "contracts" / "fill-form.json"))
