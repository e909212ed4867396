"""The PDF tools, on PDFs written by hand and with pypdf."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import NameObject

pytestmark = pytest.mark.processes

MakePdf = Callable[..., bytes]


def put(scripts: Any, name: str, data: bytes) -> Path:
    path: Path = scripts.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def encrypted(data: bytes, password: str) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(data))
    writer.encrypt(password, algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def texts(path: Path) -> list[str]:
    return [page.extract_text().strip() for page in PdfReader(path).pages]


def test_text_comes_page_by_page(pdf: Any, make_pdf: MakePdf) -> None:
    """Pages come in the order asked for, with their numbers; an open range goes to the
    end.
    """
    put(pdf, "in/a.pdf", make_pdf(["One", "Two", "Three", "Four"]))
    calls = [
        {"path": "in/a.pdf", "pages": pages} for pages in ("all", "2", "4,1-2", "3-")
    ]

    answers = [answer.document for answer in pdf.call_each(calls, "extract")]

    found = [
        [(page["page"], page["text"]) for page in document["pages"]]
        for document in answers
    ]
    assert found == [
        [(1, "One"), (2, "Two"), (3, "Three"), (4, "Four")],
        [(2, "Two")],
        [(4, "Four"), (1, "One"), (2, "Two")],
        [(3, "Three"), (4, "Four")],
    ]
    assert answers[0]["path"] == "in/a.pdf" and answers[0]["page_count"] == 4
    assert answers[0]["truncated"] is False and answers[0]["next_page"] is None


def test_tables_come_as_rows_of_cells(pdf: Any, make_pdf: MakePdf) -> None:
    """A ruled table is found by its lines, and by its words with the other strategy."""
    put(pdf, "t.pdf", make_pdf(["Sales"], tables=True))
    calls = [
        {"path": "t.pdf", "content": "both"},
        {"path": "t.pdf", "content": "tables", "table_strategy": "text"},
    ]

    lines, words = [answer.document for answer in pdf.call_each(calls, "extract")]

    assert lines["pages"][0]["tables"] == [
        [["Region", "Sales"], ["North", "1,200"], ["South", "950"]]
    ]
    assert "Sales" in lines["pages"][0]["text"]
    assert "text" not in words["pages"][0]
    assert words["pages"][0]["tables"] == lines["pages"][0]["tables"]


def test_long_documents_stop_and_say_where_to_go_on(
    pdf: Any, make_pdf: MakePdf
) -> None:
    """No page is split, except a first one that alone is too long."""
    put(pdf, "long.pdf", make_pdf(["a" * 300, "b" * 300, "c" * 900]))
    calls = [
        {"path": "long.pdf", "max_characters": 500},
        {"path": "long.pdf", "max_characters": 500, "pages": "3"},
    ]

    whole, cut = [answer.document for answer in pdf.call_each(calls, "extract")]

    assert [page["page"] for page in whole["pages"]] == [1]
    assert (whole["truncated"], whole["next_page"]) == (True, 2)
    assert (len(cut["pages"][0]["text"]), cut["truncated"], cut["next_page"]) == (
        500,
        True,
        None,
    )


def test_pages_without_text_are_named(pdf: Any, make_pdf: MakePdf) -> None:
    """A scanned page is not silently empty."""
    put(pdf, "scan.pdf", make_pdf(["One", "", ""]))

    document = pdf.call({"path": "scan.pdf"}, "extract").document

    assert document["warnings"] == [
        "No text on page(s) 2, 3: probably scanned images, which need OCR."
    ]


def test_form_fields_are_listed(pdf: Any, form_pdf: bytes) -> None:
    """Extract returns all that fill-form needs: names, types, options, limits."""
    put(pdf, "form.pdf", form_pdf)

    document = pdf.call({"path": "form.pdf"}, "extract").document

    assert document["form_fields"] == [
        {
            "name": "name",
            "type": "text",
            "value": None,
            "label": "Full name",
            "max_length": 20,
        },
        {"name": "agree", "type": "checkbox", "value": False},
        {"name": "country", "type": "choice", "value": None, "options": ["DE", "FR"]},
        {"name": "size", "type": "radio", "value": None, "options": ["small", "large"]},
        {"name": "office", "type": "text", "value": "internal", "read_only": True},
    ]


def test_unusable_files_are_explained(pdf: Any, make_pdf: MakePdf) -> None:
    """Missing, empty, foreign, damaged, empty of pages, locked, outside: each says what
    is wrong.
    """
    whole = make_pdf(["One", "Two"])
    put(pdf, "report-2024.pdf", whole)
    put(pdf, "empty.pdf", b"")
    put(pdf, "page.pdf", b"<!doctype html><title>Sign in</title>")
    put(pdf, "cut.pdf", whole[:60])
    put(pdf, "none.pdf", make_pdf([]))
    put(pdf, "locked.pdf", encrypted(whole, "geheim"))
    (pdf.workspace / "folder.pdf").mkdir()
    (pdf.workspace / "link.pdf").symlink_to("/etc/hostname")
    names = [
        "report2024.pdf",
        "empty.pdf",
        "page.pdf",
        "cut.pdf",
        "none.pdf",
        "locked.pdf",
        "folder.pdf",
        "link.pdf",
    ]
    calls: list[dict[str, Any]] = [{"path": name} for name in [*names, "../a.pdf"]]
    calls.append({"path": "locked.pdf", "password": "falsch"})

    errors = [answer.error for answer in pdf.call_each(calls, "extract")]

    assert {error["code"] for error in errors} == {"INVALID_INPUT"}
    said = [error["message"] for error in errors]
    assert said[0] == "'report2024.pdf' does not exist in the workspace"
    assert "report-2024.pdf" in errors[0]["suggested_action"]
    assert said[1] == "'empty.pdf' is empty (0 bytes)"
    assert said[2] == "'page.pdf' is not a PDF: it has no %PDF header"
    assert said[3].startswith("'cut.pdf' is damaged: ")
    assert said[4] == "'none.pdf' has no pages"
    assert said[5] == "'locked.pdf' is encrypted and it needs a password"
    assert said[6] == "'folder.pdf' is a directory"
    assert said[7] == "'link.pdf' is not a file inside the workspace"
    assert said[8] == "'../a.pdf' is not a file inside the workspace"
    assert said[9] == "'locked.pdf' is encrypted and the password is wrong"
    assert "falsch" not in str(errors)


def test_wrong_pages_are_explained(pdf: Any, make_pdf: MakePdf) -> None:
    """A range that the file does not have says how many pages it has."""
    put(pdf, "a.pdf", make_pdf(["One", "Two"]))

    errors = [
        answer.error
        for answer in pdf.call_each(
            [{"path": "a.pdf", "pages": p} for p in ("3", "2-1", "x")], "extract"
        )
    ]

    assert [error["code"] for error in errors] == [
        "PARAM_OUT_OF_RANGE",
        "PARAM_OUT_OF_RANGE",
        "INVALID_INPUT",
    ]
    assert (
        errors[0]["suggested_action"]
        == "The file has 2 page(s): send a range inside 1-2."
    )


def test_a_locked_file_opens_with_its_password(pdf: Any, make_pdf: MakePdf) -> None:
    """Text and tables both come out of an encrypted file; a merged copy says that it is
    no longer encrypted.
    """
    put(pdf, "locked.pdf", encrypted(make_pdf(["One"], tables=True), "geheim"))

    read = pdf.call(
        {"path": "locked.pdf", "password": "geheim", "content": "both"}, "extract"
    ).document
    merged = pdf.call({"paths": ["locked.pdf"], "password": "geheim"}, "merge").document

    assert read["pages"][0]["text"].startswith("One") and read["pages"][0]["tables"]
    assert merged["warnings"] == ["locked.pdf is encrypted; the result is not."]
    assert texts(pdf.workspace / "merged.pdf")[0].startswith("One")


def test_merge_keeps_the_order_asked_for(pdf: Any, make_pdf: MakePdf) -> None:
    """Files and page ranges come in order, each with a bookmark; the same call again
    changes nothing.
    """
    put(pdf, "a.pdf", make_pdf(["A1", "A2", "A3"]))
    put(pdf, "b.pdf", make_pdf(["B1", "B2"]))
    arguments = {
        "paths": ["b.pdf", "a.pdf", "b.pdf"],
        "page_ranges": ["all", "3,1", "2"],
        "output_path": "out/ab.pdf",
    }

    first = pdf.call(arguments, "merge").document
    again = pdf.call(arguments, "merge").document

    assert texts(pdf.workspace / "out" / "ab.pdf") == ["B1", "B2", "A3", "A1", "B2"]
    assert [
        item["/Title"] for item in PdfReader(pdf.workspace / "out" / "ab.pdf").outline
    ] == ["b", "a", "b"]
    assert first == again
    assert first["output_path"] == "out/ab.pdf" and first["page_count"] == 5
    assert first["bytes"] == (pdf.workspace / "out" / "ab.pdf").stat().st_size
    assert first["sources"] == [
        {"path": "b.pdf", "pages": 2},
        {"path": "a.pdf", "pages": 2},
        {"path": "b.pdf", "pages": 1},
    ]


def test_merge_harms_no_file(pdf: Any, make_pdf: MakePdf) -> None:
    """An input, another file, a path outside are not written; one unreadable input
    means nothing is written.
    """
    original = put(pdf, "a.pdf", make_pdf(["A1"])).read_bytes()
    put(pdf, "b.pdf", b"no pdf")
    put(pdf, "other.pdf", b"precious")
    calls = [
        {"paths": ["a.pdf", "a.pdf"], "output_path": "a.pdf"},
        {"paths": ["a.pdf", "a.pdf"], "output_path": "other.pdf"},
        {"paths": ["a.pdf"], "output_path": "../x.pdf"},
        {"paths": ["a.pdf", "b.pdf"], "output_path": "new.pdf"},
        {"paths": ["a.pdf", "a.pdf"], "page_ranges": ["1"]},
        {"paths": ["a.pdf"], "output_path": "a.txt"},
    ]

    errors = [answer.error for answer in pdf.call_each(calls, "merge")]

    places = [
        "/output_path",
        "/output_path",
        "/output_path",
        "/paths/1",
        "/page_ranges",
        "/output_path",
    ]
    assert [error["details"]["path"] for error in errors] == places
    assert original == (pdf.workspace / "a.pdf").read_bytes()
    assert sorted(path.name for path in pdf.workspace.iterdir()) == [
        "a.pdf",
        "b.pdf",
        "other.pdf",
    ]
    assert (pdf.workspace / "other.pdf").read_bytes() == b"precious"
    assert pdf.call(calls[1] | {"overwrite": True}, "merge").document["page_count"] == 2


def test_form_is_filled_into_a_new_file(pdf: Any, form_pdf: bytes) -> None:
    """Text, checkbox, choice by its label and radio are stored as the standard has
    them; the form itself stays.
    """
    original = put(pdf, "in/form.pdf", form_pdf).read_bytes()
    fields = {"name": "Ada Löwe", "agree": True, "country": "Germany"}

    document = pdf.call({"path": "in/form.pdf", "fields": fields}, "fill-form").document

    assert document["output_path"] == "in/form-filled.pdf"
    assert document["filled_fields"] == ["name", "agree", "country"] and document[
        "empty_fields"
    ] == ["size"]
    found = PdfReader(pdf.workspace / "in" / "form-filled.pdf").get_fields() or {}
    assert found["name"]["/V"] == "Ada Löwe"
    assert (
        found["agree"]["/V"] == "/Yes"
        and type(found["agree"]["/V"]).__name__ == "NameObject"
    )
    assert found["country"]["/V"] == "DE"
    assert original == (pdf.workspace / "in" / "form.pdf").read_bytes()


def test_flattened_form_shows_everything_and_has_no_fields(
    pdf: Any, form_pdf: bytes
) -> None:
    """What was filled, now or before, and what was never drawn, is page content; the
    fields are gone.
    """
    put(pdf, "form.pdf", form_pdf)
    pdf.call(
        {
            "path": "form.pdf",
            "fields": {"name": "Ada", "size": "large"},
            "output_path": "step.pdf",
        },
        "fill-form",
    )

    arguments = {
        "path": "step.pdf",
        "fields": {"country": "FR"},
        "flatten": True,
        "output_path": "final.pdf",
    }
    document = pdf.call(arguments, "fill-form").document

    assert document["filled_fields"] == ["country"]
    reader = PdfReader(pdf.workspace / "final.pdf")
    assert not reader.get_fields() and not reader.pages[0].get("/Annots")
    words = reader.pages[0].extract_text().split()
    assert sorted(words) == [
        "Ada",
        "Application",
        "France",
        "LARGE",
        "form",
        "internal",
    ]


def test_every_wrong_field_is_reported_and_nothing_written(
    pdf: Any, form_pdf: bytes
) -> None:
    """One error per field, with what it takes."""
    put(pdf, "form.pdf", form_pdf)
    fields = {
        "nmae": "x",
        "name": "x" * 21,
        "agree": "perhaps",
        "country": "Spain",
        "size": ["small"],
        "office": "x",
    }

    answer = pdf.call({"path": "form.pdf", "fields": fields}, "fill-form")

    assert answer.exit_code == 1
    assert [
        (error["details"]["path"], error["suggested_action"])
        for error in answer.document["errors"]
    ] == [
        ("/fields/nmae", "Its fields include: name, agree."),
        ("/fields/name", "Shorten the text."),
        ("/fields/agree", "Send true or false."),
        ("/fields/country", "Its options: Germany, France."),
        ("/fields/size", "Send a string; it is of type radio."),
        ("/fields/office", "Leave it out."),
    ]
    assert [path.name for path in pdf.workspace.iterdir()] == ["form.pdf"]


def test_forms_that_cannot_be_filled_are_explained(
    pdf: Any, make_pdf: MakePdf, form_pdf: bytes
) -> None:
    """No form, an XFA form, and a call that fills nothing."""
    put(pdf, "plain.pdf", make_pdf(["One"]))
    put(pdf, "form.pdf", form_pdf)
    page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>"
    xfa = ["<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [] /XFA [] >> >>"]
    put(
        pdf,
        "xfa.pdf",
        make_pdf(objects=[*xfa, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page]),
    )
    calls = [
        {"path": name, "fields": {"name": "Ada"}} for name in ("plain.pdf", "xfa.pdf")
    ]

    plain, xfa_error, nothing = [
        answer.error
        for answer in pdf.call_each(
            [*calls, {"path": "form.pdf", "fields": {}}], "fill-form"
        )
    ]

    assert (
        plain["message"] == "'plain.pdf' has no form fields"
        and plain["recoverable"] is False
    )
    assert xfa_error["message"] == "'xfa.pdf' has an XFA form, which is not supported"
    assert nothing["message"] == "there is nothing to fill"


def test_checkboxes_take_what_models_send(pdf: Any, form_pdf: bytes) -> None:
    """A checkbox is ticked by true, by its word, and by the name of its state."""
    put(pdf, "form.pdf", form_pdf)
    given = [True, "true", "Yes"]
    calls = [
        {"path": "form.pdf", "fields": {"agree": value}, "output_path": f"{value}.pdf"}
        for value in given
    ]

    pdf.call_each(calls, "fill-form")

    for value in given:
        assert (PdfReader(pdf.workspace / f"{value}.pdf").get_fields() or {})["agree"][
            "/V"
        ] == "/Yes"


def test_letters_that_the_forms_font_does_not_have_are_refused(
    pdf: Any, form_pdf: bytes
) -> None:
    """They would be question marks on the page; nothing is written."""
    put(pdf, "form.pdf", form_pdf)

    for name, missing in (("李小龙", "李小龙"), ("Łódź", "Łź")):
        error = pdf.call(
            {"path": "form.pdf", "fields": {"name": name}}, "fill-form"
        ).error
        assert error["message"] == f"the font of field 'name' has no {missing!r}"
        assert "a person must type" in error["suggested_action"]
    assert (
        pdf.call(
            {"path": "form.pdf", "fields": {"name": "José Müller"}}, "fill-form"
        ).exit_code
        == 0
    )
    assert not (pdf.workspace / "form-filled-2.pdf").exists()


@pytest.mark.parametrize(
    "entries",
    [
        {},
        {"/BaseFont": "/Times-Roman"},
        {"/Encoding": "/StandardEncoding"},
        {"/Subtype": "/TrueType", "/BaseFont": "/ABCDEF+Subset"},
        {"/Encoding": "/WinAnsiEncoding"},
    ],
)
def test_letters_beyond_ascii_show_as_they_are(
    pdf: Any, form_pdf: bytes, entries: dict[str, str]
) -> None:
    """Whatever the form says of its font and its encoding; read from the page by
    another library.
    """
    writer = PdfWriter(clone_from=io.BytesIO(form_pdf))
    font = writer.root_object["/AcroForm"]["/DR"]["/Font"]["/Helv"]
    del font["/Encoding"]
    font.update(
        {NameObject(name): NameObject(value) for name, value in entries.items()}
    )
    writer.write(pdf.workspace / "form.pdf")
    values = ["Paris é €", "naïve façade Ø ß Å", "“q” – ™"]
    calls = [
        {
            "path": "form.pdf",
            "fields": {"name": value},
            "flatten": True,
            "overwrite": True,
        }
        for value in values
    ]

    for call, value in zip(calls, values, strict=True):
        pdf.call(call, "fill-form")
        with pypdfium2.PdfDocument(pdf.workspace / "form-filled.pdf") as document:
            assert value in document[0].get_textpage().get_text_range()


def test_a_value_that_the_form_holds_is_not_flattened_into_question_marks(
    pdf: Any, form_pdf: bytes
) -> None:
    """One that was never drawn, in letters that the font lacks: refused with flatten,
    kept without.
    """
    held = form_pdf.replace(b"/V (internal)", b"/V <FEFF674E5C0F9F99>")
    (pdf.workspace / "form.pdf").write_bytes(held)

    flat = pdf.call(
        {"path": "form.pdf", "fields": {"name": "A"}, "flatten": True}, "fill-form"
    )
    kept = pdf.call(
        {"path": "form.pdf", "fields": {"name": "A"}, "output_path": "kept.pdf"},
        "fill-form",
    )

    assert (
        flat.error["message"]
        == "field 'office' holds '李小龙', which the form's font does not have"
    )
    assert kept.document["filled_fields"] == ["name"]
    fields = pdf.call({"path": "kept.pdf"}, "extract").document["form_fields"]
    assert (
        next(field["value"] for field in fields if field["name"] == "office")
        == "李小龙"
    )
    assert not (pdf.workspace / "form-filled.pdf").exists()
