"""The README, the pages under docs and the docstrings are executed: what they show is
what happens.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import tomllib
from pathlib import Path

import pytest

from tests import needs
from tests.proportion import modules, sources

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
MODULES = [
    name
    for name, path in modules().items()
    if ">>> " in path.read_text(encoding="utf-8")
]
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


@pytest.mark.processes
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page_run(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ``>>>`` of the page gives the output below it, run from the project's
    directory.
    """
    monkeypatch.chdir(ROOT)

    result = doctest.testfile(
        str(page),
        module_relative=False,
        encoding="utf-8",
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )

    assert result.failed == 0


TEXTS = [*PAGES, *(path for path in sorted(ROOT.glob("*.md")) if path not in PAGES)]
ITEM = re.compile(r"([-*]|\d+\.)( |$)")


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_lists_and_tables_are_whole(page: Path) -> None:
    """No list item is empty or continues at the margin, and each row of a table has the
    cells of its header.
    """
    faults = []
    before = ""
    cells = 0
    in_code = False
    lines = page.read_text(encoding="utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        place = f"{page.name}:{number}: {line[:60]!r}"
        if line.lstrip().startswith("```"):
            in_code = not in_code
        if in_code:
            before = line
            continue
        if line.endswith(" "):
            faults.append(f"{place} ends with a space")
        if ITEM.fullmatch(line.strip()):
            faults.append(f"{place} is an empty item")
        if not line and not before and number > 1:
            faults.append(f"{place} is a second blank line")
        is_text = bool(line) and not line.startswith((" ", "#", "|", "```"))
        is_text = is_text and not ITEM.match(line)
        if (
            is_text
            and not line.startswith("<")
            and (ITEM.match(before) or re.match(r" {2,}\S", before))
        ):
            faults.append(f"{place} continues a list at the margin")
        if line.startswith("|") and cells == 0:
            rule = lines[number] if number < len(lines) else ""
            if not re.fullmatch(r"\|([ :]*-+[ :]*\|)+", rule):
                faults.append(f"{place} is a row without a header")
        if line.startswith("|"):
            found = len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", line)))
            cells = cells or found
            if found != cells or not line.endswith("|"):
                faults.append(f"{place} has other cells than its table")
        else:
            if cells and line:
                faults.append(f"{place} follows a table without a blank line")
            cells = 0
        before = line
    assert faults == []


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_run(name: str) -> None:
    """Every ``>>>`` in the docstrings of a module gives the output below it."""
    result = doctest.testmod(
        importlib.import_module(name),
        optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
    )

    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    """A relative link names a file that is there."""
    prose = CODE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(prose):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_dependency_is_explained_in_the_readme() -> None:
    """Each dependency of a plain and of a standard install earns its line in the
    README's table.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    for requirement in (
        *project["dependencies"],
        *project["optional-dependencies"]["standard"],
    ):
        name = re.split(r"[\[<>=!~]", requirement)[0]
        assert (
            f"| `{name}`" in readme or f"`{name}`" in readme.split("## Dependencies")[1]
        ), name


def test_the_version_is_the_same_everywhere() -> None:
    """The installed distribution, ``__version__`` and the changelog agree."""
    from importlib.metadata import version

    from skillruntime import __version__

    assert version("skillruntime") == __version__
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_command_is_documented() -> None:
    """The page of the command line has a row, or a place in one, for each command."""
    from click import Context

    from skillruntime.cli import group

    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    rows = "\n".join(
        line.split("|")[1] for line in page.splitlines() if line.startswith("| `")
    )

    assert [
        name for name in group.list_commands(Context(group)) if f"`{name}" not in rows
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_a_page_names_exist(page: Path) -> None:
    """Each ``skillruntime WORD`` in code, and the word after ``remote`` too."""
    needs.package("click")
    from click import Context, Group

    from skillruntime.cli.commands import group

    remote = group.get_command(Context(group), "remote")
    assert isinstance(remote, Group)
    for first, second in re.findall(
        r"(?:`|\$ )skillruntime ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", page.read_text()
    ):
        assert first in group.list_commands(Context(group)), first
        if first == "remote" and second:
            assert second in remote.commands, second


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "docs" / "start.md"], ids=lambda page: page.name
)
def test_trust_is_shown_only_with_what_it_means(page: Path) -> None:
    """A section that trusts a directory says whose skills that is for, and that those
    from the internet are not.
    """
    sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    trusting = [
        section
        for section in sections
        if "trusted=True" in section or "--trust" in section
    ]

    assert trusting
    for section in trusting:
        assert re.search(
            r"never[^.\n]* skills from the internet", section, re.IGNORECASE
        ), section.partition("\n")[0]


def test_the_commonest_messages_are_those_of_the_code() -> None:
    """Each message of the page on troubleshooting is in the source, or is a rule's
    id.
    """
    page = (
        (ROOT / "docs" / "troubleshooting.md")
        .read_text(encoding="utf-8")
        .split("## The envelope")[0]
    )
    source = "\n".join(
        node.value
        for tree in sources().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    messages = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)

    assert len(messages) == 21
    assert [message for message in messages if message not in source] == []


_TOCTREE = re.compile(r"^```\{toctree\}\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)


def entries_of_menu(page: Path) -> list[str]:
    """Return the pages that the toctrees of *page* name."""
    entries = []
    for block in _TOCTREE.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                entries.append(re.sub(r".*<(.*)>", r"\1", line))
    return entries


def test_the_menu_is_short_and_reaches_every_page() -> None:
    """The home page's menu has at most 25 entries, and each page is in the menu of some
    page or says that it is in none.
    """
    docs = ROOT / "docs"
    reached = set()
    for page in docs.rglob("*.md"):
        for entry in entries_of_menu(page):
            reached.add((page.parent / f"{entry}.md").resolve())

    in_none = {
        page.name
        for page in docs.rglob("*.md")
        if page.resolve() not in reached
        and not page.read_text(encoding="utf-8").startswith("---\norphan: true\n")
    }
    assert len(entries_of_menu(docs / "index.md")) <= 25
    assert in_none == {"index.md"}


def test_the_dark_drawing_differs_in_its_colours_only() -> None:
    """``call-dark.svg`` is ``call.svg`` with another style."""
    images = ROOT / "docs" / "images"
    style = re.compile("<style>.*</style>", re.DOTALL)
    light = images.joinpath("call.svg").read_text(encoding="utf-8")
    dark = images.joinpath("call-dark.svg").read_text(encoding="utf-8")

    assert style.sub("", light) == style.sub("", dark)
    assert light != dark
