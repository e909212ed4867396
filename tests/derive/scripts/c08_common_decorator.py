import functools

import click

FORMATS = ("text", "json")


def output_options(function):
    @click.option("--format", "form", type=click.Choice(FORMATS), default="text")
    @click.option("--quiet", is_flag=True)
    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapped


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", required=False, default="all")
@output_options
def main(name, form, quiet):
    """Show what is there."""


if __name__ == "__main__":
    main()
