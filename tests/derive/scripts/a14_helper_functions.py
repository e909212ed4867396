#!/usr/bin/env python3
import argparse


def add_io(parser):
    parser.add_argument("source")
    parser.add_argument("--dest", "-d", default=None)


def add_filters(parser, *, with_regex):
    parser.add_argument("--include", action="append", default=[])
    if with_regex:
        parser.add_argument("--regex")


def create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Find things")
    add_io(parser)
    add_filters(parser, with_regex=True)
    return parser


def main() -> int:
    args = create_parser().parse_args()
    print(args)
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(main())
