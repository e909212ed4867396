"""``skillruntime new``: write a new skill that passes ``validate`` and ``test``."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillruntime.cli.inputs.mcp_tool import read_mcp_tool
from skillruntime.cli.terminal.output import json_option, print_result
from skillruntime.compatibility.sampling import sample_objects
from skillruntime.errors import InvalidSkillError
from skillruntime.lazy_patterns import lazy_pattern

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.contract import Contract

__all__ = ["command"]

# Agent Skills format, "name": lower-case letters, digits and hyphens, at most 64, no
# hyphen at an end or twice.
_NAME = lazy_pattern(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_LONGEST_NAME = 64
_LONGEST_DESCRIPTION = 1024
_PLACEHOLDER = lazy_pattern(r"\{(\w+)\}")
_TEMPLATES = Path(__file__).parent / "skill_templates"
"""A directory of files for each kind of skill; each kind works as it is written, and
its test shows what works.
"""


@click.command("new")
@click.argument("name", required=False)
@click.option(
    "--kind",
    type=click.Choice(["script", "function", "instructions"]),
    default="script",
    show_default=True,
    help="What the skill is: a script it brings, a Python function of your program, or "
    "instructions only.",
)
@click.option(
    "--from-mcp",
    nargs=2,
    metavar="COMMAND TOOL",
    help="Make the skill from a tool of the MCP server that COMMAND starts: the tool's "
    "schema becomes the contract.",
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
def command(
    name: str | None,
    *,
    kind: str,
    from_mcp: tuple[str, str] | None,
    parent: Path,
    as_json: bool,
) -> None:
    """Write a new skill NAME: its SKILL.md, its contract, what it runs, and a test.

    The new skill works as it is. Change the files, and run the commands that are
    printed after each change. With --from-mcp, the default NAME is the name of the tool.
    """
    contract = None
    if from_mcp is not None:
        kind = "mcp"
        name = name or _proposed(from_mcp[1])
        contract = read_mcp_tool(*from_mcp)
    if name is None:
        raise click.UsageError("Missing argument 'NAME'.")
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        proposed = _proposed(name)
        rule = "lower-case letters, digits and single hyphens, at most 64 characters"
        raise click.UsageError(
            f"{name!r} is not a name for a skill ({rule}). Try {proposed!r}."
        )
    directory = parent / name
    try:
        # Fails if the directory exists: a command that creates files must not replace
        # existing work.
        directory.mkdir(parents=True)
        files = _files_of(kind, name, _values_of(contract))
        if contract is not None:
            files["contract.json"] = _contract_text(contract)
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


def _proposed(name: str) -> str:
    """Return a valid skill name that resembles *name*."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "-".join(words)[:_LONGEST_NAME].strip("-") or "my-skill"


def _values_of(contract: Contract | None) -> dict[str, str]:
    """Return the values that fill the templates for a tool of an MCP server."""
    if contract is None:
        return {}
    calls = sample_objects(contract.input.document)
    smallest = next((call for call in calls if contract.input.is_valid(call)), {})
    summary = " ".join(contract.description.split())[:_LONGEST_DESCRIPTION]
    return {
        "tool": contract.name,
        "tool_literal": json.dumps(contract.name),
        "summary": json.dumps(summary, ensure_ascii=False),
        "smallest": repr(smallest),
    }


def _contract_text(contract: Contract) -> str:
    """Return *contract* as the text of a contract.json, with its first version."""
    document = {"version": "1.0.0", **contract.to_dict()}
    document.pop("name", None)
    if not document["annotations"]:
        del document["annotations"]
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _files_of(kind: str, name: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a new skill of *kind*, by their paths in its directory;
    *values* fill its templates beside the name.

    Those of two skills have different names: pytest and Python know a module by its
    name alone.
    """
    title, module = name.replace("-", " ").capitalize(), name.replace("-", "_")

    def filled(text: str) -> str:
        # Not str.format: the templates are full of braces.
        known = {"name": name, "title": title, "module": module, **values}
        return _PLACEHOLDER.sub(lambda field: known.get(field[1], field[0]), text)

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
    commands = [f"skillruntime validate {place}"]
    if kind == "script":
        # Other callables run in a host program, where pytest tests them.
        commands.append(f"skillruntime test {place} --trust")
    elif kind == "instructions":
        commands.append(f"skillruntime test {place}")
    commands.append(f"{needs}python -m pytest {place}")
    commands.append(f"skillruntime {use} --skills {where}")
    return commands
