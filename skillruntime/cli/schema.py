"""``skillruntime schema``: print the JSON Schema of a document that the library reads."""

from __future__ import annotations

import click

from skillruntime.cli.output import to_json

__all__ = ["command"]


@click.command("schema")
@click.argument("document", type=click.Choice(["descriptor"]))
@click.option("--json", "as_json", is_flag=True, help="Changes nothing: the schema is JSON. For uniformity.")
def command(document: str, as_json: bool) -> None:
    """Print the JSON Schema of DOCUMENT: the descriptor of a remote skill."""
    from skillruntime.remote import DESCRIPTOR_SCHEMA

    click.echo(to_json(DESCRIPTOR_SCHEMA))
