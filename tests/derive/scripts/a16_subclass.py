#!/usr/bin/env python3
import argparse

import sys


class HelpfulParser(argparse.ArgumentParser):
    def error(self, message):
        sys.stderr.write(f"error: {message}\n")
        self.print_help()
        sys.exit(2)


class ToolParser(HelpfulParser):
    def __init__(self):
        super().__init__(description="A parser of its own")
        self.add_argument("--alpha", type=float, default=0.1)
        self.add_argument("name")


parser = ToolParser()
parser.add_argument("--beta", type=float)
if len(sys.argv) > 99:
    parser.print_help()
    sys.exit(1)
print(parser.parse_args())
