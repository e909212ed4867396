#!/usr/bin/env python3
import argparse

KINDS = ("fast", "slow")

parser = argparse.ArgumentParser()
parser.add_argument("names", nargs="+")
for kind in KINDS:
    parser.add_argument(f"--no-{kind}", action="store_true")
parser.add_argument("--run", nargs=argparse.REMAINDER)

if __name__ == "__main__":
    print(parser.parse_args())
