import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--once", nargs=argparse.OPTIONAL, const="yes")
parser.add_argument("--many", nargs=argparse.ZERO_OR_MORE, type=int, default=[1, 2])
parser.add_argument("--some", nargs=argparse.ONE_OR_MORE, default=argparse.SUPPRESS)
parser.add_argument("command")
parser.add_argument("words", nargs=argparse.REMAINDER)
parser.parse_args()
