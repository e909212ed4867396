from pathlib import Path

import typer

app = typer.Typer()


@app.command()
def count(
    files: list[Path] = typer.Argument(..., exists=False, help="What to count"),
    at_least: int = typer.Option(0, "--at-least", "-n"),
    secret: str = typer.Option(..., prompt=True, hide_input=True),
) -> None:
    """Count lines."""


if __name__ == "__main__":
    app()
