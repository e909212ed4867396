import argparse

parser = argparse.ArgumentParser()
source = parser.add_mutually_exclusive_group(required=True)
source.add_argument("path", nargs="?")
source.add_argument("--text")
source.add_argument("--clipboard", action="store_true")
target = parser.add_argument_group("target").add_mutually_exclusive_group()
target.add_argument("--print", dest="shown", action="store_true")
target.add_argument("--save", metavar="FILE")
parser.parse_args()
