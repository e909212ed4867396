"""The PDF tools, on PDFs written by hand and with pypdf."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from PIL import Image, ImageChops
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


@pytest.mark.parametrize(
    ("pages", "numbers"),
    [
        ("last", [3]),
        ("Last", [3]),
        ("end", [3]),
        ("-1", [3]),
        ("2-last", [2, 3]),
        ("2--1", [2, 3]),
        ("2 - end", [2, 3]),
        ("last, 1-last", [3, 1, 2, 3]),
        ("last-", [3]),
    ],
)
def test_the_last_page_has_the_names_that_people_give_it(
    pdf: Any, make_pdf: MakePdf, pages: str, numbers: list[int]
) -> None:
    """As a word, as for pdftk and as in Python, also at the end of a range."""
    put(pdf, "a.pdf", make_pdf(["P1", "P2", "P3"]))

    read = pdf.call({"path": "a.pdf", "pages": pages}, "extract").document
    arguments = {"paths": ["a.pdf"], "page_ranges": [pages], "overwrite": True}
    pdf.call(arguments, "merge")

    assert [page["page"] for page in read["pages"]] == numbers
    assert texts(pdf.workspace / "merged.pdf") == [f"P{number}" for number in numbers]


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
            [{"path": "a.pdf", "pages": p} for p in ("3", "2-1", "x", "-3")], "extract"
        )
    ]

    assert [error["code"] for error in errors] == [
        "PARAM_OUT_OF_RANGE",
        "PARAM_OUT_OF_RANGE",
        "INVALID_INPUT",
        "INVALID_INPUT",
    ]
    assert errors[3]["suggested_action"].startswith("Send '1-3' for the first 3 pages")
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


def test_letters_that_no_font_has_are_refused(pdf: Any, form_pdf: bytes) -> None:
    """They would be boxes or question marks on the page; nothing is written."""
    put(pdf, "form.pdf", form_pdf)

    for name, missing in (
        ("李小龙", "李小龙"),
        ("Łódź 🍎", "🍎"),
        ("שלום", "שלום"),  # DejaVu Sans has these, but they would stand backwards
    ):
        error = pdf.call(
            {"path": "form.pdf", "fields": {"name": name}}, "fill-form"
        ).error
        assert error["message"] == f"field 'name' has no font for {missing!r}"
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
        == "field 'office' holds '李小龙', for which there is no font"
    )
    assert kept.document["filled_fields"] == ["name"]
    fields = pdf.call({"path": "kept.pdf"}, "extract").document["form_fields"]
    assert (
        next(field["value"] for field in fields if field["name"] == "office")
        == "李小龙"
    )
    assert not (pdf.workspace / "form-filled.pdf").exists()


@pytest.mark.parametrize(
    "value", ["Łódź", "Zoë ß", "Ωμέγα", "Москва", "Łódź\tœuvre", "Ło\u0301dz\u0301"]
)
@pytest.mark.parametrize("flatten", [True, False])
def test_european_letters_are_drawn(
    pdf: Any, form_pdf: bytes, value: str, flatten: bool
) -> None:
    """What stands in the field can be read from the page, and the value from the field;
    a second call writes the same bytes.
    """
    put(pdf, "form.pdf", form_pdf)
    arguments = {"path": "form.pdf", "fields": {"name": value}, "flatten": flatten}

    first = pdf.call(arguments, "fill-form").document
    again = pdf.call(arguments, "fill-form").document

    composed = unicodedata.normalize("NFC", value)
    assert first == again
    if flatten:
        with pypdfium2.PdfDocument(pdf.workspace / "form-filled.pdf") as document:
            shown = document[0].get_textpage().get_text_range()
        assert composed.replace("\t", " ") in shown
        return
    reader = PdfReader(pdf.workspace / "form-filled.pdf")
    assert (reader.get_fields() or {})["name"]["/V"] == composed


def test_a_field_in_another_font_keeps_its_own_for_who_edits_it(
    pdf: Any, form_pdf: bytes
) -> None:
    """The subset is that of the picture alone; readers are not asked to draw it again,
    and what was never drawn is.
    """
    put(pdf, "form.pdf", form_pdf)

    pdf.call({"path": "form.pdf", "fields": {"name": "Łódź"}}, "fill-form")

    reader = PdfReader(pdf.workspace / "form-filled.pdf")
    form = reader.root_object["/AcroForm"]
    name, *_, office = [each.get_object() for each in form["/Fields"]]
    assert not form["/NeedAppearances"].value
    assert name["/DA"] == "/Helv 12 Tf 0 g"
    assert "/DejaVuSans" in name["/AP"]["/N"]["/Resources"]["/Font"]
    assert "/Helv" in office["/AP"]["/N"]["/Resources"]["/Font"]


def test_a_list_shows_all_its_labels(pdf: Any, form_pdf: bytes) -> None:
    """Also one whose options have a stored form beside what people see, which it
    keeps.
    """
    listed = form_pdf.replace(b"/Ff 131072 ", b"/Ff 000000 ")
    listed = listed.replace(b"[72 620 200 640]", b"[72 610 200 650]")
    listed = listed.replace(b"(France)", b"<FEFF0141016300640179>")
    put(pdf, "form.pdf", listed)
    call = {"path": "form.pdf", "fields": {"country": "Germany"}, "overwrite": True}

    pdf.call(call, "fill-form")
    field = (PdfReader(pdf.workspace / "form-filled.pdf").get_fields() or {})["country"]
    pdf.call(call | {"flatten": True}, "fill-form")

    assert field["/V"] == "DE" and field["/Opt"][1] == ["FR", "ŁţdŹ"]
    shown = texts(pdf.workspace / "form-filled.pdf")[0]
    assert "Germany" in shown and "ŁţdŹ" in shown


def test_a_text_that_is_too_wide_in_another_font_is_drawn_smaller(
    pdf: Any, form_pdf: bytes
) -> None:
    """Nothing of it is cut off at the edge of the field."""
    put(pdf, "form.pdf", form_pdf.replace(b"/MaxLen 20", b"/MaxLen 60"))
    value = "Łódź, and a text that is much too long"

    pdf.call(
        {"path": "form.pdf", "fields": {"name": value}, "flatten": True}, "fill-form"
    )

    with pypdfium2.PdfDocument(pdf.workspace / "form-filled.pdf") as document:
        page = document[0].get_textpage()
        start = page.get_text_range().index(value)
        _, _, right, _ = page.get_charbox(start + len(value) - 1)
    assert right < 300  # the right edge of the field


def test_pages_are_drawn_as_images(
    pdf: Any, form_pdf: bytes, make_pdf: MakePdf
) -> None:
    """The last page goes to the file that is named, several go to one each; what is
    drawn is the page, with the values of its form.
    """
    put(pdf, "in/a.pdf", make_pdf(["One", "", "Three"]))
    put(pdf, "form.pdf", form_pdf)
    calls = [
        {"path": "in/a.pdf", "pages": "last", "output_path": "out/last.png"},
        {"path": "in/a.pdf", "pages": "1-2", "dpi": 72},
        {"path": "form.pdf"},
    ]

    last, several, form = [answer.document for answer in pdf.call_each(calls, "render")]

    (image,) = last["images"]
    assert last["page_count"] == 3
    assert (image["page"], image["output_path"]) == (3, "out/last.png")
    assert image["width"] == 1275 and image["height"] in (1650, 1651)
    assert [entry["output_path"] for entry in several["images"]] == [
        "in/a-page-1.png",
        "in/a-page-2.png",
    ]
    assert has_ink(pdf.workspace / "out" / "last.png")
    assert has_ink(pdf.workspace / "in" / "a-page-1.png")
    assert not has_ink(pdf.workspace / "in" / "a-page-2.png")
    assert form["images"][0]["bytes"] == (
        (pdf.workspace / "form-page-1.png").stat().st_size
    )


def test_the_values_of_a_form_are_in_the_image(pdf: Any, form_pdf: bytes) -> None:
    """A filled form does not look like an empty one."""
    put(pdf, "form.pdf", form_pdf)
    pdf.call({"path": "form.pdf", "fields": {"name": "Łódź"}}, "fill-form")

    for name in ("form", "form-filled"):
        pdf.call({"path": f"{name}.pdf", "output_path": f"{name}.png"}, "render")

    with (
        Image.open(pdf.workspace / "form.png") as empty,
        Image.open(pdf.workspace / "form-filled.png") as filled,
    ):
        assert ImageChops.difference(empty, filled).getbbox()


def test_an_image_replaces_no_other_file(pdf: Any, make_pdf: MakePdf) -> None:
    """The same call again changes nothing; another page of the same name is refused
    until the user agrees.
    """
    put(pdf, "a.pdf", make_pdf(["One", "Two"]))
    call = {"path": "a.pdf", "output_path": "p.png"}

    first, again = pdf.call_each([call, call], "render")
    error = pdf.call(call | {"pages": "2"}, "render").error
    replaced = pdf.call(call | {"pages": "2", "overwrite": True}, "render")

    assert first.document == again.document
    assert error["message"] == "'p.png' exists already"
    assert replaced.document["images"][0]["page"] == 2


def test_a_page_that_is_too_large_is_drawn_with_fewer_dots(
    pdf: Any, make_pdf: MakePdf
) -> None:
    """A drawing of three metres does not fill the memory, and the answer says so."""
    put(pdf, "big.pdf", make_pdf(["One"]).replace(b"612 792", b"9999 999"))

    document = pdf.call({"path": "big.pdf", "dpi": 300}, "render").document

    assert document["warnings"] == ["Page 1 is large: it is drawn with 113 dpi."]
    image = document["images"][0]
    assert image["width"] * image["height"] <= 25_000_000


def test_more_pages_than_a_call_draws_are_refused(pdf: Any, make_pdf: MakePdf) -> None:
    """Twenty-one are too many; the message says how many may be sent."""
    put(pdf, "long.pdf", make_pdf(["x"] * 21))

    error = pdf.call({"path": "long.pdf", "pages": "all"}, "render").error

    assert error["message"] == "21 pages are more than 20"
    assert error["suggested_action"] == "Send at most 20 pages a call."


def test_letters_whose_font_is_not_in_the_file_are_named(
    pdf: Any, make_pdf: MakePdf
) -> None:
    """A Chinese font that the reader is to have: the image may lack its letters."""
    info = "/CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >>"
    base = "/Type /Font /BaseFont /STSong-Light"
    content = "BT /F1 24 Tf 40 100 Td <53174EAC0041> Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        (
            f"<< {base} /Subtype /Type0 /Encoding /UniGB-UCS2-H /DescendantFonts "
            f"[<< {base} /Subtype /CIDFontType0 {info} /FontDescriptor << /Type "
            "/FontDescriptor /FontName /STSong-Light /Flags 6 >> >>] >>"
        ),
        (
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Resources << /Font "
            "<< /F1 3 0 R >> >> /Contents 5 0 R >>"
        ),
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
    ]
    put(pdf, "cjk.pdf", make_pdf(objects=objects))

    document = pdf.call({"path": "cjk.pdf"}, "render").document

    assert document["warnings"] == [
        "Page 1 uses fonts that are not in the file (STSong-Light): letters such as "
        "'北京' may be missing from the image; extract has the text."
    ]


def has_ink(path: Path) -> bool:
    """Return whether the image is not of one colour."""
    with Image.open(path) as image:
        low, high = image.convert("L").getextrema()
    return bool(low < high)
