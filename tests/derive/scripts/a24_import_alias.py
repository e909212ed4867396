import argparse as ap
from pathlib import Path as P


def cli():
    p = ap.ArgumentParser(prog="alias", formatter_class=ap.RawDescriptionHelpFormatter, description="""
    Show the size of things.

    Example:
        alias a b
    """)
    add = p.add_argument
    add("things", nargs="*", type=P)
    add("--human", action="store_true")
    return p


if __name__ == "__main__":
    print(cli().parse_args())
