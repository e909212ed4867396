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

    assert len(messages) == 20
    assert [message for message in messages if message not in source] == []
