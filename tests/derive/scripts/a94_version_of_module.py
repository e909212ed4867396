"""Name the stars.

Usage examples are further below.
"""
import argparse

__version__ = "2.1"
__author__ = "An astronomer"

PARSER = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
PARSER.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
PARSER.add_argument("--limit", "-n", type=int, default=5, metavar="N")
PARSER.add_argument("star", nargs="*")


def run(options):
    print(options)


if __name__ == "__main__":
    run(PARSER.parse_args())
