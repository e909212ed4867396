"""How each script of the 17 skills of anthropics/skills is called once, on an input
that this library's own tools wrote, or why it is not called.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.real_skills import walk_inputs as texts
from benchmarks.real_skills.steps import Result

Check = Callable[[Result], bool]


@dataclass(frozen=True, slots=True)
class Put:
    """Write a text with ``write_skill_input``."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Read a file that a script made, and write it with *old* replaced by *new*."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Run:
    """Call *name*, which starts *script*; *is_done* looks at what it made.

    In arguments, ``{made:PATH}`` is where the file or directory PATH is that an earlier
    script made.
    """

    script: str
    name: str
    arguments: Mapping[str, Any]
    is_done: Check


@dataclass(frozen=True, slots=True)
class OwnCode:
    """Run *code*, which the model writes beside the modules *scripts*, in the directory
    that ``load_skill`` names.
    """

    scripts: tuple[str, ...]
    code: str
    is_done: Check


@dataclass(frozen=True, slots=True)
class Imported:
    """Modules that the called scripts *by* import; they are not started themselves."""

    scripts: tuple[str, ...]
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """Scripts that are not called, and what they need."""

    scripts: tuple[str, ...]
    what: str


Item = Put | Edit | Run | OwnCode | Imported | Needs


def makes(name: str) -> Check:
    """Return a check that a file *name* was made that is not empty."""

    def check(result: Result) -> bool:
        path = result.made(name)
        return path is not None and path.stat().st_size > 0

    return check


def makes_text(name: str, *words: str) -> Check:
    """Return a check that the new or changed text *name* has *words*."""

    def check(result: Result) -> bool:
        return all(word in result.text(name) for word in words)

    return check


def makes_zip(name: str, member: str, *words: str) -> Check:
    """Return a check that the new archive *name* has *member* with *words*."""

    def check(result: Result) -> bool:
        path = result.made(name)
        if path is None:
            return False
        with zipfile.ZipFile(path) as archive:
            content = archive.read(member).decode()
        return all(word in content for word in words)

    return check


def answers(*words: str) -> Check:
    """Return a check that the script printed *words*."""
    return lambda result: all(word in result.answers for word in words)


OFFICE_MODULES = tuple(
    f"scripts/office/{name}.py"
    for name in (
        "helpers/merge_runs",
        "helpers/simplify_redlines",
        "validators/base",
        "validators/docx",
        "validators/pptx",
        "validators/redlining",
    )
)
OFFICE_PROGRAMS = tuple(
    f"scripts/office/{name}.py" for name in ("unpack", "pack", "validate")
)
OFFICE = Imported(OFFICE_MODULES, OFFICE_PROGRAMS)
"""What three of the skills have alike."""


def converts(skill: str, source: str, target: str) -> Run:
    """Return the call that makes *target* of the text *source* with LibreOffice."""
    kind = target.rpartition(".")[2]
    words = ["--headless", "--convert-to", kind, f"skill-files/{source}"]
    return Run(
        "scripts/office/soffice.py", f"{skill}/soffice", {"args": words}, makes(target)
    )


def unpacks(skill: str, source: str, target: str, member: str) -> Run:
    """Return the call that unpacks *source* into the directory *target*."""
    return Run(
        "scripts/office/unpack.py",
        f"{skill}/unpack",
        {"input_file": source, "output_directory": target},
        makes(member),
    )


def packs(skill: str, source: str, target: str, original: str, is_done: Check) -> Run:
    """Return the call that packs the directory *source* into *target*."""
    return Run(
        "scripts/office/pack.py",
        f"{skill}/pack",
        {"input_directory": source, "output_file": target, "original": original},
        is_done,
    )


def validates(skill: str, path: str, original: str) -> Run:
    """Return the call that validates the file *path*."""
    return Run(
        "scripts/office/validate.py",
        f"{skill}/validate",
        {"path": path, "original": original},
        answers("All validations PASSED"),
    )


DOCX: tuple[Item, ...] = (
    Put("letter.fodt", texts.LETTER),
    converts("docx", "letter.fodt", "letter.docx"),
    Run(
        "scripts/accept_changes.py",
        "docx/accept-changes",
        {"input_file": "{made:letter.docx}", "output_file": "accepted.docx"},
        lambda result: (
            makes_zip("accepted.docx", "word/document.xml", "all three")(result)
            and not makes_zip("accepted.docx", "word/document.xml", "<w:ins")(result)
        ),
    ),
    unpacks("docx", "{made:letter.docx}", "skill-files/letter", "document.xml"),
    Run(
        "scripts/comment.py",
        "docx/comment",
        {"unpacked_dir": "{made:letter}", "comment_id": 0, "text": "Too high?"},
        makes_text("comments.xml", "Too high?"),
    ),
    Edit(
        "letter/word/document.xml",
        "</w:p>",
        '<w:r><w:commentReference w:id="0"/></w:r></w:p>',
    ),
    packs(
        "docx",
        "{made:letter}",
        "reviewed.docx",
        "{made:letter.docx}",
        makes_zip("reviewed.docx", "word/comments.xml", "Too high?"),
    ),
    validates("docx", "{made:reviewed.docx}", "{made:letter.docx}"),
    OFFICE,
)


def has_no_third_slide(result: Result) -> bool:
    """``slide3.xml`` was there before, and is not there now."""
    was_there = any(path.name == "slide3.xml" for path in result.inputs)
    return was_there and not list(result.workspace.rglob("slide3.xml"))


PPTX: tuple[Item, ...] = (
    Put("deck.fodp", texts.DECK),
    converts("pptx", "deck.fodp", "deck.pptx"),
    unpacks("pptx", "{made:deck.pptx}", "deck", "slide2.xml"),
    Run(
        "scripts/add_slide.py",
        "pptx/add-slide",
        {"unpacked_dir": "{made:deck}", "source": "slide1.xml"},
        makes_text("slide3.xml", "Plan"),
    ),
    Run(
        "scripts/clean.py",
        "pptx/clean",
        {"unpacked_dir": "{made:deck}"},
        has_no_third_slide,
    ),
    packs(
        "pptx",
        "{made:deck}",
        "new.pptx",
        "{made:deck.pptx}",
        makes_zip("new.pptx", "ppt/slides/slide2.xml", "Risks"),
    ),
    validates("pptx", "{made:new.pptx}", "{made:deck.pptx}"),
    Run(
        "scripts/thumbnail.py",
        "pptx/thumbnail",
        {"input": "{made:new.pptx}", "output_prefix": "overview"},
        makes("overview.jpg"),
    ),
    OFFICE,
)


def has_sum(result: Result) -> bool:
    """3 and 4 are 7."""
    from openpyxl import load_workbook

    path = result.made("sales.xlsx")
    return (
        path is not None and load_workbook(path, data_only=True).active["B4"].value == 7
    )


XLSX: tuple[Item, ...] = (
    Put("sales.csv", texts.SALES),
    converts("xlsx", "sales.csv", "sales.xlsx"),
    unpacks("xlsx", "{made:sales.xlsx}", "sales", "workbook.xml"),
    packs(
        "xlsx",
        "{made:sales}",
        "packed.xlsx",
        "{made:sales.xlsx}",
        makes_zip("packed.xlsx", "xl/worksheets/sheet1.xml", "SUM(B2:B3)"),
    ),
    Run(
        "scripts/office/validate.py",
        "xlsx/validate",
        {"path": "{made:packed.xlsx}", "original": "{made:sales.xlsx}"},
        # It checks documents and presentations, and says so.
        answers("not supported for file type .xlsx"),
    ),
    Run(
        "scripts/recalc.py", "xlsx/recalc", {"excel_file": "{made:sales.xlsx}"}, has_sum
    ),
    OFFICE,
)


def is_filled(result: Result) -> bool:
    """The field has the name, and the box its mark."""
    from pypdf import PdfReader

    path = result.made("filled.pdf")
    if path is None:
        return False
    fields = PdfReader(path).get_fields() or {}
    values = {name: field.get("/V") for name, field in fields.items()}
    return values == {"full_name": "Zoe Muller", "agree": "/Yes"}


def is_annotated(result: Result) -> bool:
    """The page has the name as a free text."""
    from pypdf import PdfReader

    path = result.made("annotated.pdf")
    if path is None:
        return False
    notes = PdfReader(path).pages[0].get("/Annots") or []
    return "Smith" in [note.get_object().get("/Contents") for note in notes]


PDF: tuple[Item, ...] = (
    Put("form.pdf", texts.FORM),
    Run(
        "scripts/check_fillable_fields.py",
        "pdf/check-fillable-fields",
        {"args": ["skill-files/form.pdf"]},
        answers("has fillable form fields"),
    ),
    Run(
        "scripts/extract_form_field_info.py",
        "pdf/extract-form-field-info",
        {"input_pdf": "skill-files/form.pdf", "output_json": "info.json"},
        makes_text("info.json", "full_name", "checked_value"),
    ),
    Put("values.json", texts.VALUES),
    Run(
        "scripts/fill_fillable_fields.py",
        "pdf/fill-fillable-fields",
        {
            "input_pdf": "skill-files/form.pdf",
            "field_values_json": "skill-files/values.json",
            "output_pdf": "filled.pdf",
        },
        is_filled,
    ),
    Put("scan.pdf", texts.SCAN),
    Run(
        "scripts/extract_form_structure.py",
        "pdf/extract-form-structure",
        {"input_pdf": "skill-files/scan.pdf", "output_json": "structure.json"},
        makes_text("structure.json", "Last"),
    ),
    Run(
        "scripts/convert_pdf_to_images.py",
        "pdf/convert-pdf-to-images",
        {"input_pdf": "skill-files/scan.pdf", "output_directory": "skill-files"},
        makes("page_1.png"),
    ),
    Put("fields.json", texts.FIELDS),
    Run(
        "scripts/check_bounding_boxes.py",
        "pdf/check-bounding-boxes",
        {"fields_json": "skill-files/fields.json"},
        answers("SUCCESS"),
    ),
    Run(
        "scripts/create_validation_image.py",
        "pdf/create-validation-image",
        {
            "page_number": "1",
            "fields_json_file": "skill-files/fields.json",
            "input_image_path": "{made:page_1.png}",
            "output_image_path": "boxes.png",
        },
        makes("boxes.png"),
    ),
    Run(
        "scripts/fill_pdf_form_with_annotations.py",
        "pdf/fill-pdf-form-with-annotations",
        {
            "input_pdf": "skill-files/scan.pdf",
            "fields_json": "skill-files/fields.json",
            "output_pdf": "annotated.pdf",
        },
        is_annotated,
    ),
)

ASKS_A_MODEL = tuple(
    f"scripts/{name}.py"
    for name in ("improve_description", "run_eval", "run_loop", "utils")
)
"""What starts the program claude, and a module that only these import."""
SKILL_CREATOR: tuple[Item, ...] = (
    Put("greeting/SKILL.md", texts.SKILL),
    Run(
        "scripts/quick_validate.py",
        "skill-creator/quick-validate",
        {"skill_directory": "skill-files/greeting"},
        answers("Skill is valid"),
    ),
    Run(
        "scripts/package_skill.py",
        "skill-creator/package-skill",
        {"path_to_skill_folder": "skill-files/greeting", "output_directory": "dist"},
        makes_zip("greeting.skill", "greeting/SKILL.md", "Say hello."),
    ),
    *(
        Put(
            f"grades/eval-1/{name}/run-1/grading.json",
            json.dumps({"summary": {"pass_rate": rate}}),
        )
        for name, rate in (("with_skill", 0.75), ("without_skill", 0.5))
    ),
    Run(
        "scripts/aggregate_benchmark.py",
        "skill-creator/aggregate-benchmark",
        {"benchmark_dir": "skill-files/grades", "output": "benchmark.json"},
        makes_text("benchmark.json", "+0.25"),
    ),
    Put("history.json", texts.HISTORY),
    Run(
        "scripts/generate_report.py",
        "skill-creator/generate-report",
        {"input": "skill-files/history.json", "output": "report.html"},
        makes_text("report.html", "Greets a person."),
    ),
    Put("grades/eval-1/with_skill/run-1/outputs/hello.txt", "Hello Ann\n"),
    Run(
        "eval-viewer/generate_review.py",
        "skill-creator/generate-review",
        {"workspace": "skill-files/grades", "static": "review.html"},
        makes_text("review.html", "Hello Ann"),
    ),
    Needs(ASKS_A_MODEL, "a key"),
)

PLANS: Mapping[str, tuple[Item, ...]] = {
    "algorithmic-art": (Needs(("templates/generator_template.js",), "a browser"),),
    "docx": DOCX,
    "mcp-builder": (
        Needs(("scripts/evaluation.py", "scripts/connections.py"), "a key"),
    ),
    "pdf": PDF,
    "pptx": PPTX,
    "skill-creator": SKILL_CREATOR,
    "slack-gif-creator": (
        OwnCode(
            tuple(
                f"core/{name}.py"
                for name in ("easing", "frame_composer", "gif_builder", "validators")
            ),
            texts.BALL,
            makes("ball.gif"),
        ),
    ),
    "web-artifacts-builder": (
        Needs(("scripts/init-artifact.sh", "scripts/bundle-artifact.sh"), "a network"),
    ),
    "webapp-testing": (
        Put("index.html", texts.PAGE),
        Put("check.py", texts.CHECK),
        Run(
            "scripts/with_server.py",
            "webapp-testing/with-server",
            {
                "servers": ["python3 -m http.server 8799 --directory skill-files"],
                "ports": [8799],
                "command": ["python3", "skill-files/check.py"],
            },
            answers("TITLE Shop"),
        ),
        Needs(
            tuple(
                f"examples/{name}.py"
                for name in (
                    "console_logging",
                    "element_discovery",
                    "static_html_automation",
                )
            ),
            "a browser",
        ),
    ),
    "xlsx": XLSX,
}
"""The other skills have no scripts."""
