import click


@click.group()
def main():
    pass


@main.group()
def remote():
    """Remotes."""


@remote.command()
@click.argument("url")
@click.option("--name", prompt="A name", default="origin")
def add(url, name):
    pass


@click.command()
@click.option("--point", nargs=2, type=float, required=True)
def plot(point):
    """Plot a point."""


main.add_command(plot)
main.add_command(plot, name="draw")

if __name__ == "__main__":
    main()
