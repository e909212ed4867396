import argparse


def main():
    early = argparse.ArgumentParser(add_help=False)
    early.add_argument("--config", metavar="FILE", help="Where the defaults are")
    known, rest = early.parse_known_args()
    defaults = {"colour": "blue"}
    if known.config:
        defaults.update(line.split("=") for line in open(known.config))
    parser = argparse.ArgumentParser(parents=[early], description="Paint a wall")
    parser.set_defaults(**defaults)
    parser.add_argument("--colour")
    parser.add_argument("--layers", type=int, default=2)
    return parser.parse_args(rest)


if __name__ == "__main__":
    main()
