import typer


def main(name: str, times: int = 1, polite: bool = True):
    """Say NAME."""
    typer.echo(name * times)


if __name__ == "__main__":
    typer.run(main)
