#!/usr/bin/env python3
import argparse

COMMANDS = [("encode", "Encode a text"), ("decode", "Decode a text")]


def build():
    parser = argparse.ArgumentParser()
    sub = parser.add_subparsers(dest="command")
    sub.required = True
    for name, help_text in COMMANDS:
        each = sub.add_parser(name, help=help_text)
        each.add_argument("text")
        each.add_argument("--encoding", default="utf-8")
    return parser


if __name__ == "__main__":
    print(build().parse_args())
