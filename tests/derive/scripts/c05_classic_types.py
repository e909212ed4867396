"""Draw a map."""
import click


@click.command(help="Draw a map of a place")
@click.argument("place")
@click.option("--scale", type=click.FloatRange(0.5, 10.0), default=1.0, show_default=True)
@click.option("--style", type=click.Choice(["plain", "hills"], case_sensitive=False), default="plain")
@click.option("--since", type=click.DateTime(formats=["%Y-%m-%d"]))
@click.option("--size", nargs=2, type=int, default=(10, 20))
@click.option("--key", required=True)
@click.option("--out", type=click.File("w"), default="-")
def draw(place, scale, style, since, size, key, out):
    print(place)


if __name__ == "__main__":
    draw()
