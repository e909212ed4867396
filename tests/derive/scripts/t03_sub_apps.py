import typer

app = typer.Typer()
users = typer.Typer(help="Users")
app.add_typer(users, name="users")


@app.callback()
def common(verbose: bool = False, config: str = typer.Option("app.toml", envvar="APP_CONFIG")):
    """An application."""


@users.command()
def create(name: str, age: int = typer.Option(..., help="Years")):
    """Create one."""


@users.command()
def delete(name: str, force: bool = typer.Option(False, prompt="Sure?")):
    """Delete one."""


@app.command()
def ping(size: tuple[int, int] = (1, 2)):
    """Ping."""


if __name__ == "__main__":
    app()
