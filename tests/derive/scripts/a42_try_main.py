#!/usr/bin/env python3
import argparse

import sys


def parse_arguments(args=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", required=True)
    parser.add_argument("--second", default="b", type=str)
    return parser.parse_args(args)


def main():
    try:
        args = parse_arguments()
    except SystemExit:
        raise
    except Exception as error:
        print(error, file=sys.stderr)
        return 1
    with open("/dev/null") as handle:
        handle.read()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
