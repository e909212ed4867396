import argparse
import sys

parser = argparse.ArgumentParser()
if sys.version_info >= (3, 9):
    parser.add_argument("--cache", action=argparse.BooleanOptionalAction, default=True)
else:
    parser.add_argument("--no-cache", dest="cache", action="store_false")
if sys.version_info[0] < 3:
    parser.add_argument("--unicode", action="store_true")
if hasattr(argparse, "BooleanOptionalAction"):
    parser.add_argument("--sync", action=argparse.BooleanOptionalAction)
parser.parse_args()
