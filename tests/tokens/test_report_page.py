"""The report of tokens as a page, and as an image."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import OrderedDict
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from skillruntime import discover
from skillruntime.cli import group
from skillruntime.tokens import measure
from tests import needs
from tests.skill_files import write_skill_files

_VOID = {"meta", "rect"}  # elements without an end


class _Page(HTMLParser):
    """Checks that each element is closed, and collects what a page would load."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loaded: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        self.loaded += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag in ("script", "link"):
            self.loaded.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def written_skills(root: Path, number: int) -> Path:
    """Write so many skills below *root*, and return it."""
    for index in range(number):
        write_skill_files(
            root, f"skill-{index}", f"Does {index} things.", {"references/a.md": "word"}
        )
    return root


def page_of(skills: Path, *words: str) -> str:
    """Return the page that the command writes about *skills*."""
    skills.mkdir(exist_ok=True)
    file = skills.parent / "report.html"
    done = CliRunner().invoke(
        group, ["tokens", str(skills), "--html", str(file), *words]
    )
    assert done.exit_code == 0
    return file.read_text("utf-8")


@pytest.mark.parametrize("number", [0, 1, 2, 40])
def test_any_number_of_skills_gives_a_page_that_loads_nothing(
    tmp_path: Path, number: int
) -> None:
    """No script, no style sheet, no image: the page can be sent as one file."""
    skills = written_skills(tmp_path / "skills", number)

    page = _Page(page_of(skills))

    assert (page.open, page.loaded) == ([], [])
    assert f"{number} skill{'s' * (number != 1)}" in page.text
    assert page.text.count("everything at once") == (number > 0)


KINDS = ["name and description", "instructions", "tool definitions"]


@pytest.fixture
def three_skills(tmp_path: Path) -> Path:
    """Skills that differ in what is long: the files, the instructions, the tools."""
    parameters = {f"parameter_{index}": {"type": "string"} for index in range(200)}
    contract = {
        "input": {"type": "object", "properties": parameters},
        "run": {"script": "scripts/run.py"},
    }
    files = {"references/all.md": "word " * 5_000}
    tools = {"contract.json": json.dumps(contract), "scripts/run.py": "print('{}')"}
    skills = tmp_path / "skills"
    write_skill_files(skills, "a-files", "Has files.", files)
    write_skill_files(skills, "b-long", "Is long.", {})
    write_skill_files(skills, "c-tools", "Has tools.", tools)
    with (skills / "b-long" / "SKILL.md").open("a", encoding="utf-8") as file:
        file.write("word " * 500)
    return skills


def test_the_bars_of_the_page_are_in_the_order_of_their_lengths(
    three_skills: Path,
) -> None:
    """Files are not in them, because few are read; the parts of a bar are in the order
    in which they are paid, and the legend and the table have the same order.
    """
    page = _Page(page_of(three_skills)).text

    costs, _, skills = page.partition("What each skill costs")
    bars, _, table = skills.partition("All figures")
    assert_order(costs, "skills alone", "1 skill loaded", "3 skills", "at once")
    assert_order(bars, *KINDS, "c-tools", "b-long", "a-files")
    assert_order(table, *KINDS, "together", "files", "c-tools", "b-long", "a-files")


def assert_order(text: str, *parts: str) -> None:
    """Check that *parts* are in *text* in this order."""
    for part in parts:
        _, found, text = text.partition(part)
        assert found == part


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are drawn, instead of their images."""
    needs.package("matplotlib")
    drawn: list[Any] = []
    figure = import_module("matplotlib.figure").Figure
    monkeypatch.setattr(figure, "savefig", lambda self, *_, **__: drawn.append(self))
    return drawn


def test_the_image_has_the_bars_of_the_page(
    three_skills: Path, figures: list[Any]
) -> None:
    """In the same order, from the top; the legend too."""
    image = str(three_skills.parent / "report.png")

    CliRunner().invoke(group, ["tokens", str(three_skills), "--png", image])

    ((above, below),) = (figure.axes for figure in figures)
    bottom, top = below.get_ylim()
    legend = [text.get_text() for text in figures[0].legends[0].get_texts()]
    assert names_of(above) == [
        "the list of skills alone",
        "with 1 skill loaded",
        "with 3 skills loaded",
        "everything at once",
    ]
    assert names_of(below) == ["c-tools", "b-long", "a-files"]
    assert top < bottom
    assert legend == KINDS


def names_of(axes: Any) -> list[str]:
    """Return the names of the bars."""
    return [tick.get_text() for tick in axes.get_yticklabels()]


def test_the_image_of_no_skills_has_no_bar_for_none(
    tmp_path: Path, figures: list[Any]
) -> None:
    """A conversation that loads 0 skills is the list of skills alone."""
    image = str(tmp_path / "report.png")

    CliRunner().invoke(group, ["tokens", str(tmp_path), "--png", image])

    (figure,) = figures
    assert names_of(figure.axes[0]) == [
        "the list of skills alone",
        "everything at once",
    ]


def test_a_name_in_the_image_is_not_a_formula(tmp_path: Path) -> None:
    """An untrusted skill must not prevent the image."""
    needs.package("matplotlib")
    write_skill_files(tmp_path / "skills", "cost-$no{$", "Costs.", {})
    words = ["tokens", str(tmp_path), "--png", str(tmp_path / "report.png")]

    done = CliRunner().invoke(group, words)

    assert "cost-$no{$" in done.stdout
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_what_a_skill_says_is_text_in_the_page(tmp_path: Path) -> None:
    """An untrusted skill must not write the page."""
    write_skill_files(tmp_path / "skills", "a", "Does <b>things</b>.", {})

    page = page_of(tmp_path / "skills", "--model", "<script>x</script>")

    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_a_notebook_shows_what_a_conversation_pays(tmp_path: Path) -> None:
    """The rules of its style hold for the report alone."""
    report = measure(discover(written_skills(tmp_path, 2)))

    shown = report._repr_html_()

    assert "everything at once" in _Page(shown).text
    assert ":root" not in shown


def test_the_command_writes_a_page_and_an_image(tmp_path: Path) -> None:
    """Beside what it prints."""
    needs.package("matplotlib")
    skills = written_skills(tmp_path / "skills", 1)
    page, image = tmp_path / "report.html", tmp_path / "report.png"
    words = ["tokens", str(skills), "--html", str(page), "--png", str(image)]

    done = CliRunner().invoke(group, words)

    assert done.exit_code == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert image.read_bytes().startswith(b"\x89PNG")


def test_a_page_that_cannot_be_written_is_wrong_usage(tmp_path: Path) -> None:
    """With the reason, and no traceback."""
    skills = written_skills(tmp_path / "skills", 1)
    missing = str(tmp_path / "missing" / "report.html")

    done = CliRunner().invoke(group, ["tokens", str(skills), "--html", missing])

    assert done.exit_code == 2
    assert "No such file or directory" in done.output


@pytest.mark.processes
def test_an_image_without_matplotlib_names_the_extra(tmp_path: Path) -> None:
    """Before anything is counted."""
    skills = written_skills(tmp_path / "skills", 1)
    program = (
        "import importlib.util as util, sys\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *more: "
        "None if name == 'matplotlib' else find(name, *more)\n"
        "from skillruntime.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    words = ["tokens", str(skills), "--png", str(tmp_path / "report.png")]

    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'skillruntime[skills]'" in done.stderr


def test_later_reports_look_counts_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each text is counted once, and the figures are the same."""
    monkeypatch.setenv("SKILLRUNTIME_CACHE", str(tmp_path / "cache"))
    catalog = discover(written_skills(tmp_path / "skills", 3))
    first = measure(catalog, keep=True, with_sections=False)
    counted: list[str] = []

    def count(text: str, encoding: str) -> tuple[int, bool]:
        counted.append(text)
        return 0, True

    # As in another process: nothing is known in memory.
    monkeypatch.setattr("skillruntime.tokens.counter._kept", OrderedDict())
    monkeypatch.setattr("skillruntime.tokens.counter.count_ordinary", count)
    second = measure(catalog, keep=True, with_sections=False)

    assert second == first
    assert counted == [""]  # the method is asked with an empty text
