"""What the bundled skills write into pictures and PDFs: letters beyond ASCII are readable,
and what no font has is named.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader

from skillruntime import SkillRuntime, discover
from tests.skills.conftest import SKILLS

pytestmark = pytest.mark.processes


@pytest.fixture
def lettering(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The chart's module of letters, with the font alone that matplotlib brings."""
    monkeypatch.syspath_prepend(str(SKILLS / "data-analysis" / "scripts"))
    import lettering

    return lettering.Lettering(families=["DejaVu Sans"])


@pytest.mark.parametrize(
    "text", ["Łódź", "Zoë", "Straße ß", "Αθήνα", "Москва", "Ünïcode €", "Việt Nam"]
)
def test_a_chart_writes_european_letters_as_they_are(lettering: Any, text: str) -> None:
    """DejaVu Sans, which comes with matplotlib, has them in both weights."""
    assert lettering.written(text) == text
    assert lettering.notes() == []


def test_letters_are_composed_before_they_are_drawn(lettering: Any) -> None:
    """A name from a Mac's file system has its accents apart."""
    assert lettering.written("Ło\u0301dz\u0301") == "Łódź"


def test_a_chart_names_what_no_font_has(lettering: Any) -> None:
    """A number stands for each piece, the same for the same, and a note says what it
    means.
    """
    texts = ["北京 2024", "上海", "北京", "🍎 Łódź"]

    assert [lettering.written(text) for text in texts] == [
        "[1] 2024",
        "[2]",
        "[1]",
        "[3] Łódź",
    ]
    (note,) = lettering.notes()
    assert note.startswith(
        "No installed font has some letters, so the chart shows a number in their "
        "place: [1] is '北京', [2] is '上海', [3] is '🍎'. "
    )


def test_the_answer_says_what_a_chart_could_not_write(data: Any) -> None:
    """The note reaches the caller, and names only what is drawn; letters of a plane that no
    usual font covers are taken.
    """
    (data.workspace / "cities.csv").write_text("city,sales\nŁódź,3\n𒀀𒀁,5\n")
    arguments = {
        "path": "cities.csv",
        "group": ["city"],
        "values": ["sum(sales)"],
        "chart": "bar",
        "title": "Zoë’s sales in Москва",
    }

    answer = data.call(arguments, "query").document

    assert answer["rows"] == [["𒀀𒀁", 5], ["Łódź", 3]]
    (note,) = answer["notes"]
    assert "[1] is '𒀀𒀁'" in note and "Łódź" not in note
    assert (data.workspace / "chart.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("sandbox_if_untrusted")
@pytest.mark.parametrize("trusted", [True, False])
def test_letters_are_there_through_the_runtime_and_in_its_sandbox(
    tmp_path: Path, form_pdf: bytes, trusted: bool
) -> None:
    """The font is found where the script may read the packages alone; a page is the
    last one also as a number.
    """
    (tmp_path / "form.pdf").write_bytes(form_pdf)
    catalog = discover(SKILLS, trusted=trusted, use_index=False)
    runtime = SkillRuntime(catalog, workspace=tmp_path, approve=lambda *_: True)
    fields = {"path": "form.pdf", "fields": {"name": "Łódź"}, "flatten": True}

    filled = runtime.call_sync("pdf-processing/fill-form", fields)
    (file,) = filled.metadata["files"]
    drawn = runtime.call_sync(
        "pdf-processing/render", {"path": file["path"], "pages": -1}
    )

    assert (filled.status, drawn.status) == ("success", "success")
    (page,) = PdfReader(tmp_path / file["path"]).pages
    assert "Łódź" in page.extract_text()
    (image,) = drawn.data["images"]
    (picture,) = drawn.metadata["files"]
    assert image["page"] == 1
    assert (tmp_path / picture["path"]).stat().st_size == image["bytes"]
