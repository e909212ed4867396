"""The public interface: `docs/api.md` lists every public name, and documents, examples
and benchmarks use only those.

Write the page again with ``python -m tests.test_public_api``.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests import needs

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "",
    ".contract",
    ".compatibility",
    ".derive",
    ".catalog",
    ".tokens",
    ".runtime",
    ".remote",
    ".server",
    ".testing",
)
INTRODUCTION = """\
# Public names

A name is public if its package lists it in `__init__.pyi`; all of them are below.
Each is imported when it is first used, so importing a package costs next to nothing.
In `skillruntime.adapters` each framework's module is public: `langchain`, `mcp`, \
`tool_formats` and the others.

The rule ids of repairs ([list](repairs.md)) and of diagnostics, the error codes, \
the JSON keys and the commands are
public too: they change only with the version, by Semantic Versioning.
Before 1.0.0 a MINOR version may change any of this; the changelog says what.
"""
_IMPORT = re.compile(
    r"^\s*(?:>>> |\.\.\. )?from (skillruntime(?:\.\w+)*) import", re.MULTILINE
)


def names_of(package: str) -> dict[str, str]:
    """Return the public names of *package*, each with its module."""
    stub = ROOT / "skillruntime" / package.removeprefix(".") / "__init__.pyi"
    found = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.name: node.module for alias in node.names}
    return found


def page() -> str:
    """Return the page as it should be."""
    parts = [INTRODUCTION.rstrip()]
    for package in PACKAGES:
        names = names_of(package)
        if not names:
            continue
        parts.append(
            f"\n## `skillruntime{package}`\n\n| name | what it is |\n|---|---|"
        )
        for name in sorted(names, key=lambda each: (each.casefold(), each)):
            value = getattr(import_module(names[name]), name)
            text = (
                inspect.getdoc(value)
                if callable(value) or inspect.isclass(value)
                else ""
            )
            first = (text or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            parts.append(f"| `{name}` | {first} |")
    return "\n".join(parts) + "\n"


def test_the_page_lists_every_public_name() -> None:
    """`docs/api.md` is what the packages export, with the first sentence of each
    docstring.
    """
    needs.package("langchain")

    assert (ROOT / "docs" / "api.md").read_text(encoding="utf-8") == page()


def sources() -> list[Path]:
    """Return the files that show users how to use the library."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        *found,
        *sorted((ROOT / "examples").rglob("*.py")),
        *sorted((ROOT / "benchmarks").glob("*.py")),
    ]


@pytest.mark.parametrize(
    "path", sources(), ids=lambda path: str(path.relative_to(ROOT))
)
def test_users_are_shown_public_names_only(path: Path) -> None:
    """Nothing outside the package imports from a module that is not public, so that
    files can move.
    """
    for module in _IMPORT.findall(path.read_text(encoding="utf-8")):
        parts = module.split(".")
        is_public = len(parts) <= 2 or parts[1] == "adapters"

        assert is_public, f"{path.name} imports from {module}"


def public_values() -> list[type]:
    """Return the public dataclasses; a reader of them need not expect a change."""
    values: dict[str, type] = {}
    for package in PACKAGES:
        for name, module in names_of(package).items():
            value = getattr(import_module(module), name)
            if isinstance(value, type) and dataclasses.is_dataclass(value):
                values[name] = value
    return [values[name] for name in sorted(values)]


def test_public_values_cannot_be_changed() -> None:
    """But for the results of tests, which are filled while the tests run."""
    needs.package("langchain")
    changeable = {
        value.__name__
        for value in public_values()
        if not value.__dataclass_params__.frozen  # type: ignore[attr-defined]
    }
    large = {
        value.__name__
        for value in public_values()
        if "__dict__" in dir(value) and not issubclass(value, BaseException)
    }

    assert (changeable, large) == ({"CallableResult", "SkillResult"}, set())


if __name__ == "__main__":
    (ROOT / "docs" / "api.md").write_text(page(), encoding="utf-8")
