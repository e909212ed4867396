"""``skillruntime prompt``: the catalog text exactly as a model reads it."""

from __future__ import annotations

import click

from skillruntime.catalog.rendering import STYLES
from skillruntime.cli.inputs.roots import catalog_options, no_skills, open_catalog
from skillruntime.cli.terminal.output import echo, json_option, print_result

__all__ = ["command"]

# adapters.langchain.DEFAULT_CATALOG_TOKENS, which a test compares: importing the
# adapter takes half a second.
_AGENTS_BUDGET = 4_000


@click.command("prompt")
@click.option(
    "--style",
    default="compact",
    show_default=True,
    type=click.Choice(STYLES),
    help="The form of the text.",
)
@click.option(
    "--budget",
    default=_AGENTS_BUDGET,
    show_default=True,
    type=click.IntRange(0),
    metavar="TOKENS",
    help="The most tokens; 0 means without limit. Agents use the default.",
)
@click.option(
    "--model",
    default="gpt-4o",
    show_default=True,
    help="The model whose tokens are counted.",
)
@catalog_options
@json_option
def command(
    *,
    style: str,
    budget: int,
    model: str,
    directories: tuple[str, ...],
    trust: bool,
    as_json: bool,
) -> None:
    """Print the catalog text that a model reads at the start, and on stderr its tokens
    and what it leaves out.
    """
    from skillruntime.tokens import count

    catalog = open_catalog(directories, trust=trust)
    rendered = catalog.render(
        budget or None, style, count=lambda text: count(text, model).tokens
    )
    tokens = count(rendered.text, model)
    left_out = {
        kind: list(getattr(rendered, kind))
        for kind in ("shortened", "name_only", "omitted")
    }
    if not as_json:
        echo(rendered.text)
        kinds = [
            f", {len(names):,} {kind.replace('_', ' ')}"
            for kind, names in left_out.items()
            if names
        ]
        # On stderr, so that "skillruntime prompt > file" is the text and nothing else.
        echo(
            f"{tokens.tokens:,} tokens, {len(rendered.included):,} "
            f"skills{''.join(kinds)}",
            err=True,
        )
        if not catalog:
            echo(no_skills(directories), err=True)
        return
    document = {
        "text": rendered.text,
        **tokens.to_dict(),
        "included": list(rendered.included),
        **left_out,
    }
    print_result(document, lambda console: None, as_json=True)
