import typer

app = typer.Typer(no_args_is_help=True)


@app.callback()
def common(verbose: bool = typer.Option(False, "--verbose", "-v", help="Say more")):
    """Keep a garden."""


@app.command(name="plant")
def plant_one(seed: str, rows: int = 1, deep: bool = False):
    """Plant a seed."""


@app.command()
def water(litres: float = typer.Argument(1.0), beds: list[int] = typer.Option([1, 2])):
    """Give water."""


def main():
    app()


if __name__ == "__main__":
    main()
