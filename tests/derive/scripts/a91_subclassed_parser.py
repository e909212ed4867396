import argparse
import sys


class Parser(argparse.ArgumentParser):
    def __init__(self, *args, **kwargs):
        kwargs.setdefault("formatter_class", argparse.ArgumentDefaultsHelpFormatter)
        super().__init__(*args, **kwargs)
        self.add_argument("--log", default="warning")

    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(3, message)

    def add_flag(self, name, **named):
        return self.add_argument(name, action="store_true", **named)


parser = Parser(description="Weigh things")
parser.add_flag("--metric")
parser.add_argument("weights", nargs="+", type=float)
below = parser.add_argument_group("scales")
below.add_argument("--scale", type=int, default=1)
parser.parse_args()
