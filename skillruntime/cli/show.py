"""``skillruntime show``: what one skill is, what it accepts, and what is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli.output import console, draw_diagnostics, fail, json_option, print_result, short
from skillruntime.cli.roots import catalog_options, open_catalog
from skillruntime.errors import SkillRuntimeError

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog.skill import Skill
    from skillruntime.contract.contract import Contract

__all__ = ["command"]


@click.command("show")
@click.argument("name")
@click.option("--body", is_flag=True, help="Print the instructions, as a model reads them, and nothing else.")
@catalog_options
@json_option
def command(name: str, body: bool, directories: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """Show the skill NAME: what it is, what it accepts, and what is in it."""
    skill_name, _, tool = name.partition("/")
    try:
        skill = open_catalog(directories, trust=trust).activate(skill_name)
        contracts = {name: skill.contract(name)} if tool else dict(skill.contracts)
    except SkillRuntimeError as error:
        fail(error, as_json=as_json)
    if body and not as_json:
        click.echo(skill.body)
        return
    print_result(_described(skill, contracts), lambda console: _draw(console, skill, contracts), as_json=as_json)
    if not as_json:
        draw_diagnostics(console(stderr=True), skill.diagnostics)


def _described(skill: Skill, contracts: Mapping[str, Contract]) -> dict[str, Any]:
    resources = [{"path": item.path, "bytes": item.bytes, "media_type": item.media_type} for item in skill.resources()]
    return {
        "name": skill.name,
        "description": skill.description,
        "version": skill.version,
        "path": skill.metadata.path,
        "trusted": skill.trusted,
        "body": skill.body,
        "callable": {name: contract.to_dict() for name, contract in contracts.items()},
        "resources": resources,
        "diagnostics": [diagnostic.to_dict() for diagnostic in skill.diagnostics],
    }


def _draw(console: Console, skill: Skill, contracts: Mapping[str, Contract]) -> None:
    from rich.markup import escape
    from rich.table import Table

    trust = "[green]trusted[/]" if skill.trusted else "[yellow]untrusted: its scripts run only when approved[/]"
    console.print(f"[bold]{escape(skill.name)}[/] {escape(skill.version or '')}  {trust}")
    console.print(escape(skill.description))
    console.print(f"[dim]{escape(str(skill.directory))}[/]")
    for name, contract in contracts.items():
        console.print(f"\n[bold cyan]{escape(name)}[/] [dim]{escape(contract.version or '')}[/]")
        if contract.description:
            console.print(escape(contract.description))
        table = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
        for heading in ("parameter", "type", "default", "meaning"):
            table.add_column(heading, no_wrap=heading == "parameter")
        for row in _parameters(contract):
            table.add_row(*(escape(cell) for cell in row))
        console.print(table)
        if contract.migrations:
            sources = ", ".join(str(migration.source) for migration in contract.migrations)
            console.print(f"  [dim]also takes arguments written for {escape(sources)}[/]")
    if not contracts:
        console.print("\nNothing here is called: it is instructions to read (--body).")
    resources = skill.resources()
    if resources:
        console.print("\n[dim]files[/]")
        for item in resources:
            console.print(f"  {escape(item.path)} [dim]{item.bytes:,} bytes[/]")


def _parameters(contract: Contract) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, default and meaning of each parameter; a required one has a star."""
    document = contract.input.document
    schema = _resolved(document, document)
    required = schema.get("required", ())
    for name, declared in schema.get("properties", {}).items():
        part = _resolved(declared, document)
        default = short(part["default"], 24) if "default" in part else ""
        yield (
            name + (" *" if name in required else ""),
            _type(part, document),
            default,
            str(part.get("description", "")),
        )


def _type(schema: Mapping[str, Any], document: Any) -> str:
    if "enum" in schema:
        return " | ".join(short(value, 24) for value in schema["enum"])
    stated = schema.get("type", "any")
    text = " or ".join(stated) if isinstance(stated, list) else str(stated)
    if stated == "array" and isinstance(schema.get("items"), Mapping):
        text = f"list of {_type(_resolved(schema['items'], document), document)}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None or high is not None:
        text += f" {'' if low is None else low}..{'' if high is None else high}"
    return text


def _resolved(schema: Any, document: Any) -> Mapping[str, Any]:
    """*schema*, or what its local reference points at."""
    for _ in range(8):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = document
        for part in reference[2:].split("/"):
            schema = schema.get(part) if isinstance(schema, Mapping) else None
    return {}
