from enum import Enum
from pathlib import Path
from typing import List, Optional

from typing_extensions import Annotated

import typer

app = typer.Typer(help="Work with pictures", add_completion=False)


class Kind(str, Enum):
    png = "png"
    jpeg = "jpeg"


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(help="The picture")],
    kind: Kind = Kind.png,
    quality: Annotated[int, typer.Option("--quality", "-q", min=1, max=100, help="Quality")] = 80,
    tags: Optional[List[str]] = typer.Option(None, "--tag", "-t"),
    force: bool = typer.Option(False, "--force", "-f", help="Overwrite"),
):
    """Convert a picture."""


@app.command("show-info")
def show(paths: List[Path], verbose: Annotated[int, typer.Option("--verbose", "-v", count=True)] = 0):
    """Show what is known."""


if __name__ == "__main__":
    app()
