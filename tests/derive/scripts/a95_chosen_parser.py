import argparse

READERS = {}


def reader(function):
    READERS[function.__name__] = function
    return function


@reader
def plain(parser):
    parser.add_argument("--lines", type=int)


@reader
def table(parser):
    parser.add_argument("--columns", nargs="*")


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="reader", required=True)
    for name, declare in READERS.items():
        declare(commands.add_parser(name))
    parser.parse_args()


if __name__ == "__main__":
    main()
