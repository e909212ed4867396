import click


@click.group(help="Keep notes")
@click.option("--db", type=click.Path(dir_okay=False), default="notes.db")
@click.version_option("1.0")
@click.pass_context
def cli(ctx, db):
    ctx.obj = db


@cli.command("add")
@click.argument("text", nargs=-1, required=True)
@click.option("--tag", "-t", multiple=True)
def add_note(text, tag):
    """Add a note."""


@cli.command()
@click.option("--limit", type=click.IntRange(1, 100), default=10)
@click.option("-v", "--verbose", count=True)
def list_notes(limit, verbose):
    """List notes."""


if __name__ == "__main__":
    cli()
