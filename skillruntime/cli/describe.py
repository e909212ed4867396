"""``skillruntime describe``: print the descriptor of a local skill, as a server would publish it."""

from __future__ import annotations

import json

import click

from skillruntime.cli.output import fail, json_option, print_result
from skillruntime.cli.roots import catalog_options, open_catalog, with_next_command
from skillruntime.errors import SkillNotFoundError, SkillRuntimeError

__all__ = ["command"]


@click.command("describe")
@click.argument("name")
@click.option("--base-url", default="http://127.0.0.1:8400", show_default=True, help="Where it will be served.")
@click.option(
    "--access",
    type=click.Choice(["public", "restricted", "private"]),
    default="public",
    show_default=True,
    help="Who may see and call it.",
)
@catalog_options
@json_option
def command(name: str, base_url: str, access: str, directories: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """Print the descriptor of the skill or callable NAME: what others need to find and call it."""
    from skillruntime.remote import AccessPolicy
    from skillruntime.runtime import SkillRuntime
    from skillruntime.server import serve_catalog

    catalog = open_catalog(directories, trust=trust)
    try:
        runtime = SkillRuntime(catalog)
        served = serve_catalog(runtime, base_url=base_url, names=[name], access=AccessPolicy(access))
    except SkillNotFoundError as error:
        fail(with_next_command(error, catalog, name, "describe"), as_json=as_json)
    except SkillRuntimeError as error:
        fail(error, as_json=as_json)
    # A skill with several tools is published as several descriptors; one alone is what `call` and `show` read.
    documents = [each.descriptor.to_dict() for each in served]
    document = documents[0] if len(documents) == 1 else documents
    print_result(document, lambda console: console.print_json(json.dumps(document)), as_json=as_json)
