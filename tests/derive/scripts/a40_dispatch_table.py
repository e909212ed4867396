#!/usr/bin/env python3
import argparse


def cmd_show(args):
    print(args)


def cmd_find(args):
    print(args)


COMMANDS = {
    "show": (cmd_show, "Show one", [(("id",), {"type": int})]),
    "find": (cmd_find, "Find some", [(("query",), {}), (("--limit",), {"type": int, "default": 10})]),
}


def main():
    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (function, text, arguments) in COMMANDS.items():
        each = sub.add_parser(name, help=text)
        for flags, options in arguments:
            each.add_argument(*flags, **options)
        each.set_defaults(function=function)
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
