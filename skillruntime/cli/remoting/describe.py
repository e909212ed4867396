"""Describe a local skill as a server of the invocation protocol would."""

from __future__ import annotations

import click

from skillruntime.cli.inputs.roots import (
    catalog_options,
    open_catalog,
    short_enough,
    with_next_command,
)
from skillruntime.cli.terminal.output import json_option, print_json
from skillruntime.errors import SkillNotFoundError

__all__ = ["describe"]


@click.command("describe")
@click.argument("name", callback=short_enough)
@click.option(
    "--base-url",
    default="http://127.0.0.1:8400",
    show_default=True,
    help="Where it will be served.",
)
@click.option(
    "--access",
    type=click.Choice(["public", "restricted", "private"]),
    default="public",
    show_default=True,
    help="Who may see and call it.",
)
@catalog_options
@json_option
def describe(
    *,
    name: str,
    base_url: str,
    access: str,
    directories: tuple[str, ...],
    trust: bool,
    as_json: bool,
) -> None:
    """Print the descriptor of the skill or callable NAME: what others need to find and
    call it.
    """
    from skillruntime.remote import AccessPolicy
    from skillruntime.runtime import SkillRuntime
    from skillruntime.server import serve_catalog

    catalog = open_catalog(directories, trust=trust)
    try:
        served = serve_catalog(
            SkillRuntime(catalog),
            base_url=base_url,
            names=[name],
            access=AccessPolicy(access),
        )
    except SkillNotFoundError as error:
        raise with_next_command(error, catalog, name, "remote describe") from None
    # A skill with several tools is published as several descriptors; one alone is what
    # `call` and `show` read.
    documents = [skill.descriptor.to_dict() for skill in served]
    if len(documents) == 1:
        print_json(documents[0], as_json=as_json)
    else:
        print_json(documents, as_json=as_json)
