import argparse

COMMANDS = {}


def command(name, *arguments):
    def register(function):
        COMMANDS[name] = (function, arguments)
        return function

    return register


def argument(*flags, **options):
    return flags, options


@command("greet", argument("who"), argument("--times", type=int, default=1))
def greet(args):
    """Say hello."""


@command("leave", argument("--quietly", action="store_true"))
def leave(args):
    """Say goodbye."""


def main():
    parser = argparse.ArgumentParser()
    below = parser.add_subparsers(dest="what", required=True)
    for name, (function, arguments) in COMMANDS.items():
        each = below.add_parser(name, help=function.__doc__)
        for flags, options in arguments:
            each.add_argument(*flags, **options)
        each.set_defaults(function=function)
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
