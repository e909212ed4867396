from functools import wraps

import click


def common(function):
    function = click.option("--host", default="localhost")(function)
    function = click.option("--port", type=int, default=80)(function)
    return function


def logged(function):
    @wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@common
@logged
@click.option("--path", "target", type=click.Path(), help="Where")
@click.option("--yes", is_flag=True, help="Do not ask")
@click.option("--upper", "case", flag_value="upper", default="upper")
@click.option("--lower", "case", flag_value="lower")
def run(host, port, target, yes, case):
    """Run it."""


if __name__ == "__main__":
    run()
