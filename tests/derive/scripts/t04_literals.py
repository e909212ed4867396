from datetime import datetime
from typing import Annotated, Literal, Optional

import typer


def main(
    name: str,
    when: Annotated[Optional[datetime], typer.Option(formats=["%Y-%m-%d"])] = None,
    share: Annotated[float, typer.Option(min=0, max=1)] = 0.5,
    loud: Annotated[bool, typer.Option("--loud/--soft")] = False,
    tag: Annotated[Optional[list[str]], typer.Option()] = None,
):
    """Write a card."""
    print(name)


if __name__ == "__main__":
    typer.run(main)
