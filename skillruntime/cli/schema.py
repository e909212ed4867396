"""``skillruntime schema``: print the JSON Schema of a document that the library
reads.
"""

from __future__ import annotations

import click

from skillruntime.cli.terminal.output import to_json

__all__ = ["command"]


@click.command("schema")
@click.argument("document", type=click.Choice(["contract", "descriptor"]))
# Accepted, because scripts give --json to every command that answers.
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Changes nothing: the schema is JSON already.",
)
def command(document: str, as_json: bool) -> None:
    """Print the JSON Schema of DOCUMENT: contract.json, or the descriptor of a remote
    skill.

    Editors complete a contract's fields with it: save it as contract.schema.json and
    name it in "$schema".
    """
    if document == "contract":
        from skillruntime.contract import CONTRACT_SCHEMA

        click.echo(to_json(CONTRACT_SCHEMA))
    else:
        from skillruntime.remote.descriptor_schema import DESCRIPTOR_SCHEMA

        click.echo(to_json(DESCRIPTOR_SCHEMA))
