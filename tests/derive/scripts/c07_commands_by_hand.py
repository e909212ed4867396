import click


@click.group()
def tools():
    """A box of tools."""


@click.command("saw")
@click.option("--length", type=int, required=True)
def saw(length):
    """Cut wood."""


@click.command()
@click.argument("nail", type=click.Path(exists=False))
def hammer(nail):
    """Hit a nail."""


tools.add_command(saw)
tools.add_command(hammer, name="hit")

if __name__ == "__main__":
    tools()
