"""Choose a tool; it reads the rest of the words itself."""
import argparse
import sys


def cut(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--deep", action="store_true")
    return parser.parse_args(words)


def main(words):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=["cut", "paste"])
    args, rest = parser.parse_known_args(words)
    tools = {"cut": cut, "paste": print}
    tools[args.tool](rest)


if __name__ == "__main__":
    main(sys.argv[1:])
