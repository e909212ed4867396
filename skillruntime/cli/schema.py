"""``skillruntime schema``: print the JSON Schema of a document that the library reads."""

from __future__ import annotations

import json

import click

__all__ = ["command"]


@click.command("schema")
@click.argument("document", type=click.Choice(["descriptor"]))
def command(document: str) -> None:
    """Print the JSON Schema of DOCUMENT: the descriptor of a remote skill."""
    from skillruntime.remote import DESCRIPTOR_SCHEMA

    click.echo(json.dumps(DESCRIPTOR_SCHEMA, ensure_ascii=False, indent=2))
