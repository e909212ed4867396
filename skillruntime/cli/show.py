"""``skillruntime show``: one skill's description, parameters, files and
instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli.inputs.remote_source import address_of, is_remote, read_descriptor
from skillruntime.cli.inputs.roots import (
    catalog_options,
    open_catalog,
    short_enough,
    with_next_command,
)
from skillruntime.cli.terminal.output import (
    console,
    draw_diagnostics,
    echo,
    json_option,
    print_result,
    print_rows,
    short,
)
from skillruntime.cli.terminal.text import NARROW, shown, without_controls
from skillruntime.contract.schemas.references import referenced
from skillruntime.errors import SkillNotFoundError, SkillRuntimeError

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog import Skill, SkillCatalog
    from skillruntime.contract import Contract
    from skillruntime.runtime.scripts.readiness import Missing

__all__ = ["command"]


@click.command("show")
@click.argument("name", callback=short_enough)
@click.option(
    "--body", is_flag=True, help="Print only the instructions, as a model reads them."
)
@catalog_options
@json_option
def command(
    name: str, body: bool, directories: tuple[str, ...], trust: bool, as_json: bool
) -> None:
    """Show the skill NAME ("skill" or "skill/tool"): its parameters, files and
    instructions.

    NAME may also be the URL of a remote skill's descriptor, or a descriptor.json. To a
    pipe, the parameters are lines with tabs.
    """
    if is_remote(name):
        _show_remote(name, as_json=as_json)
        return
    skill_name, _, tool = name.partition("/")
    catalog = open_catalog(directories, trust=trust)
    try:
        skill = catalog.activate(skill_name)
        if tool:
            one = f"{skill.name}/{tool}"
            contracts = {one: skill.contract(one)}
        else:
            contracts = _contracts(skill)
        unavailable = catalog.unmet(skill_name)
        missing = _missing(catalog, contracts)
    except SkillNotFoundError as error:
        raise with_next_command(error, catalog, name, "show") from None
    if body and not as_json:
        echo(skill.body)
        return

    # skill/tool shows only that tool, because a caller wants its parameters.
    def draw(out: Console) -> None:
        _draw_head(out, skill, unavailable)
        for callable_name, contract in contracts.items():
            _draw_contract(out, callable_name, contract)
            _draw_needs(out, contract, missing.get(callable_name, ()))
        if not contracts:
            out.print("\nIt has no callable tools, only instructions.")
        if not tool:
            _draw_text(out, skill)

    print_result(
        _described(skill, contracts, unavailable, missing), draw, as_json=as_json
    )
    if not as_json:
        draw_diagnostics(console(stderr=True), skill.diagnostics)


def _show_remote(source: str, *, as_json: bool) -> None:
    descriptor = read_descriptor(source)
    contract = descriptor.to_contract()
    path = source
    if "://" in source:
        path = address_of(source)
    # The keys of a local skill's document, so that a script reads either.
    document = {
        "name": descriptor.id,
        "description": descriptor.description,
        "version": descriptor.version,
        "path": path,
        "callable": {descriptor.id: contract.to_dict()},
        "descriptor": descriptor.to_dict(),
    }

    def draw(out: Console) -> None:
        out.print(
            f"[bold]{shown(descriptor.id)}[/] {shown(descriptor.version)}  "
            "[magenta]remote[/]"
        )
        out.print(shown(descriptor.description))
        out.print(f"[dim]{shown(path)}[/]")
        _draw_contract(out, descriptor.id, contract)

    print_result(document, draw, as_json=as_json)


def _contracts(skill: Skill) -> dict[str, Contract]:
    """Return the contracts of *skill*; of a remote skill without its own, the one that
    its descriptor states.
    """
    # With both, the contract describes the skill and the descriptor only where it runs.
    contracts = dict(skill.contracts)
    if contracts:
        return contracts
    from skillruntime.remote.descriptor_file import read_descriptor_file

    descriptor = read_descriptor_file(skill)
    if descriptor is None:
        return {}
    return {skill.name: descriptor.to_contract(skill.name)}


def _missing(
    catalog: SkillCatalog, names: Iterable[str]
) -> dict[str, tuple[Missing, ...]]:
    """Return what each script lacks before it can be called; callables without a script
    are left out.
    """
    from skillruntime.runtime import SkillRuntime

    runtime = SkillRuntime(catalog)
    missing_by_name = {}
    for name in names:
        with suppress(SkillRuntimeError):  # nothing runs it here: `call` says why
            missing_by_name[name] = runtime.missing(name)
    return missing_by_name


def _draw_needs(out: Console, contract: Contract, missing: tuple[Missing, ...]) -> None:
    """Draw the script's requirements, and what it lacks with the remedies."""
    from skillruntime.runtime.grants import requirements_of

    for kind, asked in requirements_of(contract).to_dict().items():
        out.print(f"  [dim]asks for {kind}:[/] {shown(', '.join(asked))}")
    for item in missing:
        out.print(f"  [red]not ready:[/] {shown(item.message)}")
        if item.kind != "grant":  # that action is meant for a host program
            out.print(f"  [dim]{shown(item.action)}[/]")


def _described(
    skill: Skill,
    contracts: Mapping[str, Contract],
    unavailable: tuple[str, ...],
    missing: Mapping[str, tuple[Missing, ...]],
) -> dict[str, Any]:
    resources = [
        {"path": item.path, "bytes": item.bytes, "media_type": item.media_type}
        for item in skill.resources()
    ]
    not_ready = {}
    for name, lacking in missing.items():
        if lacking:
            not_ready[name] = [item.to_dict() for item in lacking]
    documents = {name: contract.to_dict() for name, contract in contracts.items()}
    return {
        "name": skill.name,
        "description": skill.description,
        "version": skill.version,
        "path": skill.metadata.path,
        "trusted": skill.trusted,
        "compatibility": skill.frontmatter.compatibility,
        "available": not unavailable,
        "unavailable": list(unavailable),
        "missing": not_ready,
        "body": skill.body,
        "callable": documents,
        "resources": resources,
        "diagnostics": [diagnostic.to_dict() for diagnostic in skill.diagnostics],
    }


def _draw_head(out: Console, skill: Skill, unavailable: tuple[str, ...]) -> None:
    title = f"[bold]{shown(skill.name)}[/]"
    if skill.version:
        title += f" {shown(skill.version)}"
    trust = "[green]trusted[/]"
    if not skill.trusted:
        trust = "[yellow]untrusted: its scripts run only with approval[/]"
    out.print(f"{title}  {trust}")
    for reason in unavailable:
        out.print(f"[red]unavailable: {shown(reason)}[/]")
    out.print(shown(skill.description))
    compatibility = skill.frontmatter.compatibility
    if compatibility:
        out.print(f"[dim]compatibility:[/] {shown(compatibility)}")
    out.print(f"[dim]{shown(skill.directory)}[/]")


def _draw_contract(out: Console, name: str, contract: Contract) -> None:
    from rich.table import Table

    out.print(
        "\n"
        f"[bold cyan]{shown(name)}[/] [dim]{shown(contract.version or '')}[/]".rstrip()
    )
    _draw_origin(out, contract.to_dict().get("derived"))
    if contract.description:
        out.print(shown(contract.description))
    rows = list(_parameters(contract))
    if not rows:
        out.print("  [dim]no parameters are declared[/]")
    elif not out.is_terminal or out.width < NARROW:
        print_rows(rows)
    else:
        table = Table(
            "parameter",
            "type",
            "default",
            "description",
            box=None,
            padding=(0, 2, 0, 2),
            header_style="dim",
        )
        for row in rows:
            table.add_row(*map(shown, row))
        out.print(table)
    if contract.migrations:
        sources = ", ".join(str(migration.source) for migration in contract.migrations)
        out.print(f"  [dim]also accepts arguments written for {shown(sources)}[/]")


def _draw_origin(out: Console, derived: Any) -> None:
    """Draw the origin of a derived contract, and its unread parts."""
    if not isinstance(derived, Mapping):
        return
    # Authors write these keys into contract.json by hand too, so each may be missing.
    out.print(f"  [magenta]derived[/] from {shown(derived.get('from', 'a script'))}")
    for line in (*(derived.get("unread") or ()), *(derived.get("notes") or ())):
        out.print(f"  [dim]{shown(line)}[/]")
    for line in derived.get("tried") or ():
        out.print(f"  [dim]takes[/] {shown(line)}")
    for line in derived.get("refused") or ():
        out.print(f"  [yellow]refuses[/] {shown(line)}")


def _draw_text(out: Console, skill: Skill) -> None:
    """Draw the names and sizes of the files, and the unchanged instructions."""
    # Not their contents: reading every file would make show as slow as loading the
    # skill's data.
    for item in skill.resources():
        out.print(f"[dim]file[/] {shown(item.path)} [dim]{item.bytes:,} bytes[/]")
    if skill.body.strip():
        out.print()
        out.print(
            without_controls(skill.body.rstrip("\n")),
            markup=False,
            emoji=False,
            soft_wrap=True,
        )


def _parameters(contract: Contract) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type, default and description of each parameter; a required one has a
    star.
    """
    document = contract.input.document
    schema = _resolved(document, document)
    for name, declared in schema.get("properties", {}).items():
        part = _resolved(declared, document)
        is_required = name in schema.get("required", ())
        default = ""
        if "default" in part:
            default = short(part["default"], 24)
        yield (
            f"{name} *" if is_required else name,
            _type(part, document),
            default,
            str(part.get("description", "")),
        )


def _type(schema: Mapping[str, Any], document: Any) -> str:
    # The values say more than the type that they have in common.
    if "enum" in schema:
        return " | ".join(short(value, 24) for value in schema["enum"])
    stated = schema.get("type", "any")
    text = str(stated)
    if isinstance(stated, list):
        text = " or ".join(stated)
    if stated == "array" and isinstance(schema.get("items"), Mapping):
        text = f"list of {_type(_resolved(schema['items'], document), document)}"
    # As Rust and Ruby write ranges: "1..10", "1..", "..10".
    if "minimum" in schema or "maximum" in schema:
        text += f" {schema.get('minimum', '')}..{schema.get('maximum', '')}"
    return text


def _resolved(schema: Any, document: Any) -> Mapping[str, Any]:
    """Return *schema*, or the schema that its local reference points at."""
    for _ in range(8):  # a reference to a reference is rare, one to itself is endless
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = referenced(document, reference)
    return {}
