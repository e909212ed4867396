import click


@click.command()
@click.option("--shout/--no-shout", default=False)
@click.option("--upper", "case", flag_value="upper", default=True)
@click.option("--lower", "case", flag_value="lower")
@click.option("-v", "--verbose", count=True, help="Say more")
@click.option("--once", is_flag=True)
@click.argument("words", nargs=-1)
def say(shout, case, verbose, once, words):
    """Say the words."""


say(prog_name="say")
