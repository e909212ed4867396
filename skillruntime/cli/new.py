"""``skillruntime new``: write a new skill that passes ``validate`` and its own test."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillruntime.cli.terminal.output import json_option, print_result
from skillruntime.errors import InvalidSkillError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]

# Agent Skills format, "name": lower-case letters, digits and hyphens, at most 64, no
# hyphen at an end or twice.
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME = 64
_TEMPLATES = Path(__file__).parent / "skill_templates"
"""A directory of files for each kind of skill; each kind works as it is written, and
its test shows what works.
"""


@click.command("new")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(["script", "function", "instructions"]),
    default="script",
    show_default=True,
    help="What the skill is: a script it brings, a Python function of your program, or "
    "instructions only.",
)
@click.option(
    "--in",
    "parent",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default="the current directory",
    help="The directory to write the skill's directory in.",
)
@json_option
def command(name: str, kind: str, parent: Path, as_json: bool) -> None:
    """Write a new skill NAME: its SKILL.md, its contract, what it runs, and a test.

    It works as it is written. Change the files, and run validate and the test after
    each change.
    """
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        proposed = (
            "-".join(re.findall(r"[a-z0-9]+", name.lower()))[:_LONGEST_NAME].strip("-")
            or "my-skill"
        )
        rule = "lower-case letters, digits and single hyphens, at most 64 characters"
        raise click.UsageError(
            f"{name!r} is not a name for a skill ({rule}). Try {proposed!r}."
        )
    directory = parent / name
    try:
        # Fails where it exists: a command that creates must not replace somebody's
        # work.
        directory.mkdir(parents=True)
        files = _files_of(kind, name)
        for path, text in files.items():
            file = directory / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except FileExistsError:
        hint = (
            "Choose another name, or check what is there: skillruntime validate "
            f"{shlex.quote(str(directory))}"
        )
        raise InvalidSkillError(
            f"{directory} already exists", suggested_action=hint
        ) from None
    except OSError as error:
        raise InvalidSkillError(
            f"{error.filename} cannot be written: {error.strerror}"
        ) from None
    following = _next_commands(kind, name, directory, parent)

    def draw(console: Console) -> None:
        for path in files:
            console.print(f"Wrote {directory / path}", markup=False)
        console.print("\nNext:")
        for line in following:
            console.print(f"  {line}", markup=False)

    document = {
        "name": name,
        "kind": kind,
        "directory": str(directory),
        "files": list(files),
        "next": following,
    }
    print_result(document, draw, as_json=as_json)


def _files_of(kind: str, name: str) -> dict[str, str]:
    """Return the files of a new skill of *kind*, by their paths in its directory.

    Those of two skills have different names: pytest and Python know a module by its
    name alone.
    """
    title, module = name.replace("-", " ").capitalize(), name.replace("-", "_")

    def filled(text: str) -> str:
        # Not str.format: the templates are full of braces.
        return (
            text.replace("{name}", name)
            .replace("{title}", title)
            .replace("{module}", module)
        )

    root = _TEMPLATES / kind
    texts = {
        file.relative_to(root): file.read_text("utf-8")
        for file in root.rglob("*.template")
    }
    return {
        filled(path.as_posix().removesuffix(".template")): filled(texts[path])
        for path in sorted(texts)
    }


def _next_commands(kind: str, name: str, directory: Path, parent: Path) -> list[str]:
    place, where = shlex.quote(str(directory)), shlex.quote(str(parent))
    # A fresh environment has no pytest, which is not a dependency: this library runs
    # skills without it.
    needs = ""
    if not find_spec("pytest"):
        needs = "python -m pip install pytest && "
    # A function can be called only by the program that registers it.
    use = f"show {name}"
    if kind == "script":
        use = f"call {name} 'text=hello world' --trust"
    return [
        f"skillruntime validate {place}",
        f"{needs}python -m pytest {place}",
        f"skillruntime {use} --skills {where}",
    ]
