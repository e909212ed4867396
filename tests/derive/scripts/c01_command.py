"""Greet."""
import click


@click.command()
@click.argument("name")
@click.option("--count", "-c", default=1, show_default=True, help="How often")
@click.option("--shout/--no-shout", default=False)
@click.option("--greeting", type=click.Choice(["hello", "hi"], case_sensitive=False), default="hello")
def greet(name, count, shout, greeting):
    """Greet NAME, often."""
    click.echo(greeting * count)


if __name__ == "__main__":
    greet()
